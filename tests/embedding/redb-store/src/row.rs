//! The stored rows, as JSON. Every secret part is already sealed.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vault_core::activation::VendRule;
use vault_core::credential::{CredentialType, Superseded, VersionList};
use vault_core::decision::{ChangeEffects, CredentialFacts, VersionEffect};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::organization::OrganizationName;
use vault_core::port::{
    PreviousVersion, SaveCredential, StoredCredential, StoredMetadata, StoredVersion, StoredVersions,
};
use vault_core::sealed::{
    Blob, InstanceKeyPurpose, InstanceKeyRecord, InstanceRecord, KeyState, OrganizationKeyRecord, OrganizationKeys,
    ReboundKeys, SealedCredential, SealedMetadata,
};
use vault_core::time::Timestamp;

type Id = [u8; 16];

#[derive(Serialize, Deserialize)]
pub(crate) struct Organization {
    pub(crate) open: bool,
    name: String,
    fingerprint_key: Id,
    fingerprint_wrapped: Vec<u8>,
    pub(crate) keys: Vec<Key>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) id: Id,
    pub(crate) active: bool,
    wrapped: Vec<u8>,
    pub(crate) uses: i64,
    created_at: i64,
}

impl Organization {
    pub(crate) fn new(keys: &OrganizationKeys) -> Self {
        Self {
            open: true,
            name: keys.name.as_str().to_owned(),
            fingerprint_key: *keys.fingerprint_key.as_bytes(),
            fingerprint_wrapped: keys.fingerprint_wrapped.as_bytes().to_vec(),
            keys: keys.keys.iter().map(Key::new).collect(),
        }
    }

    pub(crate) fn active_key(&self) -> Option<KeyId> {
        self.keys.iter().find(|key| key.active).map(|key| KeyId::from_bytes(key.id))
    }

    pub(crate) fn active_row(&mut self, id: KeyId) -> Option<&mut Key> {
        self.keys.iter_mut().find(|key| key.active && key.id == *id.as_bytes())
    }

    /// Stores the wrap of the fingerprint key after a change of the keys. `false`: they were changed in the meantime.
    pub(crate) fn rebind(&mut self, wrap: &ReboundKeys) -> bool {
        let as_read = self.fingerprint_wrapped == wrap.before.as_bytes();
        if as_read {
            self.fingerprint_wrapped = wrap.after.as_bytes().to_vec();
        }
        as_read
    }

    /// Returns `None` if the stored name is invalid.
    pub(crate) fn keys(&self, organization: OrganizationId) -> Option<OrganizationKeys> {
        let key = |row: &Key| OrganizationKeyRecord {
            organization,
            id: KeyId::from_bytes(row.id),
            state: if row.active { KeyState::Active } else { KeyState::Retiring },
            wrapped: Blob::from_bytes(row.wrapped.clone()),
            uses: row.uses,
            created_at: Timestamp::from_millis(row.created_at),
        };
        Some(OrganizationKeys {
            name: OrganizationName::parse(&self.name).ok()?,
            fingerprint_key: KeyId::from_bytes(self.fingerprint_key),
            fingerprint_wrapped: Blob::from_bytes(self.fingerprint_wrapped.clone()),
            keys: self.keys.iter().map(key).collect(),
        })
    }
}

impl Key {
    pub(crate) fn new(key: &OrganizationKeyRecord) -> Self {
        Self {
            id: *key.id.as_bytes(),
            active: key.state == KeyState::Active,
            wrapped: key.wrapped.as_bytes().to_vec(),
            uses: key.uses,
            created_at: key.created_at.as_millis(),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Instance {
    id: Id,
    pub(crate) root_key: Id,
    instance_key: Id,
    pub(crate) wrapped: Vec<u8>,
    keyring: Vec<u8>,
    created_at: i64,
    keys: Vec<(Id, String, Vec<u8>, i64)>,
}

impl Instance {
    pub(crate) fn new(record: &InstanceRecord, keys: &[InstanceKeyRecord]) -> Self {
        let key = |key: &InstanceKeyRecord| {
            let (id, purpose) = (*key.id.as_bytes(), key.purpose.as_str().to_owned());
            (id, purpose, key.wrapped.as_bytes().to_vec(), key.created_at.as_millis())
        };
        Self {
            id: *record.id.as_bytes(),
            root_key: *record.root_key.as_bytes(),
            instance_key: *record.instance_key.as_bytes(),
            wrapped: record.wrapped.as_bytes().to_vec(),
            keyring: record.keyring.as_bytes().to_vec(),
            created_at: record.created_at.as_millis(),
            keys: keys.iter().map(key).collect(),
        }
    }

    pub(crate) fn record(&self) -> InstanceRecord {
        InstanceRecord {
            id: vault_core::id::InstanceId::from_bytes(self.id),
            root_key: KeyId::from_bytes(self.root_key),
            instance_key: KeyId::from_bytes(self.instance_key),
            wrapped: Blob::from_bytes(self.wrapped.clone()),
            keyring: Blob::from_bytes(self.keyring.clone()),
            created_at: Timestamp::from_millis(self.created_at),
        }
    }

    /// Returns `None` if a purpose is unknown, because the row is then damaged.
    pub(crate) fn keys(&self) -> Option<Vec<InstanceKeyRecord>> {
        let key = |(id, purpose, wrapped, created_at): &(Id, String, Vec<u8>, i64)| {
            Some(InstanceKeyRecord {
                id: KeyId::from_bytes(*id),
                purpose: InstanceKeyPurpose::parse(purpose)?,
                wrapped: Blob::from_bytes(wrapped.clone()),
                created_at: Timestamp::from_millis(*created_at),
            })
        };
        let mut keys = self.keys.iter().map(key).collect::<Option<Vec<_>>>()?;
        keys.sort_by_key(|key| (key.created_at, key.id));
        Some(keys)
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Credential {
    kind: String,
    namespace: String,
    created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) revision: i64,
    pub(crate) expires_at: Option<i64>,
    vend: String,
    pub(crate) code: [u8; 32],
    metadata: Option<(Id, i64, Vec<u8>)>,
    labels: Vec<[u8; 32]>,
    pub(crate) current: i64,
    pub(crate) highest: i64,
    pub(crate) listed: Vec<u8>,
    pub(crate) versions: BTreeMap<i64, Version>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Version {
    created_at: i64,
    /// The times when it was superseded and when it is destroyed.
    pub(crate) superseded: Option<(i64, i64)>,
    key: Id,
    data_key: Vec<u8>,
    data: Vec<u8>,
    information: Vec<u8>,
}

impl Version {
    fn new(sealed: &SealedCredential, now: Timestamp) -> Self {
        Self {
            created_at: now.as_millis(),
            superseded: None,
            key: *sealed.key.as_bytes(),
            data_key: sealed.data_key.as_bytes().to_vec(),
            data: sealed.data.as_bytes().to_vec(),
            information: sealed.information.as_bytes().to_vec(),
        }
    }

    pub(crate) fn superseded(&self) -> Option<Superseded> {
        let (at, destroy_at) = self.superseded?;
        Some(Superseded { at: Timestamp::from_millis(at), destroy_at: Timestamp::from_millis(destroy_at) })
    }
}

impl Credential {
    pub(crate) fn new(payload: &SaveCredential, now: Timestamp) -> Self {
        let mut row = Self {
            kind: payload.kind.as_str().to_owned(),
            namespace: payload.namespace.to_string(),
            created_at: now.as_millis(),
            updated_at: now.as_millis(),
            revision: 1,
            expires_at: payload.expires_at.map(Timestamp::as_millis),
            vend: String::new(),
            code: *payload.code.as_bytes(),
            metadata: None,
            labels: Vec::new(),
            current: payload.version,
            highest: payload.version,
            listed: payload.listed.as_bytes().to_vec(),
            versions: BTreeMap::from([(payload.version, Version::new(&payload.sealed, now))]),
        };
        row.describe(&payload.description);
        row
    }

    pub(crate) fn describe(&mut self, said: &StoredMetadata) {
        self.vend = said.vend.as_str().to_owned();
        self.metadata =
            said.metadata.as_ref().map(|said| (*said.key.as_bytes(), said.revision, said.blob.as_bytes().to_vec()));
        self.labels = said.labels.iter().map(|label| *label.as_bytes()).collect();
    }

    pub(crate) fn labels(&self) -> Vec<Digest> {
        self.labels.iter().copied().map(Digest::from_bytes).collect()
    }

    pub(crate) fn metadata(&self) -> Option<SealedMetadata> {
        let (key, revision, blob) = self.metadata.as_ref()?;
        Some(SealedMetadata { key: KeyId::from_bytes(*key), revision: *revision, blob: Blob::from_bytes(blob.clone()) })
    }

    pub(crate) fn facts(&self) -> CredentialFacts {
        CredentialFacts {
            revision: self.revision,
            version: self.current,
            staged: self.staged(),
            highest: self.highest,
            metadata_key: self.metadata.as_ref().map(|(key, ..)| KeyId::from_bytes(*key)),
        }
    }

    pub(crate) fn change(&mut self, effects: &ChangeEffects<'_>, now: Timestamp) {
        match effects.version {
            VersionEffect::Keep => {}
            VersionEffect::Stage(new) => {
                self.versions.insert(new.number, Version::new(&new.sealed, now));
            }
            VersionEffect::Replace(new, superseded) => {
                self.versions.insert(new.number, Version::new(&new.sealed, now));
                self.make_current(new.number, superseded);
            }
            VersionEffect::Promote(number, superseded) => self.make_current(number, superseded),
        }
        self.versions.retain(|number, _| !effects.destroyed.contains(number));
        (self.highest, self.revision) = (effects.highest, effects.revision);
    }

    fn make_current(&mut self, number: i64, superseded: Superseded) {
        if let Some(before) = self.versions.get_mut(&self.current) {
            before.superseded = Some((superseded.at.as_millis(), superseded.destroy_at.as_millis()));
        }
        if let Some(current) = self.versions.get_mut(&number) {
            current.superseded = None;
        }
        self.current = number;
    }

    fn staged(&self) -> Option<i64> {
        self.others().find(|(_, version)| version.superseded.is_none()).map(|(number, _)| number)
    }

    fn others(&self) -> impl Iterator<Item = (i64, &Version)> {
        self.versions.iter().map(|(number, version)| (*number, version)).filter(|(number, _)| *number != self.current)
    }

    /// Returns `None` if the row contains an invalid value.
    pub(crate) fn stored(&self, id: CredentialId) -> Option<StoredCredential> {
        let current = self.versions.get(&self.current)?;
        Some(StoredCredential {
            id,
            kind: CredentialType::parse(&self.kind)?,
            namespace: Namespace::parse(&self.namespace, "").ok()?,
            version: self.current,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            revision: self.revision,
            staged: self.staged(),
            previous: self
                .others()
                .filter_map(|(number, version)| Some((version.superseded()?, number)))
                .max_by_key(|(superseded, number)| (superseded.at, *number))
                .map(|(superseded, number)| PreviousVersion { number, until: superseded.destroy_at }),
            highest: self.highest,
            listed: VersionList::from_bytes(self.listed.clone()),
            expires_at: self.expires_at.map(Timestamp::from_millis),
            vend: VendRule::parse(&self.vend)?,
            code: Digest::from_bytes(self.code),
            metadata: self.metadata(),
            check: None, // there is no activation side
            last_activated_at: None,
            key: KeyId::from_bytes(current.key),
            information: Blob::from_bytes(current.information.clone()),
        })
    }

    pub(crate) fn versions(&self, id: CredentialId) -> Option<StoredVersions> {
        let other = |(number, version): (i64, &Version)| StoredVersion {
            number,
            created_at: Timestamp::from_millis(version.created_at),
            superseded: version.superseded(),
            check: None,
            key: KeyId::from_bytes(version.key),
            information: Blob::from_bytes(version.information.clone()),
        };
        Some(StoredVersions {
            current: self.stored(id)?,
            created_at: Timestamp::from_millis(self.versions.get(&self.current)?.created_at),
            others: self.others().map(other).collect(),
        })
    }
}

/// An executed request.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) body: [u8; 32],
    pub(crate) credential: Id,
    pub(crate) version: i64,
    /// A service of your own forgets it after 24 hours.
    pub(crate) at: i64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct HourlyLimit {
    pub(crate) count: u32,
    pub(crate) since: Option<i64>,
}

/// An audit entry. Its stored fields determine what [`vault_core::port::AuditTrail`] can read and verify.
#[derive(Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) organization: Option<Id>,
    pub(crate) action: String,
    at: i64,
    actor: String,
    account: Option<String>,
    subject: String,
    count: i64,
    namespace: Option<String>,
    request: Option<String>,
    rows: Option<String>,
    key: Id,
    code: [u8; 32],
}

impl Entry {
    pub(crate) fn new(sealed: &vault_core::audit::SealedAuditRecord) -> Self {
        let entry = sealed.to_entry();
        Self {
            organization: sealed.record.organization.map(|id| *id.as_bytes()),
            action: entry.action,
            at: entry.at.as_millis(),
            actor: entry.actor,
            account: entry.account,
            subject: entry.subject,
            count: entry.count,
            namespace: entry.namespace,
            request: entry.request,
            rows: entry.rows,
            key: *sealed.key.as_bytes(),
            code: *sealed.code.as_bytes(),
        }
    }
}
