//! The two decisions of a proof.

use super::row::{AccountRow, NetworkRow, PendingSeed, SessionRow};
use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::account::AccountState;
use vault_core::digest::Digest;
use vault_core::lockout::{AttemptClass, AttemptDecision, CLOSING_ATTEMPTS, KNOWN_NETWORKS, WRONG_PASSCODES};
use vault_core::notice::NoticeCode;
use vault_core::organization::OrganizationState;
use vault_core::passcode::PasscodeProof;
use vault_core::port::{
    CompleteProof, CompleteProofOutcome, LoginGuard, OwnChange, ProofEffect, RefuseAttempt, RefusedAccount,
    Reservation, ReserveAttempt, ReservedAccount, StoreError,
};
use vault_core::principal::{Denial, SessionPrincipal};
use vault_core::time::Timestamp;

#[async_trait]
impl LoginGuard for MemoryStore {
    async fn reserve_attempt(&self, command: ReserveAttempt) -> Result<Reservation, StoreError> {
        self.decide(|state| reserve(state, command))
    }

    async fn refuse_attempt(&self, command: RefuseAttempt) -> Result<(), StoreError> {
        self.decide(|state| {
            // What a bucket's row notes decides nothing: nothing to do here.
            if let RefuseAttempt::Account(refused) = command {
                refuse(state, *refused);
            }
        })
    }

    async fn complete_proof(&self, command: CompleteProof) -> Result<CompleteProofOutcome, StoreError> {
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
    let counted = count(row.class(command.network, command.now), command.now);
    if !counted {
        return Reservation::TurnedAway { account: Some((row.grant.organization, account)) };
    }
    let attempts = row.class(command.network, command.now).attempts;
    if attempts == CLOSING_ATTEMPTS {
        row.notify(NoticeCode::AttemptsClosed, command.now);
    }
    Reservation::Account(Box::new(ReservedAccount {
        grant: row.grant.clone(),
        grant_digest: row.grant_digest,
        organization_state,
        password: row.password.clone(),
        password_version: row.password_version,
        seed: row.seed.clone(),
        attempts,
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

fn refuse(state: &mut State, refused: RefusedAccount) {
    // Recorded also if the account is gone by now: the refusal happened.
    state.audit.push(refused.audit);
    state.audit.extend(refused.class_closed);
    let Some(disabled) = refused.wrong_passcode else { return };
    let Some(row) = state.account_in(refused.organization, refused.account) else { return };
    row.wrong_passcodes = row.wrong_passcodes.saturating_add(1);
    if row.wrong_passcodes == WRONG_PASSCODES {
        row.notify(NoticeCode::PasscodeDisabled, refused.now);
        state.audit.push(disabled);
    }
}

fn complete(state: &mut State, command: CompleteProof) -> CompleteProofOutcome {
    if let ProofEffect::Own { principal, .. } = &command.effect {
        if let Err(refusal) = state.judge_session(principal, command.now) {
            return CompleteProofOutcome::Refused(refusal);
        }
        if principal.account != command.grant.account {
            return CompleteProofOutcome::Refused(Denial::AccountChanged);
        }
    }
    let organization_active = state.organization_is_active(command.grant.organization);
    let Some(row) = state.accounts.get_mut(&command.grant.account) else { return CompleteProofOutcome::Overtaken };
    let as_reserved = organization_active
        && row.grant == command.grant
        && row.grant.state == AccountState::Active
        && row.password_version == command.password_version
        && row.seed.id == command.seed;
    if !as_reserved {
        return CompleteProofOutcome::Overtaken;
    }
    if !spend(row, command.proof) {
        return CompleteProofOutcome::PasscodeSpent;
    }
    if matches!(command.proof, PasscodeProof::RecoveryCode(_)) {
        row.notify(NoticeCode::RecoveryCodeUsed, command.now);
    }
    if let Some(rehashed) = command.rehashed {
        row.password = rehashed;
    }
    forgive(row, command.network, command.now);
    let (organization, account) = (row.grant.organization, row.grant.account);
    match command.effect {
        ProofEffect::Session(session) => {
            row.last_login_at = Some(command.now);
            state.sessions.insert(session.id, SessionRow { organization, account, session });
        }
        ProofEffect::Own { principal, change } => change_own(state, &principal, change),
    }
    state.audit.push(command.audit);
    CompleteProofOutcome::Completed
}

fn change_own(state: &mut State, principal: &SessionPrincipal, change: OwnChange) {
    let Some(row) = state.accounts.get_mut(&principal.account) else { return };
    match change {
        OwnChange::PendingSeed { seed, expires_at } => {
            row.pending = Some(PendingSeed { seed, expires_at, tried: 0 });
            return;
        }
        OwnChange::Password(password) => {
            row.password = password;
            row.password_version += 1;
        }
        OwnChange::RecoveryCodes(codes) => row.recovery_codes = codes,
    }
    row.version += 1;
    state.end_other_sessions_of(principal.account, principal.session);
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
