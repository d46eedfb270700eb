//! Rows of credentials.

use super::{CredentialContext, KeyedDigester};
use crate::activation::VendRule;
use crate::credential::{CredentialState, CredentialType, LastCheck, Superseded, VersionList};
use crate::digest::{Digest, LookupDigests};
use crate::id::{AccountId, CredentialId, KeyId, OrganizationId};
use crate::namespace::Namespace;
use crate::sealed::{Blob, SealedMetadata};
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

impl StoredCredential {
    /// Returns the fields that the row's MAC covers.
    pub fn state(&self) -> CredentialState<'_> {
        CredentialState {
            kind: self.kind,
            namespace: &self.namespace,
            vend: self.vend,
            version: self.version,
            staged: self.staged,
            highest: self.highest,
            listed: &self.listed,
            revision: self.revision,
            metadata_revision: self.metadata.as_ref().map(|metadata| metadata.revision),
        }
    }

    /// Returns the context to which the sealed parts of a version are bound.
    pub fn context(&self, organization: OrganizationId, version: i64) -> CredentialContext {
        CredentialContext { organization, credential: self.id, version, id: self.listed.id(version) }
    }

    /// Returns whether the row's MAC verifies.
    pub fn mac_is_valid(&self, digester: &dyn KeyedDigester, organization: OrganizationId) -> bool {
        self.state().fits(digester, (organization, self.id), &self.code)
    }
}

/// Sealed metadata of a credential, with the label digests by which a store finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMetadata {
    /// Sealed labels, description and declared expiries. `None` if there are none.
    pub metadata: Option<SealedMetadata>,
    /// A lookup digest of each label, in any order.
    pub labels: Vec<Digest>,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
}

/// A stored credential without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCredential {
    /// ID of the credential.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its version.
    pub version: i64,
    /// Time of the save.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Number of changes by clients, including the save. Every [`ChangeCredential`](crate::credential::ChangeCredential) names the revision that it is based
    /// on.
    pub revision: i64,
    /// The staged version, if any.
    pub staged: Option<i64>,
    /// Highest version number ever assigned, including destroyed versions. No number is assigned twice.
    pub highest: i64,
    /// The versions that exist.
    pub listed: VersionList,
    /// The version that was current before, unless it was destroyed. It may be past its retention. Not authenticated,
    /// because only lists show it.
    pub previous: Option<PreviousVersion>,
    /// Expiry: the earlier of the declared expiry and the one in the data. Not authenticated, because it only
    /// determines when to warn.
    pub expires_at: Option<Timestamp>,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
    /// [MAC](CredentialState::code) of the row.
    pub code: Digest,
    /// Sealed labels, description and declared expiries.
    pub metadata: Option<SealedMetadata>,
    /// Result of the last check of the current version.
    pub check: Option<LastCheck>,
    /// Time of the last activation, truncated to the minute.
    pub last_activated_at: Option<Timestamp>,
    /// Organization key that sealed the information.
    pub key: KeyId,
    /// The sealed information.
    pub information: Blob,
}

/// The version of a credential that was current before the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousVersion {
    /// Version number.
    pub number: i64,
    /// Time until which it is kept.
    pub until: Timestamp,
}

/// A staged or previous version of a credential, without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// Version number.
    pub number: i64,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time at which it stopped being the current version. `None` if it is staged.
    pub superseded: Option<Superseded>,
    /// Result of the last check.
    pub check: Option<LastCheck>,
    /// Organization key that sealed the information.
    pub key: KeyId,
    /// The sealed information.
    pub information: Blob,
}

/// A credential with its other versions, read in one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersions {
    /// The credential, with its current version.
    pub current: StoredCredential,
    /// Creation time of the current version.
    pub created_at: Timestamp,
    /// The other versions, ordered by number.
    pub others: Vec<StoredVersion>,
}

impl StoredVersions {
    /// Returns whether a version other than the current one exists and is not past its retention.
    pub fn is_kept(&self, number: i64, now: Timestamp) -> bool {
        let kept = |version: &StoredVersion| version.superseded.is_none_or(|superseded| superseded.is_kept(now));
        self.others.iter().any(|version| version.number == number && kept(version))
    }
}
