//! The organization whose credentials are saved, and its commands.

use simulated_disk::random::Random;
use std::sync::Arc;
use uuid::Uuid;
use vault_core::Error;
use vault_core::activation::VendRule;
use vault_core::audit::Origin;
use vault_core::credential::{
    ChangeCredential, CredentialData, CredentialEdit, CredentialQuery, CredentialType, DeleteCredential, Labels,
    ListFilter, Metadata, NewData, OpenedCredential, SaveCredential, VersionLimits,
};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, AuditId, CredentialId, OrganizationId, VersionId};
use vault_core::json::{Member, Node};
use vault_core::namespace::Namespace;
use vault_core::operation::{Operation, Operations};
use vault_core::organization::{CreateOrganization, OrganizationName};
use vault_core::port::{IdGenerator, Idempotency};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::time::Timestamp;
use vault_core::usecase::Environment;
use vault_diesel::SqliteStore;
use vault_testkit::clock::RecordingEvents;
use vault_testkit::contract::opening;
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester, PlainSealer};

pub(crate) const ORGANIZATION: OrganizationId = OrganizationId::from_bytes([1; 16]);
const ACCOUNT: AccountId = AccountId::from_bytes([2; 16]);
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Returns the data of a version. Some fills several pages.
pub(crate) fn data(number: u64) -> CredentialData {
    let mut random = Random::of(number, 3);
    let words = if number.is_multiple_of(8) { 550 } else { 10 };
    let path: String = (0..words).map(|_| format!("{:016x}", random.draw())).collect();
    let json = format!(r#"{{"url":"https://files.example/{path}"}}"#);
    CredentialData::from_json(CredentialType::DirectLink, json.as_bytes()).expect("a link")
}

fn version(number: u64, idempotency: Option<Idempotency>) -> NewData {
    let data = data(number);
    let (id, json) = (VersionId::from_bytes(bytes(number)), data.to_canonical_json());
    NewData { id, data, json, check: None, idempotency }
}

pub(crate) fn principal() -> Principal {
    Principal::embedder(ORGANIZATION, ACCOUNT, Role::Editor)
}

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

/// Creates the organization.
pub(crate) fn organization() -> CreateOrganization {
    CreateOrganization { id: ORGANIZATION, name: OrganizationName::parse("acme").expect("a name") }
}

/// Saves a credential with the data of a version and the idempotency key of the request `key`.
pub(crate) fn save(number: u64, data: u64, key: u64) -> SaveCredential {
    let idempotency =
        Idempotency { account: ACCOUNT, key: format!("request-{key}"), body: Digest::from_bytes([8; 32]).into() };
    let mut metadata = Metadata::default();
    let label = Member { name: "label".to_owned(), value: Node::String("value".into()) };
    metadata.labels = Labels::parse(Node::Object(vec![label]), "").expect("a label");
    SaveCredential {
        organization: ORGANIZATION,
        id: credential(number),
        namespace: Namespace::parse(&format!("team-{}/production", number % 5), "").expect("a namespace"),
        vend: VendRule::Any,
        metadata,
        new: version(data, Some(idempotency)),
        limit: 10_000_000,
    }
}

/// Adds a version to the credential at this revision. Each version increments the revision.
pub(crate) fn replace(number: u64, revision: i64, data: u64) -> ChangeCredential {
    ChangeCredential {
        organization: ORGANIZATION,
        id: credential(number),
        revision: Some(revision),
        edit: CredentialEdit::Replace { kind: CredentialType::DirectLink, expires_at: None },
        new: Some(version(data, None)),
        limits: VersionLimits { versions: usize::MAX, ..VersionLimits::default() },
    }
}

/// Deletes a credential.
pub(crate) async fn delete(store: &Arc<SqliteStore>, request: u64, number: u64) -> Result<(), Error> {
    let deletion = DeleteCredential { organization: ORGANIZATION, id: credential(number), revision: None };
    operate(store, request, deletion).await
}

pub(crate) async fn list(store: &Arc<SqliteStore>) -> Result<Vec<OpenedCredential>, Error> {
    let (organization, filter) = (ORGANIZATION, ListFilter::default());
    let query = CredentialQuery { organization, filter, labels: Vec::new(), after: None, limit: 4_000 };
    Ok(operate(store, 0, opening(query)).await?.credentials)
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
pub(crate) async fn operate<O: Operation>(
    store: &Arc<SqliteStore>,
    request: u64,
    operation: O,
) -> Result<O::Outcome, Error> {
    let keys = Arc::new(FakeDigester::default());
    let ids = Arc::new(IdOf(request));
    let credentials = Arc::new(PlainSealer::new(ids.clone()));
    let operations = Operations::new(Arc::clone(store) as _, keys.clone(), credentials, keys);
    let environment = Environment {
        clock: Arc::new(NOW),
        ids,
        events: Arc::new(RecordingEvents::default()),
        audit: Arc::new(FakeAuditSealer),
        awaited: Arc::default(),
        origin: Origin::default(),
    };
    operations.run(&environment, &principal(), operation).await
}
