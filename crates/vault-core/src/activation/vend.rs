//! The form in which credentials are issued.

use crate::check::CheckReason;
use crate::credential::CredentialData;

/// The form that an integration asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VendMode {
    /// What was saved.
    #[default]
    Raw,
    /// Something short-lived in its place, or nothing.
    Short,
    /// A short-lived credential where possible, else the saved one.
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
    /// A short-lived credential instead.
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

    /// Returns the form with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Raw, Self::Short].into_iter().find(|form| form.as_str() == text)
    }
}

/// In which forms a credential may be handed out, whatever an integration asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VendRule {
    /// In every form.
    #[default]
    Any,
    /// Only as something short-lived made from it.
    Short,
}

impl VendRule {
    /// The rule's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Short => "short",
        }
    }

    /// The rule of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Any, Self::Short].into_iter().find(|rule| rule.as_str() == text)
    }

    /// Whether a credential under this rule may be handed out in `form`.
    pub fn permits(self, form: VendedForm) -> bool {
        self == Self::Any || form == VendedForm::Short
    }

    /// The mode that holds where `asked` is asked for.
    #[must_use]
    pub const fn limit(self, asked: VendMode) -> VendMode {
        match self {
            Self::Any => asked,
            Self::Short => VendMode::Short,
        }
    }
}

/// Whether type and data have a short-lived form at all; only then is a storage provider asked for one.
///
/// # Errors
/// [`CheckReason::TypeHasNone`], [`CheckReason::NoRole`], [`CheckReason::NoApplication`], [`CheckReason::NoContainer`] or
/// [`CheckReason::NoAccount`].
pub fn allows_short(data: &CredentialData) -> Result<(), CheckReason> {
    match data {
        CredentialData::DirectLink(_) => Err(CheckReason::TypeHasNone),
        CredentialData::S3(data) if !data.allows_session() => Err(CheckReason::NoRole),
        CredentialData::AzureIdentity(data) if data.application().is_none() => Err(CheckReason::NoApplication),
        // Without a container, all there is to hand out is the application's own token.
        CredentialData::AzureIdentity(data) if data.container.is_none() => Err(CheckReason::NoContainer),
        CredentialData::AzureIdentity(data) if data.connection_string.account_name().is_none() => {
            Err(CheckReason::NoAccount)
        }
        CredentialData::S3(_) | CredentialData::AzureIdentity(_) | CredentialData::Gcs(_) => Ok(()),
    }
}
