//! Audit entries: the stored form of a record, the fields that its MAC covers, and the findings of verification.

use uuid::Uuid;
use vault_core::activation::{IssuedCredential, Purpose, VendedForm};
use vault_core::audit::{
    Actor, AuditAction, AuditChange, AuditEntry, AuditFinding, AuditNote, AuditRecord, AuditedCredential, ChangedField,
    Origin, RecordedRow, RowState, SealedAuditRecord, Subject,
};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, AuditId, CredentialId, IntegrationId, KeyId, OrganizationId, SessionId};
use vault_core::namespace::Namespace;
use vault_core::network::Network;
use vault_core::port::AuditSealer as _;
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::time::Timestamp;
use vault_testkit::crypto::FakeAuditSealer;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn account(number: u128) -> Actor {
    Actor::Account(AccountId::from_uuid(uuid(number)), SessionId::from_uuid(uuid(number + 1)))
}

fn integration(number: u128) -> Actor {
    Actor::Integration(IntegrationId::from_uuid(uuid(number)))
}

fn issued_credentials(number: u128, expires_at: Option<Timestamp>) -> IssuedCredential {
    IssuedCredential {
        credential: CredentialId::from_uuid(uuid(number)),
        version: 3,
        form: VendedForm::Short,
        expires_at,
    }
}

fn note(namespace: &str) -> AuditNote {
    AuditNote::of(Namespace::parse(namespace, "").unwrap())
}

/// Returns an entry with only the required fields.
fn bare() -> AuditRecord {
    AuditRecord {
        id: AuditId::from_uuid(uuid(1)),
        at: at(1_000),
        organization: None,
        actor: Actor::System,
        action: AuditAction::CredentialSaved,
        subject: Subject::Vault,
        count: 1,
        note: None,
        origin: Origin::default(),
        rows: Vec::new(),
        changes: Vec::new(),
    }
}

/// Returns an entry with all fields.
fn full() -> AuditRecord {
    let credentials = vec![issued_credentials(5, Some(at(9_000))), issued_credentials(6, None)];
    AuditRecord {
        organization: Some(OrganizationId::from_uuid(uuid(2))),
        actor: integration(3),
        note: Some(AuditNote {
            purpose: Some(Purpose::parse("nightly", "").unwrap()),
            network: Some(Network::V4([192, 0, 2])),
            credentials,
            ..note("imports")
        }),
        origin: Origin { network: Some(Network::V4([198, 51, 100])), request: Some(uuid(4)) },
        rows: vec![(RecordedRow::Credential, RowState::Revision(7))],
        changes: vec![AuditChange::withheld(ChangedField::Labels)],
        ..bare()
    }
}

type Change = fn(&mut AuditRecord);

/// Returns changes of one field each. Changes of optional fields add them if they are absent.
fn changes() -> Vec<(&'static str, Change)> {
    fn noted(record: &mut AuditRecord) -> &mut AuditNote {
        record.note.get_or_insert_with(|| note("imports"))
    }
    vec![
        ("id", |record| record.id = AuditId::from_uuid(uuid(90))),
        ("time", |record| record.at = at(1_001)),
        ("organization", |record| record.organization = Some(OrganizationId::from_uuid(uuid(90)))),
        ("kind of actor", |record| record.actor = Actor::Operator),
        ("account", |record| record.actor = Actor::Embedder(AccountId::from_uuid(uuid(90)))),
        ("session", |record| record.actor = account(90)),
        ("integration", |record| record.actor = integration(90)),
        ("action", |record| record.action = AuditAction::CredentialDeleted),
        ("subject", |record| record.subject = Subject::Credential(CredentialId::from_uuid(uuid(90)))),
        ("count", |record| record.count = 2),
        ("namespace", |record| noted(record).namespace = note("exports").namespace),
        ("purpose", |record| noted(record).purpose = Some(Purpose::parse("by hand", "").unwrap())),
        ("network", |record| {
            noted(record).network = None;
            record.origin.network = Some(Network::V4([203, 0, 113]));
        }),
        ("credentials", |record| noted(record).credentials = vec![issued_credentials(90, None)]),
        ("end of a credential", |record| noted(record).credentials = vec![issued_credentials(90, Some(at(1)))]),
        ("request", |record| record.origin.request = Some(uuid(90))),
        ("changes", |record| {
            record.changes = vec![AuditChange::new(ChangedField::Role, Some("viewer".into()), Some("admin".into()))];
        }),
        ("rows", |record| record.rows = vec![(RecordedRow::Account, RowState::Gone)]),
    ]
}

#[test]
fn entry_mac_covers_every_field() {
    for record in [bare(), full()] {
        let mut forms = vec![("nothing", record.clone())];
        forms.extend(changes().into_iter().map(|(what, change)| {
            let mut changed = record.clone();
            change(&mut changed);
            (what, changed)
        }));
        let bytes: Vec<_> = forms.iter().map(|(_, record)| record.to_authenticated_bytes()).collect();
        for (index, (what, _)) in forms.iter().enumerate() {
            for (other, (second, _)) in forms.iter().enumerate().skip(index + 1) {
                assert_ne!(bytes[index], bytes[other], "{what} and {second}");
            }
        }
    }
}

#[test]
fn entry_mac_covers_later_field() {
    // Each field alone selects the encoding of the entry.
    let alone: [fn(&mut AuditRecord, bool); 5] = [
        |record, second| record.actor = integration(if second { 8 } else { 9 }),
        |record, second| record.note = Some(note(if second { "imports" } else { "exports" })),
        |record, second| record.origin.network = Some(Network::V4([192, 0, u8::from(second)])),
        |record, second| record.origin.request = Some(uuid(second.into())),
        |record, second| record.rows = vec![(RecordedRow::Credential, RowState::Revision(second.into()))],
    ];
    for (index, change) in alone.into_iter().enumerate() {
        let [one, two] = [false, true].map(|second| {
            let mut record = bare();
            change(&mut record, second);
            record.to_authenticated_bytes()
        });
        assert_ne!(one, two, "{index}");
    }
}

#[test]
fn entry_is_stored_as_it_was_recorded() {
    let sealed = FakeAuditSealer.seal(full());
    let entry = sealed.to_entry();
    let text = |number: u128| uuid(number).hyphenated().to_string();
    let expected = AuditEntry {
        id: text(1),
        at: at(1_000),
        organization: Some(text(2)),
        actor: "integration".to_owned(),
        account: None,
        session: None,
        integration: Some(text(3)),
        action: "credential.saved".to_owned(),
        subject: "vault".to_owned(),
        count: 1,
        namespace: Some("imports".to_owned()),
        purpose: Some("nightly".to_owned()),
        // The network of the note precedes that of the request.
        network: Some("192.0.2.0/24".to_owned()),
        credentials: Some(format!("{} 3 short 9000\n{} 3 short", text(5), text(6))),
        request: Some(text(4)),
        rows: Some("credential 7".to_owned()),
        changes: Some(r#"[{"field":"labels"}]"#.to_owned()),
        key: FakeAuditSealer::KEY.to_string(),
        mac: sealed.mac.as_bytes().to_vec(),
        checkpoint: None,
    };
    assert_eq!(entry, expected);
    let issued =
        |number, expires_at| AuditedCredential { id: text(number), version: 3, form: "short".to_owned(), expires_at };
    assert_eq!(entry.credentials(), [issued(5, Some(at(9_000))), issued(6, None)]);
    assert_eq!(entry.left(RecordedRow::Credential), Some(RowState::Revision(7)));
    assert_eq!(entry.left(RecordedRow::Account), None);

    let without = FakeAuditSealer.seal(AuditRecord { actor: account(7), ..bare() }).to_entry();
    assert_eq!((without.actor.as_str(), without.account, without.session), ("account", Some(text(7)), Some(text(8))));
    assert_eq!((without.integration, without.network, without.credentials), (None, None, None));
    assert_eq!((without.request, without.rows, without.namespace), (None, None, None));
}

#[test]
fn entry_mac_covers_every_column() {
    type ColumnChange = fn(&mut AuditEntry);
    let columns: [(&str, ColumnChange); 18] = [
        ("id", |entry| entry.id = uuid(99).to_string()),
        ("at", |entry| entry.at = at(1_001)),
        ("organization", |entry| entry.organization = Some(uuid(99).to_string())),
        ("actor", |entry| entry.actor = "operator".to_owned()),
        ("account", |entry| entry.account = Some(uuid(99).to_string())),
        ("session", |entry| entry.session = Some(uuid(99).to_string())),
        ("integration", |entry| entry.integration = Some(uuid(99).to_string())),
        ("action", |entry| entry.action = "credential.deleted".to_owned()),
        ("subject", |entry| entry.subject = "instance".to_owned()),
        ("count", |entry| entry.count += 1),
        ("namespace", |entry| entry.namespace = Some("exports".to_owned())),
        ("purpose", |entry| entry.purpose = Some("by hand".to_owned())),
        ("network", |entry| entry.network = Some("203.0.113.0/24".to_owned())),
        ("credentials", |entry| entry.credentials = Some("none".to_owned())),
        ("request", |entry| entry.request = Some(uuid(99).to_string())),
        ("rows", |entry| entry.rows = Some("account gone".to_owned())),
        ("key", |entry| entry.key = uuid(99).to_string()),
        ("code", |entry| entry.mac[0] ^= 1),
    ];
    for record in [bare(), full()] {
        let entry = FakeAuditSealer.seal(record).to_entry();
        assert!(entry.is_genuine(&FakeAuditSealer));
        let sealed = AuditEntry { checkpoint: Some(1), ..entry.clone() };
        assert!(sealed.is_genuine(&FakeAuditSealer), "sealing changes nothing of an entry");
        for (column, change) in columns {
            let mut changed = entry.clone();
            change(&mut changed);
            assert!(!changed.is_genuine(&FakeAuditSealer), "{column}");
        }
    }
    // An empty text differs from an absent one.
    let entry = FakeAuditSealer.seal(bare()).to_entry();
    let emptied: [ColumnChange; 9] = [
        |entry| entry.organization = Some(String::new()),
        |entry| entry.account = Some(String::new()),
        |entry| entry.session = Some(String::new()),
        |entry| entry.integration = Some(String::new()),
        |entry| entry.namespace = Some(String::new()),
        |entry| entry.purpose = Some(String::new()),
        |entry| entry.network = Some(String::new()),
        |entry| entry.credentials = Some(String::new()),
        |entry| entry.rows = Some(String::new()),
    ];
    for (index, empty) in emptied.into_iter().enumerate() {
        let mut changed = entry.clone();
        empty(&mut changed);
        assert!(!changed.is_genuine(&FakeAuditSealer), "{index}");
    }
}

#[test]
fn actor_is_principal() {
    let (organization, account) = (OrganizationId::from_uuid(uuid(1)), AccountId::from_uuid(uuid(2)));
    let session = SessionId::from_uuid(uuid(3));
    let holder = SessionPrincipal { organization, account, session, role: Role::Viewer, version: 1 };
    let actors = [
        Actor::from(&Principal::Operator),
        Actor::from(&Principal::from(holder)),
        Actor::from(&Principal::embedder(organization, account, Role::Viewer)),
        integration(4),
        Actor::System,
        Actor::Unknown,
    ];
    assert_eq!(actors.map(Actor::kind), ["operator", "account", "embedder", "integration", "system", "unknown"]);
    assert_eq!(actors.map(Actor::account), [None, Some(account), Some(account), None, None, None]);
    assert_eq!(actors.map(Actor::session), [None, Some(session), None, None, None, None]);
    let program = Some(IntegrationId::from_uuid(uuid(4)));
    assert_eq!(actors.map(Actor::integration), [None, None, None, program, None, None]);
}

#[test]
fn later_row_state_has_higher_number() {
    assert_eq!([1, 2].map(RowState::Revision).map(RowState::number), [1, 2]);
    assert!(RowState::Gone.number() > RowState::Revision(i64::MAX - 1).number(), "nothing comes after the end");
}

#[test]
fn rows_are_named_after_their_tables() {
    use RecordedRow::*;
    let rows = [Account, Invitation, Integration, Credential, Organization, Namespace, Issuer, Receiver];
    let tables = ["entities", "entities", "entities", "credentials", "entities", "entities", "entities", "entities"];
    assert_eq!(rows.map(RecordedRow::table), tables);
}

#[test]
fn finding_names_its_object() {
    let entry = AuditId::from_uuid(uuid(1));
    let text = || "a row".to_owned();
    let findings = [
        (AuditFinding::Missing { entry, checkpoint: 4 }, "missing", Some(entry.to_string()), Some(4)),
        (AuditFinding::Changed { entry: text(), checkpoint: 4 }, "changed", Some(text()), Some(4)),
        (AuditFinding::Reordered { entry: text(), belongs: "5".to_owned() }, "reordered", Some(text()), None),
        (AuditFinding::Added { entry: text(), checkpoint: Some(4) }, "added", Some(text()), Some(4)),
        (AuditFinding::Added { entry: text(), checkpoint: None }, "added", Some(text()), None),
        (AuditFinding::CheckpointsMissing { first: 4, last: 6 }, "checkpoint-missing", None, Some(4)),
        (AuditFinding::CheckpointChanged { checkpoint: 4 }, "checkpoint-changed", None, Some(4)),
        (AuditFinding::CheckpointReplaced { checkpoint: 4 }, "checkpoint-replaced", None, Some(4)),
        (AuditFinding::Truncated { newest: 3, anchored: 4 }, "truncated", None, Some(4)),
        (AuditFinding::AnchorDiffers { checkpoint: 4 }, "anchor-differs", None, Some(4)),
    ];
    for (finding, kind, entry, checkpoint) in findings {
        assert_eq!((finding.kind(), finding.entry(), finding.checkpoint()), (kind, entry.clone(), checkpoint));
        let message = finding.to_string();
        assert!(entry.is_none_or(|entry| message.contains(&entry)), "{message}");
        assert!(
            checkpoint.is_none_or(|number| message.contains(&number.to_string())) || kind == "changed",
            "{message}"
        );
    }
    let missing = |first, last| AuditFinding::CheckpointsMissing { first, last }.to_string();
    assert_eq!(missing(4, 4), "checkpoint 4 is missing");
    assert_eq!(missing(4, 6), "checkpoints 4 to 6 are missing");
}

/// An entry of a request with several actions matches the filter of each.
#[test]
fn entry_matches_filter_for_each_action() {
    let changed = |action, subject, fields: &[ChangedField]| {
        let changes = fields.iter().map(|field| AuditChange::withheld(*field)).collect();
        sealed(AuditRecord { action, subject, changes, ..bare() }).to_entry()
    };
    let credential = Subject::Credential(CredentialId::from_uuid(uuid(7)));
    let relaxed = changed(AuditAction::CredentialVendRelaxed, credential, &[ChangedField::Vend, ChangedField::Labels]);
    assert!(relaxed.is_action("credential.vend-relaxed") && relaxed.is_action("credential.described"));
    let only = changed(AuditAction::CredentialVendRelaxed, credential, &[ChangedField::Vend]);
    assert!(only.is_action("credential.vend-relaxed") && !only.is_action("credential.described"));
    let integration = Subject::Integration(IntegrationId::from_uuid(uuid(8)));
    let disabled =
        changed(AuditAction::IntegrationDisabled, integration, &[ChangedField::State, ChangedField::Namespaces]);
    assert!(disabled.is_action("integration.disabled") && disabled.is_action("integration.changed"));
    assert!(!disabled.is_action("integration.enabled"));
    let account = Subject::Account(AccountId::from_uuid(uuid(9)));
    let role = changed(AuditAction::AccountRoleChanged, account, &[ChangedField::Role]);
    assert!(role.is_action("account.role-changed") && !role.is_action("account.disabled"));
}

/// An activation matches its credentials and its integration, and a freeze its namespace.
#[test]
fn entry_matches_filter_for_each_participant() {
    let entry = sealed(full()).to_entry();
    let (issued, integration, stranger) = (uuid(5), uuid(3), uuid(77));
    for found in [
        issued.to_string(),
        format!("credential:{issued}"),
        integration.to_string(),
        format!("integration:{integration}"),
    ] {
        assert!(entry.concerns(&found), "{found}");
    }
    for other in
        [stranger.to_string(), format!("integration:{issued}"), format!("account:{integration}"), String::new()]
    {
        assert!(!entry.concerns(&other), "{other}");
    }
    let frozen = AuditRecord { subject: Subject::Namespace, note: Some(note("imports/nightly")), ..bare() };
    let frozen = sealed(frozen).to_entry();
    assert_eq!(frozen.subject(), "namespace:imports/nightly");
    assert!(frozen.concerns("namespace:imports/nightly") && frozen.concerns("imports/nightly"));
    assert!(!frozen.concerns("namespace:imports"));
}

/// Changes are parsed as they were written. A damaged text yields no changes.
#[test]
fn changes_are_read_as_they_were_written() {
    let changes = vec![
        AuditChange::new(ChangedField::Namespaces, Some("a/* b".into()), Some("c \"d\"\n".into())),
        AuditChange::withheld(ChangedField::Description),
    ];
    let mut entry = sealed(AuditRecord { changes: changes.clone(), ..bare() }).to_entry();
    assert_eq!(entry.changes(), changes);
    for damaged in ["", "[", "{}", "7"] {
        entry.changes = Some(damaged.to_owned());
        assert_eq!(entry.changes(), []);
    }
}

fn sealed(record: AuditRecord) -> SealedAuditRecord {
    SealedAuditRecord { record, key: KeyId::from_uuid(uuid(1)), mac: Digest::from_bytes([1; 32]) }
}
