//! Finding integrations.

use super::super::Read;
use super::super::authorize::authorize;
use super::row::{IntegrationRow, integration_of};
use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::{integration_tokens, integrations, organizations};
use crate::stored::{AnyId, BEFORE_ALL_IDS, Column, IdBytes, StoredId as _};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _, SelectableHelper as _,
};
use vault_core::digest::Digest;
use vault_core::id::OrganizationId;
use vault_core::integration::StoredIntegration;
use vault_core::organization::OrganizationState;
use vault_core::port::{Find, FoundIntegration, IntegrationKey, List, NamePosition};
use vault_core::principal::{Denial, Principal, Scope};

impl Read for Find<IntegrationKey> {
    type Outcome = Option<StoredIntegration>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<StoredIntegration>, Failure> {
        authorize(tx, &self.principal, self.now).await?;
        if !self.principal.reaches(self.of) {
            return Ok(None);
        }
        let row = match &self.key {
            IntegrationKey::Id(id) => {
                tx.first(integration_of(self.of.stored(), id.stored()).select(IntegrationRow::as_select())).await?
            }
            IntegrationKey::Name(name) => {
                let named = integrations::table
                    .filter(integrations::organization_id.eq(self.of.stored()))
                    .filter(integrations::name_key.eq(name.uniqueness_key()));
                tx.first(named.select(IntegrationRow::as_select())).await?
            }
        };
        row.map(IntegrationRow::decode).transpose()
    }
}

/// The integration of a token.
pub(crate) struct FindByToken(pub(crate) Digest);

impl Read for FindByToken {
    type Outcome = Option<FoundIntegration>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<FoundIntegration>, Failure> {
        // Two statements: the integration may be stored on another node than its token. If the integration gets another token
        // in between, its row is found and does not accept this token.
        let place = integration_tokens::table
            .filter(integration_tokens::token.eq(self.0.as_bytes().as_slice()))
            .select((integration_tokens::organization_id, integration_tokens::integration_id));
        let Some((organization, integration)) = tx.first::<(AnyId, AnyId), _>(place).await? else { return Ok(None) };
        let row = integrations::table
            .inner_join(organizations::table.on(organizations::id.eq(integrations::organization_id)))
            .filter(integrations::organization_id.eq(organization))
            .filter(integrations::id.eq(integration))
            .select((IntegrationRow::as_select(), organizations::state));
        let row: Option<(IntegrationRow, Column<OrganizationState>)> = tx.first(row).await?;
        let Some((row, state)) = row else { return Ok(None) };
        let stored = row.decode()?;
        let state = state.decode("organizations", &stored.integration.organization, "state")?;
        Ok(Some(FoundIntegration { stored, organization_active: state == OrganizationState::Active }))
    }
}

/// The integrations of an organization, or of all, in the order of their names.
pub(crate) struct ListIntegrations(pub(crate) List<NamePosition>);

impl Read for ListIntegrations {
    type Outcome = Vec<StoredIntegration>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<StoredIntegration>, Failure> {
        let query = &self.0;
        let Range { only, organization: after, name } = range(&query.principal, query.of, query.after.as_ref())?;
        authorize(tx, &query.principal, query.now).await?;
        let rows = match only {
            Some(organization) => {
                let own = integrations::table
                    .filter(integrations::organization_id.eq(organization.stored()))
                    .filter(integrations::name_key.gt(name))
                    .order(integrations::name_key);
                tx.page(own.select(IntegrationRow::as_select()), query.limit).await?
            }
            None => {
                let same = integrations::organization_id.eq(after).and(integrations::name_key.gt(name));
                let all = integrations::table
                    .filter(integrations::organization_id.gt(after).or(same))
                    .order((integrations::organization_id, integrations::name_key));
                tx.page(all.select(IntegrationRow::as_select()), query.limit).await?
            }
        };
        rows.into_iter().map(IntegrationRow::decode).collect()
    }
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
