//! Integrations.

use super::super::authorize::judge_and_hold;
use super::super::backend::{Connection, RunQuery, Store, for_update};
use super::super::{Decided, Verdict, audit};
use super::lookup as integration_lookup;
use super::row as integration_row;
use crate::failure::Failure;
use crate::schema::organizations;
use crate::stored::ToIdText as _;
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::id::OrganizationId;
use vault_core::integration::StoredIntegration;
use vault_core::port::{
    ChangeIntegration, ChangeIntegrationOutcome, CreateIntegration, CreateIntegrationOutcome, FindIntegration,
    IntegrationChange, IntegrationRepository, ListIntegrations, StoreError,
};
use vault_core::principal::Denial;

#[async_trait]
impl IntegrationRepository for Store {
    async fn create_integration(&self, command: CreateIntegration) -> Result<CreateIntegrationOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(create(connection, command))).await
    }

    async fn find_integration(
        &self,
        query: FindIntegration,
    ) -> Result<Result<Option<StoredIntegration>, Denial>, StoreError> {
        self.read(query, |connection, query| Box::pin(integration_lookup::find(connection, query))).await
    }

    async fn find_integration_by_token(&self, token: Digest) -> Result<Option<StoredIntegration>, StoreError> {
        self.read(token, |connection, token| Box::pin(integration_lookup::find_by_token(connection, token))).await
    }

    async fn list_integrations(
        &self,
        query: ListIntegrations,
    ) -> Result<Result<Vec<StoredIntegration>, Denial>, StoreError> {
        self.read(query, |connection, query| Box::pin(integration_lookup::list(connection, query))).await
    }

    async fn change_integration(&self, command: ChangeIntegration) -> Result<ChangeIntegrationOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(change(connection, command))).await
    }
}

async fn create(connection: &mut Connection, command: &CreateIntegration) -> Decided<CreateIntegrationOutcome> {
    let CreateIntegration { authority, integration, digest, now, audit: entry } = command;
    // Before the session is judged, which holds the organization too: to hold it first and take it then would have
    // two such decisions wait for each other.
    let there =
        authority.reaches(integration.organization) && take_organization(connection, integration.organization).await?;
    if let Err(refusal) = judge_and_hold(connection, authority, *now).await? {
        return Ok(Verdict::Undo(CreateIntegrationOutcome::Refused(refusal)));
    }
    if !there {
        return Ok(Verdict::Undo(CreateIntegrationOutcome::NoOrganization));
    }
    if !integration_row::insert(connection, integration, digest).await? {
        return Ok(Verdict::Undo(CreateIntegrationOutcome::NameTaken));
    }
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(CreateIntegrationOutcome::Created))
}

/// Takes an organization. Whoever takes all of its integrations, to stop them, holds it: so there is none that is made
/// beside that and not stopped. Whether the organization is there.
async fn take_organization(connection: &mut Connection, organization: OrganizationId) -> Result<bool, Failure> {
    let there: Option<String> =
        for_update!(organizations::table.filter(organizations::id.eq(organization.text())).select(organizations::id))
            .get_result(connection)
            .await
            .optional()?;
    Ok(there.is_some())
}

async fn change(connection: &mut Connection, command: &ChangeIntegration) -> Decided<ChangeIntegrationOutcome> {
    let ChangeIntegration { authority, organization, integration: id, version, change, now, audit: entry } = command;
    if let Err(refusal) = judge_and_hold(connection, authority, *now).await? {
        return Ok(Verdict::Undo(ChangeIntegrationOutcome::Refused(refusal)));
    }
    if !authority.reaches(*organization) {
        return Ok(Verdict::Undo(ChangeIntegrationOutcome::NotFound));
    }
    match integration_row::take(connection, *organization, *id).await? {
        None => return Ok(Verdict::Undo(ChangeIntegrationOutcome::NotFound)),
        Some(found) if found != *version => return Ok(Verdict::Undo(ChangeIntegrationOutcome::Stale)),
        Some(_) => {}
    }
    match change {
        IntegrationChange::Replace { integration, digest } => {
            integration_row::replace(connection, (*organization, *id), integration, digest, version + 1).await?;
        }
        IntegrationChange::Delete => integration_row::remove(connection, *organization, *id).await?,
    }
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(ChangeIntegrationOutcome::Changed))
}
