//! In which form credentials are handed out.

use crate::credential::CredentialData;

/// The form that an integration asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VendMode {
    /// What was saved.
    #[default]
    Raw,
    /// Something short-lived in its place, or nothing.
    Short,
    /// Something short-lived where that is to be had, else what was saved.
    PreferShort,
}

impl VendMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Raw, Self::Short, Self::PreferShort];

    /// The mode's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Short => "short",
            Self::PreferShort => "prefer-short",
        }
    }

    /// The mode of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

/// The form that a credential came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VendedForm {
    /// What was saved.
    Raw,
    /// Something short-lived in its place.
    Short,
}

impl VendedForm {
    /// The form's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Short => "short",
        }
    }

    /// The form of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Raw, Self::Short].into_iter().find(|form| form.as_str() == text)
    }
}

/// Why there is nothing short-lived in a credential's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum VendReason {
    /// Nothing here makes short-lived credentials.
    #[error("short-lived credentials are not set up here")]
    NotConfigured,
    /// The type has none.
    #[error("credentials of this type have no short-lived form")]
    TypeHasNone,
    /// An S3-style credential without a role to take on.
    #[error("the credential names no role to take on: save it with role_arn")]
    NoRole,
    /// Not for as long as was asked for, or not for as short.
    #[error("the store gives no short-lived credential for this lifetime")]
    Lifetime,
    /// The store does not allow it.
    #[error("the store refused to give a short-lived credential")]
    Denied,
    /// The store was not to be reached, or not in time.
    #[error("the store could not be reached")]
    Unreachable,
    /// The store answered something else.
    #[error("the store gave an answer that could not be used")]
    Unexpected,
}

impl VendReason {
    /// The reason's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotConfigured => "not-configured",
            Self::TypeHasNone => "type-has-none",
            Self::NoRole => "no-role",
            Self::Lifetime => "lifetime",
            Self::Denied => "denied",
            Self::Unreachable => "unreachable",
            Self::Unexpected => "unexpected",
        }
    }
}

/// Whether type and data allow something short-lived at all; only then is a store asked for it.
///
/// # Errors
/// Why not.
pub const fn allows_short(data: &CredentialData) -> Result<(), VendReason> {
    match data {
        CredentialData::DirectLink(_) => Err(VendReason::TypeHasNone),
        CredentialData::S3(data) if data.role_arn.is_none() => Err(VendReason::NoRole),
        CredentialData::S3(_) | CredentialData::AzureIdentity(_) | CredentialData::Gcs(_) => Ok(()),
    }
}
