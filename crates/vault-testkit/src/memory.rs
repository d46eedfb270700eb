//! All store ports in memory. One lock makes each method an atomic transaction. The rules are those of `vault-core`.

mod account;
mod activation;
mod audit;
mod credential;
mod inspection;
mod instance;
mod login;
mod maintenance;
mod receiver;
mod row;
mod rows;
mod session;

use self::row::{AccountRow, CheckRow, CredentialRow, IdempotencyRow, SessionRow};
use crate::clock::lock;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::mem;
use std::sync::Mutex;
use uuid::Uuid;
use vault_core::activation::Activation;
use vault_core::audit::{AuditRecord, RecordedRow, SealedAuditRecord, SealedCheckpoint};
use vault_core::credential::{CheckRound, CredentialUse};
use vault_core::entity::{EntityKey, Index};
use vault_core::hourly::HourlyLimit;
use vault_core::id::{AccountId, ActivationId, AuditId, CredentialId, EventId, OrganizationId, SessionId};
use vault_core::organization::OrganizationState;
use vault_core::port::{AccountPlace, EntityRow, StoreError, StoredCredential};
use vault_core::receiver::{EventDelivery, ReceiverKey, ReceiverStatus};
use vault_core::sealed::{InstanceRecord, SealedData};
use vault_core::time::Timestamp;

/// In-memory store that implements every store port of `vault-core`.
#[derive(Default)]
pub struct MemoryStore {
    defect: Option<Defect>,
    inner: Mutex<Inner>,
}

/// Guarantee that a [`MemoryStore`] breaks on purpose, to show that the contract suite detects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A decision is kept although its audit record could not be written.
    AuditIsOptional,
    /// One credential or activation is not counted.
    CountsLess,
    /// Earlier requests with an idempotency key are not found.
    ForgetsRequests,
    /// Versions are never destroyed.
    KeepsVersions,
    /// Labels are never changed.
    KeepsLabels,
    /// The credentials of a namespace are read newest first.
    ReversesCredentials,
    /// No namespace is found to be frozen.
    HidesFreezes,
    /// Activations are never removed.
    KeepsActivations,
    /// The expiry of an activation is never changed.
    RenewsNothing,
    /// An entry may be in several checkpoints.
    SealsAgain,
    /// Each credential may be issued in any form.
    IgnoresVendRules,
    /// Integrity checks find no credentials.
    HidesCredentials,
    /// Integrity checks read the current version of a credential only.
    InspectsLess,
    /// Entries about one namespace are taken for those about another.
    MixesNamespaces,
}

#[derive(Default)]
struct Inner {
    state: State,
    trail: Vec<SealedAuditRecord>,
    trail_ids: HashSet<AuditId>,
    failures: VecDeque<Failure>,
}

#[derive(Clone, Default)]
struct State {
    instance: Option<InstanceRecord>,
    /// Time of the server that the store pretends to be.
    server_time: Option<Timestamp>,
    /// Uses of the active key of each organization.
    organizations: BTreeMap<OrganizationId, i64>,
    accounts: BTreeMap<AccountPlace, AccountRow>,
    hourly: HashMap<(OrganizationId, String), HourlyLimit>,
    uses: BTreeMap<(OrganizationId, CredentialId), Vec<CredentialUse>>,
    checks: BTreeMap<(OrganizationId, CredentialId), CheckRow>,
    round: CheckRound,
    checker_seen_at: Option<Timestamp>,
    sessions: BTreeMap<SessionId, SessionRow>,
    credentials: BTreeMap<(OrganizationId, CredentialId), CredentialRow>,
    /// Entities in the order of their keys.
    entities: BTreeMap<(OrganizationId, &'static str, Uuid), EntityRow>,
    lookups: BTreeMap<(OrganizationId, &'static str, String), Uuid>,
    global_lookups: BTreeMap<(&'static str, String), (OrganizationId, Uuid)>,
    activations: BTreeMap<ActivationId, Activation>,
    idempotency: HashMap<(OrganizationId, AccountId, String), IdempotencyRow>,
    /// Checkpoints by number.
    checkpoints: BTreeMap<i64, SealedCheckpoint>,
    /// Checkpoint of each record that a checkpoint covers.
    checkpointed: HashMap<AuditId, i64>,
    delivery: Option<audit::DeliveryRow>,
    receiver_status: BTreeMap<ReceiverKey, ReceiverStatus>,
    deliveries: BTreeMap<(ReceiverKey, EventId), EventDelivery>,
    event_position: Option<receiver::PositionRow>,
    /// Audit records of the decision in progress.
    audit: Vec<SealedAuditRecord>,
    /// Records that the decision in progress removes.
    removed_audit: Vec<AuditId>,
}

enum Failure {
    None,
    Refusal(StoreError),
    LostAnswer(StoreError),
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty store that breaks one guarantee.
    pub fn flawed(defect: Defect) -> Self {
        Self { defect: Some(defect), ..Self::default() }
    }

    /// Makes the next call without an earlier planned failure fail with `error`, without any change.
    pub fn fail_next(&self, error: StoreError) {
        lock(&self.inner).failures.push_back(Failure::Refusal(error));
    }

    /// Executes the next call without an earlier planned failure but loses its result: the caller gets `error`.
    pub fn lose_next_answer(&self, error: StoreError) {
        lock(&self.inner).failures.push_back(Failure::LostAnswer(error));
    }

    /// Loses a result like [`MemoryStore::lose_next_answer`], for the call after `calls` successful ones.
    pub fn lose_answer_after(&self, calls: usize, error: StoreError) {
        let failures = &mut lock(&self.inner).failures;
        failures.extend((0..calls).map(|_| Failure::None));
        failures.push_back(Failure::LostAnswer(error));
    }

    /// Returns all audit records in the order in which they were appended.
    pub fn audit(&self) -> Vec<AuditRecord> {
        self.sealed_audit().into_iter().map(|sealed| sealed.record).collect()
    }

    /// Returns all audit records with their MACs, in the order in which they were appended.
    pub fn sealed_audit(&self) -> Vec<SealedAuditRecord> {
        lock(&self.inner).trail.clone()
    }

    /// Removes an audit record, as an attacker with write access to the database might. Returns `false` if the record
    /// does not exist.
    pub fn remove_audit(&self, id: AuditId) -> bool {
        let trail = &mut lock(&self.inner).trail;
        let before = trail.len();
        trail.retain(|sealed| sealed.record.id != id);
        trail.len() < before
    }

    /// Changes an audit record but not its MAC, as an attacker with write access to the database might. Returns `false`
    /// if the record does not exist.
    pub fn tamper_with_audit(&self, id: AuditId, change: impl FnOnce(&mut AuditRecord)) -> bool {
        let trail = &mut lock(&self.inner).trail;
        let entry = trail.iter_mut().find(|sealed| sealed.record.id == id);
        entry.map(|sealed| change(&mut sealed.record)).is_some()
    }

    /// Changes the checkpoints and the checkpoint numbers of records, as an attacker with write access to the database
    /// might.
    pub fn tamper_with_checkpoints(
        &self,
        change: impl FnOnce(&mut BTreeMap<i64, SealedCheckpoint>, &mut HashMap<AuditId, i64>),
    ) {
        let State { checkpoints, checkpointed, .. } = &mut lock(&self.inner).state;
        change(checkpoints, checkpointed);
    }

    /// Changes the delivery position and the delivery lease of the audit log, as an attacker with write access to the
    /// database might. The audit log must have been delivered before.
    pub fn tamper_with_delivery(
        &self,
        change: impl FnOnce(&mut vault_core::audit::DeliveryPosition, &mut vault_core::time::Timestamp),
    ) {
        if let Some(row) = &mut lock(&self.inner).state.delivery {
            change(&mut row.position, &mut row.until);
        }
    }

    /// Returns the kinds of rows that remain of an organization, except the audit log.
    pub fn rows(&self, organization: OrganizationId) -> Vec<String> {
        let state = &lock(&self.inner).state;
        let kinds = [
            ("organization", state.organizations.contains_key(&organization)),
            ("accounts", state.accounts.keys().any(|(of, _)| *of == organization)),
            ("hourly counts", state.hourly.keys().any(|(of, _)| *of == organization)),
            ("uses", state.uses.keys().any(|(of, _)| *of == organization)),
            ("checks", state.checks.keys().any(|(of, _)| *of == organization)),
            ("sessions", state.sessions.values().any(|session| session.organization == organization)),
            ("credentials", state.credentials.keys().any(|(of, _)| *of == organization)),
            ("status of receivers", state.receiver_status.keys().any(|key| key.owner == Some(organization))),
            ("deliveries", state.deliveries.keys().any(|(key, _)| key.owner == Some(organization))),
            ("entities", state.entities.keys().any(|(of, ..)| *of == organization)),
            ("lookups", state.lookups.keys().any(|(of, ..)| *of == organization)),
            ("global lookups", state.global_lookups.values().any(|(of, _)| *of == organization)),
            ("activations", state.activations.values().any(|activation| activation.organization == organization)),
            ("idempotency keys", state.idempotency.keys().any(|(of, ..)| *of == organization)),
        ];
        kinds.into_iter().filter(|(_, left)| *left).map(|(kind, _)| kind.to_owned()).collect()
    }

    /// Returns the sealed data of a credential's current version, which no port returns.
    pub fn sealed_data(&self, id: CredentialId) -> Option<SealedData> {
        let state = &lock(&self.inner).state;
        let row = state.credentials.values().find(|row| row.stored.id == id)?;
        Some(row.data.get(&row.stored.version)?.data.clone())
    }

    /// Changes the rows of entities, as an attacker with write access to the database might.
    pub fn tamper_with_entities(
        &self,
        change: impl FnOnce(&mut BTreeMap<(OrganizationId, &'static str, Uuid), EntityRow>),
    ) {
        change(&mut lock(&self.inner).state.entities);
    }

    /// Deletes all rows of a kind, as an attacker with write access to the database might.
    pub fn delete_rows(&self, row: RecordedRow) {
        let state = &mut lock(&self.inner).state;
        match row {
            RecordedRow::Credential => state.credentials.clear(),
            RecordedRow::Account
            | RecordedRow::Organization
            | RecordedRow::Integration
            | RecordedRow::Namespace
            | RecordedRow::Receiver
            | RecordedRow::Issuer
            | RecordedRow::SigningKeys
            | RecordedRow::Invitation => {
                state.entities.retain(|(_, kind, _), _| *kind != row.as_str());
            }
        }
    }

    /// Pretends to be a server, whose clock has stopped at this time.
    pub fn set_server_time(&self, time: Option<Timestamp>) {
        lock(&self.inner).state.server_time = time;
    }

    /// Replaces the row of the instance, as an attacker with write access to the database might.
    pub fn tamper_with_instance(&self, instance: InstanceRecord) {
        lock(&self.inner).state.instance = Some(instance);
    }

    /// Changes the sealed data of a credential's current version, as an attacker with write access to the database might. Returns
    /// `false` if the credential does not exist.
    pub fn tamper_with_data(&self, id: CredentialId, change: impl FnOnce(&mut SealedData)) -> bool {
        let state = &mut lock(&self.inner).state;
        let Some(row) = state.credentials.values_mut().find(|row| row.stored.id == id) else { return false };
        row.data.get_mut(&row.stored.version).map(|row| change(&mut row.data)).is_some()
    }

    /// Changes a credential's row, as an attacker with write access to the database might. Returns `false` if the
    /// credential does not exist.
    pub fn tamper_with_row(&self, id: CredentialId, change: impl FnOnce(&mut StoredCredential)) -> bool {
        let state = &mut lock(&self.inner).state;
        let Some(row) = state.credentials.values_mut().find(|row| row.stored.id == id) else { return false };
        change(&mut row.stored);
        true
    }

    /// Runs one decision, all of it under the lock.
    fn decide<T>(&self, decision: impl FnOnce(&mut State) -> T) -> Result<T, StoreError> {
        self.decide_with(|state, _| decision(state))
    }

    /// Runs one decision that also reads the audit records.
    fn decide_with<T>(&self, decision: impl FnOnce(&mut State, &[SealedAuditRecord]) -> T) -> Result<T, StoreError> {
        let inner = &mut *lock(&self.inner);
        let failure = inner.failures.pop_front();
        if let Some(Failure::Refusal(error)) = failure {
            return Err(error);
        }
        let before = inner.state.clone();
        let outcome = decision(&mut inner.state, &inner.trail);
        let recorded = mem::take(&mut inner.state.audit);
        let taken = recorded.iter().any(|sealed| !inner.trail_ids.insert(sealed.record.id));
        if taken && self.defect != Some(Defect::AuditIsOptional) {
            inner.state = before;
            inner.trail_ids = inner.trail.iter().map(|sealed| sealed.record.id).collect();
            return Err(StoreError::Fault("an audit entry with this id already exists".into()));
        }
        let removed = mem::take(&mut inner.state.removed_audit);
        inner.trail.retain(|sealed| !removed.contains(&sealed.record.id));
        inner.trail.extend(recorded);
        match failure {
            Some(Failure::LostAnswer(error)) => Err(error),
            _ => Ok(outcome),
        }
    }
}

impl State {
    fn organization_is_active(&self, id: OrganizationId) -> bool {
        let active = OrganizationState::Active.as_str().to_owned();
        self.lookups.contains_key(&(id, Index::OrganizationState.as_str(), active))
    }

    /// Removes an entity with the values that lead to it. Returns `false` if it does not exist.
    fn remove_entity(&mut self, key: EntityKey) -> bool {
        let (names, place) = (Index::names_of(key.kind), (key.organization, key.id));
        self.lookups.retain(|(of, name, _), id| (*of, *id) != place || !names.contains(name));
        self.global_lookups.retain(|(name, _), leads| *leads != place || !names.contains(name));
        self.entities.remove(&key.order()).is_some()
    }
}
