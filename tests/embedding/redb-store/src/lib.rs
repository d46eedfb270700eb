//! The ports of credentials on [redb](https://docs.rs/redb), for a service whose users act as embedders: an adapter that
//! this project does not ship, as an outside team would write it. `tests/contract.rs` proves it.
//!
//! redb has one writer at a time, so each method is one write transaction: it judges, decides and records, and drops the
//! transaction where anything failed.

mod row;

use async_trait::async_trait;
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};
use row::{Credential, Entry, HourlyLimit, Instance, Organization, Request, Version};
use serde::{Serialize, de::DeserializeOwned};
use std::path::Path;
use std::sync::Arc;
use vault_core::audit::SealedAuditRecord;
use vault_core::hourly;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    AuditLog, ChangeCredential, CreateInstance, CredentialChange, CredentialRepository, CredentialUse,
    DeleteCredential, Find, Idempotency, KeyRepository, List, ListCredentials, ListedRows, MatchCredential,
    ReplaceOrganizationKey, ReplaceRootKey, RequestCheck, SaveCredential, StoreError, StoredCredential, StoredVersions,
    TakeKeyUses, UsePosition,
};
use vault_core::principal::{Denial, Principal};
use vault_core::sealed::{InstanceKeyRecord, InstanceRecord, OrganizationKeys, RetiringInstanceKey};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

type Table = TableDefinition<'static, &'static [u8], &'static [u8]>;

const INSTANCE: Table = Table::new("instance");
/// By organization.
const ORGANIZATIONS: Table = Table::new("organizations");
/// By organization and credential; ids ascend, so a range backwards is the newest first.
const CREDENTIALS: Table = Table::new("credentials");
/// By organization, account and key.
const REQUESTS: Table = Table::new("requests");
/// By organization and credential.
const COMPARISONS: Table = Table::new("comparisons");
/// By id.
const AUDIT: Table = Table::new("audit");
/// Whatever belongs to one organization.
const OWNED: [Table; 4] = [ORGANIZATIONS, CREDENTIALS, REQUESTS, COMPARISONS];

/// The store.
pub struct RedbStore {
    database: Arc<Database>,
}

impl RedbStore {
    /// Opens the database in a file, or makes it.
    ///
    /// # Errors
    /// The file is no database, is damaged or cannot be written.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { database: Arc::new(Database::create(path).map_err(fault)?) })
    }

    /// One decision. Blocking work goes to threads that may block; dropping the call does not undo it.
    async fn decide<T: Send + 'static>(
        &self,
        decision: impl FnOnce(&Rows) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let database = Arc::clone(&self.database);
        let decided = tokio::task::spawn_blocking(move || {
            let rows = Rows(database.begin_write().map_err(unavailable)?);
            let outcome = decision(&rows)?;
            rows.0.commit().map_err(unavailable)?;
            Ok(outcome)
        });
        decided.await.map_err(fault)?
    }

    /// Adds an organization with its keys, and the record of it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn add_organization(
        &self,
        id: OrganizationId,
        keys: OrganizationKeys,
        audit: SealedAuditRecord,
    ) -> Result<(), StoreError> {
        self.decide(move |rows| {
            rows.put(ORGANIZATIONS, id.as_bytes(), &Organization::new(&keys))?;
            rows.record(&audit)
        })
        .await
    }

    /// Closes an organization, or opens it again.
    ///
    /// # Errors
    /// The store failed.
    pub async fn set_open(&self, id: OrganizationId, open: bool) -> Result<(), StoreError> {
        self.decide(move |rows| {
            let Some(mut row) = rows.organization(id)? else { return Ok(()) };
            row.open = open;
            rows.put(ORGANIZATIONS, id.as_bytes(), &row)
        })
        .await
    }

    /// Deletes an organization with everything of it, the audit aside.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete_organization(&self, id: OrganizationId) -> Result<(), StoreError> {
        self.decide(move |rows| {
            for table in OWNED {
                for key in rows.keys(table, id.as_bytes())? {
                    rows.remove(table, &key)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// The names of the tables that hold rows of an organization, the audit aside.
    ///
    /// # Errors
    /// The store failed.
    pub async fn tables_of(&self, id: OrganizationId) -> Result<Vec<String>, StoreError> {
        self.decide(move |rows| {
            let mut tables = Vec::new();
            for table in OWNED {
                if !rows.keys(table, id.as_bytes())?.is_empty() {
                    tables.push(redb::TableHandle::name(&table).to_owned());
                }
            }
            Ok(tables)
        })
        .await
    }

    /// The recorded actions of an organization.
    ///
    /// # Errors
    /// The store failed.
    pub async fn recorded(&self, id: OrganizationId) -> Result<Vec<String>, StoreError> {
        self.decide(move |rows| {
            let entries: Vec<(_, Entry)> = rows.scan(AUDIT, &[])?;
            let ours = entries.into_iter().filter(|(_, entry)| entry.organization == Some(*id.as_bytes()));
            Ok(ours.map(|(_, entry)| entry.action).collect())
        })
        .await
    }
}

fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

fn fault(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Fault(Box::new(error))
}

fn damaged(table: &'static str, id: impl ToString) -> StoreError {
    StoreError::Integrity { table, id: id.to_string(), reason: "the row holds a value that it cannot hold" }
}

fn place(organization: OrganizationId, credential: CredentialId) -> Vec<u8> {
    [organization.as_bytes().as_slice(), credential.as_bytes()].concat()
}

/// The rows within one transaction.
struct Rows(WriteTransaction);

impl Rows {
    fn get<T: DeserializeOwned>(&self, table: Table, key: &[u8]) -> Result<Option<T>, StoreError> {
        let table = self.0.open_table(table).map_err(fault)?;
        let row = table.get(key).map_err(unavailable)?;
        row.map(|row| serde_json::from_slice(row.value()).map_err(fault)).transpose()
    }

    fn put(&self, table: Table, key: &[u8], row: &impl Serialize) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(row).map_err(fault)?;
        self.0.open_table(table).map_err(fault)?.insert(key, bytes.as_slice()).map_err(unavailable)?;
        Ok(())
    }

    fn remove(&self, table: Table, key: &[u8]) -> Result<bool, StoreError> {
        let mut table = self.0.open_table(table).map_err(fault)?;
        let removed = table.remove(key).map_err(unavailable)?.is_some();
        Ok(removed)
    }

    /// The rows whose keys begin with `prefix`, in the order of their keys.
    fn scan<T: DeserializeOwned>(&self, table: Table, prefix: &[u8]) -> Result<Vec<(Vec<u8>, T)>, StoreError> {
        let table = self.0.open_table(table).map_err(fault)?;
        let mut found = Vec::new();
        for row in table.range(prefix..).map_err(unavailable)? {
            let (key, value) = row.map_err(unavailable)?;
            if !key.value().starts_with(prefix) {
                break;
            }
            found.push((key.value().to_vec(), serde_json::from_slice(value.value()).map_err(fault)?));
        }
        Ok(found)
    }

    fn keys(&self, table: Table, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
        let rows: Vec<(_, serde::de::IgnoredAny)> = self.scan(table, prefix)?;
        Ok(rows.into_iter().map(|(key, _)| key).collect())
    }

    fn organization(&self, id: OrganizationId) -> Result<Option<Organization>, StoreError> {
        self.get(ORGANIZATIONS, id.as_bytes())
    }

    /// Whether the principal may act: first of all, in every decision.
    fn judge(&self, principal: &Principal) -> Result<(), StoreError> {
        match principal {
            Principal::Embedder(user) => match self.organization(user.organization)? {
                Some(Organization { open: true, .. }) => Ok(()),
                _ => Err(StoreError::Denied(Denial::OrganizationClosed)),
            },
            Principal::Session(_) => Err(StoreError::Denied(Denial::SessionEnded)), // there are none
            Principal::Operator => Err(StoreError::Denied(Denial::InsufficientRole)),
        }
    }

    /// Writes an entry of the audit. One whose id is taken fails, and with it the decision.
    fn record(&self, sealed: &SealedAuditRecord) -> Result<(), StoreError> {
        let id = sealed.record.id;
        if self.get::<serde::de::IgnoredAny>(AUDIT, id.as_bytes())?.is_some() {
            return Err(StoreError::Fault(format!("the audit has an entry {id}").into()));
        }
        self.put(AUDIT, id.as_bytes(), &Entry::new(sealed))
    }

    /// What the same request came to before. Judged before keys and limits: it holds whatever has changed since.
    fn earlier(
        &self,
        organization: OrganizationId,
        request: Option<&Idempotency>,
    ) -> Result<Option<(CredentialId, i64)>, StoreError> {
        let Some(request) = request else { return Ok(None) };
        let Some(row) = self.get::<Request>(REQUESTS, &request_place(organization, request))? else { return Ok(None) };
        if row.body != *request.body.as_bytes() {
            return Err(Refusal::IdempotencyMismatch.into());
        }
        Ok(Some((CredentialId::from_bytes(row.credential), row.version)))
    }

    fn remember(
        &self,
        organization: OrganizationId,
        request: Option<&Idempotency>,
        (credential, version): (CredentialId, i64),
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(request) = request else { return Ok(()) };
        let (body, credential) = (*request.body.as_bytes(), *credential.as_bytes());
        let row = Request { body, credential, version, at: now.as_millis() };
        self.put(REQUESTS, &request_place(organization, request), &row)
    }

    fn credential(&self, organization: OrganizationId, id: CredentialId) -> Result<Option<Credential>, StoreError> {
        self.get(CREDENTIALS, &place(organization, id))
    }

    /// Refuses what was sealed under a key that is no longer active.
    fn require_active(&self, organization: OrganizationId, keys: &[KeyId]) -> Result<(), StoreError> {
        let active = self.organization(organization)?.and_then(|row| row.active_key());
        if keys.iter().all(|key| active == Some(*key)) { Ok(()) } else { Err(Refusal::Contended.into()) }
    }

    fn save(&self, act: &SaveCredential, now: Timestamp) -> Result<(), StoreError> {
        let metadata = act.description.metadata.as_ref().map(|said| said.key);
        self.require_active(
            act.organization,
            &[Some(act.sealed.key), metadata].into_iter().flatten().collect::<Vec<_>>(),
        )?;
        let there = self.keys(CREDENTIALS, act.organization.as_bytes())?.len();
        if i64::try_from(there).unwrap_or(i64::MAX) >= act.limit {
            return Err(act.limit_reached().into());
        }
        self.put(CREDENTIALS, &place(act.organization, act.id), &Credential::new(act, now))?;
        self.remember(act.organization, act.idempotency.as_ref(), (act.id, act.version), now)
    }

    fn change(&self, act: &ChangeCredential, now: Timestamp) -> Result<i64, StoreError> {
        let ChangeCredential { organization, id, revision, change, description, code, expires_at } = act;
        let new = match change {
            CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => Some(version),
            CredentialChange::Promote { .. } | CredentialChange::Destroy(_) | CredentialChange::Describe => None,
        };
        let idempotency = new.and_then(|version| version.idempotency.as_ref());
        let Some(mut row) = self.credential(*organization, *id)? else { return Err(Refusal::NotFound.into()) };
        if row.revision != *revision {
            return Err(Refusal::Changed.into());
        }
        let said = description.as_ref().and_then(|said| said.metadata.as_ref());
        // Metadata of this revision or before is what the row has already, unless a key rotation moved it meanwhile.
        if said.is_some_and(|said| said.revision <= *revision && row.metadata().as_ref() != Some(said)) {
            return Err(Refusal::Contended.into());
        }
        let said = said.filter(|said| said.revision > *revision).map(|said| said.key);
        self.require_active(*organization, &new.map(|it| it.sealed.key).into_iter().chain(said).collect::<Vec<_>>())?;

        let supersede = |row: &mut Credential, number: i64, destroy_at: Timestamp| {
            if let Some(current) = row.versions.get_mut(&row.current) {
                current.superseded = Some((now.as_millis(), destroy_at.as_millis()));
            }
            if let Some(promoted) = row.versions.get_mut(&number) {
                promoted.superseded = None;
            }
            row.current = number;
        };
        let (number, destroyed): (i64, &[i64]) = match change {
            CredentialChange::Replace { version, destroy_at } => {
                row.versions.insert(version.number, Version::new(&version.sealed, now));
                row.highest = version.number;
                supersede(&mut row, version.number, *destroy_at);
                (version.number, &version.destroyed)
            }
            CredentialChange::Stage(version) => {
                row.versions.insert(version.number, Version::new(&version.sealed, now));
                row.highest = version.number;
                (version.number, &version.destroyed)
            }
            CredentialChange::Promote { number, destroy_at, destroyed } => {
                supersede(&mut row, *number, *destroy_at);
                (*number, destroyed)
            }
            CredentialChange::Destroy(number) => (*number, std::slice::from_ref(number)),
            CredentialChange::Describe => (row.current, &[]),
        };
        row.versions.retain(|number, _| !destroyed.contains(number));
        if let Some(said) = description {
            row.describe(said);
        }
        row.code = *code.as_bytes();
        row.expires_at = expires_at.map(Timestamp::as_millis);
        row.revision += 1;
        row.updated_at = now.as_millis();
        self.put(CREDENTIALS, &place(*organization, *id), &row)?;
        self.remember(*organization, idempotency, (*id, number), now)?;
        Ok(number)
    }
}

fn request_place(organization: OrganizationId, request: &Idempotency) -> Vec<u8> {
    [organization.as_bytes(), request.account.as_bytes(), request.key.as_bytes()].concat()
}

#[async_trait]
impl CredentialRepository for RedbStore {
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        self.decide(move |rows| {
            rows.judge(&command.principal)?;
            let act = &command.act;
            if let Some((earlier, _)) = rows.earlier(act.organization, act.idempotency.as_ref())? {
                return Ok(earlier);
            }
            rows.save(act, command.now)?;
            rows.record(&command.audit)?;
            Ok(act.id)
        })
        .await
    }

    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError> {
        self.decide(move |rows| {
            rows.judge(&query.principal)?;
            rows.earlier(query.of, query.key.as_ref())
        })
        .await
    }

    async fn list_credentials(&self, query: ListCredentials) -> Result<ListedRows, StoreError> {
        self.decide(move |rows| {
            rows.judge(&query.principal)?;
            let mut found = Vec::new();
            for (id, row) in rows.credentials(query.organization)? {
                let stored = row.stored(id).ok_or_else(|| damaged("credentials", id))?;
                if query.holds(&stored, &row.labels()) {
                    found.push(stored);
                }
            }
            match query.expires_before {
                Some(_) => found.sort_by_key(|row| (row.expires_at, row.id)),
                None => found.reverse(),
            }
            found.retain(|row| {
                query.after.is_none_or(|after| match query.expires_before {
                    Some(_) => (row.expires_at, row.id) > (after.expires_at, after.id),
                    None => row.id < after.id,
                })
            });
            found.truncate(query.limit);
            Ok(ListedRows { rows: found, searched_to: None })
        })
        .await
    }

    async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError> {
        Ok(self.credential_versions(query).await?.map(|versions| versions.current))
    }

    async fn credential_versions(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.decide(move |rows| {
            rows.judge(&query.principal)?;
            let Some(row) = rows.credential(query.of, query.key)? else { return Ok(None) };
            row.versions(query.key).ok_or_else(|| damaged("credentials", query.key)).map(Some)
        })
        .await
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError> {
        self.decide(move |rows| {
            rows.judge(&command.principal)?;
            let idempotency = match &command.act.change {
                CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => {
                    version.idempotency.as_ref()
                }
                CredentialChange::Promote { .. } | CredentialChange::Destroy(_) | CredentialChange::Describe => None,
            };
            if let Some((_, earlier)) = rows.earlier(command.act.organization, idempotency)? {
                return Ok(earlier);
            }
            let number = rows.change(&command.act, command.now)?;
            rows.record(&command.audit)?;
            Ok(number)
        })
        .await
    }

    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError> {
        self.decide(move |rows| {
            rows.judge(&command.principal)?;
            let DeleteCredential { organization, id, revision } = command.act;
            let Some(row) = rows.credential(organization, id)? else { return Ok(false) };
            if revision.is_some_and(|revision| revision != row.revision) {
                return Err(Refusal::Changed.into());
            }
            rows.remove(COMPARISONS, &place(organization, id))?;
            rows.remove(CREDENTIALS, &place(organization, id))?;
            rows.record(&command.audit)?;
            Ok(true)
        })
        .await
    }

    async fn match_credential(&self, command: Command<MatchCredential>) -> Result<StoredCredential, StoreError> {
        self.decide(move |rows| {
            rows.judge(&command.principal)?;
            let MatchCredential { organization, id } = command.act;
            let Some(row) = rows.credential(organization, id)? else { return Err(Refusal::NotFound.into()) };
            let counted: Option<HourlyLimit> = rows.get(COMPARISONS, &place(organization, id))?;
            let counted = counted
                .map(|row| hourly::HourlyLimit { count: row.count, since: row.since.map(Timestamp::from_millis) });
            let counted = counted.unwrap_or_default();
            if let Some(seconds) = counted.refused_for(hourly::HourlyLimit::MATCHES, command.now) {
                return Err(Refusal::TooOften(seconds).into());
            }
            let counted = counted.plus_one(command.now);
            let counted = HourlyLimit { count: counted.count, since: counted.since.map(Timestamp::as_millis) };
            rows.put(COMPARISONS, &place(organization, id), &counted)?;
            rows.record(&command.audit)?;
            row.stored(id).ok_or_else(|| damaged("credentials", id))
        })
        .await
    }

    async fn request_check(&self, command: Command<RequestCheck>) -> Result<(), StoreError> {
        self.decide(move |rows| {
            rows.judge(&command.principal)?;
            let RequestCheck { organization, id, version } = command.act;
            let Some(row) = rows.credential(organization, id)? else { return Err(Refusal::NotFound.into()) };
            let kept = |version: &i64| {
                let version = row.versions.get(version);
                version.is_some_and(|it| it.superseded().is_none_or(|over| over.is_kept(command.now)))
            };
            // There is no activation side that would make it.
            let refusal = if version.as_ref().is_none_or(kept) { Refusal::NoChecker } else { Refusal::NoSuchVersion };
            Err(refusal.into())
        })
        .await
    }

    async fn list_uses(
        &self,
        query: List<UsePosition, (OrganizationId, CredentialId)>,
    ) -> Result<Option<Vec<CredentialUse>>, StoreError> {
        self.decide(move |rows| {
            rows.judge(&query.principal)?;
            let (organization, id) = query.of;
            Ok(rows.credential(organization, id)?.map(|_| Vec::new()))
        })
        .await
    }
}

impl Rows {
    fn credentials(&self, organization: OrganizationId) -> Result<Vec<(CredentialId, Credential)>, StoreError> {
        let rows = self.scan(CREDENTIALS, organization.as_bytes())?;
        let read = |(key, row): (Vec<u8>, Credential)| {
            let id = key.get(16..).and_then(|id| id.try_into().ok()).map(CredentialId::from_bytes);
            id.map(|id| (id, row)).ok_or_else(|| damaged("credentials", organization))
        };
        rows.into_iter().map(read).collect()
    }

    fn instance(&self) -> Result<Option<Instance>, StoreError> {
        self.get(INSTANCE, &[])
    }
}

#[async_trait]
impl KeyRepository for RedbStore {
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError> {
        self.decide(|rows| Ok(rows.instance()?.map(|row| row.record()))).await
    }

    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError> {
        self.decide(move |rows| {
            if rows.instance()?.is_some() {
                return Ok(false);
            }
            rows.put(INSTANCE, &[], &Instance::new(&command.instance, &command.keys))?;
            rows.record(&command.audit)?;
            Ok(true)
        })
        .await
    }

    async fn retiring_instance_keys(&self) -> Result<Vec<RetiringInstanceKey>, StoreError> {
        Ok(Vec::new()) // the instance key is not replaced here
    }

    async fn instance_keys(&self) -> Result<Vec<InstanceKeyRecord>, StoreError> {
        self.decide(|rows| {
            let keys = rows.instance()?.map(|row| row.keys().ok_or_else(|| damaged("instance", "keys")));
            Ok(keys.transpose()?.unwrap_or_default())
        })
        .await
    }

    async fn replace_root_key(&self, command: ReplaceRootKey) -> Result<bool, StoreError> {
        self.decide(move |rows| {
            let Some(mut row) = rows.instance()? else { return Ok(false) };
            let (record, read) = (row.record(), &command.current);
            let as_read = (record.id, record.root_key, record.instance_key, &record.wrapped)
                == (read.id, read.root_key, read.instance_key, &read.wrapped);
            if !as_read {
                return Ok(false);
            }
            row.root_key = *command.root_key.as_bytes();
            row.wrapped = command.wrapped.as_bytes().to_vec();
            rows.put(INSTANCE, &[], &row)?;
            rows.record(&command.audit)?;
            Ok(true)
        })
        .await
    }

    async fn organization_keys(&self, organization: OrganizationId) -> Result<Option<OrganizationKeys>, StoreError> {
        self.decide(move |rows| Ok(rows.organization(organization)?.map(|row| row.keys(organization)))).await
    }

    async fn take_key_uses(&self, command: TakeKeyUses) -> Result<bool, StoreError> {
        self.decide(move |rows| {
            let Some(mut row) = rows.organization(command.organization)? else { return Ok(false) };
            let Some(key) = row.active_row(command.key).filter(|key| key.uses == command.from) else {
                return Ok(false);
            };
            key.uses += command.block;
            rows.put(ORGANIZATIONS, command.organization.as_bytes(), &row)?;
            Ok(true)
        })
        .await
    }

    async fn replace_organization_key(&self, command: ReplaceOrganizationKey) -> Result<bool, StoreError> {
        self.decide(move |rows| {
            let organization = command.next.organization;
            let Some(mut row) = rows.organization(organization)? else { return Ok(false) };
            let Some(key) = row.active_row(command.current) else { return Ok(false) };
            key.active = false;
            row.keys.push(row::Key::new(&command.next));
            rows.put(ORGANIZATIONS, organization.as_bytes(), &row)?;
            rows.record(&command.audit)?;
            Ok(true)
        })
        .await
    }
}

#[async_trait]
impl AuditLog for RedbStore {
    async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError> {
        self.decide(move |rows| records.iter().try_for_each(|record| rows.record(record))).await
    }
}
