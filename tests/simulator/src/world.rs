//! The organization whose credentials are saved, and its commands.

use simulated_disk::random::Random;
use std::sync::Arc;
use uuid::Uuid;
use vault_core::activation::VendRule;
use vault_core::audit::{Actor, AuditAction, AuditRecord, Origin, SealedAuditRecord, Subject};
use vault_core::credential::{
    ChangeCredential, CredentialType, DeleteCredential, ListCredentials, NewVersion, SaveCredential, VersionEffects,
};
use vault_core::cursor::ListFilter;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, AuditId, CredentialId, KeyId, OrganizationId, VersionId};
use vault_core::namespace::Namespace;
use vault_core::operation::{Operation, Operations};
use vault_core::organization::{CreateOrganization, Organization, OrganizationName, OrganizationState};
use vault_core::port::{IdGenerator, Idempotency, StoredCredential};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::sealed::{Blob, KeyState, OrganizationKeyRecord, OrganizationKeys, SealedData};
use vault_core::time::Timestamp;
use vault_core::usecase::Environment;
use vault_core::{Command, Error};
use vault_diesel::SqliteStore;
use vault_testkit::clock::RecordingEvents;
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester};

pub(crate) const ORGANIZATION: OrganizationId = OrganizationId::from_bytes([1; 16]);
const ACCOUNT: AccountId = AccountId::from_bytes([2; 16]);
const KEY: KeyId = KeyId::from_bytes([3; 16]);
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// The stored parts of a version, with the card of the change that created it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) data_key: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) card: Vec<u8>,
}

impl Parts {
    /// Returns the parts of a version. Some fill several pages.
    pub(crate) fn of(number: u64) -> Self {
        let mut random = Random::of(number, 3);
        let mut bytes = |length: usize| -> Vec<u8> { (0..length).map(|_| random.draw().to_le_bytes()[0]).collect() };
        let data_key = bytes(78);
        let card = bytes(302);
        let length = if number.is_multiple_of(8) { 9_000 } else { 302 };
        Self { data_key, data: bytes(length), card }
    }

    /// Returns a version with these parts, without the card.
    fn version(self, number: i64, idempotency: Option<Idempotency>) -> NewVersion {
        let data = SealedData { data_key: Blob::from_bytes(self.data_key), data: Blob::from_bytes(self.data) };
        NewVersion { number, id: VersionId::from_bytes([9; 16]), data, check: None, idempotency }
    }
}

pub(crate) fn principal() -> Principal {
    Principal::embedder(ORGANIZATION, ACCOUNT, Role::Editor)
}

/// Returns the ID of a credential.
pub(crate) fn credential(number: u64) -> CredentialId {
    CredentialId::from_bytes(bytes(number))
}

/// Returns the ID of a request's audit record.
pub(crate) fn audit(number: u64) -> AuditId {
    AuditId::from_bytes(bytes(number))
}

/// Returns bytes that do not increase with `number`, so that rows are written to random pages.
fn bytes(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&Random::of(number, 1).draw().to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn command<A>(number: u64, action: AuditAction, id: CredentialId, act: A) -> Command<A> {
    let audit = record(number, action, Subject::Credential(id));
    Command { principal: principal(), now: NOW, audit, payload: act }
}

fn record(number: u64, action: AuditAction, subject: Subject) -> SealedAuditRecord {
    let record = AuditRecord {
        id: audit(number),
        at: NOW,
        organization: Some(ORGANIZATION),
        actor: Actor::Operator,
        action,
        subject,
        count: 1,
        note: None,
        origin: Origin::default(),
        rows: Vec::new(),
        changes: Vec::new(),
    };
    SealedAuditRecord { record, key: KEY, code: Digest::from_bytes([4; 32]) }
}

/// Creates the organization.
pub(crate) fn organization() -> CreateOrganization {
    let key = OrganizationKeyRecord {
        organization: ORGANIZATION,
        id: KEY,
        state: KeyState::Active,
        wrapped: Blob::from_bytes(vec![2; 78]),
        uses: 0,
        created_at: NOW,
    };
    CreateOrganization {
        organization: Organization {
            id: ORGANIZATION,
            name: OrganizationName::parse("acme").expect("a name"),
            state: OrganizationState::Active,
            created_at: NOW,
        },
        keys: OrganizationKeys {
            fingerprint_key: KeyId::from_bytes([5; 16]),
            fingerprint_wrapped: Blob::from_bytes(vec![2; 78]),
            keys: vec![key],
        },
    }
}

/// Saves a credential with these parts and the idempotency key of the request `key`.
pub(crate) fn save(request: u64, number: u64, parts: u64, key: u64) -> Command<SaveCredential> {
    let id = credential(number);
    let idempotency =
        Idempotency { account: ACCOUNT, key: format!("request-{key}"), body: Digest::from_bytes([8; 32]).into() };
    let parts = Parts::of(parts);
    let act = SaveCredential {
        organization: ORGANIZATION,
        id,
        kind: CredentialType::S3,
        namespace: Namespace::parse(&format!("team-{}/production", number % 5), "").expect("a namespace"),
        vend: VendRule::Any,
        expires_at: None,
        key: KEY,
        card: Blob::from_bytes(parts.card.clone()),
        version: parts.version(1, Some(idempotency)),
        labels: vec![Digest::from_bytes([7; 32])],
        limit: 10_000_000,
    };
    command(request, AuditAction::CredentialSaved, id, act)
}

/// Adds a version with these parts to the credential at this revision. Each version increments the revision.
pub(crate) fn replace(request: u64, number: u64, revision: i64, parts: u64) -> Command<ChangeCredential> {
    let id = credential(number);
    let parts = Parts::of(parts);
    let act = ChangeCredential {
        organization: ORGANIZATION,
        id,
        revision,
        key: KEY,
        card: Blob::from_bytes(parts.card.clone()),
        current: revision + 1,
        version: Some(parts.version(revision + 1, None)),
        effects: VersionEffects { destroyed: Vec::new(), moved: vec![(revision, Some(NOW.plus_seconds(3_600)))] },
        vend: VendRule::Any,
        expires_at: None,
        labels: None,
        action: AuditAction::CredentialReplaced,
        changes: Vec::new(),
    };
    command(request, AuditAction::CredentialReplaced, id, act)
}

/// Deletes a credential.
pub(crate) async fn delete(store: &Arc<SqliteStore>, request: u64, number: u64) -> Result<(), Error> {
    let deletion = DeleteCredential { organization: ORGANIZATION, id: credential(number), revision: None };
    operate(store, request, deletion).await
}

/// Lists all credentials.
pub(crate) async fn list(store: &Arc<SqliteStore>) -> Result<Vec<StoredCredential>, Error> {
    let (organization, filter) = (ORGANIZATION, ListFilter::default());
    let list = ListCredentials { organization, filter, labels: Vec::new(), after: None, limit: 4_000 };
    Ok(operate(store, 0, list).await?.rows)
}

/// Generates the ID of a request's audit record.
struct IdOf(u64);

impl IdGenerator for IdOf {
    fn ordered(&self, _now: Timestamp) -> Uuid {
        *audit(self.0).as_uuid()
    }

    fn random(&self) -> Uuid {
        *audit(self.0).as_uuid()
    }
}

/// Runs the operation of a request.
async fn operate<O: Operation>(store: &Arc<SqliteStore>, request: u64, operation: O) -> Result<O::Outcome, Error> {
    let keys = Arc::new(FakeDigester::default());
    let operations = Operations { store: Arc::clone(store) as _, sealer: keys.clone(), digester: keys };
    let environment = Environment {
        clock: Arc::new(NOW),
        ids: Arc::new(IdOf(request)),
        events: Arc::new(RecordingEvents::default()),
        audit: Arc::new(FakeAuditSealer),
        awaited: Arc::default(),
        origin: Origin::default(),
    };
    operations.run(&environment, &principal(), operation).await
}
