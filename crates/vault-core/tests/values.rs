//! Accepted and refused spellings of values. The properties of their rules are in the other files.

use std::fmt::Debug;
use vault_core::account::AccountState;
use vault_core::activation::{VendMode, VendRule, VendedForm};
use vault_core::check::StorageOperation;
use vault_core::credential::{CredentialType, Description, HealthState, LabelFilter};
use vault_core::email::EmailAddress;
use vault_core::field::FieldCode;
use vault_core::id::{AccountId, CredentialId};
use vault_core::integration::{IntegrationState, IntegrationToken};
use vault_core::namespace::Namespace;
use vault_core::notice::NoticeCode;
use vault_core::organization::{OrganizationName, OrganizationState};
use vault_core::role::Role;
use vault_core::sealed::KeyState;
use vault_core::time::Timestamp;
use vault_core::usecase::IdempotencyKey;
use vault_testkit::clock::SeededEntropy;

fn check<T: Debug, E: Debug>(parse: impl Fn(&str) -> Result<T, E>, sound: &[&str], refused: &[&str]) {
    for text in sound {
        assert!(parse(text).is_ok(), "{text:?}");
    }
    for text in refused {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn addresses() {
    let (local, label) = ("a".repeat(64), "a".repeat(64));
    check(
        EmailAddress::parse,
        &[
            "a!#$%&'*+/=?^_`{|}~-@x.example",
            "a.b+c.d@x.example",
            "a@b\u{fc}cher.example",
            &format!("{local}@x.example"),
        ],
        &[
            "",
            "a",
            "@x.example",
            "a@",
            " a@x.example",
            "a@x.example ",
            "\"a b\"@x.example",
            "a b@x.example",
            "a(b)@x.example",
            "a,b@x.example",
            "a\\b@x.example",
            ".a@x.example",
            "a.@x.example",
            "a..b@x.example",
            "\u{e4}@x.example",
            &format!("a{local}@x.example"),
            "a@[127.0.0.1]",
            "a@127.0.0.1",
            "a@x..example",
            "a@x.example.",
            "a@-x.example",
            "a@x-.example",
            "a@x_y.example",
            "a@xn--a-.example",
            "a@x\n.example",
            &format!("a@{label}.example"),
        ],
    );
}

#[test]
fn names_and_keys() {
    let most = OrganizationName::MAX_LENGTH;
    check(
        OrganizationName::parse,
        &["a", "O'Neil & Co; --", "%", &"\u{1f511}".repeat(most)],
        &["", " ", " a", "a ", "a\n", "a\u{202e}b", "a\u{200b}b", &"a".repeat(most + 1)],
    );
    check(IdempotencyKey::parse, &["!", "~", &"k".repeat(255)], &["", "a b", "a\n", "\u{e4}", &"k".repeat(256)]);
    check(
        |text| LabelFilter::parse(text, ""),
        &["a:", "a/b._-:B._-"],
        &[
            "a",
            ":a",
            "A:a",
            "a b:c",
            "a:b c",
            "a:b:c",
            "a:b/c",
            "a:\u{e4}",
            &format!("{}:a", "a".repeat(64)),
            &format!("a:{}", "a".repeat(64)),
        ],
    );
    let id = "0193a5b0-7c1e-7d4f-8a2b-0123456789ab";
    let others =
        [id.to_uppercase(), id.replace('-', ""), format!("{{{id}}}"), format!("urn:uuid:{id}"), id[1..].into()];
    let others = others.each_ref().map(String::as_str);
    check(str::parse::<CredentialId>, &[id], &others);
    check(str::parse::<AccountId>, &[id], &others);
}

/// A refusal names its field and the violation, and does not repeat the text.
#[test]
fn texts() {
    let token = IntegrationToken::generate(&SeededEntropy::seeded(1)).unwrap();
    let token = secrecy::ExposeSecret::expose_secret(token.text()).to_owned();
    let long = "a".repeat(501);
    for (text, code) in [
        ("", FieldCode::Blank),
        (&long[..129], FieldCode::TooLong),
        ("a b of it all", FieldCode::Malformed),
        ("-not-at-first", FieldCode::Malformed),
        ("imports\u{e4}\u{e4}\u{e4}\u{e4}", FieldCode::Malformed),
        (&token, FieldCode::NotAllowed),
    ] {
        let error = Namespace::parse(text, "/namespace").unwrap_err();
        assert_eq!((&*error.pointer, error.code), ("/namespace", code), "{text}");
        assert!(text.is_empty() || !error.to_string().contains(text), "{text}");
    }
    for (text, code) in [
        (" \t", FieldCode::Blank),
        (&long, FieldCode::TooLong),
        ("a\0b", FieldCode::ControlCharacter),
        ("a\u{202e}b", FieldCode::ControlCharacter),
    ] {
        assert_eq!(Description::parse(text, "").unwrap_err().code, code, "{text:?}");
    }
    assert!(Description::parse(&"\u{1f511}".repeat(500), "").is_ok());
}

#[test]
fn times() {
    for at in [946_684_800_000, 1_795_176_000_999, 4_102_444_799_999].map(Timestamp::from_millis) {
        assert_eq!(Timestamp::from_rfc3339(&at.to_rfc3339().unwrap()), Some(at.floor_to_second()));
    }
    for text in [
        "",
        "2026-11-20",
        "2026-11-20T12:00:00",
        "2026-13-20T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "1969-11-20T00:00:00Z",
        "1795176000",
    ] {
        assert_eq!(Timestamp::from_rfc3339(text), None, "{text}");
    }
}

/// Each value of an enumeration round-trips, and no other spelling is accepted.
#[test]
fn closed_lists() {
    macro_rules! closed {
        ($($values:expr, $read:expr, $write:expr;)*) => {$(
            for value in $values {
                let name: &str = $write(value);
                assert_eq!($read(name), Some(value));
                let others = [format!(" {name}"), format!("{name} "), format!("{name}\0"), format!("{name}{name}")];
                for other in others.into_iter().chain([name.to_uppercase(), name[1..].to_owned()]) {
                    assert_eq!($read(&other), None, "{other}");
                }
            }
        )*};
    }
    closed! {
        Role::ALL, Role::parse, Role::as_str;
        CredentialType::ALL, CredentialType::parse, CredentialType::as_str;
        HealthState::ALL, HealthState::parse, HealthState::as_str;
        StorageOperation::ALL, StorageOperation::parse, StorageOperation::as_str;
        VendMode::ALL, VendMode::parse, VendMode::as_str;
        [VendedForm::Raw, VendedForm::Short], VendedForm::parse, VendedForm::as_str;
        [VendRule::Any, VendRule::Short], VendRule::parse, VendRule::as_str;
        [AccountState::Active, AccountState::Disabled, AccountState::ReEnrolling, AccountState::Invited],
            AccountState::parse, AccountState::as_str;
        [OrganizationState::Active, OrganizationState::Disabled], OrganizationState::parse, OrganizationState::as_str;
        [IntegrationState::Active, IntegrationState::Disabled], IntegrationState::parse, IntegrationState::as_str;
        NoticeCode::STORED, NoticeCode::parse_stored, NoticeCode::as_str;
        [KeyState::Active, KeyState::Retiring], KeyState::parse, KeyState::as_str;
    }
}
