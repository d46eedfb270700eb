//! The order in which activations are refused.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;
use vault_core::Refusal;
use vault_core::activation::{
    ActivationFacts, IssuanceFacts, IssuanceRefusal, IssuedCredential, VendRule, VendedForm, check_activation,
    check_issuance,
};
use vault_core::id::CredentialId;
use vault_core::integration::IntegrationRefusal;
use vault_core::time::Timestamp;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn id(number: u128) -> CredentialId {
    CredentialId::from_uuid(Uuid::from_u128(number))
}

fn taking() -> impl Strategy<Value = ActivationFacts> {
    let live = option::of((0_i64..4, 0_i64..4));
    (any::<bool>(), 0_usize..4, live).prop_map(|(frozen, credentials, live)| ActivationFacts {
        frozen,
        credentials,
        live,
    })
}

fn issued_credentials() -> impl Strategy<Value = Vec<IssuedCredential>> {
    let form = select(vec![VendedForm::Raw, VendedForm::Short]);
    let one = (0_u128..4, 1_i64..3, form, option::of(0_i64..6));
    vec(
        one.prop_map(|(credential, version, form, end)| IssuedCredential {
            credential: id(credential),
            version,
            form,
            expires_at: end.map(at),
        }),
        0..4,
    )
}

proptest! {
    /// Each fact alone is refused with its own reason. If several apply, the first one is returned.
    #[test]
    fn activation_is_refused_for_first_reason(facts in taking(), most in 0_usize..4) {
        let reasons = [
            facts.frozen.then_some(Refusal::Frozen),
            (facts.credentials == 0).then_some(Refusal::NamespaceEmpty),
            (facts.credentials > most).then_some(Refusal::NamespaceTooLarge),
            facts.live.filter(|(live, limit)| live >= limit).map(|_| Refusal::TooManyLive),
        ];
        let all: Vec<_> = reasons.into_iter().flatten().collect();
        prop_assert_eq!(check_activation(facts, most).err(), all.first().cloned());
        let check = ActivationFacts { live: None, ..facts };
        prop_assert_ne!(check_activation(check, most), Err(Refusal::TooManyLive), "a check starts no activation");
    }

    /// A credential is issued only if every rule permits it, and each revocation forbids it.
    #[test]
    fn forbidden_credentials_are_not_issued(
        integration in option::of(select(vec![IntegrationRefusal::Disabled, IntegrationRefusal::Changed])),
        frozen in any::<bool>(),
        started in any::<bool>(),
        expires_at in 0_i64..6,
        current in vec((0_u128..4, 1_i64..3, select(vec![VendRule::Any, VendRule::Short])), 0..6),
        credentials in issued_credentials(),
        now in 0_i64..6,
    ) {
        let current: Vec<_> = current.into_iter().map(|(credential, version, vend)| (id(credential), version, vend)).collect();
        let integration = integration.map_or(Ok(()), Err);
        let facts = IssuanceFacts { integration, frozen, started, expires_at: at(expires_at), current: &current };
        let verdict = check_issuance(&facts, &credentials, at(now));
        let present = credentials.iter().all(|one| {
            let allowed = |vend| vend == VendRule::Any || one.form == VendedForm::Short;
            current.iter().any(|(id, version, vend)| (*id, *version) == (one.credential, one.version) && allowed(*vend))
        });
        let lasting = now < expires_at && credentials.iter().all(|one| one.expires_at.is_none_or(|end| at(now) < end));
        prop_assert_eq!(verdict.is_ok(), integration.is_ok() && !frozen && started && present && lasting);
        let first = match (integration, frozen, started, present) {
            (Err(refusal), ..) => Some(IssuanceRefusal::Denied(refusal)),
            (_, true, ..) => Some(IssuanceRefusal::Frozen),
            (_, _, false, _) => Some(IssuanceRefusal::Ended),
            (_, _, _, false) => Some(IssuanceRefusal::Changed),
            _ => (!lasting).then_some(IssuanceRefusal::Expired),
        };
        prop_assert_eq!(verdict.err(), first);
        let revoked = IssuanceFacts { integration: Err(IntegrationRefusal::Disabled), ..facts.clone() };
        prop_assert!(check_issuance(&revoked, &credentials, at(now)).is_err());
        let deleted = IssuanceFacts { current: &[], ..facts };
        prop_assert!(credentials.is_empty() || check_issuance(&deleted, &credentials, at(now)).is_err());
    }
}
