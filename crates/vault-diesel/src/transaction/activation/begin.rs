//! The first transaction of an activation or a check: fetching the credentials of a namespace, to decrypt them.

use super::super::Transaction;
use super::super::audit::AuditRecorder;
use super::super::credential::sealed::{SealedRow, with_secrets};
use super::active::active_of;
use super::authorize::{authorize_and_lock, is_frozen};
use crate::db::{Tx, narrow};
use crate::failure::Failure;
use crate::rows::entity_of;
use crate::schema::{activations, credentials, entities};
use crate::stored::StoredId as _;
use diesel::result::Error;
use diesel::{ExpressionMethods as _, QueryDsl as _, SelectableHelper as _};
use futures_util::try_join;
use vault_core::activation::{ActivationFacts, check_activation};
use vault_core::entity::Kind;
use vault_core::integration::{IntegrationPrincipal, TokenSlot};
use vault_core::port::{FetchCredentials, FetchedCredential, ForIntegration};
use vault_core::principal::Denial;
use vault_core::time::Timestamp;

impl Transaction for ForIntegration<FetchCredentials> {
    type Outcome = Vec<FetchedCredential>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Vec<FetchedCredential>, Failure> {
        let FetchCredentials { namespace, activation, most } = &self.payload;
        let (principal, now) = (&self.principal, self.now);
        let (organization, integration) = (principal.organization.stored(), principal.integration.stored());
        let last_used_at = authorize_and_lock(tx, principal, now).await?.map_err(Denial::Integration)?;
        let frozen = is_frozen(tx, organization, namespace);
        let oldest_first = with_secrets()
            .filter(credentials::organization_id.eq(organization))
            .filter(narrow(credentials::namespace.eq(namespace.as_str())))
            .order(credentials::id)
            .select(SealedRow::as_select());
        let active = async {
            let Some(new) = activation else { return Ok(None) };
            let active: i64 = tx.one(active_of(organization, integration, now.as_millis()).count()).await?;
            Ok::<_, Error>(Some((active, new.limit)))
        };
        // One more than the limit, so that too many are noticed.
        let sealed = tx.page(oldest_first, most.saturating_add(1));
        let (frozen, sealed, live): (bool, _, _) = try_join!(frozen, sealed, active)?;
        check_activation(ActivationFacts { frozen, credentials: sealed.len(), live }, *most)?;
        let taken = sealed.into_iter().map(SealedRow::decode).collect::<Result<Vec<_>, Failure>>()?;
        record_use(tx, principal, last_used_at, now).await?;
        let Some(new) = activation else {
            audit.record(tx, &self.audit).await?;
            return Ok(taken);
        };
        let new = diesel::insert_into(activations::table).values((
            activations::organization_id.eq(organization),
            activations::id.eq(new.id.stored()),
            activations::integration_id.eq(integration),
            activations::namespace.eq(namespace.as_str()),
            activations::vend.eq(new.vend.as_str()),
            activations::credentials.eq(i64::try_from(taken.len()).unwrap_or(i64::MAX)),
            activations::started_at.eq(now.as_millis()),
            activations::expires_at.eq(new.expires_at.as_millis()),
        ));
        try_join!(tx.execute(new), audit.record(tx, &self.audit))?;
        Ok(taken)
    }
}

/// Records that the integration's current token was used, unless this minute is recorded. The row is locked.
async fn record_use(
    tx: &Tx<'_>,
    principal: &IntegrationPrincipal,
    last_used_at: Option<i64>,
    now: Timestamp,
) -> Result<(), Failure> {
    let minute = now.floor_to_minute().as_millis();
    if principal.slot == TokenSlot::Current && last_used_at.is_none_or(|last| last < minute) {
        let (organization, id) = (principal.organization.stored(), principal.integration.stored());
        let row = diesel::update(entity_of(organization, Kind::Integration.as_str(), id));
        tx.execute(row.set(entities::last_used_at.eq(minute))).await?;
    }
    Ok(())
}
