//! The first transaction of an activation or a check: it fetches the sealed credentials of a namespace.

use super::{Activation, ActivationFacts, ForIntegration, VendMode, check_activation};
use crate::entity::{EntityKey, Index, Kind};
use crate::id::ActivationId;
use crate::integration::TokenSlot;
use crate::namespace::Namespace;
use crate::operation::{Access, Failure, Operation, Unit, flat};
use crate::organization::Organization;
use crate::port::StoredCredential;
use crate::principal::Denial;
use crate::sealed::SealedData;
use crate::time::Timestamp;
use futures_util::try_join;

/// The activation to start when the credentials of a namespace are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewActivation {
    /// ID of the activation.
    pub id: ActivationId,
    /// Time at which it expires (exclusive end).
    pub expires_at: Timestamp,
    /// Requested form.
    pub vend: VendMode,
    /// Maximum number of active activations of the integration, including this one.
    pub limit: i64,
}

/// Fetches the sealed credentials of a namespace, oldest first (by ID), and starts an activation if requested. Records the last
/// use of the integration's current token, at most once a minute. Refused according to [`check_activation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchCredentials {
    /// Namespace, compared exactly. The patterns of the principal must cover it.
    pub namespace: Namespace,
    /// The activation to start. `None` for a check, and for the renewal of an activation.
    pub activation: Option<NewActivation>,
    /// Maximum number of credentials that the namespace may contain.
    pub most: usize,
}

/// A stored credential with the sealed data of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedCredential {
    /// The credential.
    pub row: StoredCredential,
    /// Version that was fetched.
    pub version: i64,
    /// Sealed data of that version.
    pub data: SealedData,
}

/// The sealed credentials of a namespace, with the wrapped keys that open them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedNamespace {
    /// The organization.
    pub owner: Organization,
    /// The credentials.
    pub credentials: Vec<FetchedCredential>,
}

impl Operation for ForIntegration<FetchCredentials> {
    type Outcome = FetchedNamespace;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.principal.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<FetchedNamespace, Failure> {
        let FetchCredentials { namespace, activation, most } = &self.payload;
        let (principal, now, rows) = (&self.principal, self.now, unit.rows());
        let (organization, integration) = (principal.organization, principal.integration);
        let active = async {
            match activation {
                Some(new) => Ok(Some((rows.count_activations(organization, integration, now).await?, new.limit))),
                None => Ok(None),
            }
        };
        let (authorized, frozen, fetched, live) = try_join!(
            unit.authorize_integration(principal, now),
            flat(rows.find(organization, Index::FrozenNamespace, namespace.as_str())),
            // One more than the limit, so that too many are noticed.
            flat(rows.sealed_credentials(organization, namespace, most.saturating_add(1))),
            flat(active),
        )?;
        let last_used_at = authorized.map_err(Denial::Integration)?;
        check_activation(ActivationFacts { frozen: frozen.is_some(), credentials: fetched.len(), live }, *most)?;
        let minute = now.floor_to_minute();
        let used = async {
            if principal.slot == TokenSlot::Current && last_used_at.is_none_or(|last| last < minute) {
                let key = EntityKey { organization, kind: Kind::Integration, id: *integration.as_uuid() };
                rows.set_last_use(key, Some(minute)).await?;
            }
            Ok(())
        };
        let started = async {
            let Some(new) = activation else { return Ok(()) };
            let activation = Activation {
                id: new.id,
                organization,
                integration,
                namespace: namespace.clone(),
                vend: new.vend,
                credentials: u32::try_from(fetched.len()).unwrap_or(u32::MAX),
                started_at: now,
                expires_at: new.expires_at,
            };
            rows.insert_activation(&activation).await
        };
        try_join!(flat(used), flat(started), unit.record_entry(&self.audit))?;
        let owner = unit.owner(organization).await?.into_value();
        Ok(FetchedNamespace { owner, credentials: fetched })
    }
}
