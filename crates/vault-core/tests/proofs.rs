//! Properties of the rules that decide a login, for all inputs.

use proptest::collection::vec;
use proptest::prelude::*;
use secrecy::SecretString;
use vault_core::account::{Account, AccountRights, AccountState};
use vault_core::audit::{Actor, AuditAction};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId, SecretsId, SessionId};
use vault_core::lockout::{
    BucketKey, CLOSING_ATTEMPTS, FORGIVEN_SECONDS, KNOWN_NETWORKS, LoginNetwork, NETWORK_KNOWN_SECONDS,
    ThrottleCounter, ThrottleCounters, WRONG_PASSCODES, WrongPasscodes,
};
use vault_core::login::{
    AttemptOutcome, Claim, FinishAttempt, OwnChange, ProofEffect, ProofFacts, ProofOutcome, VerifiedFactors,
    VerifiedProof, conclude_proof, is_as_reserved, verify_proof,
};
use vault_core::notice::NoticeCode;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::LoginRefusal;
use vault_core::principal::Denial;
use vault_core::role::Role;
use vault_core::session::NewSession;
use vault_core::time::Timestamp;

const WEEK: i64 = FORGIVEN_SECONDS * 1000;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn network(number: u8) -> Digest {
    Digest::from_bytes([number; 32])
}

fn account() -> Account {
    let grant = AccountRights {
        account: AccountId::from_bytes([1; 16]),
        organization: OrganizationId::from_bytes([2; 16]),
        email: EmailAddress::parse("owner@example.com").unwrap(),
        role: Role::Editor,
        state: AccountState::Active,
    };
    Account::new(grant, SecretsId::from_bytes([2; 16]), at(0))
}

fn facts(last_step: i64, wrong: u32, recovery_code_stored: bool) -> ProofFacts {
    ProofFacts {
        account: Some(account()),
        last_step: TimeStep(last_step),
        wrong_passcodes: WrongPasscodes { count: wrong, latest: None },
        recovery_code_stored,
    }
}

fn classes() -> impl Strategy<Value = ThrottleCounters> {
    let class = (0..CLOSING_ATTEMPTS + 1, prop::option::of(0_i64..1 << 34))
        .prop_map(|(attempts, latest)| ThrottleCounter { attempts, latest: latest.map(at) });
    let networks = prop::collection::btree_map(0_u8..12, (0_i64..1 << 34, class.clone()), 0..10);
    (class, networks).prop_map(|(shared, networks)| ThrottleCounters {
        shared,
        networks: networks
            .into_iter()
            .map(|(number, (last, class))| LoginNetwork { network: network(number), last_login_at: at(last), class })
            .collect(),
    })
}

proptest! {
    #[test]
    fn passcode_does_not_compensate_wrong_password(last in 0_i64..5, wrong in 0_u32..25, stored in any::<bool>()) {
        let evaluated = verify_proof(Some(&account()), Claim::WrongPassword, &facts(last, wrong, stored));
        prop_assert_eq!(evaluated, Err(LoginRefusal::WrongPassword));
    }

    #[test]
    fn step_is_accepted_once_while_steps_are_enabled(step in 0_i64..5, last in 0_i64..5, wrong in 0_u32..25) {
        let evaluated = verify_proof(Some(&account()), Claim::Passcode(PasscodeProof::Step(TimeStep(step))), &facts(last, wrong, true));
        let expected = match (wrong >= WRONG_PASSCODES, step > last) {
            (true, _) => Err(LoginRefusal::PasscodeDisabled),
            (false, false) => Err(LoginRefusal::ReusedPasscode),
            (false, true) => Ok(()),
        };
        prop_assert_eq!(evaluated, expected);
    }

    #[test]
    fn recovery_code_is_accepted_while_stored(last in 0_i64..5, wrong in 0_u32..25, stored in any::<bool>()) {
        let claim = Claim::Passcode(PasscodeProof::RecoveryCode(network(7)));
        let evaluated = verify_proof(Some(&account()), claim, &facts(last, wrong, stored));
        prop_assert_eq!(evaluated, if stored { Ok(()) } else { Err(LoginRefusal::WrongPasscode) });
    }

    #[test]
    fn secrets_changed_since_reservation_are_rejected(which in 0_usize..8) {
        let reserved = account();
        let mut now = Some(account());
        let row = now.as_mut().unwrap();
        match which {
            0 => row.grant.state = AccountState::Disabled,
            1 => row.grant.role = Role::Admin,
            2 => row.secrets = Some(SecretsId::from_bytes([7; 16])),
            3 => row.grant.email = EmailAddress::parse("other@example.com").unwrap(),
            4 => row.grant.organization = OrganizationId::from_bytes([9; 16]),
            5 => *row = account().without_secrets(at(1)),
            6 => *row = account().without_secrets(at(1)).re_enrolled(SecretsId::from_bytes([8; 16]), at(1)),
            _ => now = None,
        }
        prop_assert!(now.as_ref().is_none_or(|row| !is_as_reserved(&reserved, row)));
        for claim in [Claim::WrongPasscode, Claim::Passcode(PasscodeProof::Step(TimeStep(9)))] {
            let facts = ProofFacts { account: now.clone(), ..facts(0, 0, true) };
            prop_assert_eq!(verify_proof(Some(&reserved), claim, &facts), Err(LoginRefusal::Overtaken));
        }
        // A change that restored them has no effect.
        prop_assert!(is_as_reserved(&reserved, &account().with_grant(account().grant)));
    }

    /// A refusal records one entry, and another for each bucket or method that it locks. Only a wrong passcode of an
    /// existing account is counted.
    #[test]
    fn refusal_lists_its_writes(kind in 0_u8..4, wrong in 0_u32..=WRONG_PASSCODES, closes in any::<bool>(), there in any::<bool>()) {
        let presented = match kind {
            0 => VerifiedFactors::WrongPassword { recovery_code: None },
            1 => VerifiedFactors::WrongPasscode,
            2 => VerifiedFactors::Proof(Box::new(proof(0, login()))),
            _ => VerifiedFactors::Proof(Box::new(proof(9, login()))),
        };
        let command = concluding(presented, closes);
        let account = there.then(account);
        let facts = ProofFacts { account, ..facts(0, wrong, false) };
        let refused = match conclude_proof(&command, &facts, Ok(()), at(0)) {
            ProofOutcome::Done(_) => {
                prop_assert!(kind == 3 && there && wrong < WRONG_PASSCODES, "a new step of an account that is there");
                return Ok(());
            }
            ProofOutcome::Refused(refused) => refused,
        };
        let counts = kind == 1 && there && wrong < WRONG_PASSCODES;
        let disables = counts && wrong + 1 == WRONG_PASSCODES;
        if kind != 1 || counts {
            prop_assert_eq!(refused.wrong_passcodes.count, wrong + u32::from(counts));
        }
        prop_assert_eq!(refused.conclusion == AttemptOutcome::PasscodeDisabled, disables);
        prop_assert_eq!(refused.actions.len(), 1 + usize::from(closes) + usize::from(disables));
        prop_assert_eq!(refused.actions[0] == AuditAction::LoginRefused, kind == 0 || !there);
        let mut notices = Vec::new();
        if closes && there {
            notices.push(NoticeCode::LoginLocked);
        }
        if disables {
            notices.push(NoticeCode::PasscodeDisabled);
        }
        prop_assert_eq!(refused.notices, notices);
    }

    #[test]
    fn wrong_passcode_count_decays_weekly_to_zero(count in 0_u32..19, weeks in 0_i64..40, rest in 0..WEEK) {
        let wrong = WrongPasscodes { count, latest: Some(at(0)) };
        let expected = i64::from(count).saturating_sub(weeks).max(0);
        prop_assert_eq!(i64::from(wrong.at(at(weeks * WEEK + rest))), expected);
        prop_assert_eq!(wrong.at(at(-rest - 1)), count, "a clock that was moved back does not reduce the count");
    }

    #[test]
    fn count_that_disabled_steps_never_decays(count in WRONG_PASSCODES..100, now in any::<i64>()) {
        let wrong = WrongPasscodes { count, latest: Some(at(0)) };
        prop_assert!(wrong.disables());
        prop_assert_eq!(wrong.at(at(now)), count);
    }

    /// An attacker with the password gains one guess a week by waiting.
    #[test]
    fn password_guesses_are_bounded(steps in vec(0..2 * WEEK, 1..200)) {
        let (mut wrong, mut now, mut guesses) = (WrongPasscodes::default(), 0_i64, 0_i64);
        for step in steps {
            now += step;
            if wrong.disables() {
                break;
            }
            wrong = wrong.plus_one(at(now));
            guesses += 1;
        }
        prop_assert!(guesses <= i64::from(WRONG_PASSCODES) + now / WEEK);
    }

    #[test]
    fn login_adds_known_network_and_keeps_eight(classes in classes(), number in 0_u8..14, now in 0_i64..1 << 34) {
        let (network, now) = (network(number), at(now));
        let after = classes.after_login(&network, now);
        let (key, class) = classes.counting(&network, now);
        prop_assert!(!after.forgotten.contains(&network));
        let others = classes.networks.iter().filter(|kept| kept.network != network).count();
        prop_assert_eq!(others - after.forgotten.len(), others.min(KNOWN_NETWORKS - 1));
        // The bucket of this login restarts, and so does a locked shared bucket.
        match key {
            BucketKey::Shared => {
                prop_assert_eq!(class, classes.shared);
                prop_assert!(after.resets_shared);
            }
            BucketKey::Network(found) => {
                prop_assert_eq!(found, network);
                prop_assert_eq!(after.resets_shared, classes.shared.is_closed());
            }
        }
        let kept = |digest: &Digest| !after.forgotten.contains(digest);
        let oldest = classes.networks.iter().filter(|row| row.network != network && kept(&row.network));
        if let Some(oldest) = oldest.map(|row| row.last_login_at).min() {
            let forgotten = classes.networks.iter().filter(|row| !kept(&row.network));
            prop_assert!(forgotten.map(|row| row.last_login_at).all(|forgotten| forgotten <= oldest));
        }
    }

    #[test]
    fn known_network_has_its_own_bucket_for_90_days(last in 0_i64..1 << 40, since in 0..2 * NETWORK_KNOWN_SECONDS * 1000) {
        let row = LoginNetwork { network: network(1), last_login_at: at(last), class: ThrottleCounter::default() };
        let classes = ThrottleCounters { networks: vec![row], ..ThrottleCounters::default() };
        let known = since <= NETWORK_KNOWN_SECONDS * 1000;
        let (key, _) = classes.counting(&network(1), at(last + since));
        prop_assert_eq!(key == BucketKey::Network(network(1)), known);
        prop_assert_eq!(classes.counting(&network(2), at(last)).0, BucketKey::Shared);
    }

    #[test]
    fn lock_names_the_counted_attempts(classes in classes(), now in 0_i64..1 << 34) {
        let now = at(now);
        let lock = classes.lock(now);
        let keys = (0..14).map(|number| classes.counting(&network(number), now).1).collect::<Vec<_>>();
        prop_assert_eq!(lock.closed, keys.iter().any(|class| class.is_closed()));
        prop_assert_eq!(lock.attempts, keys.iter().map(|class| class.attempts).max().unwrap());
        if let Some(until) = lock.waits_until {
            prop_assert!(until > now);
        }
    }
}

#[test]
fn re_authentication_changes_only_the_reserved_account() {
    let seed = SecretString::from("seed").into();
    let codes = OwnChange::RecoveryCodes { id: SecretsId::from_bytes([4; 16]), seed, codes: Vec::new() };
    let own = concluding(VerifiedFactors::Proof(Box::new(proof(9, ProofEffect::Own(codes)))), false);
    assert!(matches!(conclude_proof(&own, &facts(0, 0, false), Ok(()), at(0)), ProofOutcome::Done(_)));
    let changed = account().with_secrets(SecretsId::from_bytes([5; 16]));
    let changed = ProofFacts { account: Some(changed), ..facts(0, 0, false) };
    let cases = [
        (&changed, Ok(()), AttemptOutcome::Refused(LoginRefusal::Overtaken)),
        (&facts(0, 0, false), Err(Denial::SessionEnded), AttemptOutcome::Denied(Denial::SessionEnded)),
    ];
    for (facts, owner, expected) in cases {
        match conclude_proof(&own, facts, owner, at(0)) {
            ProofOutcome::Refused(refused) => assert_eq!(refused.conclusion, expected),
            ProofOutcome::Done(_) => panic!("the account changed, or the session has ended"),
        }
    }
}

fn login() -> ProofEffect {
    let id = SessionId::from_bytes([4; 16]);
    ProofEffect::Session(NewSession { id, created_at: at(0), expires_at: at(1), network: String::new(), client: None })
}

fn proof(step: i64, effect: ProofEffect) -> VerifiedProof {
    VerifiedProof { passcode: PasscodeProof::Step(TimeStep(step)), rehashed: None, effect }
}

fn concluding(presented: VerifiedFactors, closes: bool) -> FinishAttempt {
    let attempts = if closes { CLOSING_ATTEMPTS } else { 1 };
    FinishAttempt { reserved: Some(account()), attempts, presented, network: network(1), actor: Actor::Unknown }
}
