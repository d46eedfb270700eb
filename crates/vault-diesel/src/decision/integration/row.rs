//! The rows of an integration: its own, and those of its tokens.

use super::super::backend::{Connection, RunQuery, for_update, narrow};
use crate::failure::Failure;
use crate::schema::{activations, integration_tokens, integrations};
use crate::stored::{CodeColumns, Column, StoredId as _};
use crate::update::update;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable};
use vault_core::digest::{Digest, RowMac};
use vault_core::id::{IntegrationId, OrganizationId};
use vault_core::identity::{Trusts, audience_look_up};
use vault_core::integration::{
    Integration, IntegrationName, IntegrationState, ManagedBy, NamespacePatterns, PreviousToken, StoredIntegration,
};
use vault_core::time::Timestamp;

/// A row of `integrations`, as [`columns`] selects it.
#[derive(Queryable)]
pub(crate) struct IntegrationRow {
    id: Column<IntegrationId>,
    organization: Column<OrganizationId>,
    name: Column<IntegrationName>,
    patterns: Column<NamespacePatterns>,
    expires_at: Option<i64>,
    state: Column<IntegrationState>,
    token: Column<Digest>,
    previous_token: Option<Column<Digest>>,
    previous_until: Option<i64>,
    trusts: Column<Trusts>,
    managed_by: Option<Column<ManagedBy>>,
    created_at: i64,
    digest: CodeColumns,
    version: i64,
    last_used_at: Option<i64>,
}

macro_rules! columns {
    () => {
        (
            integrations::id,
            integrations::organization_id,
            integrations::name,
            integrations::patterns,
            integrations::expires_at,
            integrations::state,
            integrations::token,
            integrations::previous_token,
            integrations::previous_until,
            integrations::trusts,
            integrations::managed_by,
            integrations::created_at,
            (integrations::digest, integrations::digest_key_id),
            integrations::version,
            integrations::last_used_at,
        )
    };
}

/// The row of an integration.
macro_rules! row_of {
    ($organization:expr, $integration:expr) => {
        integrations::table
            .filter(integrations::organization_id.eq($organization.stored()))
            .filter(integrations::id.eq($integration.stored()))
    };
}

pub(crate) use {columns, row_of};

impl IntegrationRow {
    pub(crate) fn decode(self) -> Result<StoredIntegration, Failure> {
        const TABLE: &str = "integrations";
        let id = self.id.decode(TABLE, &"unknown", "id")?;
        let previous = match (self.previous_token, self.previous_until) {
            (Some(token), Some(until)) => Some(PreviousToken {
                digest: token.decode(TABLE, &id, "previous_token")?,
                until: Timestamp::from_millis(until),
            }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(Failure::damaged(TABLE, id.to_string(), "previous_until")),
        };
        let integration = Integration {
            id,
            organization: self.organization.decode(TABLE, &id, "organization_id")?,
            name: self.name.decode(TABLE, &id, "name")?,
            patterns: self.patterns.decode(TABLE, &id, "patterns")?,
            expires_at: self.expires_at.map(Timestamp::from_millis),
            state: self.state.decode(TABLE, &id, "state")?,
            token: self.token.decode(TABLE, &id, "token")?,
            previous,
            trusts: self.trusts.decode(TABLE, &id, "trusts")?,
            managed_by: self.managed_by.map(|set| set.decode(TABLE, &id, "managed_by")).transpose()?,
            version: self.version,
            created_at: Timestamp::from_millis(self.created_at),
        };
        let digest = self.digest.decode(TABLE, &id, "digest")?;
        Ok(StoredIntegration { integration, digest, last_used_at: self.last_used_at.map(Timestamp::from_millis) })
    }
}

/// Takes an integration, to change it: its version and its token, if it exists.
pub(crate) async fn take(
    connection: &mut Connection,
    organization: OrganizationId,
    integration: IntegrationId,
) -> Result<Option<(i64, Digest)>, Failure> {
    let row = row_of!(organization, integration).select((integrations::version, integrations::token));
    let taken: Option<(i64, Column<Digest>)> = for_update!(row).get_result(connection).await.optional()?;
    let sound =
        |(version, token): (i64, Column<Digest>)| Ok((version, token.decode("integrations", &integration, "token")?));
    taken.map(sound).transpose()
}

/// Takes all integrations of an organization: what they do is decided before or after. A damaged one is left out, since it
/// activates nothing and must not stop what is to stop it.
pub(crate) async fn take_all(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<Vec<Integration>, Failure> {
    let all: Vec<IntegrationRow> = for_update!(
        integrations::table
            .filter(integrations::organization_id.eq(organization.stored()))
            .order(integrations::id)
            .select(columns!())
    )
    .load(connection)
    .await?;
    Ok(all.into_iter().filter_map(|row| Some(row.decode().ok()?.integration)).collect())
}

/// How many integrations an organization has.
pub(crate) async fn count(connection: &mut Connection, organization: OrganizationId) -> Result<i64, Failure> {
    let all = integrations::table.filter(integrations::organization_id.eq(organization.stored()));
    Ok(all.count().get_result(connection).await?)
}

/// Stores an integration with its tokens. `false`: its name is taken.
pub(crate) async fn insert(
    connection: &mut Connection,
    integration: &Integration,
    digest: &RowMac,
) -> Result<bool, Failure> {
    let created = diesel::insert_into(integrations::table)
        .values((
            integrations::organization_id.eq(integration.organization.stored()),
            integrations::id.eq(integration.id.stored()),
            integrations::name.eq(integration.name.as_str()),
            integrations::name_key.eq(integration.name.uniqueness_key()),
            integrations::patterns.eq(integration.patterns.to_stored()),
            integrations::expires_at.eq(integration.expires_at.map(|at| at.as_millis())),
            integrations::state.eq(integration.state.as_str()),
            integrations::token.eq(integration.token.as_bytes().as_slice()),
            integrations::previous_token
                .eq(integration.previous.as_ref().map(|previous| previous.digest.as_bytes().as_slice())),
            integrations::previous_until.eq(integration.previous.map(|previous| previous.until.as_millis())),
            integrations::trusts.eq(integration.trusts.to_stored()),
            integrations::managed_by.eq(integration.managed_by.as_ref().map(ManagedBy::as_str)),
            integrations::digest.eq(digest.code.as_bytes().as_slice()),
            integrations::digest_key_id.eq(digest.key.stored()),
            integrations::version.eq(integration.version),
            integrations::created_at.eq(integration.created_at.as_millis()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if created == 1 {
        insert_tokens(connection, integration).await?;
    }
    Ok(created == 1)
}

/// Replaces all of an integration but id, organization, name and time of creation. Its last use is kept only with its
/// token, which was `token`.
pub(crate) async fn replace(
    connection: &mut Connection,
    integration: &Integration,
    digest: &RowMac,
    token: Digest,
) -> Result<(), Failure> {
    let (organization, id) = (integration.organization, integration.id);
    let unused = (token != integration.token).then_some(integrations::last_used_at.eq(None::<i64>));
    // With one statement: PostgreSQL checks the foreign key of a row that its transaction has changed before, and would
    // take the organization after the integration, against the order of locks.
    update(row_of!(organization, id))
        .set((
            integrations::patterns.eq(integration.patterns.to_stored()),
            integrations::expires_at.eq(integration.expires_at.map(|at| at.as_millis())),
            integrations::state.eq(integration.state.as_str()),
            integrations::token.eq(integration.token.as_bytes().as_slice()),
            integrations::previous_token
                .eq(integration.previous.as_ref().map(|previous| previous.digest.as_bytes().as_slice())),
            integrations::previous_until.eq(integration.previous.map(|previous| previous.until.as_millis())),
            integrations::trusts.eq(integration.trusts.to_stored()),
            integrations::managed_by.eq(integration.managed_by.as_ref().map(ManagedBy::as_str)),
            integrations::digest.eq(digest.code.as_bytes().as_slice()),
            integrations::digest_key_id.eq(digest.key.stored()),
            integrations::version.eq(integration.version),
            unused,
        ))
        .execute(connection)
        .await?;
    remove_tokens(connection, organization, id).await?;
    insert_tokens(connection, integration).await
}

/// Removes an integration with its tokens and activations.
pub(crate) async fn remove(
    connection: &mut Connection,
    organization: OrganizationId,
    integration: IntegrationId,
) -> Result<(), Failure> {
    remove_tokens(connection, organization, integration).await?;
    diesel::delete(
        activations::table
            .filter(activations::organization_id.eq(organization.stored()))
            .filter(narrow!(activations::integration_id.eq(integration.stored()))),
    )
    .execute(connection)
    .await?;
    diesel::delete(row_of!(organization, integration)).execute(connection).await?;
    Ok(())
}

async fn insert_tokens(connection: &mut Connection, integration: &Integration) -> Result<(), Failure> {
    let previous = integration.previous.map(|previous| previous.digest);
    let audience = audience_look_up(integration.id);
    for token in [integration.token, audience].into_iter().chain(previous) {
        diesel::insert_into(integration_tokens::table)
            .values((
                integration_tokens::token.eq(token.as_bytes().as_slice()),
                integration_tokens::organization_id.eq(integration.organization.stored()),
                integration_tokens::integration_id.eq(integration.id.stored()),
            ))
            .execute(connection)
            .await?;
    }
    Ok(())
}

async fn remove_tokens(
    connection: &mut Connection,
    organization: OrganizationId,
    integration: IntegrationId,
) -> Result<(), Failure> {
    diesel::delete(
        integration_tokens::table
            .filter(integration_tokens::organization_id.eq(organization.stored()))
            .filter(integration_tokens::integration_id.eq(integration.stored())),
    )
    .execute(connection)
    .await?;
    Ok(())
}
