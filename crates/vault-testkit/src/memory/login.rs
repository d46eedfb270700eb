//! The two decisions of a login.

use super::row::{AccountRow, NetworkRow, SessionRow};
use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::account::AccountState;
use vault_core::digest::Digest;
use vault_core::lockout::{AttemptClass, AttemptDecision, KNOWN_NETWORKS, WRONG_PASSCODES};
use vault_core::organization::OrganizationState;
use vault_core::passcode::PasscodeProof;
use vault_core::port::{
    CompleteLogin, CompleteLoginOutcome, LoginGuard, RefuseAttempt, Reservation, ReserveAttempt, ReservedAccount,
    StoreError,
};
use vault_core::time::Timestamp;

#[async_trait]
impl LoginGuard for MemoryStore {
    async fn reserve_attempt(&self, command: ReserveAttempt) -> Result<Reservation, StoreError> {
        self.decide(|state| reserve(state, command))
    }

    async fn refuse_attempt(&self, command: RefuseAttempt) -> Result<(), StoreError> {
        self.decide(|state| {
            if command.wrong_passcode
                && let Some(row) = state.account_in(command.organization, command.account)
            {
                row.wrong_passcodes = row.wrong_passcodes.saturating_add(1);
            }
            // Also if the account is gone by now: the refusal happened.
            state.audit.push(command.audit);
        })
    }

    async fn complete_login(&self, command: CompleteLogin) -> Result<CompleteLoginOutcome, StoreError> {
        self.decide(|state| complete(state, command))
    }
}

fn reserve(state: &mut State, command: ReserveAttempt) -> Reservation {
    let Some(account) = state.account_by_address(command.address) else {
        let class = state.buckets.entry(command.bucket).or_default();
        let counted = count(class, command.now);
        return if counted { Reservation::Unknown } else { Reservation::TurnedAway { account: None } };
    };
    let organization_state =
        match state.accounts.get(&account).is_some_and(|row| state.organization_is_active(row.grant.organization)) {
            true => OrganizationState::Active,
            false => OrganizationState::Disabled,
        };
    let row = state.accounts.get_mut(&account).expect("an account is where its address leads");
    let counted = match row.known_network(command.network, command.now) {
        Some(network) => count(&mut network.class, command.now),
        None => count(&mut row.shared, command.now),
    };
    if !counted {
        return Reservation::TurnedAway { account: Some((row.grant.organization, account)) };
    }
    Reservation::Account(Box::new(ReservedAccount {
        grant: row.grant.clone(),
        grant_digest: row.grant_digest,
        organization_state,
        password: row.password.clone(),
        password_version: row.password_version,
        seed: row.seed.clone(),
    }))
}

/// Counts an attempt, if it may be evaluated at all.
fn count(class: &mut AttemptClass, now: Timestamp) -> bool {
    match class.decide(now) {
        AttemptDecision::Evaluate(counted) => {
            *class = counted;
            true
        }
        AttemptDecision::Wait | AttemptDecision::Closed => false,
    }
}

fn complete(state: &mut State, command: CompleteLogin) -> CompleteLoginOutcome {
    let organization_active = state.organization_is_active(command.grant.organization);
    let Some(row) = state.accounts.get_mut(&command.grant.account) else { return CompleteLoginOutcome::Overtaken };
    let as_reserved = organization_active
        && row.grant == command.grant
        && row.grant.state == AccountState::Active
        && row.password_version == command.password_version
        && row.seed.id == command.seed;
    if !as_reserved {
        return CompleteLoginOutcome::Overtaken;
    }
    if !spend(row, command.proof) {
        return CompleteLoginOutcome::PasscodeSpent;
    }
    if let Some(rehashed) = command.rehashed {
        row.password = rehashed;
    }
    row.last_login_at = Some(command.now);
    forgive(row, command.network, command.now);
    let (organization, account) = (row.grant.organization, row.grant.account);
    let session = SessionRow { organization, account, expires_at: command.session.expires_at };
    state.sessions.insert(command.session.id, session);
    state.audit.push(command.audit);
    CompleteLoginOutcome::Completed
}

fn spend(row: &mut AccountRow, proof: PasscodeProof) -> bool {
    match proof {
        PasscodeProof::Step(step) => {
            let good = row.wrong_passcodes < WRONG_PASSCODES && row.last_step < step;
            if good {
                row.last_step = step;
            }
            good
        }
        PasscodeProof::RecoveryCode(code) => {
            let place = row.recovery_codes.iter().position(|kept| *kept == code);
            place.map(|place| row.recovery_codes.swap_remove(place)).is_some()
        }
    }
}

/// Resets the class that the login came in by, and a closed shared class; the network is known from here on.
fn forgive(row: &mut AccountRow, network: Digest, now: Timestamp) {
    if row.known_network(network, now).is_none() || row.shared.is_closed() {
        row.shared = AttemptClass::default();
    }
    row.networks.retain(|known| known.network != network);
    row.networks.sort_by_key(|known| known.last_login);
    while row.networks.len() >= KNOWN_NETWORKS {
        row.networks.remove(0);
    }
    row.networks.push(NetworkRow { network, last_login: now, class: AttemptClass::default() });
}
