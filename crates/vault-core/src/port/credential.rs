//! Rows of credentials.

use super::{CardContext, CardOpener, CredentialContext, SealError};
use crate::activation::VendRule;
use crate::credential::{Card, CardVersion, CredentialType, LastCheck};
use crate::digest::LookupDigests;
use crate::id::{AccountId, CredentialId, OrganizationId};
use crate::namespace::Namespace;
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

    fn fits(&self, card: &Card) -> bool {
        (self.kind, self.version, self.vend) == (card.kind, card.current.number, card.vend)
            && self.namespace == card.namespace
            && self.expires_at == card.expires_at()
    }
}

/// Opens the cards of rows of one organization, in their order. A card that does not open, or that differs from the columns of its
/// row, results in its own error.
///
/// # Errors
/// The organization's keys cannot be read.
pub async fn open_cards<'a>(
    opener: &dyn CardOpener,
    organization: OrganizationId,
    rows: impl Iterator<Item = &'a StoredCredential> + Clone + Send,
) -> Result<Vec<Result<Card, SealError>>, SealError> {
    let sealed: Vec<_> = rows.clone().map(|row| (row.context(organization), &row.card)).collect();
    let opened = opener.open_cards(organization, &sealed).await?;
    let checked = opened.into_iter().zip(rows).map(|(card, row)| match card {
        Ok(card) if !row.fits(&card) => Err(SealError::changed_credential(row.id)),
        card => card,
    });
    Ok(checked.collect())
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
