//! Rotation of the instance key during its use, with real keys: interrupted after every step, and by processes that were
//! started before, during and after it.

use crate::deployment::{Deployment, Process};
use proptest::prelude::*;
use secrecy::{ExposeSecret as _, SecretString};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use vault_core::audit::{AuditAction, CheckpointRef, RecordedRow, SealedAuditRecord};
use vault_core::credential::{CredentialData, CredentialType, LabelFilter, Labels, ListFilter};
use vault_core::cursor::PageRequest;
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::email::EmailAddress;
use vault_core::entity::Kind;
use vault_core::error::{Error, Refusal};
use vault_core::id::{AccountId, CredentialId, IntegrationId, KeyId, OrganizationId};
use vault_core::integration::{IntegrationState, Overlap};
use vault_core::invitation::INVITATION_SECONDS;
use vault_core::json::{Member, Node};
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::namespace::Namespace;
use vault_core::network::Network;
use vault_core::operation::CountUnder;
use vault_core::passcode::{PasscodeSecret, TimeStep};
use vault_core::port::{Clock as _, Event, KeyRepository as _, TokenRefusal};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::sealed::{Blob, KeyState};
use vault_core::usecase::integrations::{CreateIntegrationRequest, IntegrationEdit, IntegrationRef};
use vault_core::usecase::*;
use vault_crypto::{Anchor, Keyring, passcode_of};
use vault_testkit::clock::SequentialIds;

const PASSWORD: &str = "correct horse battery staple";

impl Deployment {
    /// Creates a deployment with an organization.
    async fn new() -> Self {
        let deployment = Self::seeded(0).await;
        deployment.start().await.operator.create_organization("Acme").await.unwrap();
        deployment
    }

    async fn organization(&self) -> OrganizationId {
        self.start().await.operator.organization("Acme").await.unwrap().id
    }

    async fn active(&self) -> KeyId {
        self.store.instance().await.unwrap().unwrap().instance_key
    }

    /// How many rows are under a key.
    async fn under(&self, key: KeyId) -> i64 {
        let entry =
            KeyringEntry { purpose: KeyPurpose::Instance, id: key, state: KeyState::Retiring, since: self.clock.now() };
        let process = self.start().await;
        process.operations.run(&process.environment, &Principal::Operator, CountUnder(entry)).await.unwrap()
    }

    /// Rotates to the end.
    async fn rotate(&self) -> RotationEnd {
        let rotation = self.start().await.keys.rotate_instance().await.unwrap();
        for _ in 0..1_000 {
            if rotation.step().await.unwrap().is_none()
                && let Some(end) = rotation.finish().await.unwrap()
            {
                return end;
            }
        }
        panic!("a rotation ends");
    }

    /// Number of instance keys that are not destroyed yet.
    async fn retiring(&self) -> usize {
        self.start().await.keys.overview().await.unwrap().retiring.len()
    }

    fn damage(&self) -> usize {
        self.events.events().iter().filter(|event| matches!(event, Event::IntegrityFailure { .. })).count()
    }
}

/// A user who logs in.
struct Person {
    id: AccountId,
    email: EmailAddress,
    password: String,
    passcode: PasscodeSecret,
    recovery: Vec<SecretString>,
}

impl Process {
    async fn person(&self, organization: OrganizationId, name: &str) -> Person {
        let request = CreateAccountRequest {
            organization,
            email: format!("{name}@example.com"),
            role: Role::Editor,
            password: Some(PASSWORD.into()),
        };
        let created = self.accounts.create(request).await.unwrap();
        let recovery = created.recovery_codes.into_iter().map(|code| code.0).collect();
        let (password, passcode) = (PASSWORD.to_owned(), created.passcode);
        Person { id: created.grant.account, email: created.grant.email, password, passcode, recovery }
    }

    async fn log_in(&self, person: &Person, passcode: SecretString) -> Result<LoggedIn, Error> {
        let request = LogInRequest {
            email: person.email.to_string(),
            password: person.password.clone().into(),
            passcode,
            ttl: None,
            network: Network::of(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
            client: None,
        };
        self.accounts.log_in(request).await
    }

    /// Logs in with the code that the authenticator shows in a step of its own.
    async fn passes(&self, deployment: &Deployment, person: &Person) -> LoggedIn {
        deployment.clock.advance_seconds(60);
        let code = passcode_of(&person.passcode, TimeStep::at(deployment.clock.now())).unwrap();
        self.log_in(person, code).await.unwrap_or_else(|error| panic!("{}: {error}", person.email))
    }

    /// What an inspection finds.
    async fn findings(&self) -> Vec<String> {
        let (mut round, mut found) = (self.inspector.begin(), Vec::new());
        while round.step(100, &mut |finding| found.push(finding.to_string())).await.unwrap() {}
        found
    }

    async fn integration(&self, organization: OrganizationId, name: &str) -> IntegrationId {
        let request = CreateIntegrationRequest {
            name: name.to_owned(),
            namespaces: vec!["imports".into()],
            expires_at: None,
            token: true,
            trusts: Vec::new(),
            managed_by: None,
        };
        self.integrations.create(&Principal::Operator, organization, request).await.unwrap().integration.id
    }

    async fn edit(
        &self,
        organization: OrganizationId,
        id: IntegrationId,
        state: IntegrationState,
    ) -> Result<(), Error> {
        let edit = IntegrationEdit { state: Some(state), ..IntegrationEdit::default() };
        let integration = IntegrationRef::Id(id);
        self.integrations.change(&Principal::Operator, organization, &integration, edit).await.map(|_| ())
    }
}

/// Before old entries are removed, the states in them are recorded again, once.
#[tokio::test(flavor = "multi_thread")]
async fn states_are_recorded_again_before_their_entries_are_removed() {
    let deployment = Deployment::new().await;
    let (process, organization) = (deployment.start().await, deployment.organization().await);
    process.person(organization, "anna").await;
    process.integration(organization, "nightly").await;
    let recorded = || {
        let entries = deployment.store.audit();
        entries.iter().filter(|entry| entry.action == AuditAction::StateRecorded).count()
    };
    assert_eq!((process.findings().await, recorded()), (Vec::new(), 0));
    let now = deployment.clock.now();
    deployment.clock.advance_seconds(60);
    for (before, expected) in [(now, 0), (now.plus_seconds(1), 3), (now.plus_seconds(1), 3)] {
        let mut round = process.inspector.clone().renewing(before).begin();
        while round.step(100, &mut |finding| panic!("{finding}")).await.unwrap() {}
        assert_eq!(recorded(), expected);
    }
    assert_eq!((process.findings().await, recorded()), (Vec::new(), 3));
}

/// A row that was deleted outside the service is found, also after the entries about it were removed.
#[tokio::test(flavor = "multi_thread")]
async fn deleted_rows_are_findings() {
    let rows = [
        RecordedRow::Account,
        RecordedRow::Invitation,
        RecordedRow::Integration,
        RecordedRow::Credential,
        RecordedRow::Organization,
    ];
    for row in rows {
        let deployment = Deployment::new().await;
        let (process, organization) = (deployment.start().await, deployment.organization().await);
        process.person(organization, "anna").await;
        process.accounts.invite(&Principal::Operator, organization, "joe@example.com", Role::Viewer).await.unwrap();
        process.integration(organization, "nightly").await;
        let who = Principal::embedder(organization, AccountId::from_bytes([7; 16]), Role::Editor);
        process.save(&who, Labels::default(), "saved").await;
        assert_eq!(process.findings().await, [""; 0]);
        deployment.store.delete_rows(row);
        let deleted = async || {
            let found = process.findings().await.into_iter();
            found.filter(|finding| finding.contains("was deleted outside the service")).collect::<Vec<_>>()
        };
        let found = deleted().await;
        assert!(found.len() == 1 && found[0].contains(row.table()), "{row:?}: {found:?}");

        // Retention records the state again, once, before it removes the entry.
        let removed = deployment.store.audit();
        deployment.clock.advance_seconds(60);
        let before = deployment.clock.now();
        for _ in 0..2 {
            let mut round = process.inspector.clone().renewing(before).begin();
            while round.step(2, &mut |_| {}).await.unwrap() {}
        }
        let again = deployment.store.audit().into_iter().skip(removed.len());
        assert_eq!(again.filter(|entry| entry.rows.iter().any(|(of, _)| *of == row)).count(), 1, "{row:?}");
        assert!(removed.iter().all(|entry| deployment.store.remove_audit(entry.id)));
        // Whether an invitation has expired is decided by the entry about its creation.
        assert_eq!(deleted().await.len(), usize::from(row != RecordedRow::Invitation), "{row:?}");
    }
}

/// Rows that the service deletes without an entry of their own are no findings: expired invitations, invitations before a restore,
/// and rows of a deleted organization.
#[tokio::test(flavor = "multi_thread")]
async fn rows_deleted_by_the_service_are_no_findings() {
    let deployment = Deployment::new().await;
    let (process, organization) = (deployment.start().await, deployment.organization().await);
    let person = process.person(organization, "anna").await;
    let account = |id| AccountRef::Id(organization, id);
    let change = async |id, command| {
        process.accounts.change(&Principal::Operator, account(id), command).await.unwrap();
    };
    let invite = async |email: &str| {
        let invited = process.accounts.invite(&Principal::Operator, organization, email, Role::Viewer).await.unwrap();
        invited.grant.account
    };
    let invited = invite("joe@example.com").await;
    change(person.id, AccountCommand::ReEnrol).await;
    deployment.clock.advance_seconds(INVITATION_SECONDS - 60);
    change(invited, AccountCommand::SetRole(Role::Editor)).await;
    deployment.clock.advance_seconds(60);
    process.operator.maintain(10_000).await;
    assert!(deployment.store.rows(organization).iter().all(|row| !row.contains("invitation")));
    assert_eq!(process.findings().await, [""; 0]);

    change(person.id, AccountCommand::ReEnrol).await;
    invite("joe@example.com").await;
    assert_eq!(process.operator.finish_restore(0, true).await.unwrap().invitations, 2);
    assert_eq!(process.findings().await, [""; 0]);
    // The entry about the restore explains no invitation from after it.
    deployment.clock.advance_seconds(60);
    invite("jane@example.com").await;
    deployment.store.delete_rows(RecordedRow::Invitation);
    let deleted = |finding: &&String| finding.contains("was deleted outside the service");
    assert_eq!(process.findings().await.iter().filter(deleted).count(), 1);

    process.integration(organization, "nightly").await;
    process.operator.change_organization("Acme", OrganizationCommand::Delete).await.unwrap();
    assert_eq!(process.findings().await, [""; 0]);
}

/// A change or deletion that waited for the database has an older entry than many operations that were completed before it.
#[tokio::test(flavor = "multi_thread")]
async fn delayed_changes_are_no_findings() {
    let mut deployment = Deployment::new().await;
    let (process, organization) = (deployment.start().await, deployment.organization().await);
    let [changed, deleted] =
        [process.integration(organization, "a").await, process.integration(organization, "b").await];
    deployment.ids = Arc::new(SequentialIds::seeded(1));
    let (delayed, before) = (deployment.start().await, deployment.clock.now());
    deployment.clock.advance_seconds(10);
    for state in [IntegrationState::Disabled, IntegrationState::Active].into_iter().cycle().take(20) {
        process.edit(organization, changed, state).await.unwrap();
        process.edit(organization, deleted, state).await.unwrap();
    }
    deployment.clock.set(before);
    delayed.edit(organization, changed, IntegrationState::Disabled).await.unwrap();
    let who = Principal::Operator;
    delayed.integrations.delete(&who, organization, &IntegrationRef::Id(deleted)).await.unwrap();
    deployment.clock.advance_seconds(20);
    assert_eq!(process.findings().await, [""; 0]);
}

/// Whatever was begun before a step is gone on with after it, by a process from before the rotation and by a new one.
#[tokio::test(flavor = "multi_thread")]
async fn vault_works_after_interruption_at_every_step() {
    let deployment = Deployment::new().await;
    let (old, organization) = (deployment.start().await, deployment.organization().await);
    let mut person = old.person(organization, "jane").await;
    let other = old.person(organization, "joe").await;
    let integration = old.integration(organization, "nightly").await;
    let open = old.accounts.invite(&Principal::Operator, organization, "open@example.com", Role::Viewer).await.unwrap();
    let drafted =
        old.accounts.invite(&Principal::Operator, organization, "drafted@example.com", Role::Viewer).await.unwrap();
    let code = |invited: &Invited| invited.code.text().clone();
    let draft = old.accounts.enrol(&code(&drafted), PASSWORD.into()).await.unwrap();
    let lost = old.person(organization, "lost").await;
    let again =
        old.accounts.change(&Principal::Operator, AccountRef::email("lost@example.com"), AccountCommand::ReEnrol);
    assert!(again.await.unwrap().enrolment.is_some() && !lost.recovery.is_empty());

    let before = deployment.active().await;
    let mut steps = 0;
    let end = loop {
        // A process that is gone after one step.
        let rotation = deployment.start().await.keys.rotate_instance().await.unwrap();
        assert_eq!(rotation.is_new(), steps == 0);
        assert_eq!((rotation.key(), rotation.rows()), (deployment.active().await, deployment.under(before).await));
        if rotation.step().await.unwrap().is_none()
            && let Some(end) = rotation.finish().await.unwrap()
        {
            break end;
        }
        steps += 1;
        let new = deployment.start().await;
        for process in [&old, &new] {
            process.passes(&deployment, &person).await;
            process.edit(organization, integration, IntegrationState::Active).await.unwrap();
            assert!(process.accounts.enrol(&code(&open), PASSWORD.into()).await.is_ok());
        }
        assert!(steps < 50, "a rotation ends");
    };
    assert!(steps >= 9, "there was a row of each kind: {steps}");
    assert_eq!((end.destroyed, end.kept), (vec![before], vec![]));
    assert_eq!((deployment.under(before).await, deployment.damage()), (0, 0));
    assert_eq!(deployment.retiring().await, 0);
    let audit = deployment.store.audit();
    let count = |action| audit.iter().filter(|record| record.action == action).count();
    assert_eq!((count(AuditAction::InstanceKeyReplaced), count(AuditAction::InstanceKeyDestroyed)), (1, 1));

    // The process from before the rotation continues, and writes under the key that is active now.
    for process in [&old, &deployment.start().await] {
        process.passes(&deployment, &person).await;
        let recovery = person.recovery.remove(0);
        process.log_in(&person, recovery).await.unwrap();
        assert!(process.accounts.enrol(&code(&open), PASSWORD.into()).await.is_ok());
    }
    // The draft from before is confirmed by a code of its seed: the seed was not lost.
    let wrong = old.accounts.confirm_enrolment(&code(&drafted), &"000000".into()).await;
    assert!(matches!(wrong, Err(Error::Refused(Refusal::InvalidEnrolment))), "{wrong:?}");
    assert!(!draft.passcode.secret.expose_secret().is_empty());
    let late = old.person(organization, "late").await;
    deployment.start().await.passes(&deployment, &late).await;
    deployment.start().await.passes(&deployment, &other).await;
    let active = deployment.active().await;
    assert_ne!(active, before);
    assert_eq!(deployment.under(before).await, 0);
    // Unchanged accounts, invitations and integrations are in the states that the audit log recorded before.
    for process in [&old, &deployment.start().await] {
        assert_eq!(process.findings().await, [""; 0]);
    }
}

/// A process that has loaded none of the current keys reads them before it verifies, seals or signs.
#[tokio::test(flavor = "multi_thread")]
async fn process_started_before_rotations_refuses_no_one() {
    let deployment = Deployment::new().await;
    let (old, organization) = (deployment.start().await, deployment.organization().await);
    let person = old.person(organization, "jane").await;
    let integration = old.integration(organization, "nightly").await;
    let first = deployment.active().await;
    for round in 0..3 {
        deployment.rotate().await;
        let rotated = IntegrationRef::Id(integration);
        old.integrations.rotate(&Principal::Operator, organization, &rotated, Overlap::DEFAULT).await.unwrap();
        old.integration(organization, &format!("made-{round}")).await;
        old.accounts
            .invite(&Principal::Operator, organization, &format!("round-{round}@example.com"), Role::Viewer)
            .await
            .unwrap();
        deployment.rotate().await;
        old.passes(&deployment, &person).await;
        let set = AccountCommand::SetRole(if round % 2 == 0 { Role::Viewer } else { Role::Editor });
        old.accounts.change(&Principal::Operator, AccountRef::email(person.email.as_str()), set).await.unwrap();
        deployment.rotate().await;
        let created = old.operator.create_organization(&format!("Organization {round}")).await.unwrap();
        deployment.rotate().await;
        old.keys.rotate_organization(created.id).await.unwrap();
    }
    assert_eq!((deployment.under(first).await, deployment.damage()), (0, 0));
    old.digester.reload_keys().await.unwrap();
    assert_eq!(old.digester.active_key(), deployment.active().await);
}

/// Whatever happened to the bytes of an account or its secrets: the integrity check reports it, a rotation ends without
/// destroying the old key, and the restored value works and lets the next rotation complete.
#[tokio::test(flavor = "multi_thread")]
async fn unreadable_blobs_are_findings_and_keep_the_old_key() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 6] = [
        ("empty", |bytes| bytes.clear()),
        ("cut", |bytes| bytes.truncate(10)),
        ("first byte", |bytes| bytes[0] ^= 1),
        ("key id", |bytes| bytes[5] ^= 1),
        ("zeros", |bytes| bytes.fill(0)),
        ("last byte", |bytes| *bytes.last_mut().unwrap() ^= 1),
    ];
    let deployment = Deployment::new().await;
    let (process, organization) = (deployment.start().await, deployment.organization().await);
    let person = process.person(organization, "jane").await;
    process.passes(&deployment, &person).await;
    for (name, damage) in damages {
        for kind in [Kind::Account, Kind::AccountSecrets] {
            let before = deployment.active().await;
            let mut kept = None;
            let place = (organization, kind.as_str(), *person.id.as_uuid());
            deployment.store.tamper_with_entities(|rows| {
                let blob = &mut rows.get_mut(&place).unwrap().sealed;
                kept = Some(blob.clone());
                let mut bytes = blob.as_bytes().to_vec();
                damage(&mut bytes);
                *blob = Blob::from_bytes(bytes);
            });
            let findings = deployment.start().await.findings().await;
            let found = |finding: &String| finding.contains("of table entities cannot be ");
            assert!(findings.iter().any(found), "{name} {kind:?}: {findings:?}");
            for _ in 0..2 {
                let reported = deployment.damage();
                let end = deployment.rotate().await;
                assert_eq!((end.destroyed, end.kept), (vec![], vec![(before, 1)]), "{name} {kind:?}");
                assert!(deployment.damage() > reported, "{name}: it is reported");
            }
            deployment.store.tamper_with_entities(|rows| rows.get_mut(&place).unwrap().sealed = kept.unwrap());
            assert_eq!(deployment.rotate().await.destroyed, [before], "{name} {kind:?}");
            process.passes(&deployment, &person).await;
        }
    }
}

/// Tokens and audit entries use new keys after every process has loaded them, and earlier ones stay valid. An old key is
/// destroyed when it is no longer needed.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_tokens_and_the_audit_are_replaced_too() {
    let deployment = Deployment::new().await;
    let (running, organization) = (deployment.start().await, deployment.organization().await);
    let person = running.person(organization, "jane").await;
    let retiring = async || -> Vec<KeyringEntry> {
        let overview = deployment.start().await.keys.overview().await.unwrap();
        overview.purposes.into_iter().map(|key| key.entry).filter(|entry| entry.state == KeyState::Retiring).collect()
    };
    let before = running.passes(&deployment, &person).await;
    assert_eq!(retiring().await, []);
    deployment.rotate().await;
    let purposes: Vec<_> = retiring().await.iter().map(|entry| entry.purpose).collect();
    assert_eq!(purposes, [KeyPurpose::Lookup, KeyPurpose::Audit, KeyPurpose::Token]);

    // A process that has not loaded the new keys accepts tokens of one that has, immediately.
    let token = |logged_in: &LoggedIn| logged_in.token.0.expose_secret().to_owned();
    let new = deployment.start().await;
    let same_key = new.log_in(&person, person.recovery[0].clone()).await.unwrap();
    assert!(running.accounts.authenticate(&token(&same_key)).is_ok());
    running.digester.reload_keys().await.unwrap();
    deployment.clock.advance_seconds(5);
    let after = new.log_in(&person, person.recovery[1].clone()).await.unwrap();
    let kid = |logged_in: &LoggedIn| token(logged_in).rsplit_once('.').unwrap().1.to_owned();
    assert_eq!((kid(&same_key) == kid(&before), kid(&after) == kid(&before)), (true, false));
    for process in [&running, &new] {
        for logged_in in [&before, &same_key, &after] {
            assert!(process.accounts.authenticate(&token(logged_in)).is_ok());
        }
        assert_eq!(process.findings().await, [""; 0]);
    }
    let keys = |entries: Vec<SealedAuditRecord>| entries.into_iter().map(|entry| entry.key).collect::<Vec<_>>();
    let keys = keys(deployment.store.sealed_audit());
    assert!(keys.first() != keys.last(), "the audit is signed under two keys");
    new.operator.verify_audit(None, &mut |finding| panic!("{finding:?}"), &mut |_, _| {}).await.unwrap();

    // Not before all that was begun with them has ended; then what nothing is under; then the token key, with its sessions.
    assert_eq!(new.keys.destroy_replaced(&mut |_| {}).await.unwrap(), []);
    deployment.clock.advance_seconds(KeyringEntry::DRAINED_SECONDS);
    let destroyed = async || -> Vec<KeyPurpose> {
        new.keys.destroy_replaced(&mut |_| {}).await.unwrap().into_iter().map(|entry| entry.purpose).collect()
    };
    assert_eq!(destroyed().await, [KeyPurpose::Lookup]);
    deployment.clock.advance_seconds(40 * 24 * 3_600);
    new.operator.maintain(10_000).await;
    assert_eq!(destroyed().await, [KeyPurpose::Token]);
    running.digester.reload_keys().await.unwrap();
    for process in [&running, &deployment.start().await] {
        let refused = process.accounts.authenticate(&token(&before));
        assert!(matches!(refused, Err(Error::Refused(Refusal::Token(TokenRefusal::UnknownKey)))), "{refused:?}");
    }
    assert_eq!(retiring().await.iter().map(|entry| entry.purpose).collect::<Vec<_>>(), [KeyPurpose::Audit]);
    assert_eq!(deployment.start().await.findings().await, [""; 0]);
}

impl Process {
    async fn save(&self, who: &Principal, labels: Labels, key: &str) -> CredentialId {
        let json = format!(r#"{{"url":"https://files.example/{key}?sig=q11abcdefghijklmnop"}}"#);
        let data = CredentialData::from_canonical_json(CredentialType::DirectLink, json.as_bytes()).unwrap();
        let mut request = NewCredential::new(Namespace::parse("imports", "").unwrap(), data);
        request.labels = labels;
        request.idempotency = Some(IdempotencyKey::parse(key).unwrap());
        self.vault.save(who, request).await.unwrap()
    }

    /// Those with the label, newest first; each is sound.
    async fn labelled(&self, who: &Principal, label: &str) -> Vec<CredentialId> {
        let labels = vec![LabelFilter::parse(label, "").unwrap()];
        let filter = ListFilter { labels, ..ListFilter::default() };
        let listed = self.vault.list(who, filter, PageRequest::default()).await.unwrap().items;
        assert!(listed.iter().all(|row| row.information.is_some() && row.metadata.is_some()), "{listed:?}");
        listed.into_iter().map(|row| row.id).collect()
    }
}

/// Lookups and verifications by digest succeed while the lookup key is replaced, in processes that have loaded the new key
/// and in one that has not, and after the old key is destroyed. An address stays unique throughout.
#[tokio::test(flavor = "multi_thread")]
async fn lookups_succeed_under_next_key() {
    let deployment = Deployment::new().await;
    let (running, organization) = (deployment.start().await, deployment.organization().await);
    let mut person = running.person(organization, "jane").await;
    let invited = running.accounts.invite(&Principal::Operator, organization, "open@example.com", Role::Viewer);
    let invited = invited.await.unwrap();
    running.integration(organization, "nightly").await;
    let who = Principal::embedder(organization, AccountId::from_bytes([7; 16]), Role::Editor);
    let label = || Member { name: "stage".to_owned(), value: Node::String("nightly".into()) };
    let labels = || Labels::parse(Node::Object(vec![label()]), "").unwrap();
    let mut saved = Vec::new();
    let taken = async |process: &Process, email: &str| {
        let request = CreateAccountRequest {
            organization,
            email: email.to_owned(),
            role: Role::Viewer,
            password: Some(PASSWORD.into()),
        };
        matches!(process.accounts.create(request).await, Err(Error::Refused(Refusal::AddressTaken)))
    };
    let look_up_keys = async || {
        let keys = deployment.start().await.keys.overview().await.unwrap().purposes.into_iter().map(|key| key.entry);
        keys.filter(|entry| entry.purpose == KeyPurpose::Lookup).map(|entry| entry.id).collect::<Vec<_>>()
    };
    let [first] = look_up_keys().await[..] else { panic!("there is one") };

    let mut emails = vec![person.email.to_string(), "open@example.com".to_owned()];
    for round in 0..2 {
        let (round_start, first_key) = (saved.len(), format!("first-{round}"));
        saved.push(running.save(&who, labels(), &first_key).await);
        deployment.rotate().await;
        let unaware = deployment.start().await;
        for (number, seconds) in
            [0, 1, KeyringEntry::SETTLED_SECONDS, KeyringEntry::DRAINED_SECONDS].into_iter().enumerate()
        {
            deployment.clock.advance_seconds(seconds);
            let new = deployment.start().await;
            for process in [&running, &unaware, &new] {
                process.digester.refresh().await.unwrap();
                process.passes(&deployment, &person).await;
                assert!(process.accounts.enrol(invited.code.text(), PASSWORD.into()).await.is_ok());
                assert_eq!(
                    process.labelled(&who, "stage:nightly").await,
                    saved.iter().rev().copied().collect::<Vec<_>>()
                );
                assert_eq!(process.save(&who, labels(), &first_key).await, saved[round_start], "the same request");
                for email in &emails {
                    assert!(taken(process, email).await, "{email}");
                }
                assert_eq!(process.findings().await, [""; 0]);
            }
            let recovery = person.recovery.remove(0);
            new.log_in(&person, recovery).await.unwrap();
            let name = format!("round-{round}-{number}");
            emails.push(new.person(organization, &name).await.email.to_string());
            saved.push(running.save(&who, labels(), &name).await);
        }
        let kept = running.keys.destroy_replaced(&mut |_| {}).await.unwrap();
        assert!(kept.iter().all(|entry| entry.purpose != KeyPurpose::Lookup), "requests of its time may be repeated");
        deployment.clock.advance_seconds(24 * 3_600);
        running.operator.maintain(10_000).await;
        let mut rows = 0;
        let destroyed = running.keys.destroy_replaced(&mut |seen| rows = seen).await.unwrap();
        assert!(destroyed.iter().any(|entry| entry.purpose == KeyPurpose::Lookup), "{destroyed:?}");
        assert!(rows >= 5, "each credential was looked at: {rows}");
        for process in [&running, &unaware, &deployment.start().await] {
            process.digester.reload_keys().await.unwrap();
            process.passes(&deployment, &person).await;
            assert_eq!(process.labelled(&who, "stage:nightly").await.len(), saved.len());
            for email in &emails {
                assert!(taken(process, email).await, "{email}");
            }
            assert_eq!(process.findings().await, [""; 0]);
        }
    }
    let left = look_up_keys().await;
    assert!(left.len() == 1 && left[0] != first);
    assert_eq!(deployment.damage(), 0);
    let recovery = person.recovery.remove(0);
    running.log_in(&person, recovery).await.unwrap();
    let mut again = running.keys.rekey_lookups();
    while again.step().await.unwrap() {}
    assert_eq!(again.moved(), 0, "all rows are under the key in use");
}

/// An attacker who writes rows cannot restore a destroyed key with the keyring that contained it.
#[tokio::test(flavor = "multi_thread")]
async fn destroyed_key_is_not_restored() {
    let deployment = Deployment::new().await;
    let (process, store) = (deployment.start().await, &deployment.store);
    let signed_before = process.digester.sign(DigestPurpose::Cursor, &[b"admin"]);
    let directory = tempfile::tempdir().unwrap();
    let anchor = |keyring: &Keyring| keyring.anchors().at(directory.path().join("orgvault.anchor"));

    let rotation = process.keys.rotate_instance().await.unwrap();
    while rotation.step().await.unwrap().is_some() {}
    let while_retiring = store.instance().await.unwrap().unwrap();
    let is_valid = |process: &Process| process.digester.is_signed(DigestPurpose::Cursor, &[b"admin"], &signed_before);
    assert!(is_valid(&deployment.start().await), "it retires");
    assert!(rotation.finish().await.unwrap().is_some());
    let keyring = deployment.open().await;
    let checkpoint = CheckpointRef { number: 0, hash: Digest::from_bytes([0; 32]) };
    let known = Anchor { epoch: 0, checkpoint, keyring: keyring.anchors().keyring() };
    anchor(&keyring).store(known).unwrap();
    let running = deployment.start().await;
    assert!(!is_valid(&running));

    // A process that has read the newer keyring refuses the one with the key, and so does one with an anchor.
    store.tamper_with_instance(while_retiring);
    let refused = running.digester.reload_keys().await.unwrap_err();
    assert!(format!("{refused:?}").contains("OlderKeyring"), "{refused:?}");
    assert!(!is_valid(&running));
    let restored = deployment.open().await;
    let known = anchor(&restored).load().unwrap().unwrap();
    assert!(!restored.anchors().keyring_follows(known.keyring));
    assert!(keyring.anchors().keyring_follows(known.keyring));
}

/// Events in a deployment during its rotations.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A process steps; begins a rotation if it has none.
    Step(usize),
    /// A process tries to end its rotation.
    Finish(usize),
    /// A process is killed, and another one started in its place.
    Restart(usize),
    /// A process makes an integration.
    Make(usize),
    /// A process changes one.
    Change(usize, usize),
    /// A process deletes one.
    Delete(usize, usize),
    /// A process creates, changes or deletes rows of another kind.
    Other(usize, Other, usize),
}

/// Operations on other rows. Each applies to the row of a number, if it exists.
#[derive(Clone, Copy, Debug)]
enum Other {
    CreateAccount,
    ReEnrol,
    DeleteAccount,
    Invite,
    DeleteInvitation,
    Save,
    DeleteCredential,
    ReplaceOrganization,
    Expire,
    FinishRestore,
}

const OTHERS: [Other; 10] = [
    Other::CreateAccount,
    Other::ReEnrol,
    Other::DeleteAccount,
    Other::Invite,
    Other::DeleteInvitation,
    Other::Save,
    Other::DeleteCredential,
    Other::ReplaceOrganization,
    Other::Expire,
    Other::FinishRestore,
];

/// What operations have created in a deployment.
#[derive(Default)]
struct Made {
    accounts: Vec<AccountId>,
    invitations: Vec<AccountId>,
    credentials: Vec<CredentialId>,
    names: usize,
}

impl Made {
    async fn run(
        &mut self,
        deployment: &Deployment,
        process: &Process,
        organization: OrganizationId,
        act: (Other, usize),
    ) {
        let (other, which) = act;
        let who = Principal::embedder(organization, AccountId::from_bytes([7; 16]), Role::Editor);
        self.names += 1;
        let name = format!("other-{}", self.names);
        let change = async |of: &[AccountId], command| {
            if let Some(id) = of.get(which) {
                let account = AccountRef::Id(organization, *id);
                match process.accounts.change(&Principal::Operator, account, command).await {
                    Ok(_) | Err(Error::Refused(Refusal::NotFound)) => {}
                    Err(error) => panic!("{other:?}: {error}"),
                }
            }
        };
        match other {
            Other::CreateAccount => self.accounts.push(process.person(organization, &name).await.id),
            Other::ReEnrol => change(&self.accounts, AccountCommand::ReEnrol).await,
            Other::DeleteAccount => change(&self.accounts, AccountCommand::Delete).await,
            Other::Invite => {
                let email = format!("{name}@example.com");
                let invited = process.accounts.invite(&Principal::Operator, organization, &email, Role::Viewer).await;
                self.invitations.push(invited.unwrap().grant.account);
            }
            Other::DeleteInvitation => change(&self.invitations, AccountCommand::Delete).await,
            Other::Save => self.credentials.push(process.save(&who, Labels::default(), &name).await),
            Other::DeleteCredential => {
                if let Some(id) = self.credentials.get(which) {
                    let deleted = process.vault.delete(&who, *id).await;
                    assert!(matches!(deleted, Ok(()) | Err(Error::Refused(Refusal::NotFound))), "{deleted:?}");
                }
            }
            Other::ReplaceOrganization => {
                let created = process.operator.create_organization(&name).await.unwrap();
                process.integration(created.id, "nightly").await;
                process.operator.change_organization(&name, OrganizationCommand::Delete).await.unwrap();
            }
            Other::Expire => {
                deployment.clock.advance_seconds(INVITATION_SECONDS / 2);
                process.operator.maintain(10_000).await;
            }
            Other::FinishRestore => drop(process.operator.finish_restore(0, true).await.unwrap()),
        }
    }
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..3_usize).prop_map(Act::Step),
        2 => (0..3_usize).prop_map(Act::Finish),
        1 => (0..3_usize).prop_map(Act::Restart),
        2 => (0..3_usize).prop_map(Act::Make),
        3 => (0..3_usize, 0..8_usize).prop_map(|(process, which)| Act::Change(process, which)),
        1 => (0..3_usize, 0..8_usize).prop_map(|(process, which)| Act::Delete(process, which)),
        6 => (0..3_usize, prop::sample::select(&OTHERS[..]), 0..4_usize)
            .prop_map(|(process, other, which)| Act::Other(process, other, which)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// In any order of steps, ends, kills and operations by three processes: the integrity check finds nothing, no key is
    /// destroyed early, and a rotation that is completed leaves one key.
    #[test]
    fn rotations_and_changes_in_any_order_lose_nothing(acts in prop::collection::vec(act(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let deployment = Deployment::new().await;
            let organization = deployment.organization().await;
            let mut processes = Vec::new();
            for _ in 0..3 {
                processes.push((deployment.start().await, None));
            }
            let (mut created, mut other) = (Vec::new(), Made::default());
            for act in acts {
                match act {
                    Act::Step(place) => {
                        let (process, rotation) = &mut processes[place];
                        if rotation.is_none() {
                            *rotation = Some(process.keys.rotate_instance().await.unwrap());
                        }
                        rotation.as_ref().unwrap().step().await.unwrap();
                    }
                    Act::Finish(place) => {
                        let rotation = &mut processes[place].1;
                        if let Some(under_way) = rotation
                            && under_way.finish().await.unwrap().is_some()
                        {
                            *rotation = None;
                        }
                    }
                    Act::Restart(place) => processes[place] = (deployment.start().await, None),
                    Act::Make(place) => {
                        other.names += 1;
                        let name = format!("integration-{}", other.names);
                        created.push(processes[place].0.integration(organization, &name).await);
                    }
                    Act::Change(place, which) => {
                        if let Some(id) = created.get(which) {
                            processes[place].0.edit(organization, *id, IntegrationState::Active).await.unwrap();
                        }
                    }
                    Act::Delete(place, which) => {
                        if which < created.len() {
                            let deleted = IntegrationRef::Id(created.remove(which));
                            let integrations = &processes[place].0.integrations;
                            integrations.delete(&Principal::Operator, organization, &deleted).await.unwrap();
                        }
                    }
                    Act::Other(place, what, which) => {
                        other.run(&deployment, &processes[place].0, organization, (what, which)).await;
                    }
                }
            }
            let end = deployment.rotate().await;
            assert_eq!(end.kept, []);
            assert_eq!(deployment.retiring().await, 0);
            let last = deployment.start().await;
            assert_eq!(last.findings().await, [""; 0]);
            assert_eq!(deployment.damage(), 0);
            for id in created {
                last.edit(organization, id, IntegrationState::Disabled).await.unwrap();
            }
        });
    }
}
