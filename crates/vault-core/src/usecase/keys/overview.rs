//! Overview of the keys.

use super::Keys;
use super::rotate_instance::retiring;
use crate::error::Error;
use crate::id::{InstanceId, KeyId};
use crate::keyring::{KeyPurpose, KeyringEntry};
use crate::operation::CountUnder;
use crate::organization::{CountSealed, KEY_REPLACED_AT, ListOrganizations, Organization, ReadKeyUses};
use crate::sealed::{KeyState, WrappedKey};
use crate::time::Timestamp;

/// The keys of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyOverview {
    /// ID of the instance.
    pub instance: InstanceId,
    /// Root key that wraps the instance key.
    pub root_key: KeyId,
    /// ID of the instance key.
    pub instance_key: KeyId,
    /// Replaced instance keys, oldest first.
    pub retiring: Vec<RetiringInstance>,
    /// Keys of the other purposes: for each, the active key and the replaced ones.
    pub purposes: Vec<PurposeKeyOverview>,
    /// Keys of the organizations, ordered by name.
    pub organizations: Vec<OrganizationKeyOverview>,
}

/// An instance key that only decrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetiringInstance {
    /// ID of the key.
    pub key: KeyId,
    /// Time at which a successor replaced it.
    pub retired_at: Timestamp,
    /// Number of rows that still depend on it.
    pub rows: i64,
}

/// A key for tokens, the audit log or lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurposeKeyOverview {
    /// The key, with the time since which it is active or retiring.
    pub entry: KeyringEntry,
    /// Number of rows that still require it, according to
    /// [`count_under`](crate::port::InstanceRows::count_under). Only for a retiring key.
    pub rows: i64,
}

/// The keys of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationKeyOverview {
    /// The organization.
    pub organization: Organization,
    /// ID of the active key.
    pub active: KeyId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Number of its reserved uses.
    pub uses: i64,
    /// Keys that only decrypt, oldest first.
    pub retiring: Vec<RetiringKey>,
}

/// A key that only decrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetiringKey {
    /// ID of the key.
    pub key: KeyId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Number of credentials that are still sealed with it.
    pub credentials: i64,
}

impl KeyOverview {
    /// Number of uses after which a key is replaced.
    pub const REPLACED_AT: i64 = KEY_REPLACED_AT;
}

impl Keys {
    /// Returns the overview of all keys. Skips organizations that are deleted concurrently.
    ///
    /// # Errors
    /// The store failed, or an organization does not have exactly one active key.
    pub async fn overview(&self) -> Result<KeyOverview, Error> {
        let (instance, entries) = self.keyring().await?;
        let mut retiring_instance = Vec::new();
        for entry in retiring(&entries) {
            let rows = self.run(CountUnder(entry)).await?;
            retiring_instance.push(RetiringInstance { key: entry.id, retired_at: entry.since, rows });
        }
        let mut purposes = Vec::new();
        for entry in entries.into_iter().filter(|entry| entry.purpose != KeyPurpose::Instance) {
            let rows = if entry.state == KeyState::Retiring { self.run(CountUnder(entry)).await? } else { 0 };
            purposes.push(PurposeKeyOverview { entry, rows });
        }
        let mut organizations = Vec::new();
        for organization in self.run(ListOrganizations).await? {
            let uses = self.run(ReadKeyUses(organization.id)).await?;
            let WrappedKey { id, created_at, .. } = organization.keys.active;
            let mut sealing = Vec::new();
            for key in &organization.keys.retiring {
                let credentials = self.run(CountSealed(organization.id, key.id)).await?;
                sealing.push(RetiringKey { key: key.id, created_at: key.created_at, credentials });
            }
            organizations.push(OrganizationKeyOverview {
                organization,
                active: id,
                created_at,
                uses,
                retiring: sealing,
            });
        }
        Ok(KeyOverview {
            instance: instance.id,
            root_key: instance.root_key,
            instance_key: instance.instance_key,
            retiring: retiring_instance,
            purposes,
            organizations,
        })
    }
}
