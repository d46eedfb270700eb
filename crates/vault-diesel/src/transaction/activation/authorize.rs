//! Authorization of integrations: checks that an integration may perform an operation, first and inside the operation's
//! transaction.

use super::super::authorize::{is_active_organization, state_of};
use crate::db::{Reply, Share, Tx, Unlocked, Update, locked};
use crate::failure::Failure;
use crate::rows::lookup_of;
use crate::schema::{activations, entities};
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::{auto_type, exists};
use diesel::{ExpressionMethods as _, QueryDsl as _, select};
use futures_util::try_join;
use vault_core::entity::{Index, Kind};
use vault_core::id::ActivationId;
use vault_core::integration::{IntegrationFacts, IntegrationPrincipal, IntegrationRefusal, check_integration};
use vault_core::namespace::Namespace;
use vault_core::organization::OrganizationState;
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

/// When the integration's current token was last used, in milliseconds; or why the integration is not authorized.
pub(super) type Authorization = Result<Option<i64>, IntegrationRefusal>;

/// Sealed document and last use of an integration.
type Evaluated = Option<(Vec<u8>, Option<i64>)>;

/// An activation, if it is the integration's.
#[auto_type(no_type_alias)]
pub(super) fn own_activation(organization: IdBytes, integration: IdBytes, activation: IdBytes) -> _ {
    activations::table
        .filter(activations::organization_id.eq(organization))
        .filter(activations::id.eq(activation))
        .filter(activations::integration_id.eq(integration))
}

#[auto_type(no_type_alias)]
fn evaluated_of(organization: IdBytes, kind: &'static str, integration: IdBytes) -> _ {
    entities::table
        .filter(entities::organization_id.eq(organization))
        .filter(entities::kind.eq(kind))
        .filter(entities::id.eq(integration))
        .select((entities::sealed, entities::last_used_at))
}

/// Authorizes an integration for a transaction that only reads, in one snapshot.
pub(super) async fn authorize(
    tx: &Tx<'_>,
    principal: &IntegrationPrincipal,
    now: Timestamp,
) -> Result<Authorization, Failure> {
    let row = evaluated_of(principal.organization.stored(), Kind::Integration.as_str(), principal.integration.stored());
    authorize_by(tx, tx.first(locked(row, Unlocked)), principal, now).await
}

/// Authorizes an integration for a write and locks its row. A transaction that changes the integration, disables its
/// organization or freezes a namespace locks the same row, so it runs entirely before or after this one. No row is locked that
/// integrations share: if one after the other locked it, a transaction that is to stop them would never get the lock.
pub(super) async fn authorize_and_lock(
    tx: &Tx<'_>,
    principal: &IntegrationPrincipal,
    now: Timestamp,
) -> Result<Authorization, Failure> {
    let row = evaluated_of(principal.organization.stored(), Kind::Integration.as_str(), principal.integration.stored());
    authorize_by(tx, tx.first(locked(row, Update)), principal, now).await
}

/// Authorizes like [`authorize_and_lock`], for a write to one activation. Such transactions share the lock of the row, so that
/// those of one integration are not queued. Only an active activation gets the shared lock, and each started with a transaction
/// that locked the row: a transaction that is to stop them prevents further ones, and waits for the active ones only.
pub(super) async fn authorize_and_share(
    tx: &Tx<'_>,
    principal: &IntegrationPrincipal,
    activation: ActivationId,
    now: Timestamp,
) -> Result<Authorization, Failure> {
    let (organization, integration) = (principal.organization.stored(), principal.integration.stored());
    let is_active = activations::expires_at.gt(now.as_millis());
    let active = own_activation(organization, integration, activation.stored()).filter(is_active);
    let row = locked(evaluated_of(organization, Kind::Integration.as_str(), integration).filter(exists(active)), Share);
    let (evaluated, state) = read_both(tx, tx.first(row), principal).await?;
    match evaluated {
        None => authorize(tx, principal, now).await,
        evaluated => decide(principal, evaluated, state, now),
    }
}

/// Returns whether a namespace is frozen. An operation that freezes locks every integration of the organization first: a namespace that
/// is not frozen stays so while another transaction has locked one of them.
pub(super) fn is_frozen<'t>(tx: &'t Tx<'_>, organization: IdBytes, namespace: &Namespace) -> Reply<'t, bool> {
    let frozen = lookup_of(organization, Index::FrozenNamespace.as_str(), namespace.as_str().to_owned());
    tx.one(select(exists(frozen)))
}

type State = Option<Column<OrganizationState>>;

/// Reads an integration's row, and then its organization, in one exchange with the server.
async fn read_both(
    tx: &Tx<'_>,
    row: Reply<'_, Evaluated>,
    principal: &IntegrationPrincipal,
) -> Result<(Evaluated, State), Failure> {
    Ok(try_join!(row, tx.first(state_of(principal.organization.stored())))?)
}

async fn authorize_by(
    tx: &Tx<'_>,
    row: Reply<'_, Evaluated>,
    principal: &IntegrationPrincipal,
    now: Timestamp,
) -> Result<Authorization, Failure> {
    let (evaluated, state) = read_both(tx, row, principal).await?;
    decide(principal, evaluated, state, now)
}

fn decide(
    principal: &IntegrationPrincipal,
    evaluated: Evaluated,
    state: State,
    now: Timestamp,
) -> Result<Authorization, Failure> {
    let (sealed, last_used_at) = evaluated.unzip();
    let facts = IntegrationFacts {
        sealed: sealed.map(Blob::from_bytes),
        organization_active: is_active_organization(principal.organization, state)?,
    };
    Ok(check_integration(principal, &facts, now).map(|()| last_used_at.flatten()))
}
