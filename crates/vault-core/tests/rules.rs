//! Properties of the rules for logins and sessions, for all inputs.

use proptest::prelude::*;
use secrecy::SecretString;
use std::collections::HashSet;
use vault_core::account::ValidSessions;
use vault_core::credential::{VersionLimits, VersionState};
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::email::EmailAddress;
use vault_core::integration::{IntegrationRefusal, MAX_OVERLAP_SECONDS};
use vault_core::invitation::INVITATION_SECONDS;
use vault_core::lockout::{
    AttemptDecision, CLOSING_ATTEMPTS, FORGIVEN_SECONDS, FREE_ATTEMPTS, LONGEST_WAIT_SECONDS, NETWORK_KNOWN_SECONDS,
    ThrottleCounter, WRONG_PASSCODES,
};
use vault_core::namespace::Namespace;
use vault_core::network::Network;
use vault_core::notice::NOTICE_SECONDS;
use vault_core::organization::OrganizationName;
use vault_core::passcode::{CONFIRMATIONS, PENDING_SECONDS, Passcode, TimeStep};
use vault_core::principal::{Denial, SessionFacts, SessionPrincipal, check_session};
use vault_core::role::{Action, Role};
use vault_core::session::{CLIENT_LENGTH, client_name};
use vault_core::time::{Timestamp, Ttl};

fn addresses() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9.+_-]{1,20}@[a-zA-Z0-9]{1,10}(\\.[a-zA-Z0-9äöüßÄéαж。-]{1,10}){0,3}"
}

proptest! {
    #[test]
    fn canonicalising_an_address_is_idempotent(text in addresses()) {
        if let Ok(address) = EmailAddress::parse(&text) {
            let again = EmailAddress::parse(address.as_str()).unwrap();
            prop_assert_eq!(&again, &address);
            prop_assert!(address.as_str().is_ascii());
            prop_assert_eq!(address.as_str().to_ascii_lowercase(), address.as_str());
        }
    }

    #[test]
    fn ascii_case_does_not_distinguish_accounts(text in addresses()) {
        let upper = text.chars().map(|c| c.to_ascii_uppercase()).collect::<String>();
        prop_assert_eq!(EmailAddress::parse(&text), EmailAddress::parse(&upper));
    }

    #[test]
    fn lifetime_out_of_bounds_is_refused(requested in any::<Option<i64>>(), ceiling in any::<u32>()) {
        match Ttl::parse(requested, ceiling) {
            Ok(ttl) => {
                prop_assert!((Ttl::MIN..=Ttl::MAX).contains(&ttl.as_seconds()));
                prop_assert!(ttl.as_seconds() <= ceiling.max(Ttl::MIN));
                if let Some(requested) = requested {
                    prop_assert_eq!(i64::from(ttl.as_seconds()), requested);
                }
            }
            Err(error) => prop_assert_eq!(error.pointer, "/ttl"),
        }
    }

    #[test]
    fn lifetime_within_bounds_is_accepted(requested in 60_i64..=86_400) {
        prop_assert_eq!(i64::from(Ttl::parse(Some(requested), Ttl::MAX).unwrap().as_seconds()), requested);
    }

    #[test]
    fn lockouts_increase_up_to_maximum(attempts in 0_u32..1_000) {
        let class = |attempts| ThrottleCounter { attempts, latest: None };
        prop_assert!(class(attempts).wait_seconds() <= class(attempts + 1).wait_seconds());
        prop_assert!(class(attempts).wait_seconds() <= LONGEST_WAIT_SECONDS);
        prop_assert_eq!(class(attempts).wait_seconds() == 0, attempts < FREE_ATTEMPTS);
    }

    #[test]
    fn distributed_attempts_are_limited(steps in prop::collection::vec(0_i64..120_000, 1..400)) {
        let mut class = ThrottleCounter::default();
        let mut now = 0;
        let mut evaluated = 0;
        for step in steps {
            now += step;
            if let AttemptDecision::Evaluate(next) = class.decide(Timestamp::from_millis(now)) {
                prop_assert_eq!(next.attempts, class.attempts + 1);
                class = next;
                evaluated += 1;
            }
        }
        // Five attempts are free. Every further one causes at least the first lockout.
        prop_assert!(evaluated <= i64::from(FREE_ATTEMPTS) + now / 30_000);
        prop_assert!(class.attempts <= CLOSING_ATTEMPTS);
    }

    #[test]
    fn clock_moved_back_shortens_no_lockout(attempts in FREE_ATTEMPTS..CLOSING_ATTEMPTS, latest in 0_i64..1 << 40, back in 0_i64..1 << 40) {
        let class = ThrottleCounter { attempts, latest: Some(Timestamp::from_millis(latest)) };
        prop_assert_eq!(class.decide(Timestamp::from_millis(latest - back)), AttemptDecision::Wait);
    }

    #[test]
    fn locked_bucket_stays_locked(attempts in CLOSING_ATTEMPTS.., now in any::<i64>()) {
        let class = ThrottleCounter { attempts, latest: None };
        prop_assert_eq!(class.decide(Timestamp::from_millis(now)), AttemptDecision::Closed);
    }

    #[test]
    fn namespace_is_unchanged(text in "[A-Za-z0-9][A-Za-z0-9._/-]{0,127}") {
        let namespace = Namespace::parse(&text, "/namespace").unwrap();
        prop_assert_eq!(namespace.as_str(), text);
    }

    #[test]
    fn invalid_namespace_is_refused_at_its_field(text in any::<String>()) {
        let sound = (1..=128).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
        match Namespace::parse(&text, "/namespace") {
            Ok(_) => prop_assert!(sound),
            Err(error) => {
                prop_assert!(!sound);
                prop_assert_eq!(error.pointer, "/namespace");
            }
        }
    }

    #[test]
    fn only_exact_digits_form_a_passcode(text in "\\PC{0,24}") {
        let read = Passcode::read(&SecretString::from(text.as_str()));
        let digits = text.chars().filter(char::is_ascii_digit).count();
        match read {
            Passcode::TimeBased(code) => {
                prop_assert_eq!(code.expose(), &text);
                prop_assert_eq!(digits, 6);
            }
            Passcode::Recovery(code) => prop_assert_eq!(code.expose().to_owned(), text.replace('-', "")),
            Passcode::Impossible => prop_assert!(!(digits == text.len() && (digits == 6 || digits == 20))),
        }
    }

    /// Generates text of almost the right length, with almost only digits, or in almost the right groups.
    #[test]
    fn near_passcodes_are_refused(text in "[0-9]{0,25}|[0-9]{4,6}[0-9a]|[0-9]{18,20}[0-9a]|[0-9]{5}(-[0-9]{5}){2,4}|[0-9]{4,6}(-[0-9]{5}){3}|[0-9]{5}(-[0-9]{5}){2}-[0-9a]{5}") {
        let is = |length: usize| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
        let groups: Vec<_> = text.split('-').collect();
        let grouped = groups.len() == 4 && groups.iter().all(|group| group.len() == 5 && group.bytes().all(|byte| byte.is_ascii_digit()));
        let expected = if is(6) { "time-based" } else if is(20) || grouped { "recovery" } else { "impossible" };
        let read = match Passcode::read(&SecretString::from(text.as_str())) {
            Passcode::TimeBased(_) => "time-based",
            Passcode::Recovery(_) => "recovery",
            Passcode::Impossible => "impossible",
        };
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn hyphens_between_groups_are_ignored(groups in prop::collection::vec("[0-9]{5}", 4)) {
        let plain = Passcode::read(&SecretString::from(groups.concat()));
        let hyphened = Passcode::read(&SecretString::from(groups.join("-")));
        match (plain, hyphened) {
            (Passcode::Recovery(plain), Passcode::Recovery(hyphened)) => prop_assert_eq!(plain.expose(), hyphened.expose()),
            _ => prop_assert!(false, "not read as recovery codes"),
        }
    }

    #[test]
    fn time_is_within_its_step(millis in -1_i64 << 40..1 << 40) {
        let time = Timestamp::from_millis(millis);
        let step = TimeStep::at(time);
        prop_assert!(step.begins_at() <= time && time < step.next().begins_at());
    }

    #[test]
    fn rounding_down_yields_whole_seconds_and_minutes(millis in -1_i64 << 40..1 << 40) {
        let time = Timestamp::from_millis(millis);
        for (rounded, unit) in [(time.floor_to_second(), 1_000), (time.floor_to_minute(), 60_000)] {
            prop_assert_eq!(rounded.as_millis().rem_euclid(unit), 0);
            prop_assert!((0..unit).contains(&time.millis_since(rounded)));
        }
    }

    /// The name of a client is shown to the account's owner, so it must not contain misleading characters.
    #[test]
    fn session_stores_first_characters_of_client_name(text in "\\PC{0,120}", control in "\\p{Cc}{0,3}") {
        let kept: String = text.chars().filter(|c| !c.is_control()).take(CLIENT_LENGTH).collect();
        let expected = (!kept.is_empty()).then_some(kept);
        prop_assert_eq!(client_name(&text), expected.clone());
        prop_assert_eq!(client_name(&format!("{control}{text}")), expected, "control characters do not count");
        prop_assert_eq!(client_name(&control), None);
    }

    #[test]
    fn network_excludes_host_bits(a in any::<[u8; 4]>(), last in any::<u8>()) {
        let other = [a[0], a[1], a[2], last];
        prop_assert_eq!(Network::of(a.into()), Network::of(other.into()));
        let mapped = std::net::Ipv4Addr::from(a).to_ipv6_mapped();
        prop_assert_eq!(Network::of(a.into()), Network::of(mapped.into()));
    }

    #[test]
    fn session_is_authorized_only_while_all_facts_are_true(live in any::<bool>(), role in 0_usize..4, open in any::<bool>(), since in 1_i64..4) {
        let id = uuid::Uuid::nil();
        let principal = SessionPrincipal {
            organization: vault_core::id::OrganizationId::from_uuid(id),
            account: vault_core::id::AccountId::from_uuid(id),
            session: vault_core::id::SessionId::from_uuid(id),
            role: Role::Editor,
            version: 2,
        };
        let (active_role, kept) = (Role::ALL.get(role).copied(), vault_core::id::SessionId::from_bytes([1; 16]));
        let active = active_role.map(|role| (role, ValidSessions { since, kept: Some(kept) }));
        let verdict = check_session(&principal, open, SessionFacts { session_live: live, active });
        prop_assert_eq!(verdict.is_ok(), live && open && active_role == Some(Role::Editor) && since <= 2);
        if !open {
            prop_assert_eq!(verdict, Err(Denial::OrganizationDisabled));
        }
    }
}

#[test]
fn spellings_of_one_address_are_one_account() {
    let canonical = EmailAddress::parse("user@xn--bcher-kva.example").unwrap();
    for same in ["USER@bücher.example", "user@BÜCHER.example", "user@xn--BCHER-KVA.example", "user@bücher。example"]
    {
        assert_eq!(EmailAddress::parse(same).as_ref(), Ok(&canonical), "{same}");
    }
}

/// Returns an address of this length in bytes, with `local` of them before the `@`.
fn long_address(local: usize, length: usize) -> String {
    let mut domain = "d".repeat(length - local - 1);
    for place in (60..domain.len() - 1).step_by(61) {
        domain.replace_range(place..=place, ".");
    }
    format!("{}@{domain}", "a".repeat(local))
}

#[test]
fn address_length_is_limited() {
    for (local, length, sound) in [(64, 254, true), (64, 255, false), (65, 254, false), (1, 254, true), (1, 255, false)]
    {
        let text = long_address(local, length);
        assert_eq!(text.len(), length);
        assert_eq!(EmailAddress::parse(&text).is_ok(), sound, "{local} of {length}");
    }
    // A soft hyphen is removed from a domain. The text may be at most four times as long as the address.
    let padded = |bytes: usize| {
        let text = format!("ab@{}example.com", "\u{ad}".repeat((bytes - "ab@example.com".len()) / 2));
        assert_eq!(text.len(), bytes);
        EmailAddress::parse(&text)
    };
    assert_eq!(padded(4 * 254).unwrap().as_str(), "ab@example.com");
    assert!(padded(4 * 254 + 2).is_err() && padded(4 * 254 + 4).is_err());
}

#[test]
fn address_is_shown_in_canonical_spelling() {
    let address = EmailAddress::parse("Ada@Example.COM").unwrap();
    assert_eq!((address.to_string().as_str(), address.local_part()), ("ada@example.com", "ada"));
    assert_eq!(format!("{address:?}"), "EmailAddress(ada@example.com)");
}

#[test]
fn secrets_are_redacted() {
    let digits = Passcode::read(&SecretString::from("123456"));
    assert_eq!(format!("{digits:?}"), "TimeBased(Digits(…))");
    assert_eq!(format!("{:?}", Digest::from_bytes([7; 32])), "Digest(…)");
}

#[test]
fn digests_of_different_purposes_have_different_keys() {
    let labels: HashSet<_> = DigestPurpose::ALL.iter().map(|purpose| purpose.label()).collect();
    assert_eq!(labels.len(), DigestPurpose::ALL.len());
}

#[test]
fn states_and_refusals_have_unique_names() {
    assert_eq!(
        [VersionState::Current, VersionState::Staged, VersionState::Previous].map(VersionState::as_str),
        ["current", "staged", "previous"]
    );
    use IntegrationRefusal::*;
    assert_eq!(
        [Unknown, Replaced, Disabled, Expired, OrganizationDisabled, Changed].map(IntegrationRefusal::as_str),
        ["unknown", "replaced", "disabled", "expired", "organization-disabled", "changed"]
    );
    let name = OrganizationName::parse("Acme & Söhne").unwrap();
    assert_eq!((name.to_string().as_str(), name.uniqueness_key().as_str()), ("Acme & Söhne", "acme & söhne"));
}

/// The numbers in docs/threats.md, docs/CRYPTO.md and docs/API.md. Changing one must be deliberate.
#[test]
fn limits_match_documentation() {
    assert_eq!((FREE_ATTEMPTS, CLOSING_ATTEMPTS, WRONG_PASSCODES), (5, 100, 20));
    let waits = [4, 5, 6, 7, 8, 9, 10, 11, 21, 36, 99]
        .map(|attempts| ThrottleCounter { attempts, latest: None }.wait_seconds());
    assert_eq!(waits, [0, 30, 60, 120, 240, 480, 900, 900, 900, 900, 900]);
    assert_eq!(LONGEST_WAIT_SECONDS, 900);
    let class = ThrottleCounter { attempts: FREE_ATTEMPTS, latest: Some(Timestamp::from_millis(0)) };
    assert_eq!(class.decide(Timestamp::from_millis(29_999)), AttemptDecision::Wait);
    assert!(
        matches!(class.decide(Timestamp::from_millis(30_000)), AttemptDecision::Evaluate(_)),
        "the lockout has expired"
    );
    assert_eq!(NETWORK_KNOWN_SECONDS, 7_776_000, "90 days");
    assert_eq!(FORGIVEN_SECONDS, 604_800, "7 days");
    assert_eq!(INVITATION_SECONDS, 259_200, "72 h");
    assert_eq!((PENDING_SECONDS, CONFIRMATIONS), (3_600, 5));
    assert_eq!(MAX_OVERLAP_SECONDS, 604_800, "7 days");
    assert_eq!(NOTICE_SECONDS, 7_776_000, "90 days");
    assert_eq!(VersionLimits::default(), VersionLimits { versions: 5, previous_seconds: 2_592_000 });
}

#[test]
fn roles_permit_documented_operations() {
    let actions = [Action::Save, Action::List, Action::Delete, Action::ManageAccounts];
    let permitted = |role: Role| actions.map(|action| role.permits(action));
    assert_eq!(permitted(Role::Admin), [true, true, true, true]);
    assert_eq!(permitted(Role::Editor), [true, true, true, false]);
    assert_eq!(permitted(Role::Viewer), [false, true, false, false]);
    assert_eq!(Role::parse("ａｄｍｉｎ"), None);
}
