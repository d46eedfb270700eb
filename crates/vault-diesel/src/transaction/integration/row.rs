//! The rows of an integration: its own, and those of its tokens.

use crate::db::{Db, Reply, Tx, Update, locked, narrow};
use crate::failure::Failure;
use crate::schema::{activations, integration_tokens, integrations};
use crate::stored::{CodeColumns, Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    AsChangeset, ExpressionMethods as _, Insertable, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use vault_core::digest::{Digest, RowMac};
use vault_core::id::{IntegrationId, OrganizationId};
use vault_core::identity::{Trusts, audience_look_up};
use vault_core::integration::{
    Integration, IntegrationName, IntegrationState, ManagedBy, NamespacePatterns, PreviousToken, StoredIntegration,
};
use vault_core::time::Timestamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = integrations, check_for_backend(Db))]
pub(crate) struct IntegrationRow {
    id: Column<IntegrationId>,
    organization_id: Column<OrganizationId>,
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
    #[diesel(select_expression = (integrations::digest, integrations::digest_key_id))]
    digest: CodeColumns,
    version: i64,
    last_used_at: Option<i64>,
}

/// What a change of an integration replaces.
#[derive(AsChangeset, Insertable)]
#[diesel(table_name = integrations, treat_none_as_null = true, treat_none_as_default_value = false)]
struct Replaced<'a> {
    patterns: String,
    expires_at: Option<i64>,
    state: &'a str,
    token: &'a [u8],
    previous_token: Option<&'a [u8]>,
    previous_until: Option<i64>,
    trusts: String,
    managed_by: Option<&'a str>,
    digest: &'a [u8],
    digest_key_id: IdBytes,
    version: i64,
}

impl<'a> Replaced<'a> {
    fn of(integration: &'a Integration, digest: &'a RowMac) -> Self {
        let previous = integration.previous.as_ref();
        Self {
            patterns: integration.patterns.to_stored(),
            expires_at: integration.expires_at.map(Timestamp::as_millis),
            state: integration.state.as_str(),
            token: integration.token.as_bytes(),
            previous_token: previous.map(|previous| previous.digest.as_bytes().as_slice()),
            previous_until: previous.map(|previous| previous.until.as_millis()),
            trusts: integration.trusts.to_stored(),
            managed_by: integration.managed_by.as_ref().map(ManagedBy::as_str),
            digest: digest.code.as_bytes(),
            digest_key_id: digest.key.stored(),
            version: integration.version,
        }
    }
}

#[derive(Insertable)]
#[diesel(table_name = integration_tokens, treat_none_as_default_value = false)]
struct NewToken<'a> {
    token: &'a [u8],
    organization_id: IdBytes,
    integration_id: IdBytes,
}

#[auto_type(no_type_alias)]
pub(crate) fn integration_of(organization: IdBytes, integration: IdBytes) -> _ {
    integrations::table.filter(integrations::organization_id.eq(organization)).filter(integrations::id.eq(integration))
}

#[auto_type(no_type_alias)]
fn tokens_of(organization: IdBytes, integration: IdBytes) -> _ {
    integration_tokens::table
        .filter(integration_tokens::organization_id.eq(organization))
        .filter(integration_tokens::integration_id.eq(integration))
}

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
            organization: self.organization_id.decode(TABLE, &id, "organization_id")?,
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

/// Locks an integration for a change. Returns its version and its token, if it exists.
pub(crate) async fn lock(
    tx: &Tx<'_>,
    organization: OrganizationId,
    integration: IntegrationId,
) -> Result<Option<(i64, Digest)>, Failure> {
    let row = integration_of(organization.stored(), integration.stored());
    let row = tx.first(locked(row.select((integrations::version, integrations::token)), Update)).await?;
    let Some((version, token)): Option<(i64, Column<Digest>)> = row else { return Ok(None) };
    Ok(Some((version, token.decode("integrations", &integration, "token")?)))
}

/// Locks all integrations of an organization, so that their transactions run entirely before or after this one. A damaged
/// integration is left out: it activates nothing, and must not prevent a freeze.
pub(crate) async fn lock_all(tx: &Tx<'_>, organization: OrganizationId) -> Result<Vec<Integration>, Failure> {
    let all = integrations::table
        .filter(integrations::organization_id.eq(organization.stored()))
        .order(integrations::id)
        .select(IntegrationRow::as_select());
    let rows = tx.load(locked(all, Update)).await?;
    Ok(rows.into_iter().filter_map(|row| Some(row.decode().ok()?.integration)).collect())
}

/// Counts the integrations of an organization.
pub(crate) fn count<'t>(tx: &'t Tx<'_>, organization: OrganizationId) -> Reply<'t, i64> {
    tx.one(integrations::table.filter(integrations::organization_id.eq(organization.stored())).count())
}

/// Stores an integration with its tokens. Returns `false` if its name is in use.
pub(crate) async fn insert(tx: &Tx<'_>, integration: &Integration, digest: &RowMac) -> Result<bool, Failure> {
    let new = diesel::insert_into(integrations::table)
        .values((
            integrations::organization_id.eq(integration.organization.stored()),
            integrations::id.eq(integration.id.stored()),
            integrations::name.eq(integration.name.as_str()),
            integrations::name_key.eq(integration.name.uniqueness_key()),
            integrations::created_at.eq(integration.created_at.as_millis()),
            Replaced::of(integration, digest),
        ))
        .on_conflict_do_nothing();
    if tx.execute(new).await? == 0 {
        return Ok(false);
    }
    insert_tokens(tx, integration).await?;
    Ok(true)
}

/// Replaces all of an integration but its id, organization, name and creation time. Its last use is kept only if its token,
/// which was `token`, is unchanged.
pub(crate) async fn replace(
    tx: &Tx<'_>,
    integration: &Integration,
    digest: &RowMac,
    token: Digest,
) -> Result<(), Failure> {
    let (organization, id) = (integration.organization.stored(), integration.id.stored());
    let unused = (token != integration.token).then_some(integrations::last_used_at.eq(None::<i64>));
    // One statement: PostgreSQL checks the foreign key of a row again that its transaction has changed before. It would lock
    // the organization after the integration, against the order of locks.
    let replaced = (Replaced::of(integration, digest), unused);
    tx.execute(diesel::update(integration_of(organization, id)).set(replaced)).await?;
    tx.execute(diesel::delete(tokens_of(organization, id))).await?;
    insert_tokens(tx, integration).await
}

/// Removes an integration with its tokens and activations.
pub(crate) async fn remove(
    tx: &Tx<'_>,
    organization: OrganizationId,
    integration: IntegrationId,
) -> Result<(), Failure> {
    let (organization, integration) = (organization.stored(), integration.stored());
    tx.execute(diesel::delete(tokens_of(organization, integration))).await?;
    let activations = activations::table
        .filter(activations::organization_id.eq(organization))
        .filter(narrow(activations::integration_id.eq(integration)));
    tx.execute(diesel::delete(activations)).await?;
    tx.execute(diesel::delete(integration_of(organization, integration))).await?;
    Ok(())
}

async fn insert_tokens(tx: &Tx<'_>, integration: &Integration) -> Result<(), Failure> {
    let previous = integration.previous.map(|previous| previous.digest);
    let tokens: Vec<Digest> =
        [integration.token, audience_look_up(integration.id)].into_iter().chain(previous).collect();
    let rows = tokens.iter().map(|token| NewToken {
        token: token.as_bytes(),
        organization_id: integration.organization.stored(),
        integration_id: integration.id.stored(),
    });
    tx.insert(integration_tokens::table, rows).await?;
    Ok(())
}
