//! Changes of integrations: token, state, namespaces, expiry and trusts; and deletion.

use super::{Integration, IntegrationRef, IntegrationState, ManagedBy, NamespacePatterns, Overlap, StoredIntegration};
use crate::audit::{AuditAction, AuditChange, ChangedField};
use crate::digest::Digest;
use crate::entity::Entity;
use crate::error::Refusal;
use crate::id::{IntegrationId, OrganizationId};
use crate::identity::{Trust, TrustId, Trusts};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::time::Timestamp;
use futures_util::try_join;

/// Changes an integration. Requests of the integration that are decided afterwards use the new rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeIntegration {
    /// Organization of the integration.
    pub organization: OrganizationId,
    /// Integration to change.
    pub integration: IntegrationRef,
    /// Change to apply.
    pub change: IntegrationChange,
}

/// Change of an integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntegrationChange {
    /// Another token.
    Rotate {
        /// Digest of the token.
        token: Digest,
        /// Remaining validity of the current token.
        overlap: Overlap,
    },
    /// New values of fields. `None` leaves a field unchanged.
    Edit {
        /// New state.
        state: Option<IntegrationState>,
        /// Namespaces that the integration may activate.
        patterns: Option<NamespacePatterns>,
        /// New expiry. `Some(None)` removes it.
        expires_at: Option<Option<Timestamp>>,
        /// New document set that manages the integration. `Some(None)` removes it.
        managed_by: Option<Option<ManagedBy>>,
    },
    /// Another trust.
    Trust(Box<Trust>),
    /// The removal of a trust.
    Distrust(TrustId),
}

impl Operation for ChangeIntegration {
    type Outcome = StoredIntegration;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<StoredIntegration, Failure> {
        let organization = self.organization;
        unit.authorize().await?;
        let before = self.integration.find(unit, organization).await?;
        let (action, after) = before.changed(&self.change, unit.now())?;
        unit.replace(&before, &after).await?;
        let key = before.key();
        let mut last_used_at = before.last_used_at();
        if after.token != before.token {
            unit.rows().set_last_use(key, None).await?;
            last_used_at = None;
        }
        let affected = after.subject(key.id).changing(changes(&before, &after));
        unit.record(Some(organization), action, affected).await?;
        let (id, version) = (IntegrationId::from_uuid(key.id), before.version() + 1);
        Ok(StoredIntegration { id, organization, version, integration: after, last_used_at })
    }
}

impl Integration {
    /// Returns the integration after a change at `now`, and how the audit log names the change.
    fn changed(&self, change: &IntegrationChange, now: Timestamp) -> Result<(AuditAction, Self), Failure> {
        let before = self.clone();
        Ok(match change {
            IntegrationChange::Rotate { token, overlap } => {
                (AuditAction::IntegrationRotated, before.rotated(*token, *overlap, now))
            }
            IntegrationChange::Trust(trust) => {
                let trusts = self.trusts.iter().cloned().chain([Trust::clone(trust)]).collect();
                let trusts = Trusts::new(trusts, "").map_err(|error| Failure::Invalid(vec![error]))?;
                (AuditAction::IntegrationTrusted, Self { trusts, ..before })
            }
            IntegrationChange::Distrust(trust) => {
                let trusts = self.trusts.without(*trust).ok_or(Refusal::NotFound)?;
                (AuditAction::IntegrationDistrusted, Self { trusts, ..before })
            }
            IntegrationChange::Edit { state, patterns, expires_at, managed_by } => {
                // A change of the state is more severe than other changes, so it determines the action.
                let only_state = (patterns, expires_at, managed_by) == (&None, &None, &None);
                let action = match state.filter(|state| *state != self.state || only_state) {
                    Some(IntegrationState::Active) => AuditAction::IntegrationEnabled,
                    Some(IntegrationState::Disabled) => AuditAction::IntegrationDisabled,
                    None => AuditAction::IntegrationChanged,
                };
                let edited = Self {
                    state: state.unwrap_or(self.state),
                    patterns: patterns.clone().unwrap_or(before.patterns),
                    expires_at: expires_at.unwrap_or(self.expires_at),
                    managed_by: managed_by.clone().unwrap_or(before.managed_by),
                    ..before
                };
                (action, edited)
            }
        })
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

/// Deletes an integration with its activations. It need not open: deleting it is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteIntegration {
    /// Organization of the integration.
    pub organization: OrganizationId,
    /// Integration to delete.
    pub integration: IntegrationRef,
}

impl Operation for DeleteIntegration {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let organization = self.organization;
        unit.authorize().await?;
        let id = match self.integration.find(unit, organization).await {
            Ok(found) => IntegrationId::from_uuid(found.key().id),
            Err(Failure::Damaged { .. } | Failure::UnknownKey { .. }) => {
                self.integration.resolve(unit, organization).await?
            }
            Err(failure) => return Err(failure),
        };
        let removed = unit.remove::<Integration>(organization, *id.as_uuid());
        let activations = async { Ok(unit.rows().remove_activations(organization, id).await?) };
        let (removed, ()) = try_join!(removed, activations)?;
        if !removed {
            return Err(Refusal::NotFound.into());
        }
        let affected = crate::audit::Subject::Integration(id).into();
        unit.record(Some(organization), AuditAction::IntegrationDeleted, affected).await
    }
}
