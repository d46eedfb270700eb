//! Finding integrations.

use super::super::authorize::{judge, judge_holder};
use super::super::backend::{Connection, RunQuery};
use super::row::{IntegrationRow, columns, decode, row_of};
use crate::failure::Failure;
use crate::schema::{integration_tokens, integrations, organizations};
use crate::stored::{Read, ToIdText as _};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _,
};
use vault_core::digest::Digest;
use vault_core::id::OrganizationId;
use vault_core::integration::StoredIntegration;
use vault_core::organization::OrganizationState;
use vault_core::port::{FindIntegration, IntegrationKey, IntegrationScope, ListIntegrations};
use vault_core::principal::Denial;
use vault_core::time::Timestamp;

pub(crate) async fn find(
    connection: &mut Connection,
    query: &FindIntegration,
) -> Result<Result<Option<StoredIntegration>, Denial>, Failure> {
    if let Err(refusal) = judge(connection, &query.authority, query.now).await? {
        return Ok(Err(refusal));
    }
    if !query.authority.reaches(query.organization) {
        return Ok(Ok(None));
    }
    let row: Option<IntegrationRow> = match &query.key {
        IntegrationKey::Id(id) => {
            row_of!(query.organization, id).select(columns!()).get_result(connection).await.optional()?
        }
        IntegrationKey::Name(name) => integrations::table
            .filter(integrations::organization_id.eq(query.organization.text()))
            .filter(integrations::name_key.eq(name.uniqueness_key()))
            .select(columns!())
            .get_result(connection)
            .await
            .optional()?,
    };
    Ok(Ok(row.map(decode).transpose()?))
}

pub(crate) async fn find_by_token(
    connection: &mut Connection,
    token: &Digest,
) -> Result<Option<StoredIntegration>, Failure> {
    let row: Option<(IntegrationRow, Read<OrganizationState>)> = integration_tokens::table
        .inner_join(
            integrations::table.on(integrations::organization_id
                .eq(integration_tokens::organization_id)
                .and(integrations::id.eq(integration_tokens::integration_id))),
        )
        .inner_join(organizations::table.on(organizations::id.eq(integrations::organization_id)))
        .filter(integration_tokens::token.eq(token.as_bytes().as_slice()))
        .select((columns!(), organizations::state))
        .get_result(connection)
        .await
        .optional()?;
    let Some((row, state)) = row else { return Ok(None) };
    let stored = decode(row)?;
    let state = state.sound("organizations", &stored.integration.organization, "state")?;
    Ok((state == OrganizationState::Active).then_some(stored))
}

pub(crate) async fn list(
    connection: &mut Connection,
    query: &ListIntegrations,
) -> Result<Result<Vec<StoredIntegration>, Denial>, Failure> {
    let organization = match confine(connection, &query.scope, query.now).await? {
        Ok(organization) => organization,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let all = integrations::table.order((integrations::organization_id, integrations::name_key)).select(columns!());
    let rows: Vec<IntegrationRow> = match organization {
        Some(id) => all.filter(integrations::organization_id.eq(id.text())).load(connection).await?,
        None => all.load(connection).await?,
    };
    Ok(Ok(rows.into_iter().map(decode).collect::<Result<_, _>>()?))
}

/// Judges by whose order something is listed: the organization to which that confines the list, if it does.
pub(crate) async fn confine(
    connection: &mut Connection,
    scope: &IntegrationScope,
    now: Timestamp,
) -> Result<Result<Option<OrganizationId>, Denial>, Failure> {
    Ok(match scope {
        IntegrationScope::Everywhere => Ok(None),
        IntegrationScope::Organization(organization) => Ok(Some(*organization)),
        IntegrationScope::Session(session) => {
            judge_holder(connection, session, now).await?.map(|()| Some(session.organization))
        }
    })
}
