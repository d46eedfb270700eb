//! The ports of credentials on [redb](https://docs.rs/redb), for a service whose users are embedders: an adapter that
//! this project does not ship, as an outside team would write it. `tests/contract.rs` runs the contract suite on it.
//!
//! redb has one writer at a time, so each method is one write transaction: it authorizes, decides and records, and
//! drops the transaction if anything failed.

mod row;

use async_trait::async_trait;
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};
use row::{Credential, Entry, HourlyLimit, Instance, Organization, Request};
use serde::{Serialize, de::DeserializeOwned};
use std::path::Path;
use std::sync::Arc;
use vault_core::audit::SealedAuditRecord;
use vault_core::decision::{
    Authorized, ChangeFacts, EarlierRequest, EarlierRequests, Outcome, SaveFacts, decide_changes, decide_deletes,
    decide_saves,
};
use vault_core::digest::Digest;
use vault_core::hourly;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    AuditLog, ChangeCredential, CreateInstance, CredentialRepository, CredentialUse, DeleteCredential, Find,
    Idempotency, KeyRepository, List, ListCredentials, ListedRows, MatchCredential, ReplaceOrganizationKey,
    ReplaceRootKey, RequestCheck, ReserveKeyUses, SaveCredential, StoreError, StoredCredential, StoredVersions,
    UsePosition,
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
/// The tables with rows of one organization.
const OWNED: [Table; 4] = [ORGANIZATIONS, CREDENTIALS, REQUESTS, COMPARISONS];

/// The store.
pub struct RedbStore {
    database: Arc<Database>,
}

impl RedbStore {
    /// Opens the database in a file, or creates it.
    ///
    /// # Errors
    /// The file is no database, is damaged or cannot be written.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { database: Arc::new(Database::create(path).map_err(fault)?) })
    }

    /// Runs one transaction on a thread that may block. Dropping the call does not undo it.
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

    /// Disables an organization, or enables it again.
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

    /// Deletes an organization with all its data except the audit log.
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

    /// Returns the names of the tables with rows of an organization, except the audit log.
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
    StoreError::Integrity { table, id: id.to_string(), reason: "the row contains an invalid value" }
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

    /// Returns the rows whose keys start with `prefix`, in the order of their keys.
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

    /// Authorizes the principal, first in every transaction.
    fn authorize(&self, principal: &Principal) -> Result<(), StoreError> {
        match principal {
            Principal::Embedder(user) => match self.organization(user.organization)? {
                Some(Organization { open: true, .. }) => Ok(()),
                _ => Err(StoreError::Denied(Denial::OrganizationDisabled)),
            },
            Principal::Session(_) => Err(StoreError::Denied(Denial::SessionEnded)), // there are none
            Principal::Operator => Err(StoreError::Denied(Denial::InsufficientRole)),
        }
    }

    /// Writes an audit entry. If its ID exists, the entry and the whole transaction fail.
    fn record(&self, sealed: &SealedAuditRecord) -> Result<(), StoreError> {
        let id = sealed.record.id;
        if self.get::<serde::de::IgnoredAny>(AUDIT, id.as_bytes())?.is_some() {
            return Err(StoreError::Fault(format!("the audit has an entry {id}").into()));
        }
        self.put(AUDIT, id.as_bytes(), &Entry::new(sealed))
    }

    /// The request that used the key before.
    fn earlier_request(
        &self,
        organization: OrganizationId,
        idempotency: &Idempotency,
    ) -> Result<Option<EarlierRequest>, StoreError> {
        let row = self.get::<Request>(REQUESTS, &request_place(organization, idempotency))?;
        Ok(row.map(|row| EarlierRequest {
            body: Digest::from_bytes(row.body),
            credential: CredentialId::from_bytes(row.credential),
            version: row.version,
        }))
    }

    fn earlier(
        &self,
        organization: OrganizationId,
        idempotency: Option<&Idempotency>,
    ) -> Result<EarlierRequests, StoreError> {
        let mut earlier = EarlierRequests::default();
        if let Some(idempotency) = idempotency
            && let Some(request) = self.earlier_request(organization, idempotency)?
        {
            earlier.insert(idempotency.account, idempotency.key.clone(), request);
        }
        Ok(earlier)
    }

    fn remember(
        &self,
        organization: OrganizationId,
        request: Option<&Idempotency>,
        (credential, version): (CredentialId, i64),
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(request) = request else { return Ok(()) };
        let (body, credential) = (*request.body.current().as_bytes(), *credential.as_bytes());
        let row = Request { body, credential, version, at: now.as_millis() };
        self.put(REQUESTS, &request_place(organization, request), &row)
    }

    fn credential(&self, organization: OrganizationId, id: CredentialId) -> Result<Option<Credential>, StoreError> {
        self.get(CREDENTIALS, &place(organization, id))
    }

    /// Returns `true` if the key is the one that new parts are sealed under.
    fn is_active(&self, organization: OrganizationId, key: KeyId) -> Result<bool, StoreError> {
        Ok(self.organization(organization)?.and_then(|row| row.active_key()) == Some(key))
    }

    fn save(&self, command: &Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        let (payload, now) = (&command.payload, command.now);
        let facts = SaveFacts {
            credentials: i64::try_from(self.keys(CREDENTIALS, payload.organization.as_bytes())?.len()).ok(),
            earlier: self.earlier(payload.organization, payload.idempotency.as_ref())?,
        };
        let key_active = self.is_active(payload.organization, payload.sealed.key)?;
        let outcome = decide_saves(facts, [Authorized { command, key_active }]).swap_remove(0);
        if outcome.effects().is_some() {
            self.put(CREDENTIALS, &place(payload.organization, payload.id), &Credential::new(payload, now))?;
            self.remember(payload.organization, payload.idempotency.as_ref(), (payload.id, payload.version), now)?;
            self.record(&command.audit)?;
        }
        Ok(outcome.into_answer()?)
    }

    fn change(&self, command: &Command<ChangeCredential>) -> Result<i64, StoreError> {
        let (payload, now) = (&command.payload, command.now);
        let (organization, id) = (payload.organization, payload.id);
        let idempotency = payload.new_version().and_then(|version| version.idempotency.as_ref());
        let row = self.credential(organization, id)?;
        let facts = ChangeFacts {
            credentials: row.iter().map(|row| (id, row.facts())).collect(),
            earlier: self.earlier(organization, idempotency)?,
        };
        let key_active = payload.sealing_key().map_or(Ok(true), |key| self.is_active(organization, key))?;
        let outcome = decide_changes(facts, [Authorized { command, key_active }]).swap_remove(0);
        if let (Outcome::Done { answer, effects }, Some(mut row)) = (&outcome, row) {
            row.change(effects, now);
            if let Some(description) = &payload.description {
                row.describe(description);
            }
            row.code = *payload.code.as_bytes();
            row.listed = payload.listed.as_bytes().to_vec();
            row.expires_at = payload.expires_at.map(Timestamp::as_millis);
            row.updated_at = now.as_millis();
            self.put(CREDENTIALS, &place(organization, id), &row)?;
            self.remember(organization, idempotency, (id, *answer), now)?;
            self.record(&command.audit)?;
        }
        Ok(outcome.into_answer()?)
    }

    fn delete(&self, command: &Command<DeleteCredential>) -> Result<bool, StoreError> {
        let DeleteCredential { organization, id, .. } = command.payload;
        let found = self.credential(organization, id)?.map(|row| (id, row.revision));
        let outcome = decide_deletes(found.into_iter().collect(), [&command.payload]).swap_remove(0);
        if outcome.effects().is_some() {
            self.remove(COMPARISONS, &place(organization, id))?;
            self.remove(CREDENTIALS, &place(organization, id))?;
            self.record(&command.audit)?;
        }
        Ok(outcome.into_answer()?)
    }
}

fn request_place(organization: OrganizationId, request: &Idempotency) -> Vec<u8> {
    [organization.as_bytes(), request.account.as_bytes(), request.key.as_bytes()].concat()
}

#[async_trait]
impl CredentialRepository for RedbStore {
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        self.decide(move |rows| {
            rows.authorize(&command.principal)?;
            rows.save(&command)
        })
        .await
    }

    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError> {
        self.decide(move |rows| {
            rows.authorize(&query.principal)?;
            let Some(idempotency) = &query.key else { return Ok(None) };
            let earlier = rows.earlier_request(query.of, idempotency)?;
            Ok(earlier.map(|earlier| earlier.answer(idempotency)).transpose()?)
        })
        .await
    }

    async fn list_credentials(&self, query: ListCredentials) -> Result<ListedRows, StoreError> {
        self.decide(move |rows| {
            rows.authorize(&query.principal)?;
            let mut found = Vec::new();
            for (id, row) in rows.credentials(query.organization)? {
                let stored = row.stored(id).ok_or_else(|| damaged("credentials", id))?;
                if query.matches(&stored, &row.labels()) {
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
            rows.authorize(&query.principal)?;
            let Some(row) = rows.credential(query.of, query.key)? else { return Ok(None) };
            row.versions(query.key).ok_or_else(|| damaged("credentials", query.key)).map(Some)
        })
        .await
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError> {
        self.decide(move |rows| {
            rows.authorize(&command.principal)?;
            rows.change(&command)
        })
        .await
    }

    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError> {
        self.decide(move |rows| {
            rows.authorize(&command.principal)?;
            rows.delete(&command)
        })
        .await
    }

    async fn match_credential(&self, command: Command<MatchCredential>) -> Result<StoredCredential, StoreError> {
        self.decide(move |rows| {
            rows.authorize(&command.principal)?;
            let MatchCredential { organization, id } = command.payload;
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
            rows.authorize(&command.principal)?;
            let RequestCheck { organization, id, version } = command.payload;
            let Some(row) = rows.credential(organization, id)? else { return Err(Refusal::NotFound.into()) };
            let kept = |version: &i64| {
                let version = row.versions.get(version);
                version.is_some_and(|it| it.superseded().is_none_or(|over| over.is_kept(command.now)))
            };
            // No activation process exists that would check it.
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
            rows.authorize(&query.principal)?;
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
        self.decide(move |rows| {
            let row = rows.organization(organization)?;
            row.map(|row| row.keys(organization).ok_or_else(|| damaged("organizations", organization))).transpose()
        })
        .await
    }

    async fn reserve_key_uses(&self, command: ReserveKeyUses) -> Result<bool, StoreError> {
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
            if !row.rebind(&command.fingerprint) {
                return Ok(false);
            }
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
