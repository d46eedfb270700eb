//! Helpers for cases.

use crate::clock::scramble;
use crate::crypto::FakeDigester;
use secrecy::SecretString;
use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::BuildHasher;
use std::sync::Arc;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use vault_core::account::{AccountKey, AccountRights};
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::email::EmailAddress;
use vault_core::entity::DocumentSecret;
use vault_core::login::{FinishAttempt, ProofEffect, Reservation, VerifiedFactors, VerifiedProof};
use vault_core::namespace::Namespace;
use vault_core::organization::OrganizationName;
use vault_core::port::KeyedDigester;
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::sealed::Blob;
use vault_core::{Command, Error, Refusal};

/// An operation with its principal.
#[derive(Clone, Debug)]
pub(super) struct By<O> {
    pub(super) principal: Principal,
    pub(super) payload: O,
}

/// End of an attempt, with its principal.
#[derive(Clone, Debug)]
pub(super) struct Conclusion {
    pub(super) by: Principal,
    pub(super) attempt: FinishAttempt,
}

/// Returns the verified factors of the re-authentication in `conclusion`.
pub(super) fn proof_of(conclusion: &mut Conclusion) -> &mut VerifiedProof {
    match &mut conclusion.attempt.presented {
        VerifiedFactors::Proof(proof) => proof,
        other => panic!("no proof: {other:?}"),
    }
}

/// Returns the principal of the session that `conclusion` creates or belongs to.
pub(super) fn principal_of(Conclusion { by, attempt }: &Conclusion) -> SessionPrincipal {
    let reserved = attempt.reserved.as_ref().expect("it was counted");
    let AccountRights { organization, account, role, .. } = reserved.grant;
    let version = reserved.sessions.since;
    match (&attempt.presented, by) {
        (_, Principal::Session(own)) => own.clone(),
        (VerifiedFactors::Proof(proof), _) => match &proof.effect {
            ProofEffect::Session(session) => {
                SessionPrincipal { organization, account, session: session.id, role, version }
            }
            ProofEffect::Own(_) => panic!("no session: {attempt:?}"),
        },
        _ => panic!("no proof: {attempt:?}"),
    }
}

pub(super) fn address(text: &str) -> EmailAddress {
    EmailAddress::parse(text).unwrap()
}

/// Returns the lookup key of the account or invitation for an address.
pub(super) fn by_address(email: &EmailAddress) -> AccountKey {
    AccountKey::Address(email.clone())
}

pub(super) fn blob(text: &str) -> Blob {
    Blob::from_bytes(text.as_bytes().to_vec())
}

pub(super) fn name(text: &str) -> OrganizationName {
    OrganizationName::parse(text).unwrap()
}

pub(super) fn namespace(text: &str) -> Namespace {
    Namespace::parse(text, "").unwrap()
}

pub(super) fn secret(text: &str) -> DocumentSecret {
    SecretString::from(text).into()
}

/// Returns whether no account was found.
pub(super) fn is_unknown_account(reservation: &Reservation) -> bool {
    matches!(reservation, Reservation::Unknown)
}

/// Returns a number that no case in another process is likely to draw.
pub(super) fn random() -> u64 {
    scramble(RandomState::new().hash_one(std::process::id()))
}

/// Starts all futures concurrently and returns their results in order.
pub(super) async fn race<F>(contenders: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let contenders: Vec<F> = contenders.into_iter().collect();
    let start = Arc::new(Barrier::new(contenders.len()));
    let mut running = JoinSet::new();
    for (index, contender) in contenders.into_iter().enumerate() {
        let start = Arc::clone(&start);
        running.spawn(async move {
            start.wait().await;
            (index, contender.await)
        });
    }
    let mut results = running.join_all().await;
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Result in which only a denial is expected as an error.
pub(super) trait Settled<T> {
    /// Returns the store's decision.
    ///
    /// # Panics
    /// The store failed.
    fn settled(self) -> Result<T, Denial>;

    /// Returns the store's decision for a principal with permission.
    ///
    /// # Panics
    /// The store failed or denied the principal.
    fn decided(self) -> Result<T, Refusal>;
}

impl<T> Settled<T> for Result<T, Error> {
    fn settled(self) -> Result<T, Denial> {
        self.map_err(|error| match error {
            Error::Denied(denial) => denial,
            error => panic!("the store failed: {error:?}"),
        })
    }

    fn decided(self) -> Result<T, Refusal> {
        self.map_err(|error| match error {
            Error::Refused(refusal) => refusal,
            error => panic!("the store failed: {error:?}"),
        })
    }
}

/// Returns the store's decision, including a denial or refusal.
///
/// # Panics
/// The store failed.
pub(super) fn evaluated<T>(answer: Result<T, Error>) -> Result<T, Error> {
    answer.inspect_err(|error| match error {
        Error::Denied(_) | Error::Refused(_) => {}
        error => panic!("the store failed: {error:?}"),
    })
}

/// Returns `command` after `change` modified its content.
pub(super) fn with<A, P>(command: Command<A, P>, change: impl FnOnce(&mut A)) -> Command<A, P> {
    let mut command = command;
    change(&mut command.payload);
    command
}

/// Returns the rows of all pages, until one is empty. `page` gets the last row of the previous page; a page has at most
/// `limit` rows.
pub(super) async fn paged<T>(limit: usize, page: impl AsyncFn(Option<&T>) -> Vec<T>) -> Vec<T> {
    let mut rows = Vec::new();
    for _ in 0..10_000 {
        let found = page(rows.last()).await;
        assert!(found.len() <= limit);
        if found.is_empty() {
            return rows;
        }
        rows.extend(found);
    }
    panic!("the pages end");
}

/// Returns the digest of a request with an idempotency key.
pub(super) fn request_digest(body: &str) -> Digest {
    FakeDigester::default().digest(DigestPurpose::IdempotentBody, &[body.as_bytes()])
}
