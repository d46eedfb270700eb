//! The two transactions of a login or re-authentication.

use super::row::{AccountRow, SessionRow, TriedSeed};
use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::account::AccountState;
use vault_core::digest::Digest;
use vault_core::lockout::{AttemptDecision, network_is_known};
use vault_core::notice::NoticeCode;
use vault_core::passcode::PasscodeProof;
use vault_core::port::{
    AttemptOutcome, FinishAccountAttempt, FinishAttempt, LoginAttemptRepository, LoginRefusal, OwnChange, ProofEffect,
    Reservation, ReserveAttempt, ReservedAccount, StoreError, VerifiedFactors, VerifiedProof,
};
use vault_core::principal::{Denial, SessionPrincipal};
use vault_core::proof::{ProofFacts, ProofOutcome, conclude_proof};
use vault_core::time::Timestamp;

#[async_trait]
impl LoginAttemptRepository for MemoryStore {
    async fn reserve_attempt(&self, command: ReserveAttempt) -> Result<Reservation, StoreError> {
        self.decide(|state| reserve(state, command))
    }

    async fn finish_attempt(&self, command: FinishAttempt) -> Result<AttemptOutcome, StoreError> {
        self.decide(|state| match command {
            // The content of a decoy has no effect.
            FinishAttempt::Decoy { .. } => Ok(AttemptOutcome::Refused(LoginRefusal::UnknownAddress)),
            FinishAttempt::Account(proof) => {
                state.require_active(proof.presented.instance_keys())?;
                Ok(conclude(state, *proof))
            }
        })?
    }

    async fn network_is_known(&self, network: Digest, now: Timestamp) -> Result<bool, StoreError> {
        self.decide(|state| {
            let mut known = state.accounts.values().flat_map(|row| &row.classes.networks);
            known.any(|kept| kept.network == network && network_is_known(kept.last_login_at, now))
        })
    }
}

fn reserve(state: &mut State, command: ReserveAttempt) -> Reservation {
    let ReserveAttempt { address, network, now, .. } = command;
    let Some(account) = state.account_by_address(&address) else { return Reservation::Unknown };
    let Some(organization) = state.accounts.get(&account).map(|row| row.signed.grant.organization) else {
        return Reservation::Unknown;
    };
    let organization_is_active = state.organization_is_active(organization);
    let row = state.accounts.get_mut(&account).expect("an account is where its address leads");
    if !organization_is_active || row.signed.grant.state != AccountState::Active {
        return Reservation::Disabled(organization, account);
    }
    let (key, class) = row.classes.counting(&network, now);
    let AttemptDecision::Evaluate(counted) = class.decide(now) else {
        return Reservation::Throttled(organization, account);
    };
    row.set_class(key, counted);
    Reservation::Account(Box::new(ReservedAccount {
        signed: row.signed.clone(),
        digest: row.digest,
        password: row.password.clone(),
        seed: row.seed.clone(),
        attempts: counted.attempts,
    }))
}

fn conclude(state: &mut State, command: FinishAccountAttempt) -> AttemptOutcome {
    let facts = facts(state, &command);
    match conclude_proof(&command, &facts, check_owner(state, &command)) {
        ProofOutcome::Done(proof) => {
            carry_out(state, &command, proof.clone());
            AttemptOutcome::Completed
        }
        ProofOutcome::Refused(refused) => {
            state.audit.extend(refused.records.into_iter().cloned());
            if let Some(row) = state.accounts.get_mut(&command.reserved.grant.account) {
                row.last_refused_at = Some(command.now);
                row.wrong_passcodes = refused.wrong_passcodes;
                refused.notices.into_iter().for_each(|notice| row.notify(notice, command.now));
            }
            refused.conclusion
        }
    }
}

fn check_owner(state: &State, command: &FinishAccountAttempt) -> Result<(), Denial> {
    let VerifiedFactors::Proof(proof) = &command.presented else { return Ok(()) };
    let ProofEffect::Own { principal, .. } = &proof.effect else { return Ok(()) };
    state.check_session(principal, command.now)
}

fn facts(state: &State, command: &FinishAccountAttempt) -> ProofFacts {
    let grant = &command.reserved.grant;
    let row = state.accounts.get(&grant.account);
    let stored = |code: Digest| row.is_some_and(|row| row.recovery_codes.contains(&code));
    ProofFacts {
        account: row.map(|row| row.signed.clone()).filter(|_| state.organization_is_active(grant.organization)),
        last_step: row.map_or(AccountRow::NO_STEP, |row| row.last_step),
        wrong_passcodes: row.map(|row| row.wrong_passcodes).unwrap_or_default(),
        recovery_code_stored: command.presented.recovery_code().is_some_and(stored),
    }
}

fn carry_out(state: &mut State, command: &FinishAccountAttempt, proof: VerifiedProof) {
    let grant = &command.reserved.grant;
    let (organization, account, now) = (grant.organization, grant.account, command.now);
    let Some(row) = state.accounts.get_mut(&account) else { return };
    match proof.passcode {
        PasscodeProof::Step(step) => row.last_step = step,
        PasscodeProof::RecoveryCode(code) => {
            row.recovery_codes.retain(|kept| *kept != code);
            row.notify(NoticeCode::RecoveryCodeUsed, now);
        }
    }
    if let Some(rehashed) = proof.rehashed {
        row.password = rehashed;
    }
    row.note_login(command.network, now);
    match proof.effect {
        ProofEffect::Session(session) => {
            row.last_login_at = Some(now);
            let last_used_at = session.created_at;
            state.sessions.insert(session.id, SessionRow { organization, account, session, last_used_at });
        }
        ProofEffect::Own { principal, change } => change_own(state, &principal, change),
    }
    state.audit.push(proof.audit);
}

fn change_own(state: &mut State, principal: &SessionPrincipal, change: OwnChange) {
    let Some(row) = state.accounts.get_mut(&principal.account) else { return };
    match change {
        OwnChange::PendingSeed(pending) => {
            row.pending = Some(TriedSeed { pending, tried: 0 });
            return;
        }
        OwnChange::Password { password, after, digest } => {
            row.password = password;
            row.signed = after;
            row.digest = digest;
        }
        OwnChange::RecoveryCodes { seed, codes, after, digest } => {
            row.seed = seed;
            row.recovery_codes = codes;
            row.pending = None;
            row.signed = after;
            row.digest = digest;
        }
    }
    state.end_other_sessions_of(principal.account, principal.session);
}
