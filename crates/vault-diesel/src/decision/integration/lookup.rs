//! Finding integrations.

use super::super::backend::{Connection, RunQuery, load_page};
use super::row::{IntegrationRow, columns, row_of};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{integration_tokens, integrations, organizations};
use crate::stored::{AnyId, BEFORE_ALL_IDS, Column, IdBytes, StoredId as _};
use crate::transaction::authorize::authorize;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _,
};
use vault_core::digest::Digest;
use vault_core::id::OrganizationId;
use vault_core::integration::StoredIntegration;
use vault_core::organization::OrganizationState;
use vault_core::port::{Find, FoundIntegration, IntegrationKey, List, NamePosition};
use vault_core::principal::{Denial, Principal, Scope};

pub(crate) async fn find(
    connection: &mut Connection,
    query: &Find<IntegrationKey>,
) -> Result<Option<StoredIntegration>, Failure> {
    authorize(&connection.tx(), &query.principal, query.now).await?;
    if !query.principal.reaches(query.of) {
        return Ok(None);
    }
    let row: Option<IntegrationRow> = match &query.key {
        IntegrationKey::Id(id) => row_of!(query.of, id).select(columns!()).get_result(connection).await.optional()?,
        IntegrationKey::Name(name) => integrations::table
            .filter(integrations::organization_id.eq(query.of.stored()))
            .filter(integrations::name_key.eq(name.uniqueness_key()))
            .select(columns!())
            .get_result(connection)
            .await
            .optional()?,
    };
    row.map(IntegrationRow::decode).transpose()
}

pub(crate) async fn find_by_token(
    connection: &mut Connection,
    token: &Digest,
) -> Result<Option<FoundIntegration>, Failure> {
    // Two statements: what the token leads to may lie on another machine. If the integration gets another token in between, its
    // row is found, and does not accept this one.
    let place: Option<(AnyId, AnyId)> = integration_tokens::table
        .filter(integration_tokens::token.eq(token.as_bytes().as_slice()))
        .select((integration_tokens::organization_id, integration_tokens::integration_id))
        .get_result(connection)
        .await
        .optional()?;
    let Some((organization, integration)) = place else { return Ok(None) };
    let row: Option<(IntegrationRow, Column<OrganizationState>)> = integrations::table
        .inner_join(organizations::table.on(organizations::id.eq(integrations::organization_id)))
        .filter(integrations::organization_id.eq(organization))
        .filter(integrations::id.eq(integration))
        .select((columns!(), organizations::state))
        .get_result(connection)
        .await
        .optional()?;
    let Some((row, state)) = row else { return Ok(None) };
    let stored = row.decode()?;
    let state = state.decode("organizations", &stored.integration.organization, "state")?;
    Ok(Some(FoundIntegration { stored, organization_active: state == OrganizationState::Active }))
}

pub(crate) async fn list(
    connection: &mut Connection,
    query: &List<NamePosition>,
) -> Result<Vec<StoredIntegration>, Failure> {
    let Range { only, organization: after, name } = range(&query.principal, query.of, query.after.as_ref())?;
    authorize(&connection.tx(), &query.principal, query.now).await?;
    let rows: Vec<IntegrationRow> = match only {
        Some(organization) => {
            let all = integrations::table
                .filter(integrations::organization_id.eq(organization.stored()))
                .filter(integrations::name_key.gt(name))
                .order(integrations::name_key)
                .select(columns!());
            load_page!(all, connection, query.limit).await?
        }
        None => {
            let all = integrations::table
                .filter(
                    integrations::organization_id
                        .gt(after)
                        .or(integrations::organization_id.eq(after).and(integrations::name_key.gt(name))),
                )
                .order((integrations::organization_id, integrations::name_key))
                .select(columns!());
            load_page!(all, connection, query.limit).await?
        }
    };
    rows.into_iter().map(IntegrationRow::decode).collect()
}

/// Where a page of a list by organization and name begins.
pub(crate) struct Range<'a> {
    /// The organization to which the list is confined, if it is.
    pub(crate) only: Option<OrganizationId>,
    /// The organization of the row after which it begins.
    pub(crate) organization: IdBytes,
    /// The name of that row.
    pub(crate) name: &'a str,
}

/// The range of a list that `principal` asks for.
pub(crate) fn range<'a>(
    principal: &Principal,
    scope: Scope,
    after: Option<&'a NamePosition>,
) -> Result<Range<'a>, Failure> {
    if !principal.may_see(scope) {
        return Err(Denial::InsufficientRole.into());
    }
    let only = match scope {
        Scope::One(organization) => Some(organization),
        Scope::All => None,
    };
    // Every name sorts after the empty text.
    let organization = after.map_or(BEFORE_ALL_IDS, |after| after.organization.stored());
    Ok(Range { only, organization, name: after.map_or("", |after| after.name.as_str()) })
}
