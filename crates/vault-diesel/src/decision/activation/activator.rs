//! Whether an integration may act: asked first by everything that it does, in its own transaction.

use super::super::authorize::judge_organization;
use super::super::backend::{Connection, RunQuery, for_share, for_update, together};
use super::super::integration::row::row_of;
use crate::failure::Failure;
use crate::schema::{integrations, organizations};
use crate::stored::{Read, ToIdText as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::integration::{IntegrationFacts, IntegrationPrincipal, IntegrationRefusal, judge_integration};
use vault_core::organization::OrganizationState;
use vault_core::time::Timestamp;

/// When the integration's current token was last used, in milliseconds; or why the integration may not act.
pub(crate) type Judgement = Result<Option<i64>, IntegrationRefusal>;

macro_rules! organization_of {
    ($principal:expr) => {
        organizations::table.filter(organizations::id.eq($principal.organization.text())).select(organizations::state)
    };
}

macro_rules! judged_of {
    ($principal:expr) => {
        row_of!($principal.organization, $principal.integration)
            .select((integrations::digest, integrations::last_used_at))
    };
}

type State = Option<Read<OrganizationState>>;
type Judged = Option<(Read<Digest>, Option<i64>)>;

/// Judges an integration by its row, and then by its organization.
macro_rules! judge_by {
    ($row:expr, $connection:expr, $principal:expr, $now:expr) => {{
        let (row, organization) = ($row, organization_of!($principal));
        let (judged, state): (Judged, State) =
            together!($connection, |own| row.get_result(own).await.optional(), |own| organization
                .get_result(own)
                .await
                .optional())?;
        conclude($principal, state, judged, $now)
    }};
}

/// Judges an integration for a decision that only reads, in one snapshot.
pub(crate) async fn judge(
    connection: &mut Connection,
    principal: &IntegrationPrincipal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    judge_by!(judged_of!(principal), connection, principal, now)
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
    judge_by!(for_update!(judged_of!(principal)), connection, principal, now)
}

/// As [`judge_and_take`], but decisions of this kind share the row. Each must follow one that took it: so there are few of
/// them at any time, and those who are to stop them get the row.
pub(crate) async fn judge_and_hold(
    connection: &mut Connection,
    principal: &IntegrationPrincipal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    judge_by!(for_share!(judged_of!(principal)), connection, principal, now)
}

fn conclude(
    principal: &IntegrationPrincipal,
    state: State,
    judged: Judged,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    let (digest, last_used_at) = judged.unzip();
    let facts = IntegrationFacts {
        digest: digest.map(|digest| digest.sound("integrations", &principal.integration, "digest")).transpose()?,
        organization_active: judge_organization(principal.organization, state)?.is_ok(),
    };
    Ok(judge_integration(principal, facts, now).map(|()| last_used_at.flatten()))
}
