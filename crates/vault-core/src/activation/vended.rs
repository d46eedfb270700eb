//! What an integration is handed.

use super::{ShortData, VendedForm};
use crate::credential::{CredentialData, CredentialType, SecretBytes};
use crate::field::Invalid;
use crate::json::{self, Limits};
use crate::time::Timestamp;

/// A credential in the form in which it is issued. `Debug` shows the form only.
#[derive(Debug)]
pub enum Vended {
    /// What was saved.
    Raw(CredentialData),
    /// A short-lived credential instead.
    Short {
        /// The data.
        data: ShortData,
        /// Time from which it is no longer valid.
        expires_at: Timestamp,
    },
}

const INVALID: Invalid = Invalid("the answer's data is not of the shape of its type and form");

impl Vended {
    /// The type of the credential.
    pub fn kind(&self) -> CredentialType {
        match self {
            Self::Raw(data) => data.kind(),
            Self::Short { data, .. } => data.kind(),
        }
    }

    /// Its form.
    pub const fn form(&self) -> VendedForm {
        match self {
            Self::Raw(_) => VendedForm::Raw,
            Self::Short { .. } => VendedForm::Short,
        }
    }

    /// When it ends by itself, where it does.
    pub const fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Raw(_) => None,
            Self::Short { expires_at, .. } => Some(*expires_at),
        }
    }

    /// The data as JSON: of a raw one as it was saved, in its canonical form.
    pub fn to_json(&self) -> SecretBytes {
        match self {
            Self::Raw(data) => data.to_canonical_json(),
            Self::Short { data, .. } => {
                // Measured first: a buffer that grows would leave copies behind.
                let mut length = 0;
                data.write(&mut |piece| length += piece.len());
                let mut bytes = Vec::with_capacity(length);
                data.write(&mut |piece| bytes.extend_from_slice(piece.as_bytes()));
                SecretBytes::from(bytes)
            }
        }
    }

    /// What [`Vended::to_json`] wrote, for the integration's side. `expires_at` is a separate member of the response.
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
