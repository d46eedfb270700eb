//! Properties of the rules on integrations, their tokens and their namespaces, for all inputs.

use crate::support::HASHES;
use proptest::array::uniform32;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;
use vault_core::activation::{IssuedCredential, Purpose, VendedForm};
use vault_core::audit::{Actor, AuditAction, AuditNote, AuditRecord, Origin, RecordedRow, RowState, Subject};
use vault_core::digest::Digest;
use vault_core::entity::{Entity as _, Index as Indexed, Lookup};
use vault_core::field::FieldCode;
use vault_core::id::{AccountId, AuditId, CredentialId, IntegrationId, OrganizationId, SessionId};
use vault_core::identity::audience_look_up;
use vault_core::integration::*;
use vault_core::namespace::Namespace;
use vault_core::network::Network;
use vault_core::port::{Entropy, NoEntropy};
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::{Action, Role};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;
use vault_testkit::strategy::trusts;

struct Bytes([u8; 32]);

impl Entropy for Bytes {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        bytes.copy_from_slice(&self.0);
        Ok(())
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn digest(seed: u8) -> Digest {
    Digest::from_bytes([seed; 32])
}

fn namespaces() -> impl Strategy<Value = Namespace> {
    prop_oneof!["[ab]", "[ab](/[ab/]{0,4})?", "[A-Za-z0-9][A-Za-z0-9._/-]{0,30}"]
        .prop_map(|text| Namespace::parse(&text, "").unwrap())
}

fn patterns() -> impl Strategy<Value = NamespacePatterns> {
    let pattern = (namespaces(), any::<bool>())
        .prop_map(|(namespace, below)| if below { format!("{namespace}/*") } else { namespace.to_string() });
    vec(pattern, 1..4).prop_map(|texts| NamespacePatterns::parse(&texts, "").unwrap())
}

fn integrations() -> impl Strategy<Value = Integration> {
    let previous = option::of((0_u8..3, 0_i64..6));
    let managed_by = option::of(Just(ManagedBy::parse("etl", "").unwrap()));
    let name = select(vec!["nightly", "Hourly"]);
    (name, patterns(), option::of(0_i64..6), any::<bool>(), 0_u8..3, previous, managed_by, trusts()).prop_map(
        |(name, patterns, expires_at, active, token, previous, managed_by, trusts)| Integration {
            name: IntegrationName::parse(name, "").unwrap(),
            patterns,
            expires_at: expires_at.map(at),
            state: if active { IntegrationState::Active } else { IntegrationState::Disabled },
            token: digest(token),
            previous: previous.map(|(token, until)| PreviousToken { digest: digest(token), until: at(until) }),
            trusts,
            managed_by,
            created_at: at(0),
        },
    )
}

/// Returns an integration as its token finds it.
fn found(integration: &Integration, sealed: u8) -> FoundIntegration {
    let stored = StoredIntegration {
        id: IntegrationId::from_uuid(Uuid::from_u128(1)),
        organization: OrganizationId::from_uuid(Uuid::from_u128(2)),
        version: 1,
        integration: integration.clone(),
        last_used_at: None,
    };
    FoundIntegration { stored, sealed: Blob::from_bytes(vec![sealed]), organization_active: true }
}

proptest! {
    #[test]
    fn token_round_trips(random in uniform32(any::<u8>())) {
        let token = IntegrationToken::generate(&Bytes(random)).unwrap();
        let text = token.text().expose_secret();
        prop_assert_eq!(text.len(), IntegrationToken::LENGTH);
        prop_assert!(text.starts_with("ovi_") && text[4..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let again = IntegrationToken::read(token.text()).unwrap();
        prop_assert!(token.digest(&HASHES) == again.digest(&HASHES));
        // A token entered as a namespace would appear in lists and in the audit log.
        let refusal = Namespace::parse(text, "/namespace").unwrap_err();
        prop_assert_eq!((&*refusal.pointer, refusal.code), ("/namespace", FieldCode::NotAllowed));
        let shown = format!("{refusal:?}");
        prop_assert!(!shown.contains(&text[4..]));
    }

    #[test]
    fn token_contains_every_random_bit(random in uniform32(any::<u8>()), place in 0_usize..256) {
        let mut other = random;
        other[place / 8] ^= 1 << (place % 8);
        let [one, two] = [random, other].map(|bytes| IntegrationToken::generate(&Bytes(bytes)).unwrap());
        prop_assert_ne!(one.text().expose_secret(), two.text().expose_secret());
    }

    #[test]
    fn mistyped_token_is_refused(random in uniform32(any::<u8>()), place in any::<Index>(), typed in "\\PC") {
        let token = IntegrationToken::generate(&Bytes(random)).unwrap();
        let text = token.text().expose_secret();
        let place = place.index(text.len());
        let mistyped = format!("{}{typed}{}", &text[..place], &text[place + 1..]);
        let same = mistyped == text;
        prop_assert_eq!(IntegrationToken::read(&SecretString::from(mistyped)).is_some(), same);
        for other in [format!("{text} "), format!(" {text}"), text[..text.len() - 1].to_owned(), format!("{text}0")] {
            prop_assert!(IntegrationToken::read(&SecretString::from(other)).is_none());
        }
    }

    #[test]
    fn other_text_is_not_parsed_as_token(text in "(ovi_)?\\PC{0,60}|ovi_[0-9A-Za-z]{49}") {
        // One in 2^32 texts of this form has a correct checksum.
        prop_assert!(IntegrationToken::read(&SecretString::from(text)).is_none());
    }

    #[test]
    fn exact_pattern_matches_only_itself(pattern in namespaces(), namespace in namespaces()) {
        let exact = NamespacePattern::parse(pattern.as_str(), "").unwrap();
        prop_assert_eq!(exact.allows(&namespace), pattern == namespace);
        prop_assert!(exact.allows(&pattern));
    }

    #[test]
    fn prefix_pattern_matches_only_namespaces_below(prefix in namespaces(), rest in "[A-Za-z0-9._/-]{0,20}") {
        let below = NamespacePattern::parse(&format!("{prefix}/*"), "").unwrap();
        prop_assert!(!below.allows(&prefix));
        if let Ok(namespace) = Namespace::parse(&format!("{prefix}/{rest}"), "") {
            prop_assert_eq!(below.allows(&namespace), !rest.is_empty());
        }
        if let Ok(outside) = Namespace::parse(&format!("{prefix}{rest}"), "") {
            prop_assert_eq!(below.allows(&outside), rest.starts_with('/') && rest.len() > 1);
        }
    }

    #[test]
    fn one_matching_pattern_suffices(patterns in patterns(), namespace in namespaces()) {
        let any = patterns.iter().any(|pattern| pattern.allows(&namespace));
        prop_assert_eq!(patterns.allow(&namespace), any);
        let spelt: Vec<_> = patterns.iter().map(ToString::to_string).collect();
        prop_assert_eq!(NamespacePatterns::parse(&spelt, ""), Ok(patterns));
    }

    #[test]
    fn star_is_valid_only_after_final_slash(text in "[a-z/*]{1,12}") {
        let namespace = text.strip_suffix("/*").unwrap_or(&text);
        let sound = Namespace::parse(namespace, "").is_ok();
        prop_assert_eq!(NamespacePattern::parse(&text, "").is_ok(), sound);
    }

    #[test]
    fn invalid_patterns_are_refused_at_their_positions(flawed in vec(any::<bool>(), 1..70)) {
        let texts: Vec<_> = flawed.iter().map(|flawed| if *flawed { "*" } else { "sound" }).collect();
        match NamespacePatterns::parse(&texts, "/namespaces") {
            Ok(patterns) => {
                prop_assert!(flawed.iter().all(|flawed| !flawed) && flawed.len() <= NamespacePatterns::MAX);
                prop_assert_eq!(patterns.iter().count(), 1, "each stands once");
            }
            Err(errors) if flawed.len() > NamespacePatterns::MAX => {
                prop_assert_eq!(errors.len(), 1);
                prop_assert_eq!(&errors[0].pointer, "/namespaces");
            }
            Err(errors) => {
                let places: Vec<_> = errors.into_iter().map(|error| error.pointer).collect();
                let expected = flawed.iter().enumerate().filter(|(_, flawed)| **flawed);
                prop_assert_eq!(places, expected.map(|(place, _)| format!("/namespaces/{place}")).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn name_is_printable_and_unchanged(text in "\\PC{0,70}|[a-z ]{0,70}|.{0,8}") {
        let printable = |c: char| !c.is_control() && !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        let sound = !text.is_empty()
            && text.trim() == text
            && text.chars().count() <= 64
            && text.chars().all(printable);
        match IntegrationName::parse(&text, "/name") {
            Ok(name) => {
                prop_assert!(sound);
                prop_assert_eq!(name.as_str(), &text);
                prop_assert_eq!(name.uniqueness_key(), text.to_ascii_lowercase());
            }
            Err(error) => {
                prop_assert!(!sound);
                prop_assert_eq!(error.pointer, "/name");
            }
        }
    }

    #[test]
    fn document_contains_the_integration(integration in integrations()) {
        let document = serde_json::to_vec(&integration).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Integration>(&document).unwrap(), integration.clone());
        // It is due only while it can expire, and each of its tokens leads to it.
        let is_active = integration.state == IntegrationState::Active;
        prop_assert_eq!(integration.due_at(), integration.expires_at.filter(|_| is_active));
        let id = Uuid::from_u128(1);
        let tokens = [integration.token, audience_look_up(IntegrationId::from_uuid(id))];
        let tokens = tokens.into_iter().chain(integration.previous.map(|previous| previous.digest));
        let tokens = tokens.map(|token| Lookup::new(Indexed::IntegrationToken, token.to_base64()));
        let name = Lookup::new(Indexed::IntegrationName, integration.name.as_str().to_ascii_lowercase());
        prop_assert_eq!(integration.lookups(id), std::iter::once(name).chain(tokens).collect::<Vec<_>>());
    }

    #[test]
    fn token_is_valid_unless_expired_or_disabled(integration in integrations(), token in 0_u8..4, now in 0_i64..7) {
        let (token, now) = (digest(token), at(now));
        let previous = integration.previous.filter(|previous| previous.digest == token && integration.token != token);
        let known = integration.token == token || previous.is_some();
        let in_time = previous.is_none_or(|previous| now < previous.until);
        let alive = integration.state == IntegrationState::Active
            && integration.expires_at.is_none_or(|end| now < end);
        let verdict = integration.authorize(token, now);
        prop_assert_eq!(verdict.is_ok(), known && in_time && alive);
        if !known {
            prop_assert_eq!(verdict, Err(IntegrationRefusal::Unknown), "nothing else is disclosed to a stranger");
        }
        if let Ok(principal) = found(&integration, 9).principal(token, now) {
            prop_assert_eq!(Ok(principal.slot), verdict);
            // The token is valid exactly until then.
            let facts = IntegrationFacts { sealed: Some(Blob::from_bytes(vec![9])), organization_active: true };
            for later in now.as_millis()..8 {
                let evaluated = check_integration(&principal, &facts, at(later));
                prop_assert_eq!(evaluated.is_ok(), integration.authorize(token, at(later)).is_ok());
            }
        } else {
            prop_assert!(verdict.is_err());
        }
    }

    #[test]
    fn both_tokens_work_during_overlap_after_rotation(
        integration in integrations(),
        overlap in prop_oneof![Just(0), 0..=MAX_OVERLAP_SECONDS],
        early in 1_i64..1_000_000,
    ) {
        let integration = Integration { expires_at: None, state: IntegrationState::Active, ..integration };
        let (old, new) = (integration.token, digest(9));
        // Clocks are never before 1970.
        let now = at(1_000_000);
        let rotated = integration.clone().rotated(new, Overlap::parse(Some(overlap), "").unwrap(), now);
        let end = now.plus_seconds(overlap);
        prop_assert_eq!(rotated.authorize(new, end), Ok(TokenSlot::Current));
        prop_assert!(rotated.authorize(old, end).is_err());
        let before = at(end.as_millis() - early);
        prop_assert_eq!(rotated.authorize(old, before).is_ok(), overlap > 0, "without one, by no server's clock");
        if let Some(oldest) = integration.previous.filter(|previous| previous.digest != old) {
            prop_assert_eq!(rotated.authorize(oldest.digest, now), Err(IntegrationRefusal::Unknown));
        }
        let rest = Integration { token: old, previous: integration.previous, ..rotated };
        prop_assert_eq!(rest, integration);
    }

    #[test]
    fn overlap_is_never_silently_changed(requested in option::of(prop_oneof![-2_i64..700_000, any::<i64>()])) {
        match Overlap::parse(requested, "/overlap") {
            Ok(overlap) => prop_assert_eq!(overlap.as_seconds(), requested.unwrap_or(86_400)),
            Err(error) => {
                prop_assert!(!(0..=MAX_OVERLAP_SECONDS).contains(&requested.unwrap()));
                prop_assert_eq!(error.pointer, "/overlap");
            }
        }
    }

    #[test]
    fn integration_is_authorized_on_opened_row_only(
        integration in integrations(),
        row in option::of(0_u8..3),
        open in any::<bool>(),
        now in 0_i64..7,
    ) {
        let integration = Integration { state: IntegrationState::Active, expires_at: Some(at(5)), ..integration };
        let principal = found(&integration, 1).principal(integration.token, at(0)).unwrap();
        let sealed = row.map(|row| Blob::from_bytes(vec![row]));
        let facts = IntegrationFacts { sealed, organization_active: open };
        let expected = if !open {
            Err(IntegrationRefusal::OrganizationDisabled)
        } else if now >= 5 {
            Err(IntegrationRefusal::Expired)
        } else {
            match row {
                None => Err(IntegrationRefusal::Unknown),
                Some(1) => Ok(()),
                Some(_) => Err(IntegrationRefusal::Changed),
            }
        };
        prop_assert_eq!(check_integration(&principal, &facts, at(now)), expected);
    }

    #[test]
    fn admins_and_operators_administer_integrations(role in select(&Role::ALL[..])) {
        let authority = Principal::Session(SessionPrincipal {
            organization: OrganizationId::from_uuid(Uuid::nil()),
            account: AccountId::from_uuid(Uuid::nil()),
            session: SessionId::from_uuid(Uuid::nil()),
            role,
            version: 1,
        });
        prop_assert_eq!(authority.administers(Action::ManageIntegrations).is_ok(), role == Role::Admin);
        prop_assert_eq!(role.permits(Action::ManageIntegrations), role == Role::Admin);
        prop_assert!(Principal::Operator.administers(Action::ManageIntegrations).is_ok());
    }
}

proptest! {
    #[test]
    fn entry_mac_covers_integration_and_note(one in entries(), two in entries()) {
        prop_assert_eq!(one.to_authenticated_bytes() == two.to_authenticated_bytes(), one == two);
    }
}

/// Returns entries of one time that differ in actor and namespace.
fn entries() -> impl Strategy<Value = AuditRecord> {
    let actor = prop_oneof![
        Just(Actor::Operator),
        (0_u128..2).prop_map(|id| Actor::Integration(IntegrationId::from_uuid(Uuid::from_u128(id))))
    ];
    let purpose =
        option::of(select(vec!["a", "b"])).prop_map(|text| text.map(|text| Purpose::parse(text, "").unwrap()));
    let network = option::of((0_u8..2).prop_map(|byte| Network::V4([192, 0, byte])));
    let issued_credentials =
        (0_u128..2, 1_i64..3, any::<bool>(), option::of(0_i64..2)).prop_map(|(id, version, raw, end)| {
            let form = if raw { VendedForm::Raw } else { VendedForm::Short };
            let credential = CredentialId::from_uuid(Uuid::from_u128(id));
            IssuedCredential { credential, version, form, expires_at: end.map(at) }
        });
    let note = (select(vec!["a", "b", "ab"]), purpose, network, vec(issued_credentials, 0..3));
    let note = option::of(note).prop_map(|note| {
        note.map(|(name, purpose, network, credentials)| AuditNote {
            purpose,
            network,
            credentials,
            ..AuditNote::of(Namespace::parse(name, "").unwrap())
        })
    });
    let request = option::of((0_u128..2).prop_map(Uuid::from_u128));
    let kind = select(vec![RecordedRow::Account, RecordedRow::Invitation, RecordedRow::Integration]);
    let state = prop_oneof![(1_i64..3).prop_map(RowState::Revision), Just(RowState::Gone)];
    let rows = vec((kind, state), 0..3);
    (actor, note, request, rows).prop_map(|(actor, note, request, rows)| AuditRecord {
        id: AuditId::from_uuid(Uuid::nil()),
        at: at(0),
        organization: None,
        actor,
        action: AuditAction::NamespaceActivated,
        subject: Subject::Vault,
        count: 1,
        note,
        origin: Origin { request, network: None },
        rows,
        changes: Vec::new(),
    })
}

#[test]
fn entry_without_integration_keeps_its_encoding() {
    let entry = AuditRecord {
        id: AuditId::from_uuid(Uuid::nil()),
        at: at(0),
        organization: None,
        actor: Actor::Operator,
        action: AuditAction::LoggedOut,
        subject: Subject::Vault,
        count: 1,
        note: None,
        origin: Origin::default(),
        rows: Vec::new(),
        changes: Vec::new(),
    };
    // Nine parts, each preceded by its length.
    let lengths = [16, 8, 0, "operator".len(), 0, 0, "session.logged-out".len(), "vault".len(), 8];
    assert_eq!(entry.to_authenticated_bytes().len(), lengths.iter().map(|length| 4 + length).sum::<usize>());
}

#[test]
fn token_format_is_pinned() {
    // 0x00 0x01 … 0x1f to base 62, and the CRC-32 of those digits.
    let random = std::array::from_fn(|index| u8::try_from(index).unwrap());
    let token = IntegrationToken::generate(&Bytes(random)).unwrap();
    assert!(token.text().expose_secret().starts_with("ovi_00"));
    let zero = IntegrationToken::generate(&Bytes([0; 32])).unwrap();
    assert!(zero.text().expose_secret().starts_with(&format!("ovi_{}", "0".repeat(43))));
}

#[test]
fn states_round_trip() {
    for state in [IntegrationState::Active, IntegrationState::Disabled] {
        assert_eq!(IntegrationState::parse(state.as_str()), Some(state));
    }
    assert_eq!(IntegrationState::parse("Active"), None);
}

#[test]
fn name_and_pattern_errors_name_the_violation() {
    let name = |length: usize| IntegrationName::parse(&"ä".repeat(length), "/name");
    assert!(name(64).is_ok());
    assert_eq!(name(65).unwrap_err().code, FieldCode::TooLong);
    for text in ["*", "imports*", "*/imports", "imports/*/nightly"] {
        let violation = NamespacePattern::parse(text, "/namespaces/0").unwrap_err();
        assert_eq!((violation.pointer.as_str(), violation.code), ("/namespaces/0", FieldCode::Malformed));
        assert!(violation.detail.contains("imports/*"), "{text}: {violation}");
    }
}
