//! The rows of an integration: its own, and those of its tokens.

use super::super::backend::{Connection, RunQuery, for_update, narrow};
use crate::failure::Failure;
use crate::schema::{activations, integration_tokens, integrations};
use crate::stored::{Read, ToIdText as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::id::{IntegrationId, OrganizationId};
use vault_core::integration::{
    EarlierToken, Integration, IntegrationName, IntegrationState, NamespacePatterns, StoredIntegration,
};
use vault_core::time::Timestamp;

/// The version of an integration when it is made.
const FIRST_VERSION: i64 = 1;

pub(crate) type IntegrationRow = (
    Read<IntegrationId>,
    Read<OrganizationId>,
    Read<IntegrationName>,
    Read<NamespacePatterns>,
    Option<i64>,
    Read<IntegrationState>,
    Read<Digest>,
    Option<Read<Digest>>,
    Option<i64>,
    i64,
    Read<Digest>,
    i64,
);

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
            integrations::earlier_token,
            integrations::earlier_until,
            integrations::created_at,
            integrations::digest,
            integrations::version,
        )
    };
}

/// The row of an integration.
macro_rules! row_of {
    ($organization:expr, $integration:expr) => {
        integrations::table
            .filter(integrations::organization_id.eq($organization.text()))
            .filter(integrations::id.eq($integration.text()))
    };
}

pub(crate) use {columns, row_of};

pub(crate) fn decode(row: IntegrationRow) -> Result<StoredIntegration, Failure> {
    const TABLE: &str = "integrations";
    let (id, organization, name, patterns, expires_at, state, token, earlier, until, created_at, digest, version) = row;
    let id = id.sound(TABLE, &"unknown", "id")?;
    let earlier = match (earlier, until) {
        (Some(earlier), Some(until)) => Some(EarlierToken {
            digest: earlier.sound(TABLE, &id, "earlier_token")?,
            until: Timestamp::from_millis(until),
        }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return Err(Failure::damaged(TABLE, id.to_string(), "earlier_until")),
    };
    let integration = Integration {
        id,
        organization: organization.sound(TABLE, &id, "organization_id")?,
        name: name.sound(TABLE, &id, "name")?,
        patterns: patterns.sound(TABLE, &id, "patterns")?,
        expires_at: expires_at.map(Timestamp::from_millis),
        state: state.sound(TABLE, &id, "state")?,
        token: token.sound(TABLE, &id, "token")?,
        earlier,
        created_at: Timestamp::from_millis(created_at),
    };
    Ok(StoredIntegration { integration, digest: digest.sound(TABLE, &id, "digest")?, version })
}

/// Takes an integration, to change it: its version, if it is there.
pub(crate) async fn take(
    connection: &mut Connection,
    organization: OrganizationId,
    integration: IntegrationId,
) -> Result<Option<i64>, Failure> {
    let row = row_of!(organization, integration).select(integrations::version);
    Ok(for_update!(row).get_result(connection).await.optional()?)
}

/// Takes all integrations of an organization. Whoever is to stop what is done with them then finds none in between.
pub(crate) async fn take_all(connection: &mut Connection, organization: OrganizationId) -> Result<(), Failure> {
    let _integrations: Vec<String> = for_update!(
        integrations::table
            .filter(integrations::organization_id.eq(organization.text()))
            .order(integrations::id)
            .select(integrations::id)
    )
    .load(connection)
    .await?;
    Ok(())
}

/// Stores an integration with its tokens. `false`: its name is taken.
pub(crate) async fn insert(
    connection: &mut Connection,
    integration: &Integration,
    digest: &Digest,
) -> Result<bool, Failure> {
    let made = diesel::insert_into(integrations::table)
        .values((
            integrations::organization_id.eq(integration.organization.text()),
            integrations::id.eq(integration.id.text()),
            integrations::name.eq(integration.name.as_str()),
            integrations::name_key.eq(integration.name.uniqueness_key()),
            integrations::patterns.eq(integration.patterns.to_stored()),
            integrations::expires_at.eq(integration.expires_at.map(|at| at.as_millis())),
            integrations::state.eq(integration.state.as_str()),
            integrations::token.eq(integration.token.as_bytes().as_slice()),
            integrations::earlier_token
                .eq(integration.earlier.as_ref().map(|earlier| earlier.digest.as_bytes().as_slice())),
            integrations::earlier_until.eq(integration.earlier.map(|earlier| earlier.until.as_millis())),
            integrations::digest.eq(digest.as_bytes().as_slice()),
            integrations::version.eq(FIRST_VERSION),
            integrations::created_at.eq(integration.created_at.as_millis()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if made == 1 {
        insert_tokens(connection, integration.organization, integration.id, integration).await?;
    }
    Ok(made == 1)
}

/// Replaces all of an integration but id, organization, name and time of making; its version becomes `version`.
pub(crate) async fn replace(
    connection: &mut Connection,
    (organization, id): (OrganizationId, IntegrationId),
    integration: &Integration,
    digest: &Digest,
    version: i64,
) -> Result<(), Failure> {
    diesel::update(row_of!(organization, id))
        .set((
            integrations::patterns.eq(integration.patterns.to_stored()),
            integrations::expires_at.eq(integration.expires_at.map(|at| at.as_millis())),
            integrations::state.eq(integration.state.as_str()),
            integrations::token.eq(integration.token.as_bytes().as_slice()),
            integrations::earlier_token
                .eq(integration.earlier.as_ref().map(|earlier| earlier.digest.as_bytes().as_slice())),
            integrations::earlier_until.eq(integration.earlier.map(|earlier| earlier.until.as_millis())),
            integrations::digest.eq(digest.as_bytes().as_slice()),
            integrations::version.eq(version),
        ))
        .execute(connection)
        .await?;
    remove_tokens(connection, organization, id).await?;
    insert_tokens(connection, organization, id, integration).await
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
            .filter(activations::organization_id.eq(organization.text()))
            .filter(narrow!(activations::integration_id.eq(integration.text()))),
    )
    .execute(connection)
    .await?;
    diesel::delete(row_of!(organization, integration)).execute(connection).await?;
    Ok(())
}

async fn insert_tokens(
    connection: &mut Connection,
    organization: OrganizationId,
    id: IntegrationId,
    integration: &Integration,
) -> Result<(), Failure> {
    let earlier = integration.earlier.map(|earlier| earlier.digest);
    for token in [integration.token].into_iter().chain(earlier) {
        diesel::insert_into(integration_tokens::table)
            .values((
                integration_tokens::token.eq(token.as_bytes().as_slice()),
                integration_tokens::organization_id.eq(organization.text()),
                integration_tokens::integration_id.eq(id.text()),
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
            .filter(integration_tokens::organization_id.eq(organization.text()))
            .filter(integration_tokens::integration_id.eq(integration.text())),
    )
    .execute(connection)
    .await?;
    Ok(())
}
