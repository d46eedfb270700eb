//! Accepted and refused values of each type of the domain, from strategies for both.

use proptest::prelude::*;
use secrecy::{ExposeSecret, SecretString};
use vault_core::account::AccountState;
use vault_core::activation::*;
use vault_core::check::StorageOperation;
use vault_core::credential::*;
use vault_core::email::EmailAddress;
use vault_core::enrolment::EnrolmentCode;
use vault_core::field::{FieldCode, FieldError};
use vault_core::id::*;
use vault_core::integration::*;
use vault_core::json::{self, Limits, Node};
use vault_core::namespace::Namespace;
use vault_core::notice::NoticeCode;
use vault_core::organization::{OrganizationName, OrganizationState};
use vault_core::password::check_new_password;
use vault_core::role::Role;
use vault_core::sealed::{InstanceKeyPurpose, KeyState};
use vault_core::time::{Timestamp, Ttl};
use vault_core::usecase::IdempotencyKey;
use vault_core::{Error, ErrorKind};
use vault_testkit::strategy::{self, refused};

fn node(text: &str) -> Node {
    json::parse(text.as_bytes(), Limits::REQUEST).unwrap().root
}

/// Checks that `refused` names its position and the expected code, and does not contain the refused `text`.
fn names(refused: FieldError, pointer: &str, code: FieldCode, text: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!((refused.pointer.as_str(), refused.code), (pointer, code), "{:?}", text);
    prop_assert!(text.len() < 12 || !refused.to_string().contains(text));
    Ok(())
}

proptest! {
    #[test]
    fn namespaces(valid in strategy::namespace(), (text, code) in refused::namespace()) {
        prop_assert_eq!(Namespace::parse(valid.as_str(), ""), Ok(valid.clone()));
        prop_assert_eq!(valid.as_str().parse(), Ok(valid));
        names(Namespace::parse(&text, "/n").unwrap_err(), "/n", code, &text)?;
        names(text.parse::<Namespace>().unwrap_err(), "/namespace", code, &text)?;
    }

    #[test]
    fn patterns(
        valid in strategy::namespace_pattern(),
        list in strategy::namespace_patterns(),
        (text, code) in refused::namespace_pattern(),
        (texts, place, first) in refused::namespace_patterns(),
    ) {
        prop_assert_eq!(NamespacePattern::parse(&valid.to_string(), ""), Ok(valid));
        let spelt: Vec<_> = list.iter().map(ToString::to_string).collect();
        prop_assert_eq!(NamespacePatterns::parse(&spelt, ""), Ok(list));
        names(NamespacePattern::parse(&text, "/p").unwrap_err(), "/p", code, &text)?;
        let pointer = place.map_or("/p".to_owned(), |place| format!("/p/{place}"));
        let violations = NamespacePatterns::parse(&texts, "/p").unwrap_err();
        prop_assert_eq!((violations.len(), &violations[0].pointer, violations[0].code), (1, &pointer, first));
    }

    #[test]
    fn texts(
        name in strategy::integration_name(),
        purpose in strategy::purpose(),
        description in strategy::description(),
        no_name in refused::integration_name(),
        no_purpose in refused::purpose(),
        no_description in refused::description(),
    ) {
        prop_assert_eq!(IntegrationName::parse(name.as_str(), ""), Ok(name.clone()));
        prop_assert_eq!(Purpose::parse(purpose.as_str(), ""), Ok(purpose.clone()));
        prop_assert_eq!(Description::parse(description.as_str(), ""), Ok(description.clone()));
        names(IntegrationName::parse(&no_name.0, "/a").unwrap_err(), "/a", no_name.1, &no_name.0)?;
        names(Purpose::parse(&no_purpose.0, "/a").unwrap_err(), "/a", no_purpose.1, &no_purpose.0)?;
        names(Description::parse(&no_description.0, "/a").unwrap_err(), "/a", no_description.1, &no_description.0)?;
    }

    #[test]
    fn names_and_addresses(
        organization in strategy::organization_name(),
        email in strategy::email(),
        no_organization in refused::organization_name(),
        no_email in refused::email(),
        no_key in refused::idempotency_key(),
        _ in strategy::idempotency_key(),
    ) {
        prop_assert_eq!(OrganizationName::parse(organization.as_str()), Ok(organization));
        prop_assert_eq!(EmailAddress::parse(email.as_str()), Ok(email.clone()));
        prop_assert!(OrganizationName::parse(&no_organization).is_err());
        prop_assert!(EmailAddress::parse(&no_email).is_err());
        prop_assert!(IdempotencyKey::parse(&no_key).is_err());
    }

    #[test]
    fn ids(id in strategy::credential_id(), text in refused::id()) {
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        prop_assert!(text.parse::<CredentialId>().is_err() && text.parse::<AccountId>().is_err());
    }

    #[test]
    fn spans(
        ttl in strategy::ttl(),
        activation in strategy::activation_ttl(),
        overlap in strategy::overlap(),
        (requested, ceiling) in refused::ttl(),
        no_activation in refused::activation_ttl(),
        no_overlap in refused::overlap(),
    ) {
        prop_assert_eq!(Ttl::parse(Some(ttl.as_seconds().into()), Ttl::MAX), Ok(ttl));
        prop_assert_eq!(ActivationTtl::parse(Some(activation.as_seconds().into())), Ok(activation));
        prop_assert_eq!(Overlap::parse(Some(overlap.as_seconds()), ""), Ok(overlap));
        names(Ttl::parse(Some(requested), ceiling).unwrap_err(), "/ttl", FieldCode::OutOfRange, "")?;
        names(ActivationTtl::parse(Some(no_activation)).unwrap_err(), "/ttl", FieldCode::OutOfRange, "")?;
        names(Overlap::parse(Some(no_overlap), "/o").unwrap_err(), "/o", FieldCode::OutOfRange, "")?;
    }

    #[test]
    fn times(at in strategy::timestamp(), text in refused::rfc3339()) {
        let spelt = at.to_rfc3339().unwrap();
        prop_assert_eq!(Timestamp::from_rfc3339(&spelt), Some(at.floor_to_second()));
        prop_assert_eq!(Timestamp::from_rfc3339(&text), None);
    }

    #[test]
    fn codes_and_tokens(
        code in strategy::enrolment_code(),
        token in strategy::integration_token(),
        no_code in refused::enrolment_code(),
        no_token in refused::integration_token_text(),
    ) {
        let read = EnrolmentCode::read(&SecretString::from(code.as_str())).unwrap();
        prop_assert_eq!(read.text().expose_secret(), code);
        let read = IntegrationToken::read(&SecretString::from(token.as_str())).unwrap();
        prop_assert_eq!(read.text().expose_secret(), token);
        prop_assert!(EnrolmentCode::read(&SecretString::from(no_code)).is_none());
        prop_assert!(IntegrationToken::read(&SecretString::from(no_token)).is_none());
    }

    #[test]
    fn credential_metadata_values(
        labels in strategy::labels(),
        filter in strategy::label_filter(),
        metadata in strategy::metadata(),
        information in strategy::information(),
        patch in strategy::label_patch(),
        (text, code) in refused::label_filter(),
        (json, pointer, violation) in refused::labels(),
    ) {
        prop_assert_eq!(Labels::parse(node(&serde_json::to_string(&labels).unwrap()), ""), Ok(labels.clone()));
        prop_assert_eq!(LabelFilter::parse(&format!("{}:{}", filter.name, filter.value), ""), Ok(filter));
        prop_assert_eq!(Metadata::from_json(&metadata.to_json()), Ok(metadata));
        prop_assert!(Information::from_json(information.as_json().to_owned()).is_ok());
        // A repeated patch changes nothing.
        if let Ok(once) = labels.patched(&patch, "") {
            prop_assert_eq!(once.patched(&patch, ""), Ok(once.clone()));
        }
        names(LabelFilter::parse(&text, "label").unwrap_err(), "label", code, &text)?;
        let violations = Labels::parse(node(&json), "/labels").unwrap_err();
        prop_assert_eq!((violations.len(), violations[0].code), (1, violation), "{}", json);
        prop_assert_eq!(&violations[0].pointer, &format!("/labels{pointer}"));
    }

    #[test]
    fn passwords(
        organization in strategy::organization_name(),
        password in strategy::password(),
        (email, refused) in strategy::email().prop_flat_map(|email| (Just(email.clone()), refused::password(&email, "Corp Industries"))),
    ) {
        prop_assert_eq!(check_new_password(&password, &email, organization.as_str()), Ok(()));
        let (text, violation) = refused;
        prop_assert_eq!(check_new_password(&SecretString::from(text), &email, "Corp Industries"), Err(violation));
    }

    #[test]
    fn data(
        (kind, json) in strategy::credential_json(),
        (refused_kind, refused_json, pointer, code) in refused::credential_json(),
    ) {
        let data = CredentialData::from_json(kind, json.as_bytes()).unwrap();
        let stored = data.to_canonical_json();
        let again = CredentialData::from_canonical_json(kind, stored.expose()).unwrap();
        prop_assert!(again.to_canonical_json().expose() == stored.expose());

        let refusal = CredentialData::from_json(refused_kind, refused_json.as_bytes());
        let error = refusal.unwrap_err();
        prop_assert_eq!(error.kind(), ErrorKind::Invalid);
        let Error::Invalid(violations) = error else { unreachable!() };
        let violations: Vec<_> = violations.iter().map(|violation| (violation.pointer.as_str(), violation.code)).collect();
        prop_assert_eq!(violations, [(pointer.as_str(), code)], "{}", refused_json);
    }
}

/// Each value of an enumeration round-trips, and no other spelling is accepted.
macro_rules! closed_lists {
    ($($test:ident: $values:expr, $read:expr, $write:expr;)*) => {
        proptest! {$(
            #[test]
            fn $test(
                (value, other) in $values.prop_flat_map(|value| (Just(value), refused::spelling($write(value)))),
            ) {
                prop_assert_eq!($read($write(value)), Some(value));
                prop_assert_eq!($read(&other), None);
            }
        )*}
    };
}

closed_lists! {
    roles: strategy::role(), Role::parse, Role::as_str;
    types: strategy::credential_type(), CredentialType::parse, CredentialType::as_str;
    healths: strategy::health_state(), HealthState::parse, HealthState::as_str;
    operations: strategy::storage_operation(), StorageOperation::parse, StorageOperation::as_str;
    modes: strategy::vend_mode(), VendMode::parse, VendMode::as_str;
    vended: strategy::vended_form(), VendedForm::parse, VendedForm::as_str;
    rules: strategy::vend_rule(), VendRule::parse, VendRule::as_str;
    accounts: strategy::account_state(), AccountState::parse, AccountState::as_str;
    organizations: strategy::organization_state(), OrganizationState::parse, OrganizationState::as_str;
    integrations: strategy::integration_state(), IntegrationState::parse, IntegrationState::as_str;
    notices: strategy::notice_code(), NoticeCode::parse_stored, NoticeCode::as_str;
    key_purposes: strategy::instance_key_purpose(), InstanceKeyPurpose::parse, InstanceKeyPurpose::as_str;
    key_states: strategy::key_state(), KeyState::parse, KeyState::as_str;
}
