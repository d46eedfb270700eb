//! Rows of credentials.

use super::{CardContext, CredentialContext, SealError, Sealer};
use crate::activation::VendRule;
use crate::credential::{Card, CardVersion, CredentialType, LastCheck};
use crate::digest::LookupDigests;
use crate::id::{AccountId, CredentialId, OrganizationId};
use crate::namespace::Namespace;
use crate::organization::Organization;
use crate::sealed::Blob;
use crate::time::Timestamp;

/// An idempotency key of an account, with the request that used it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The account that used the key.
    pub account: AccountId,
    /// The key: 1 to 255 visible ASCII characters.
    pub key: String,
    /// Keyed digests of the body of that request.
    pub body: LookupDigests,
}

/// A stored credential without its data. Type, namespace, version, vend rule and expiry are copies of values in the card, for
/// indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCredential {
    /// ID of the credential.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its current version.
    pub version: i64,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
    /// Expiry, if known.
    pub expires_at: Option<Timestamp>,
    /// Time of the save. Not authenticated, as the time of the last change, because they are only shown.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Number of changes by clients, including the save. Every [`ChangeCredential`](crate::credential::ChangeCredential)
    /// names the revision that it is based on.
    pub revision: i64,
    /// The sealed card.
    pub card: Blob,
    /// Result of the last check of the current version.
    pub check: Option<LastCheck>,
    /// Time of the last activation, truncated to the minute.
    pub last_activated_at: Option<Timestamp>,
}

impl StoredCredential {
    /// Returns the context to which the card is bound.
    pub const fn context(&self, organization: OrganizationId) -> CardContext {
        CardContext { organization, credential: self.id, revision: self.revision }
    }

    /// Returns the context to which the data of a version is bound.
    pub const fn data_context(&self, organization: OrganizationId, version: &CardVersion) -> CredentialContext {
        CredentialContext { organization, credential: self.id, version: version.number, id: version.id }
    }

    /// Opens its card.
    ///
    /// # Errors
    /// The card does not open, or differs from the columns of the row.
    pub fn open(&self, sealer: &dyn Sealer, owner: &Organization) -> Result<Card, SealError> {
        let card = sealer.open_card(&owner.keys, self.context(owner.id), &self.card)?;
        if self.fits(&card) { Ok(card) } else { Err(SealError::changed_credential(self.id)) }
    }

    fn fits(&self, card: &Card) -> bool {
        (self.kind, self.version, self.vend) == (card.kind, card.current.number, card.vend)
            && self.namespace == card.namespace
            && self.expires_at == card.expires_at()
    }
}

/// A staged or previous version of a credential, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// Version number.
    pub number: i64,
    /// Time from which it counts as destroyed. `None` if it is staged.
    pub destroy_at: Option<Timestamp>,
    /// Result of the last check.
    pub check: Option<LastCheck>,
}

/// A credential with its other versions, read in one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersions {
    /// The credential, with its current version.
    pub current: StoredCredential,
    /// The other versions, ordered by number.
    pub others: Vec<StoredVersion>,
}

impl StoredVersions {
    /// Returns the number of the staged version, if any.
    pub fn staged(&self) -> Option<i64> {
        self.others.iter().find(|version| version.destroy_at.is_none()).map(|version| version.number)
    }

    /// Returns whether a version other than the current one exists and is not past its retention.
    pub fn is_kept(&self, number: i64, now: Timestamp) -> bool {
        let kept = |version: &StoredVersion| version.destroy_at.is_none_or(|at| now < at);
        self.others.iter().any(|version| version.number == number && kept(version))
    }
}
