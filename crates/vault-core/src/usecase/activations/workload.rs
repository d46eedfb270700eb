//! Authentication of workloads by identity tokens, and their authorization for the integration that the token names.

use super::Activations;
use crate::audit::{Actor, AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::identity::{
    FindIssuers, IssuerKeySet, IssuerName, RecordKeys, StoredIssuer, Workload, WorkloadRefusal, audience_look_up,
    integration_of, match_trusts, reported, verify_times,
};
use crate::integration::{FoundIntegration, IntegrationPrincipal, IntegrationRefusal, StoredIntegration};
use crate::network::Network;
use crate::operation::Operation;
use crate::port::{Event, IssuerKeys, SignatureError, TokenVerifier, UnverifiedToken};
use crate::principal::Principal;
use secrecy::SecretString;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Ports for the verification of identity tokens.
#[derive(Clone)]
pub struct Identity {
    /// Reads and verifies tokens.
    pub verifier: Arc<dyn TokenVerifier>,
    /// Fetches the keys of issuers. Without it, only stored keys are used.
    pub keys: Option<Arc<dyn IssuerKeys>>,
}

/// Locks that let one request of this process fetch the keys of an issuer, while others wait for its result.
#[derive(Clone, Default)]
pub(super) struct FetchLocks(Arc<Mutex<HashMap<IssuerName, Arc<futures_util::lock::Mutex<()>>>>>);

impl FetchLocks {
    fn of(&self, issuer: &IssuerName) -> Arc<futures_util::lock::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(issuer.clone()).or_default())
    }
}

impl Activations {
    /// Sets the ports for identity tokens. Without them, every identity token is refused.
    #[must_use]
    pub fn identity(self, identity: Option<Identity>) -> Self {
        Self { identity, ..self }
    }

    /// Returns the principal of the workload with the identity token `text`.
    pub(super) async fn authenticate_workload(
        &self,
        text: &SecretString,
        network: Option<Network>,
    ) -> Result<IntegrationPrincipal, Error> {
        let unverified =
            |reason: &str| self.refuse_workload(WorkloadRefusal::Unverified(reason.to_owned()), None, network);
        let Some(identity) = &self.identity else { return Err(unverified("this server verifies no identity tokens")) };
        let Some(token) = identity.verifier.read_unverified(text) else {
            return Err(unverified("it is not a JSON Web Token of at most 8,192 bytes"));
        };
        let Some(audience) = token.audience.as_deref() else {
            return Err(unverified("it must have exactly one audience"));
        };
        let Some(integration) = integration_of(audience) else {
            let audience = reported(audience);
            return Err(unverified(&format!("its audience is {audience}, not urn:orgvault:integration:<id>")));
        };
        let Some(found) = self.look_up(audience_look_up(integration), network).await? else {
            return Err(unverified("its audience names an integration that does not exist"));
        };
        let integration = &found.stored;
        let refuse = |refusal| self.refuse_workload(refusal, Some(integration), network);
        // Clusters can share an `iss`, but each has its own keys.
        let (issuers, others) = self.issuers_of(&token, integration).await?;
        let mut verified = Err(WorkloadRefusal::Unverified(untrusted_issuer(&token, &others, integration)));
        for issuer in issuers {
            let of = issuer.issuer.clone();
            verified = self.verified(identity, text, issuer).await?.map(|claims| Workload::new(&of, claims));
            if !matches!(verified, Err(WorkloadRefusal::Unverified(_))) {
                break;
            }
        }
        let workload = verified.map_err(refuse)?;
        let evaluated = self.verify_workload(found, workload, network);
        evaluated.map_err(|refused| match refused {
            Ok(refusal) => self.refuse(refusal, None, network),
            Err((refusal, integration)) => self.refuse_workload(refusal, Some(&integration), network),
        })
    }

    /// Returns the principal of the same workload for the current row of its integration. Its signature was already
    /// verified.
    pub(super) async fn workload_again(
        &self,
        principal: &IntegrationPrincipal,
        workload: &Workload,
    ) -> Result<IntegrationPrincipal, Error> {
        let network = principal.network;
        let Some(found) = self.look_up(principal.token, network).await? else {
            return Err(self.refuse(IntegrationRefusal::Unknown, Some(principal.integration), network));
        };
        self.verify_workload(found, workload.clone(), network).map_err(|refused| match refused {
            Ok(refusal) => self.refuse(refusal, None, network),
            Err((refusal, integration)) => self.refuse_workload(refusal, Some(&integration), network),
        })
    }

    /// Matches verified claims with the trusts of the integration, and checks the integration itself.
    fn verify_workload(
        &self,
        found: FoundIntegration,
        workload: Workload,
        network: Option<Network>,
    ) -> Result<IntegrationPrincipal, Result<IntegrationRefusal, (WorkloadRefusal, Box<StoredIntegration>)>> {
        let now = self.environment.now();
        let evaluated = verify_times(&workload.claims, now)
            .and_then(|times| match_trusts(&found.stored.integration.trusts, &workload, times).map(drop));
        match evaluated {
            Err(refusal) => Err(Err((refusal, Box::new(found.stored)))),
            Ok(()) => match found.workload_principal(workload, now) {
                Ok(principal) => Ok(IntegrationPrincipal { network, ..principal }),
                Err(refusal) => Err(Ok(refusal)),
            },
        }
    }

    /// Returns the issuers trusted by the integration that may have issued the token, and those that cannot have.
    async fn issuers_of(
        &self,
        token: &UnverifiedToken,
        integration: &StoredIntegration,
    ) -> Result<(Vec<StoredIssuer>, Vec<StoredIssuer>), Error> {
        let names: BTreeSet<IssuerName> =
            integration.integration.trusts.iter().map(|trust| trust.issuer.clone()).collect();
        if names.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let issuers = self.run(FindIssuers(names.into_iter().collect())).await?;
        let (issuers, others): (Vec<_>, Vec<_>) = issuers.into_iter().partition(|stored| {
            stored.issuer.made(token.issuer.as_deref(), token.subject.as_deref())
                && stored.issuer.serves(integration.organization)
                && integration.integration.trusts.iter().any(|trust| trust.issuer_id == stored.issuer.id)
        });
        Ok((issuers, others))
    }

    /// Returns the claims of a token that the issuer has signed. Fetches its keys again if they are old or one is
    /// missing.
    async fn verified(
        &self,
        identity: &Identity,
        text: &SecretString,
        mut issuer: StoredIssuer,
    ) -> Result<Result<serde_json::Value, WorkloadRefusal>, Error> {
        if issuer.is_due(self.environment.now(), false) {
            issuer = self.fetch_keys(identity, issuer).await?;
        }
        let key_use = issuer.issuer.key_use();
        let mut verified = identity.verifier.verify(text, &issuer.set.keys, key_use);
        if verified == Err(SignatureError::UnknownKey) && issuer.is_due(self.environment.now(), true) {
            issuer = self.fetch_keys(identity, issuer).await?;
            verified = identity.verifier.verify(text, &issuer.set.keys, key_use);
        }
        Ok(match verified {
            Ok(_) if !issuer.is_usable(self.environment.now()) => Err(WorkloadRefusal::NoKeys),
            Ok(claims) => Ok(claims),
            Err(violation) => {
                let name = &issuer.issuer.name;
                Err(WorkloadRefusal::Unverified(match violation {
                    SignatureError::UnknownKey => format!("{name} has no key of the id and algorithm that it names"),
                    SignatureError::Wrong => format!("it was not signed by {name}, or in a form that is not permitted"),
                }))
            }
        })
    }

    /// Fetches the keys of an issuer and records the result for all processes. If another request fetches or has fetched
    /// them, returns its result.
    async fn fetch_keys(&self, identity: &Identity, issuer: StoredIssuer) -> Result<StoredIssuer, Error> {
        let Some(keys) = &identity.keys else { return Ok(issuer) };
        let fetching = self.fetching.of(&issuer.issuer.name);
        let _fetching = fetching.lock().await;
        let now = self.environment.now();
        // Record the request first, so that many concurrent tokens cause only one request, whatever process has them.
        let StoredIssuer { issuer, set, version } = issuer;
        let record = |version, set: &IssuerKeySet| RecordKeys { issuer: issuer.id, version, set: set.clone() };
        let asked = IssuerKeySet { asked_at: now, ..set.clone() };
        if !self.run(record(version, &asked)).await? {
            let found = self.run(FindIssuers(vec![issuer.name.clone()])).await?.pop();
            return Ok(found.unwrap_or(StoredIssuer { issuer, set, version }));
        }
        let unreachable = |reason: Cow<'static, str>| {
            let failure = reason.clone().into_owned();
            self.environment.emit(Event::IssuerUnreachable { issuer: issuer.name.clone(), reason });
            IssuerKeySet { failure, ..asked.clone() }
        };
        let set = match keys.fetch(&issuer).await {
            Ok(found) if identity.verifier.count_keys(&found.keys, issuer.key_use()).is_some() => {
                IssuerKeySet::fetched(found.keys, now)
            }
            Ok(_) => unreachable("its response is not a key set".into()),
            Err(failure) => unreachable(failure.0),
        };
        self.run(record(version + 1, &set)).await?;
        Ok(StoredIssuer { issuer, set, version: version + 2 })
    }

    async fn run<O: Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations.run(&self.environment, &Principal::Operator, operation).await
    }

    /// Counts, logs and records the refusal of a workload.
    fn refuse_workload(
        &self,
        refusal: WorkloadRefusal,
        integration: Option<&StoredIntegration>,
        network: Option<Network>,
    ) -> Error {
        if let Some(integration) = integration {
            let (organization, actor) = (Some(integration.organization), Actor::Integration(integration.id));
            let (now, subject) = (self.environment.now(), Subject::Integration(integration.id));
            let action = AuditAction::ActivationRefusedWorkload;
            self.tally.count_because(now, organization, actor, action, subject, Some(refusal.cause()));
        }
        let integration = integration.map(|integration| integration.id);
        self.environment.emit(Event::WorkloadRefused { refusal: refusal.clone(), integration, network });
        Refusal::UnknownWorkload(Box::new(refusal)).into()
    }
}

/// Returns the reason why no issuer that the integration trusts has issued the token. `others` are those that it
/// trusts, or that have the name of one.
fn untrusted_issuer(token: &UnverifiedToken, others: &[StoredIssuer], integration: &StoredIntegration) -> String {
    let Some(issuer) = &token.issuer else { return "it names no issuer that the integration trusts".to_owned() };
    let near = others.iter().find(|other| other.issuer.url.trim_end_matches('/') == issuer.trim_end_matches('/'));
    match near {
        Some(near) if near.issuer.url != *issuer => {
            let (issuer, name, url) = (reported(issuer), &near.issuer.name, &near.issuer.url);
            format!("its issuer is {issuer}, and {name} is {url}: they differ by the last slash")
        }
        Some(near) if near.issuer.serves(integration.organization) => {
            let name = &near.issuer.name;
            format!(
                "issuer {name} was removed and added again after the integration trusted it: remove and add the trust"
            )
        }
        Some(near) => format!("{} is not for its organization", near.issuer.name),
        None => format!("its issuer is {}, which is none that the integration trusts", reported(issuer)),
    }
}
