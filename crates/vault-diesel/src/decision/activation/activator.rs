//! Whether an integration may act: asked first by everything that it does, in its own transaction.

use super::super::backend::{Connection, RunQuery, for_share, for_update, pipeline};
use super::super::integration::row::row_of;
use crate::failure::Failure;
use crate::schema::{activations, integrations, organizations};
use crate::stored::{Column, StoredId as _};
use crate::transaction::authorize::is_active_organization;
use diesel::dsl::exists;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::id::ActivationId;
use vault_core::integration::{IntegrationFacts, IntegrationPrincipal, IntegrationRefusal, judge_integration};
use vault_core::organization::OrganizationState;
use vault_core::time::Timestamp;

/// When the integration's current token was last used, in milliseconds; or why the integration may not act.
pub(crate) type Judgement = Result<Option<i64>, IntegrationRefusal>;

macro_rules! organization_of {
    ($principal:expr) => {
        organizations::table.filter(organizations::id.eq($principal.organization.stored())).select(organizations::state)
    };
}

macro_rules! judged_of {
    ($principal:expr) => {
        row_of!($principal.organization, $principal.integration)
            .select((integrations::digest, integrations::last_used_at))
    };
}

type State = Option<Column<OrganizationState>>;
type Judged = Option<(Column<Digest>, Option<i64>)>;

/// The activation, if it is the integration's.
macro_rules! own_activation {
    ($principal:expr, $activation:expr) => {
        activations::table
            .filter(activations::organization_id.eq($principal.organization.stored()))
            .filter(activations::id.eq($activation.stored()))
            .filter(activations::integration_id.eq($principal.integration.stored()))
    };
}

pub(crate) use own_activation;

/// Reads an integration's row, and then its organization.
macro_rules! read_both {
    ($row:expr, $connection:expr, $principal:expr) => {{
        let (row, organization) = ($row, organization_of!($principal));
        let both: (Judged, State) =
            pipeline!($connection, |own| row.get_result(own).await.optional(), |own| organization
                .get_result(own)
                .await
                .optional())?;
        both
    }};
}

/// Judges an integration for a decision that only reads, in one snapshot.
pub(crate) async fn judge(
    connection: &mut Connection,
    principal: &IntegrationPrincipal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    conclude(principal, read_both!(judged_of!(principal), connection, principal), now)
}

/// Judges an integration for a decision that writes, and takes its row, which then stands for all that is judged:
/// whoever changes the integration, closes its organization or freezes a namespace takes that row too and so comes
/// before or after. Nothing is held that integrations share: rows that are held without end, by one and then by
/// another, would never be had by those who are to stop them.
pub(crate) async fn judge_and_take(
    connection: &mut Connection,
    principal: &IntegrationPrincipal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    conclude(principal, read_both!(for_update!(judged_of!(principal)), connection, principal), now)
}

/// As [`judge_and_take`], for what concerns one activation: such decisions share the row, so that those of one integration do
/// not wait for each other. Only a live activation lets them hold it, and each began with a decision that took the row: whoever
/// is to stop them keeps further ones from beginning, and waits for no more of them than live.
pub(crate) async fn judge_and_share(
    connection: &mut Connection,
    principal: &IntegrationPrincipal,
    activation: ActivationId,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    let live = own_activation!(principal, activation).filter(activations::expires_at.gt(now.as_millis()));
    let row = for_share!(judged_of!(principal).filter(exists(live)));
    match read_both!(row, connection, principal) {
        (None, _) => judge(connection, principal, now).await,
        both => conclude(principal, both, now),
    }
}

fn conclude(
    principal: &IntegrationPrincipal,
    (judged, state): (Judged, State),
    now: Timestamp,
) -> Result<Judgement, Failure> {
    let (digest, last_used_at) = judged.unzip();
    let facts = IntegrationFacts {
        digest: digest.map(|digest| digest.decode("integrations", &principal.integration, "digest")).transpose()?,
        organization_active: is_active_organization(principal.organization, state)?,
    };
    Ok(judge_integration(principal, facts, now).map(|()| last_used_at.flatten()))
}
