//! Issued credentials.

use super::{ShortData, VendedForm};
use crate::credential::{CredentialData, CredentialType, SecretBytes};
use crate::field::Invalid;
use crate::json::{self, Limits};
use crate::time::Timestamp;

/// A credential in the form in which it is issued. `Debug` shows only the form.
#[derive(Debug)]
pub enum Vended {
    /// The saved credential.
    Raw(CredentialData),
    /// A short-lived credential instead.
    Short {
        /// The data.
        data: ShortData,
        /// Time from which it is no longer valid.
        expires_at: Timestamp,
    },
}

const INVALID: Invalid = Invalid("the response's data does not match its type and form");

impl Vended {
    /// Returns the type of the credential.
    pub fn kind(&self) -> CredentialType {
        match self {
            Self::Raw(data) => data.kind(),
            Self::Short { data, .. } => data.kind(),
        }
    }

    /// Returns its form.
    pub const fn form(&self) -> VendedForm {
        match self {
            Self::Raw(_) => VendedForm::Raw,
            Self::Short { .. } => VendedForm::Short,
        }
    }

    /// Returns the names of its buckets or container. A link has none.
    pub fn buckets(&self) -> Vec<&str> {
        match self {
            Self::Raw(CredentialData::S3(data)) => data.bucket.iter().collect(),
            Self::Raw(CredentialData::Gcs(data)) => data.bucket.iter().collect(),
            Self::Short { data: ShortData::S3(data), .. } => data.bucket.iter().collect(),
            Self::Short { data: ShortData::Gcs(data), .. } => data.bucket.iter().collect(),
            Self::Raw(CredentialData::AzureIdentity(data)) => data.container.as_deref().into_iter().collect(),
            Self::Short { data: ShortData::AzureIdentity(data), .. } => vec![&data.container],
            // Keyless credentials are never issued in this form.
            Self::Raw(
                CredentialData::DirectLink(_)
                | CredentialData::S3Federated(_)
                | CredentialData::AzureFederated(_)
                | CredentialData::GcsFederated(_),
            ) => Vec::new(),
        }
    }

    /// Keeps only the bucket or container `name`. Returns whether the credential is for it.
    pub fn keep_bucket(&mut self, name: &str) -> bool {
        let buckets = match self {
            Self::Raw(CredentialData::S3(data)) => &mut data.bucket,
            Self::Raw(CredentialData::Gcs(data)) => &mut data.bucket,
            Self::Short { data: ShortData::S3(data), .. } => &mut data.bucket,
            Self::Short { data: ShortData::Gcs(data), .. } => &mut data.bucket,
            Self::Raw(CredentialData::AzureIdentity(data)) => return data.container.as_deref() == Some(name),
            Self::Short { data: ShortData::AzureIdentity(data), .. } => return data.container == name,
            Self::Raw(
                CredentialData::DirectLink(_)
                | CredentialData::S3Federated(_)
                | CredentialData::AzureFederated(_)
                | CredentialData::GcsFederated(_),
            ) => return false,
        };
        let kept = buckets.only(name);
        let is_for_it = kept.is_some();
        if let Some(kept) = kept {
            *buckets = kept;
        }
        is_for_it
    }

    /// Returns the time at which it expires automatically, if it does.
    pub const fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Raw(_) => None,
            Self::Short { expires_at, .. } => Some(*expires_at),
        }
    }

    /// Returns the data as JSON. The data of a saved credential is in canonical form.
    pub fn to_json(&self) -> SecretBytes {
        match self {
            Self::Raw(data) => data.to_canonical_json(),
            Self::Short { data, .. } => {
                // Compute the length first: a buffer that grows would leave copies of secrets in memory.
                let mut length = 0;
                data.write(&mut |piece| length += piece.len());
                let mut bytes = Vec::with_capacity(length);
                data.write(&mut |piece| bytes.extend_from_slice(piece.as_bytes()));
                SecretBytes::from(bytes)
            }
        }
    }

    /// Parses the output of [`Vended::to_json`], for clients. `expires_at` is a separate field of the response.
    ///
    /// # Errors
    /// The bytes are not data of this type and form.
    pub fn from_json(
        kind: CredentialType,
        form: VendedForm,
        expires_at: Option<Timestamp>,
        bytes: &[u8],
    ) -> Result<Self, Invalid> {
        match (form, expires_at) {
            (VendedForm::Raw, _) => {
                CredentialData::from_canonical_json(kind, bytes).map(Self::Raw).map_err(|_| INVALID)
            }
            (VendedForm::Short, Some(expires_at)) => {
                let document = json::parse(bytes, Limits::STORED).map_err(|_| INVALID)?;
                let sound = document.duplicates.is_empty();
                let data = ShortData::read(kind, document.root).filter(|_| sound).ok_or(INVALID)?;
                Ok(Self::Short { data, expires_at })
            }
            (VendedForm::Short, None) => Err(INVALID),
        }
    }
}
