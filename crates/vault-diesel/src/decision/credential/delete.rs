//! Deletions of credentials.

use super::super::Answer;
use super::super::backend::{Connection, RunQuery, delete_credentials, insert_rows, load_credentials, pipeline};
use super::super::batch::{Batch, BatchOutcome, answer_each, authorize_each};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::new_row::NewEntry;
use crate::schema::credentials;
use crate::stored::Column;
use crate::transaction::credential::count;
use vault_core::Command;
use vault_core::decision::judge_deletes;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::DeleteCredential;

impl Batch for DeleteCredential {
    type Outcome = Answer<bool>;

    fn organization(&self) -> OrganizationId {
        self.organization
    }

    async fn decide_all(
        connection: &mut Connection,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> Result<BatchOutcome<Answer<bool>>, Failure> {
        // The count first, for the reason given at saving.
        count::lock(&connection.tx(), organization).await?;
        let authorized = authorize_each(connection, organization, commands, |_| None).await?;
        let ids: Vec<CredentialId> = commands.iter().map(|command| command.act.id).collect();
        let rows: Vec<(Column<CredentialId>, i64)> =
            load_credentials!(connection, organization, &ids, (credentials::id, credentials::revision))?;
        let revision = |(id, revision): (Column<CredentialId>, i64)| {
            Ok((id.decode("credentials", &organization, "id")?, revision))
        };
        let revisions = rows.into_iter().map(revision).collect::<Result<_, Failure>>()?;
        let may = commands.iter().zip(&authorized).filter(|(_, authorized)| authorized.is_ok());
        let outcomes = judge_deletes(revisions, may.map(|(command, _)| &command.act));
        let (answers, deleted) = answer_each(commands, authorized, outcomes);
        write(connection, organization, &deleted).await?;
        Ok(BatchOutcome { answers, written: !deleted.is_empty() })
    }
}

async fn write(
    connection: &mut Connection,
    organization: OrganizationId,
    deleted: &[&Command<DeleteCredential>],
) -> Result<(), Failure> {
    let Ok(count @ 1..) = i64::try_from(deleted.len()) else { return Ok(()) };
    let ids: Vec<CredentialId> = deleted.iter().map(|command| command.act.id).collect();
    let entries = deleted.iter().map(|command| NewEntry::of(&command.audit));
    pipeline!(
        connection,
        |own| delete_credentials!(own, credentials, organization, &ids),
        |own| delete_credentials!(own, credential_secrets, organization, &ids),
        |own| delete_credentials!(own, credential_versions, organization, &ids),
        |own| delete_credentials!(own, credential_labels, organization, &ids),
        |own| delete_credentials!(own, credential_uses, organization, &ids),
        |own| delete_credentials!(own, check_requests, organization, &ids),
        |own| count::add(&own.tx(), organization, -count).await,
        |own| insert_rows!(own, audit, NewEntries, entries)
    )?;
    Ok(())
}
