//! Creating and changing integrations.

use super::super::backend::{Connection, RunQuery, Store, for_update};
use super::super::organization::keys::require_active;
use super::super::{Answer, Decided, Decision, Verdict, decide};
use super::{lookup, row};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::organizations;
use crate::stored::{AnyId, StoredId as _};
use crate::transaction::authorize::authorize_and_lock;
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::id::OrganizationId;
use vault_core::integration::StoredIntegration;
use vault_core::port::{
    ChangeIntegration, CreateIntegration, Find, IntegrationChange, IntegrationKey, IntegrationRepository, List,
    NamePosition, StoreError,
};
use vault_core::{Command, Refusal};

#[async_trait]
impl IntegrationRepository for Store {
    async fn create_integration(&self, command: Command<CreateIntegration>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn find_integration(&self, query: Find<IntegrationKey>) -> Result<Option<StoredIntegration>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| {
            Box::pin(lookup::find(connection, query))
        })
        .await
    }

    async fn list_integrations(&self, query: List<NamePosition>) -> Result<Vec<StoredIntegration>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| {
            Box::pin(lookup::list(connection, query))
        })
        .await
    }

    async fn change_integration(&self, command: Command<ChangeIntegration>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }
}

impl Decision for CreateIntegration {
    /// Whether the organization exists and the principal reaches it.
    type Held = bool;
    type Outcome = Answer;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<bool, Failure> {
        let organization = command.act.integration.organization;
        // Before the session is judged, which holds the organization too: to hold it first and take it then would have
        // two such decisions wait for each other.
        let found = command.principal.reaches(organization) && take_organization(connection, organization).await?;
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await?;
        Ok(found)
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, found: bool) -> Decided<Answer> {
        let CreateIntegration { integration, digest, limit } = &command.act;
        require_active(connection, [digest.key]).await?;
        if !found {
            return Ok(Verdict::Refused(Err(Refusal::NoOrganization)));
        }
        if row::count(connection, integration.organization).await? >= *limit {
            return Ok(Verdict::Refused(Err(command.act.limit_reached())));
        }
        if !row::insert(connection, integration, digest).await? {
            return Ok(Verdict::Refused(Err(Refusal::NameTaken)));
        }
        Ok(Verdict::Done(Ok(())))
    }
}

/// Takes an organization. Whoever takes all of its integrations, to stop them, holds it: so there is none that is
/// created beside that and not stopped. Whether the organization exists.
async fn take_organization(connection: &mut Connection, organization: OrganizationId) -> Result<bool, Failure> {
    let found: Option<AnyId> =
        for_update!(organizations::table.filter(organizations::id.eq(organization.stored())).select(organizations::id))
            .get_result(connection)
            .await
            .optional()?;
    Ok(found.is_some())
}

impl Decision for ChangeIntegration {
    type Held = ();
    type Outcome = Answer;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer> {
        let ChangeIntegration { organization, integration: id, version, change } = &command.act;
        if !command.principal.reaches(*organization) {
            return Ok(Verdict::Refused(Err(Refusal::NotFound)));
        }
        let token = match row::take(connection, *organization, *id).await? {
            None => return Ok(Verdict::Refused(Err(Refusal::NotFound))),
            Some((found, _)) if found != *version => return Ok(Verdict::Refused(Err(Refusal::Contended))),
            Some((_, token)) => token,
        };
        match change {
            IntegrationChange::Replace { integration, digest } => {
                require_active(connection, [digest.key]).await?;
                row::replace(connection, integration, digest, token).await?;
            }
            IntegrationChange::Delete => row::remove(connection, *organization, *id).await?,
        }
        Ok(Verdict::Done(Ok(())))
    }
}
