//! Properties of the rules on accounts, invitations and notices, for all inputs.

use crate::support::HASHES;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;
use vault_core::account::{Account, AccountLogins, AccountRights, AccountState, ValidSessions, takes_last_admin};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::enrolment::EnrolmentCode;
use vault_core::hourly::{HOUR_SECONDS, HourlyLimit};
use vault_core::id::{AccountId, OrganizationId, SecretsId, SessionId};
use vault_core::invitation::Invitation;
use vault_core::lockout::{AttemptLock, WRONG_PASSCODES};
use vault_core::notice::{FEW_RECOVERY_CODES, NOTICE_SECONDS, NoticeCode, StoredNotice, notices};
use vault_core::passcode::{CONFIRMATIONS, may_be_confirmed};
use vault_core::port::{Entropy, NoEntropy};
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::{Action, Role};
use vault_core::time::Timestamp;

const STATES: [AccountState; 4] =
    [AccountState::Active, AccountState::Disabled, AccountState::ReEnrolling, AccountState::Invited];

struct Bytes(Vec<u8>);

impl Entropy for Bytes {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        bytes.iter_mut().zip(self.0.iter().cycle()).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn grant(organization: u128, account: u128, role: Role, state: AccountState) -> AccountRights {
    AccountRights {
        account: AccountId::from_uuid(Uuid::from_u128(account)),
        organization: OrganizationId::from_uuid(Uuid::from_u128(organization)),
        email: EmailAddress::parse(&format!("{account}@example.com")).unwrap(),
        role,
        state,
    }
}

fn grants() -> impl Strategy<Value = AccountRights> {
    let (role, state) = (select(&Role::ALL[..]), select(&STATES[..]));
    (0_u128..3, 0_u128..3, role, state)
        .prop_map(|(organization, account, role, state)| grant(organization, account, role, state))
}

fn accounts() -> impl Strategy<Value = Account> {
    let sessions = (1_i64..3, prop::option::of(0_u8..3));
    (grants(), prop::option::of(1_u8..3), sessions, 0_i64..4, 0_i64..4).prop_map(
        |(grant, secrets, (since, kept), created_at, enrolled_at)| Account {
            grant,
            secrets: secrets.map(|secrets| SecretsId::from_bytes([secrets; 16])),
            sessions: ValidSessions { since, kept: kept.map(|kept| SessionId::from_bytes([kept; 16])) },
            created_at: at(created_at),
            passcode_enrolled_at: at(enrolled_at),
        },
    )
}

fn invitations() -> impl Strategy<Value = Invitation> {
    let inviters = prop::option::of(0_u8..2);
    (grants(), inviters, any::<[u8; 2]>(), 0_i64..4, 0_i64..4).prop_map(
        |(grant, inviter, code, created_at, expires_at)| {
            let mut bytes = [0; 32];
            bytes[..2].copy_from_slice(&code);
            let code = Digest::from_bytes(bytes);
            let invited_by = inviter.map(|inviter| AccountId::from_bytes([inviter; 16]));
            Invitation { grant, invited_by, code, created_at: at(created_at), expires_at: at(expires_at) }
        },
    )
}

proptest! {
    #[test]
    fn permitted_changes_keep_an_active_admin(
        states in vec((select(&Role::ALL[..]), select(&STATES[..])), 1..6),
        target in any::<prop::sample::Index>(),
        after in prop::option::of((select(&Role::ALL[..]), select(&STATES[..]))),
    ) {
        let mut accounts: Vec<_> =
            (0..).zip(&states).map(|(account, (role, state))| grant(1, account, *role, *state)).collect();
        let admins = |accounts: &[AccountRights]| accounts.iter().filter(|grant| grant.is_active_admin()).count();
        let before = admins(&accounts);
        let place = target.index(accounts.len());
        let changed = after.map(|(role, state)| AccountRights { role, state, ..accounts[place].clone() });
        let others = before - usize::from(accounts[place].is_active_admin());
        let refused = takes_last_admin(&accounts[place], changed.as_ref(), others as u64);
        match changed {
            Some(changed) => accounts[place] = changed,
            None => { accounts.remove(place); }
        }
        // A change is refused exactly if it would remove the last admin.
        prop_assert_eq!(refused, before > 0 && admins(&accounts) == 0);
    }

    #[test]
    fn account_that_is_not_active_admin_may_be_changed(before in grants(), others in 0_u64..3) {
        prop_assert_eq!(before.is_active_admin(), before.role == Role::Admin && before.state == AccountState::Active);
        if !before.is_active_admin() {
            prop_assert!(!takes_last_admin(&before, None, others));
        }
        prop_assert!(!takes_last_admin(&before, Some(&before), others), "an unchanged account removes no admin");
    }

    #[test]
    fn session_is_limited_to_its_organization(own in 0_u128..3, other in 0_u128..3, role in select(&Role::ALL[..])) {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(own));
        let principal = SessionPrincipal {
            organization,
            account: AccountId::from_uuid(Uuid::nil()),
            session: SessionId::from_uuid(Uuid::nil()),
            role,
            version: 1,
        };
        let authority = Principal::Session(principal);
        prop_assert_eq!(authority.reaches(OrganizationId::from_uuid(Uuid::from_u128(other))), own == other);
        prop_assert_eq!(authority.administers(Action::ManageAccounts).is_ok(), role == Role::Admin);
        prop_assert_eq!(role.permits(Action::ManageAccounts), role == Role::Admin);
        prop_assert!(Principal::Operator.reaches(organization) && Principal::Operator.administers(Action::ManageAccounts).is_ok());
    }

    /// Each change revokes the sessions of all earlier logins, except one that is kept.
    #[test]
    fn every_account_change_revokes_sessions(account in accounts(), grant in grants(), id in 5_u8..9) {
        let id = SecretsId::from_bytes([id; 16]);
        let after =
            [account.with_grant(grant), account.without_secrets(at(1)), account.with_secrets(id), account.with_passcode(id, at(1))];
        for changed in &after {
            let (own, other) = (SessionId::from_bytes([1; 16]), SessionId::from_bytes([2; 16]));
            for session in [Some(own), Some(other), account.sessions.kept].into_iter().flatten() {
                prop_assert!(!changed.sessions.include(session, account.sessions.since));
                prop_assert!(changed.sessions.include(session, changed.sessions.since));
            }
            let kept = changed.clone().keeping(own).sessions;
            prop_assert!(kept.include(own, account.sessions.since) && !kept.include(other, account.sessions.since));
        }
        prop_assert_eq!(after.map(|after| after.secrets), [account.secrets, None, Some(id), Some(id)]);
    }

    #[test]
    fn hourly_limit_refuses_until_hour_ends(steps in vec(0_i64..HOUR_SECONDS, 1..100)) {
        let mut counts = HourlyLimit::default();
        let (mut now, mut counted) = (at(0), Vec::new());
        for step in steps {
            now = now.plus_seconds(step);
            match counts.refused_for(HourlyLimit::ADDRESS_CONFLICTS, now) {
                None => {
                    counts = counts.plus_one(now);
                    counted.push(now);
                }
                Some(seconds) => {
                    let seconds = i64::from(seconds);
                    prop_assert!((1..=HOUR_SECONDS + 1).contains(&seconds));
                    prop_assert!(counts.refused_for(HourlyLimit::ADDRESS_CONFLICTS, now.plus_seconds(seconds)).is_none());
                }
            }
        }
        // At any rate of requests, at most twice the limit is permitted in any hour.
        for from in &counted {
            let within = counted.iter().filter(|at| *at >= from && **at < from.plus_seconds(HOUR_SECONDS));
            prop_assert!(within.count() <= 2 * usize::try_from(HourlyLimit::ADDRESS_CONFLICTS).unwrap());
        }
    }

    #[test]
    fn hour_starts_with_first_attempt_and_expires(count in 0_u32..30, since in 0_i64..1 << 40, later in 0..2 * HOUR_SECONDS * 1000) {
        let counts = HourlyLimit { count, since: Some(at(since)) };
        let now = at(since + later);
        let expected = if later < HOUR_SECONDS * 1000 {
            HourlyLimit { count: count + 1, since: counts.since }
        } else {
            HourlyLimit { count: 1, since: Some(now) }
        };
        prop_assert_eq!(counts.plus_one(now), expected);
        let end = at(since + HOUR_SECONDS * 1000);
        prop_assert_eq!(counts.plus_one(end), HourlyLimit { count: 1, since: Some(end) });
        prop_assert_eq!(HourlyLimit::default().plus_one(now), HourlyLimit { count: 1, since: Some(now) });
    }

    /// Each of the three conditions alone locks the account.
    #[test]
    fn account_is_locked_if_owner_cannot_log_in(closed in any::<bool>(), waits in any::<bool>(), wrong in 0_u32..40) {
        let since = (closed || waits).then_some(at(7));
        let attempts = AttemptLock { attempts: 1, waits_until: waits.then_some(at(1)), closed, since };
        let wrong_passcode_at = (wrong > 0).then_some(at(3));
        let logins = AccountLogins { attempts, wrong_passcodes: wrong, wrong_passcode_at, ..AccountLogins::default() };
        prop_assert_eq!(logins.passcode_disabled(), wrong >= WRONG_PASSCODES);
        prop_assert_eq!(logins.is_locked(), closed || waits || wrong >= WRONG_PASSCODES);
        prop_assert_eq!(logins.locked_since(), if wrong >= WRONG_PASSCODES { Some(at(3)) } else { since });
    }

    #[test]
    fn invitation_is_read_as_it_was_stored(invitation in invitations(), role in select(&Role::ALL[..])) {
        let document = serde_json::to_vec(&invitation).unwrap();
        prop_assert_eq!(&serde_json::from_slice::<Invitation>(&document).unwrap(), &invitation);
        let after = invitation.with_role(role);
        prop_assert_eq!(after.grant.role, role);
        let grant = AccountRights { role: invitation.grant.role, ..after.grant.clone() };
        prop_assert_eq!(Invitation { grant, ..after }, invitation);
    }

    #[test]
    fn accepted_invitation_grants_its_role(invitation in invitations()) {
        let enrolled = invitation.enrolled();
        prop_assert_eq!(enrolled.state, AccountState::Active);
        prop_assert_eq!(AccountRights { state: invitation.grant.state, ..enrolled }, invitation.grant);
    }

    #[test]
    fn re_enrolment_grants_no_new_right(before in accounts(), id in 5_u8..9) {
        let id = SecretsId::from_bytes([id; 16]);
        let waiting = before.without_secrets(at(1));
        prop_assert!(waiting.secrets.is_none() && !waiting.grant.is_active_admin());
        let disabled = before.grant.state == AccountState::Disabled;
        prop_assert_eq!(waiting.grant.state == AccountState::Disabled, disabled);
        prop_assert_eq!(waiting.enabled_state(), AccountState::ReEnrolling);
        let after = waiting.re_enrolled(id, at(2));
        prop_assert_eq!(after.secrets, Some(id));
        prop_assert_eq!(after.enabled_state(), AccountState::Active);
        prop_assert_eq!(after.grant.state, if disabled { AccountState::Disabled } else { AccountState::Active });
        // Concurrent changes of role and state persist.
        for state in [AccountState::Active, AccountState::Disabled, AccountState::ReEnrolling] {
            let changed = waiting.with_grant(AccountRights { role: Role::Viewer, state, ..waiting.grant.clone() });
            let after = changed.re_enrolled(id, at(2));
            let expected = if state == AccountState::ReEnrolling { AccountState::Active } else { state };
            prop_assert_eq!((after.grant.role, after.grant.state), (Role::Viewer, expected));
        }
        for grant in [&waiting.grant, &after.grant] {
            let same = AccountRights { state: before.grant.state, ..grant.clone() };
            prop_assert_eq!(&same, &before.grant);
        }
    }

    #[test]
    fn invitation_is_open_until_expiry(invitation in invitations(), now in -1_i64..6) {
        prop_assert_eq!(invitation.is_open(at(now)), at(now) < invitation.expires_at);
    }

    #[test]
    fn enrolment_code_round_trips(random in vec(any::<u8>(), 26)) {
        let code = EnrolmentCode::generate(&Bytes(random.clone())).unwrap();
        let again = EnrolmentCode::read(code.text()).unwrap();
        prop_assert_eq!(code.digest(&HASHES), again.digest(&HASHES));
        prop_assert!(code.text().expose_secret().bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
        // The code contains five bits of each byte: 130 in total.
        let mut other = random.clone();
        other[7] ^= 0b0001_0000;
        let other = EnrolmentCode::generate(&Bytes(other)).unwrap();
        prop_assert!(other.digest(&HASHES) != code.digest(&HASHES));
    }

    #[test]
    fn only_26_letters_form_an_enrolment_code(text in "[a-z2-9A-Z -]{0,30}|\\PC{26}") {
        let sound = text.len() == 26 && text.bytes().all(|byte| b"abcdefghijkmnpqrstuvwxyz23456789".contains(&byte));
        prop_assert_eq!(EnrolmentCode::read(&SecretString::from(text)).is_some(), sound);
    }

    #[test]
    fn pending_seed_has_limited_attempts_and_lifetime(expires_at in 0_i64..10, tried in 0_u32..10, now in 0_i64..10) {
        let open = may_be_confirmed(at(expires_at), tried, at(now));
        prop_assert_eq!(open, now < expires_at && tried < CONFIRMATIONS);
    }

    #[test]
    fn notices_are_shown_newest_first_while_they_are_kept(
        stored in vec((select(&NoticeCode::STORED[..]), 0_i64..2 * NOTICE_SECONDS * 1000), 0..20),
        left in 0_u32..12,
        now in 0_i64..3 * NOTICE_SECONDS * 1000,
    ) {
        let stored: Vec<_> = stored.into_iter().map(|(code, millis)| StoredNotice { code, at: at(millis) }).collect();
        let mut shown = notices(&stored, left, at(now));
        let low = shown.iter().filter(|notice| notice.code == NoticeCode::RecoveryCodesLow).count();
        prop_assert_eq!(low, usize::from(left <= FEW_RECOVERY_CODES));
        shown.truncate(shown.len() - low);
        prop_assert!(shown.iter().all(|notice| notice.at.is_some()), "what follows from the state comes last");
        prop_assert!(shown.is_sorted_by(|a, b| a.at >= b.at));
        let kept = stored.iter().filter(|notice| at(now).millis_since(notice.at) < NOTICE_SECONDS * 1000);
        prop_assert_eq!(shown.len(), kept.count());
    }
}

#[test]
fn names_round_trip() {
    for state in STATES {
        assert_eq!(AccountState::parse(state.as_str()), Some(state));
    }
    for code in NoticeCode::STORED {
        assert_eq!(NoticeCode::parse_stored(code.as_str()), Some(code));
    }
    assert_eq!(NoticeCode::parse_stored(NoticeCode::RecoveryCodesLow.as_str()), None);
    let account = AccountId::from_uuid(Uuid::from_u128(7));
    let colleague = NoticeCode::ColleagueReEnrolled(account);
    assert_eq!(colleague.stored(), format!("colleague-re-enrolled:{account}"));
    assert_eq!(NoticeCode::parse_stored(&colleague.stored()), Some(colleague));
    for other in ["colleague-re-enrolled", "colleague-re-enrolled:", "colleague-re-enrolled:x", "re-enrolled:7"] {
        assert_eq!(NoticeCode::parse_stored(other), None, "{other}");
    }
    assert_eq!(NoticeCode::parse_stored(&format!("recovery-code-used:{account}")), None);
    assert_eq!(NoticeCode::parse_stored(&colleague.stored().to_uppercase()), None);
}
