//! Logins with all their outcomes.

use super::service::{PASSWORD, Service, network};
use vault_core::audit::AuditAction;
use vault_core::entity::Kind;
use vault_core::hash_slots::Requester;
use vault_core::lockout::{CLOSING_ATTEMPTS, FREE_ATTEMPTS, LONGEST_WAIT_SECONDS, WRONG_PASSCODES};
use vault_core::network::Network;
use vault_core::port::{EntityRow, Event, LoginRefusal};
use vault_core::role::Role;
use vault_core::usecase::{AccountCommand, OwnerProof};
use vault_core::{Error, Refusal};

fn wrong() -> OwnerProof {
    OwnerProof { password: "a wrong password".into(), passcode: "123456".into(), network: network() }
}

/// Returns the reasons of rejected logins.
fn refusals(service: &Service) -> Vec<LoginRefusal> {
    let refused = |event| match event {
        Event::LoginRefused { refusal, .. } => Some(refusal),
        _ => None,
    };
    service.events.events().into_iter().filter_map(refused).collect()
}

async fn refused(service: &Service, email: &str, proof: OwnerProof) {
    let outcome = service.try_log_in(email, proof).await;
    assert!(matches!(outcome, Err(Error::Refused(Refusal::InvalidLogin))), "{outcome:?}");
}

/// Logins to an unknown, a locked out or a disabled account are each hashed against a decoy, however often they are
/// tried.
#[tokio::test]
async fn every_login_is_hashed_and_only_counted_ones_use_own_verifier() {
    let service = Service::new().await;
    service.person("Acme", "jane", Role::Viewer).await;
    service.person("Acme", "joe", Role::Viewer).await;
    service.as_operator("joe@example.com", AccountCommand::Disable).await.unwrap();
    let hashes = service.hasher.verified().len();
    for _ in 0..3 * FREE_ATTEMPTS {
        for email in ["unknown@example.com", "jane@example.com", "joe@example.com"] {
            refused(&service, email, wrong()).await;
        }
    }
    let verified = service.hasher.verified().split_off(hashes);
    let free = usize::try_from(FREE_ATTEMPTS).unwrap();
    assert_eq!(verified.len(), 9 * free, "each is hashed once");
    assert_eq!(verified.iter().filter(|own| **own).count(), free);
    assert_eq!(service.evaluations(), free);
    let refusals = refusals(&service);
    let number = |refusal| refusals.iter().filter(|found| **found == refusal).count();
    assert_eq!(number(LoginRefusal::UnknownAddress), 3 * free);
    assert_eq!(number(LoginRefusal::WrongPassword), free);
    assert_eq!(number(LoginRefusal::Throttled), 2 * free);
    assert_eq!(number(LoginRefusal::Closed), 3 * free);
}

/// Every rejected login uses the same crypto operations in the same order: for known and unknown addresses, right and
/// wrong passwords, during a lockout, in a locked throttle bucket, and for a disabled or re-enrolling account.
#[tokio::test]
async fn refused_logins_perform_equal_cryptography() {
    let service = Service::new().await;
    for name in ["jane", "joe", "waiting", "closed", "disabled", "re-enrolling"] {
        service.person("Acme", name, Role::Viewer).await;
    }
    for _ in 0..CLOSING_ATTEMPTS {
        service.clock.advance_seconds(LONGEST_WAIT_SECONDS);
        refused(&service, "closed@example.com", wrong()).await;
    }
    for _ in 0..FREE_ATTEMPTS {
        refused(&service, "waiting@example.com", wrong()).await;
    }
    service.as_operator("disabled@example.com", AccountCommand::Disable).await.unwrap();
    service.as_operator("re-enrolling@example.com", AccountCommand::ReEnrol).await.unwrap();
    let groups = [
        ("unknown", "a wrong password", LoginRefusal::UnknownAddress),
        ("jane", "a wrong password", LoginRefusal::WrongPassword),
        ("joe", PASSWORD, LoginRefusal::WrongPasscode),
        ("waiting", "a wrong password", LoginRefusal::Throttled),
        ("waiting", PASSWORD, LoginRefusal::Throttled),
        ("closed", PASSWORD, LoginRefusal::Throttled),
        ("disabled", PASSWORD, LoginRefusal::Closed),
        ("re-enrolling", PASSWORD, LoginRefusal::Closed),
    ];
    for (passcode, expected) in [
        ("000000", ["compare codes"].as_slice()),
        ("01234567890123456789", ["digest a recovery code"].as_slice()),
        ("no code", [].as_slice()),
    ] {
        for (name, password, refusal) in groups {
            service.events.take();
            service.work.take();
            let proof = OwnerProof { password: password.into(), passcode: passcode.into(), network: network() };
            refused(&service, &format!("{name}@example.com"), proof).await;
            assert_eq!(refusals(&service), [refusal], "{name}");
            let work = service.work.take();
            let before = ["digest Network", "permit a hash"];
            let after = match refusal {
                LoginRefusal::WrongPasscode => "seal the record login.passcode-refused",
                _ => "seal the record login.refused",
            };
            let wanted = before.iter().chain(&["verify a password"]).chain(expected).map(ToString::to_string);
            assert_eq!(work, wanted.chain([after.to_owned()]).collect::<Vec<_>>(), "{name} with {passcode}");
        }
    }
}

/// For any number of unknown addresses, the audit log gets one entry per minute, and one for each account that is
/// locked out, each with its count.
#[tokio::test]
async fn uncounted_refusals_are_recorded_once_a_minute() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    for number in 0..300 {
        refused(&service, &format!("unknown-{number}@example.com"), wrong()).await;
    }
    for _ in 0..FREE_ATTEMPTS + 7 {
        refused(&service, "jane@example.com", wrong()).await;
    }
    assert_eq!(service.audited(AuditAction::LoginThrottled).0, 0);
    service.tally.flush(true).await.unwrap();
    let records = service.store.audit();
    let tallied = records.iter().filter(|record| record.action == AuditAction::LoginThrottled);
    let mut tallied: Vec<_> = tallied.map(|record| (record.subject.text(), record.count)).collect();
    tallied.sort();
    assert_eq!(tallied, [(format!("account:{}", jane.account), 7), ("unknown-addresses".to_owned(), 300)]);
    assert_eq!(service.audited(AuditAction::LoginRefused).0, usize::try_from(FREE_ATTEMPTS).unwrap());
}

/// The hasher gets whether any account has logged in from the network, before the address is looked up.
#[tokio::test]
async fn hash_slots_are_requested_per_network() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let joe = service.person("Other", "joe", Role::Viewer).await;
    let known = |service: &Service| match service.hasher.requested().last() {
        Some(Requester::Network { known, .. }) => *known,
        other => panic!("{other:?}"),
    };
    refused(&service, "unknown@example.com", wrong()).await;
    assert!(!known(&service));
    service.log_in(&jane).await;
    assert!(!known(&service), "it was the first");
    for email in ["unknown@example.com", "joe@example.com"] {
        refused(&service, email, wrong()).await;
        assert!(known(&service), "{email}");
    }
    let elsewhere = Network::of([198, 51, 100, 1].into());
    refused(&service, "jane@example.com", OwnerProof { network: elsewhere, ..service.proof(&joe) }).await;
    assert!(!known(&service));
}

/// The log contains for an account with failed logins: each rejection with account and network, each lockout with its
/// end, the locking of a throttle bucket, disabled passcodes, and the login that ends it.
#[tokio::test]
async fn lockouts_are_reported_at_start_and_end() {
    let service = Service::new().await;
    let jane = service.person("Acme", "jane", Role::Viewer).await;
    let (account, network) = (jane.account, network());
    let lockouts = |service: &Service| {
        let reported = |event: &Event| !matches!(event, Event::LoginRefused { .. } | Event::PasswordEvaluated);
        service.events.take().into_iter().filter(reported).collect::<Vec<_>>()
    };
    service.events.take();
    for _ in 1..FREE_ATTEMPTS {
        refused(&service, "jane@example.com", wrong()).await;
    }
    assert_eq!(lockouts(&service), []);
    for (attempts, seconds) in [(FREE_ATTEMPTS, 30), (FREE_ATTEMPTS + 1, 60)] {
        let until = service.now().plus_seconds(seconds);
        refused(&service, "jane@example.com", wrong()).await;
        let events = service.events.take();
        let refusal = LoginRefusal::WrongPassword;
        assert!(events.contains(&Event::LoginRefused { refusal, account: Some(account), network }));
        assert_eq!(events.last(), Some(&Event::LoginLocked { account, network, attempts, until }));
        refused(&service, "jane@example.com", wrong()).await;
        assert_eq!(lockouts(&service), [], "what comes during the wait does not make it longer");
        service.clock.advance_seconds(seconds);
    }
    service.log_in(&jane).await;
    let events = lockouts(&service);
    assert_eq!(events[0], Event::LoginUnlocked { account, network });
    assert!(matches!(events[1..], [Event::LoginSucceeded { session: Some(_), .. }]), "{events:?}");

    for _ in 0..CLOSING_ATTEMPTS {
        service.clock.advance_seconds(LONGEST_WAIT_SECONDS);
        refused(&service, "jane@example.com", wrong()).await;
    }
    assert_eq!(lockouts(&service).last(), Some(&Event::LoginBucketLocked { account, network }));
    service.as_operator("jane@example.com", AccountCommand::Unlock).await.unwrap();
    assert_eq!(service.events.recorded(AuditAction::AccountUnlocked), 1);

    for wrong_passcodes in 1..=WRONG_PASSCODES {
        service.events.take();
        service.clock.advance_seconds(LONGEST_WAIT_SECONDS);
        refused(&service, "jane@example.com", OwnerProof { passcode: "000000".into(), ..service.proof(&jane) }).await;
        let disabled = service.events.count(&Event::LoginPasscodeDisabled { account, network });
        assert_eq!(disabled, usize::from(wrong_passcodes == WRONG_PASSCODES));
    }
}

/// Logins to an account with a document that does not open cost the same work, and the row is reported.
#[tokio::test]
async fn assembled_account_row_cannot_log_in() {
    let service = Service::new().await;
    for (name, kind) in [("jane", Kind::Account), ("joe", Kind::AccountSecrets)] {
        let person = service.person("Acme", name, Role::Viewer).await;
        let (hashes, proof) = (service.hasher.verified().len(), service.proof(&person));
        service.store.tamper_with_entities(|rows| {
            let of = |row: &&mut EntityRow| row.key.kind == kind && row.key.id == *person.account.as_uuid();
            rows.values_mut().find(of).unwrap().version += 1;
        });
        refused(&service, person.email.as_str(), proof).await;
        assert_eq!(service.hasher.verified().split_off(hashes), [false]);
        assert_eq!(service.evaluations(), 0);
        assert!(service.saw_damage("entities"));
    }
}
