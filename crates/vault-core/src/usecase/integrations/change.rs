//! Changes of integrations: token, state, namespaces, expiry and trusts; and deletion.

use super::Integrations;
use super::create::past;
use crate::audit::{AuditAction, AuditChange, ChangedField, RecordedRow, RowState, Subject};
use crate::error::{Error, Refusal};
use crate::field::{FieldCode, FieldError};
use crate::id::{IntegrationId, IssuerId, OrganizationId};
use crate::identity::{Trust, TrustId, TrustRequest, Trusts};
use crate::integration::{
    Integration, IntegrationName, IntegrationState, IntegrationToken, ManagedBy, NamespacePatterns, Overlap,
    StoredIntegration,
};
use crate::port::{ChangeIntegration, Event, Find, IntegrationChange, IntegrationKey, RetryReason, StoreError};
use crate::principal::Principal;
use crate::time::Timestamp;

/// Reference to an integration of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntegrationRef {
    /// The integration with this ID.
    Id(IntegrationId),
    /// The integration with this name, ignoring ASCII case.
    Name(String),
}

impl IntegrationRef {
    /// Returns the lookup key.
    pub(super) fn key(&self) -> Result<IntegrationKey, Refusal> {
        match self {
            Self::Id(id) => Ok(IntegrationKey::Id(*id)),
            // A malformed name cannot belong to an integration.
            Self::Name(name) => {
                IntegrationName::parse(name, "").map(IntegrationKey::Name).map_err(|_| Refusal::NotFound)
            }
        }
    }
}

/// Changes of an integration's row. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntegrationEdit {
    /// New state.
    pub state: Option<IntegrationState>,
    /// Namespaces that the integration may activate.
    pub namespaces: Option<Vec<String>>,
    /// New expiry. `Some(None)` removes it.
    pub expires_at: Option<Option<Timestamp>>,
    /// New document set that manages the integration. `Some(None)` removes it.
    pub managed_by: Option<Option<String>>,
}

/// A changed integration.
pub struct ChangedIntegration {
    /// The integration after the change, or before its deletion.
    pub integration: StoredIntegration,
    /// New token after a rotation, which is shown only once.
    pub token: Option<IntegrationToken>,
}

/// Command for an integration.
enum Operation {
    Rotate(Overlap),
    Edit(Edit),
    Trust(Box<TrustRequest>, IssuerId),
    Distrust(TrustId),
    Delete,
}

/// A validated [`IntegrationEdit`].
struct Edit {
    state: Option<IntegrationState>,
    patterns: Option<NamespacePatterns>,
    expires_at: Option<Option<Timestamp>>,
    managed_by: Option<Option<ManagedBy>>,
}

impl Integrations {
    /// Issues another token. The current token stays valid for `overlap`, and an older one is revoked.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::NoOrganization`], [`Refusal::Damaged`] or [`Refusal::Contended`].
    pub async fn rotate(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
        overlap: Overlap,
    ) -> Result<ChangedIntegration, Error> {
        self.carry_out(principal, organization, integration, &Operation::Rotate(overlap)).await
    }

    /// Changes an integration's state, namespaces or expiry. Restrictions are in effect when this returns.
    ///
    /// # Errors
    /// - [`Error::Invalid`] at `/namespaces/…`, `/expires_at` and `/managed_by`, or at the document if nothing is to be
    ///   changed.
    /// - [`Refusal::NotFound`], [`Refusal::NoOrganization`], [`Refusal::Damaged`] or [`Refusal::Contended`].
    pub async fn change(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
        edit: IntegrationEdit,
    ) -> Result<ChangedIntegration, Error> {
        Self::permit(principal, organization)?;
        let operation = read(edit, self.environment.now())?;
        self.carry_out(principal, organization, integration, &operation).await
    }

    /// Deletes an integration with its activations.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::NoOrganization`] or [`Refusal::Contended`].
    pub async fn delete(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
    ) -> Result<ChangedIntegration, Error> {
        self.carry_out(principal, organization, integration, &Operation::Delete).await
    }

    /// Adds a trust, which allows workloads of an issuer to use the integration, and returns it.
    ///
    /// # Errors
    /// - [`Error::Invalid`] at a field of the trust.
    /// - [`Refusal::NotFound`], [`Refusal::NoOrganization`], [`Refusal::Damaged`] or [`Refusal::Contended`].
    pub async fn trust(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
        trust: &serde_json::Value,
    ) -> Result<Trust, Error> {
        self.find(principal, organization, integration).await?;
        let (request, issuer) = self.read_trust(organization, trust, "").await?;
        let operation = Operation::Trust(Box::new(request), issuer);
        let changed = self.carry_out(principal, organization, integration, &operation).await?;
        let newest = changed.integration.integration.trusts.iter().last().cloned();
        newest.ok_or_else(|| Refusal::Contended.into())
    }

    /// Removes a trust. Its workloads are refused when this returns.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also if the trust does not exist, [`Refusal::NoOrganization`], [`Refusal::Damaged`] or
    /// [`Refusal::Contended`].
    pub async fn distrust(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
        trust: TrustId,
    ) -> Result<(), Error> {
        self.carry_out(principal, organization, integration, &Operation::Distrust(trust)).await.map(drop)
    }

    async fn carry_out(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
        operation: &Operation,
    ) -> Result<ChangedIntegration, Error> {
        Self::permit(principal, organization)?;
        let key = integration.key()?;
        for _ in self.environment.attempts() {
            let (principal, key, now) = (principal.clone(), key.clone(), self.environment.now());
            let query = Find { principal: principal.clone(), of: organization, key, now };
            let found = self.store.find_integration(query).await?.ok_or(Refusal::NotFound)?;
            self.digester.load_keys(&[found.digest.key]).await?;
            let before = found.integration.clone();
            let (action, change, changed) = self.decide(found, operation)?;
            let Integration { id, version, .. } = changed.integration.integration;
            let seen = if matches!(change, IntegrationChange::Delete) { version } else { version - 1 };
            let state = match &change {
                IntegrationChange::Replace { integration, .. } => integration.recorded(&*self.digester),
                IntegrationChange::Delete => RowState::Gone,
            };
            let payload = ChangeIntegration { organization, integration: id, version: seen, change };
            let changes = changes(&before, &changed.integration.integration);
            let affected = Subject::Integration(id).left(RecordedRow::Integration, state).changing(changes);
            let command = self.environment.command(&principal, Some(organization), action, affected, payload);
            let recorded = Event::recorded(&command.audit);
            match self.store.change_integration(command).await {
                Err(StoreError::Refused(Refusal::Contended)) => {
                    self.environment.emit(Event::Retried(RetryReason::KeyReplaced));
                    self.digester.reload_keys().await?;
                }
                outcome => {
                    outcome?;
                    self.environment.emit(recorded);
                    return Ok(changed);
                }
            }
        }
        Err(Refusal::Contended.into())
    }

    /// Returns the change that `operation` makes to the row `current`.
    fn decide(
        &self,
        current: StoredIntegration,
        operation: &Operation,
    ) -> Result<(AuditAction, IntegrationChange, ChangedIntegration), Error> {
        let unchanged = matches!(operation, Operation::Delete);
        // Never re-sign an invalid row: that would legitimize a row planted through SQL. Deleting it is safe.
        if !unchanged && !current.mac_is_valid(&*self.digester) {
            let (table, id) = ("integrations", current.integration.id.to_string());
            self.environment.emit(Event::IntegrityFailure { table, id: id.clone() });
            return Err(Refusal::Damaged { table, id }.into());
        }
        let StoredIntegration { integration, last_used_at, digest } = current;
        let version = integration.next_version();
        let (action, integration, last_used_at, token) = match operation {
            Operation::Delete => {
                let integration = StoredIntegration { integration, digest, last_used_at };
                let changed = ChangedIntegration { integration, token: None };
                return Ok((AuditAction::IntegrationDeleted, IntegrationChange::Delete, changed));
            }
            Operation::Rotate(overlap) => {
                let token = IntegrationToken::generate(&*self.entropy)?;
                let rotated = integration.rotated(token.digest(&*self.digester), *overlap, self.environment.now());
                (AuditAction::IntegrationRotated, Integration { version, ..rotated }, None, Some(token))
            }
            Operation::Trust(request, issuer) => {
                let now = self.environment.now();
                let id = TrustId::from_uuid(self.environment.ids.ordered(now));
                let trust = TrustRequest::clone(request).with_ids(id, *issuer);
                let trusts = integration.trusts.iter().cloned().chain([trust]).collect();
                let trusts = Trusts::new(trusts, "")?;
                (AuditAction::IntegrationTrusted, Integration { version, trusts, ..integration }, last_used_at, None)
            }
            Operation::Distrust(trust) => {
                let trusts = integration.trusts.without(*trust).ok_or(Refusal::NotFound)?;
                (AuditAction::IntegrationDistrusted, Integration { version, trusts, ..integration }, last_used_at, None)
            }
            Operation::Edit(Edit { state, patterns, expires_at, managed_by }) => {
                // A change of the state is more severe than other changes, so it determines the action.
                let action = match state.filter(|state| {
                    *state != integration.state || (patterns, expires_at, managed_by) == (&None, &None, &None)
                }) {
                    Some(IntegrationState::Active) => AuditAction::IntegrationEnabled,
                    Some(IntegrationState::Disabled) => AuditAction::IntegrationDisabled,
                    None => AuditAction::IntegrationChanged,
                };
                let edited = Integration {
                    state: state.unwrap_or(integration.state),
                    patterns: patterns.clone().unwrap_or(integration.patterns),
                    expires_at: expires_at.unwrap_or(integration.expires_at),
                    managed_by: managed_by.clone().unwrap_or_else(|| integration.managed_by.clone()),
                    version,
                    ..integration
                };
                (action, edited, last_used_at, None)
            }
        };
        let digest = integration.digest(&*self.digester);
        let change = IntegrationChange::Replace { integration: Box::new(integration.clone()), digest };
        let integration =
            StoredIntegration { integration: integration.shown(self.environment.now()), digest, last_used_at };
        Ok((action, change, ChangedIntegration { integration, token }))
    }
}

/// Returns the changed rights of an integration.
fn changes(from: &Integration, to: &Integration) -> Vec<AuditChange> {
    let state = |state: &IntegrationState| Some(state.as_str().to_owned());
    let patterns =
        |patterns: &NamespacePatterns| Some(patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    let expiry = |at: &Option<Timestamp>| at.and_then(Timestamp::to_rfc3339);
    let changes = [
        AuditChange::between(ChangedField::State, &from.state, &to.state, state),
        AuditChange::between(ChangedField::Namespaces, &from.patterns, &to.patterns, patterns),
        AuditChange::between(ChangedField::ExpiresAt, &from.expires_at, &to.expires_at, expiry),
        AuditChange::between(ChangedField::Trusts, &from.trusts, &to.trusts, |trusts| {
            let reported: Vec<_> = trusts.iter().map(|trust| trust.to_value().to_string()).collect();
            (!reported.is_empty()).then(|| reported.join(" "))
        }),
        AuditChange::between(ChangedField::ManagedBy, &from.managed_by, &to.managed_by, |set| {
            set.as_ref().map(|set| set.as_str().to_owned())
        }),
    ];
    changes.into_iter().flatten().collect()
}

fn read(edit: IntegrationEdit, now: Timestamp) -> Result<Operation, Error> {
    let IntegrationEdit { state, namespaces, expires_at, managed_by } = edit;
    if state.is_none() && namespaces.is_none() && expires_at.is_none() && managed_by.is_none() {
        let detail = "must contain state, namespaces, expires_at or managed_by";
        return Err(FieldError::new("", FieldCode::Required, detail).into());
    }
    let patterns = namespaces.map(|texts| NamespacePatterns::parse(&texts, "/namespaces")).transpose();
    let evaluate = |set: String| ManagedBy::parse(&set, "/managed_by");
    let managed_by = managed_by.map(|set| set.map(evaluate).transpose()).transpose();
    match (patterns, managed_by, past(expires_at.flatten(), now)) {
        (Ok(patterns), Ok(managed_by), None) => Ok(Operation::Edit(Edit { state, patterns, expires_at, managed_by })),
        (patterns, managed_by, past) => {
            let errors = patterns.err().into_iter().flatten();
            Err(Error::Invalid(errors.chain(managed_by.err()).chain(past).collect()))
        }
    }
}
