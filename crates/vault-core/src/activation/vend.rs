//! Forms in which credentials are issued.

use crate::check::CheckReason;
use crate::credential::{CredentialData, CredentialType, Gcs};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Form that an integration requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum VendMode {
    /// The saved credential.
    #[default]
    Raw,
    /// Something short-lived in its place, or nothing.
    Short,
    /// A short-lived credential if possible, otherwise the saved one.
    PreferShort,
}

named!(VendMode);

/// Form in which a credential was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum VendedForm {
    /// The saved credential.
    Raw,
    /// A short-lived credential instead.
    Short,
}

named!(VendedForm);

/// Forms in which a credential may be issued, regardless of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum VendRule {
    /// All forms.
    #[default]
    Any,
    /// Only a short-lived form.
    Short,
}

named!(VendRule);

impl VendRule {
    /// Returns the rule of new credentials of type `kind` if the request names none.
    pub const fn default_of(kind: CredentialType) -> Self {
        if kind.is_keyless() { Self::Short } else { Self::Any }
    }

    /// Returns whether a credential with this rule may be issued in `form`.
    pub fn permits(self, form: VendedForm) -> bool {
        self == Self::Any || form == VendedForm::Short
    }

    /// Returns the effective mode if `asked` is requested.
    #[must_use]
    pub const fn limit(self, asked: VendMode) -> VendMode {
        match self {
            Self::Any => asked,
            Self::Short => VendMode::Short,
        }
    }
}

/// Checks whether type and data have a short-lived form. A storage provider is called only if they do.
///
/// # Errors
/// [`CheckReason::TypeHasNone`], [`CheckReason::NoRole`], [`CheckReason::NoApplication`], [`CheckReason::NoContainer`],
/// [`CheckReason::NoAccount`] or [`CheckReason::TooManyBuckets`].
pub fn allows_short(data: &CredentialData) -> Result<(), CheckReason> {
    match data {
        CredentialData::DirectLink(_) => Err(CheckReason::TypeHasNone),
        CredentialData::S3(data) if !data.allows_session() => Err(CheckReason::NoRole),
        CredentialData::AzureIdentity(data) if data.application().is_none() => Err(CheckReason::NoApplication),
        // Without a container, only the application's own token could be issued.
        CredentialData::AzureIdentity(data) if data.container.is_none() => Err(CheckReason::NoContainer),
        CredentialData::AzureIdentity(data) if data.connection_string.account_name().is_none() => {
            Err(CheckReason::NoAccount)
        }
        CredentialData::Gcs(data) if data.bucket.len() > Gcs::MAX_NARROWED => Err(CheckReason::TooManyBuckets),
        CredentialData::GcsFederated(data) if data.bucket.len() > Gcs::MAX_NARROWED => Err(CheckReason::TooManyBuckets),
        CredentialData::S3(_)
        | CredentialData::AzureIdentity(_)
        | CredentialData::Gcs(_)
        | CredentialData::S3Federated(_)
        | CredentialData::AzureFederated(_)
        | CredentialData::GcsFederated(_) => Ok(()),
    }
}
