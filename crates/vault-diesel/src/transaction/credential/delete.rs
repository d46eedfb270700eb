//! Deletions of credentials.

use super::super::batch::{Batch, BatchOutcome, answer_each, authorize_each};
use super::change::lock_credentials;
use super::count;
use crate::db::Tx;
use crate::failure::Failure;
use crate::new_row::NewEntry;
use crate::schema::{
    audit, check_requests, credential_labels, credential_secrets, credential_uses, credential_versions, credentials,
};
use crate::stored::StoredId as _;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use futures_util::try_join;
use vault_core::Command;
use vault_core::decision::decide_deletes;
use vault_core::id::OrganizationId;
use vault_core::port::DeleteCredential;

impl Batch for DeleteCredential {
    type Outcome = bool;

    fn organization(&self) -> OrganizationId {
        self.organization
    }

    async fn decide_all(
        tx: &Tx<'_>,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> Result<BatchOutcome<bool>, Failure> {
        // The count first, as for saves.
        count::lock(tx, organization).await?;
        let authorized = authorize_each(tx, organization, commands, |_| None).await?;
        let rows = lock_credentials(tx, organization, commands.iter().map(|command| command.payload.id)).await?;
        let revisions = rows.iter().map(|(id, row)| (*id, row.revision)).collect();
        let may = commands.iter().zip(&authorized).filter(|(_, authorized)| authorized.is_ok());
        let outcomes = decide_deletes(revisions, may.map(|(command, _)| &command.payload));
        let (answers, deleted) = answer_each(commands, authorized, outcomes);
        write(tx, organization, &deleted).await?;
        Ok(BatchOutcome { answers, written: !deleted.is_empty() })
    }
}

async fn write(
    tx: &Tx<'_>,
    organization: OrganizationId,
    deleted: &[&Command<DeleteCredential>],
) -> Result<(), Failure> {
    let Ok(removed @ 1..) = i64::try_from(deleted.len()) else { return Ok(()) };
    let ids = || deleted.iter().map(|command| command.payload.id.stored());
    let of = organization.stored();
    let credentials =
        credentials::table.filter(credentials::organization_id.eq(of)).filter(credentials::id.eq_any(ids()));
    let secrets = credential_secrets::table
        .filter(credential_secrets::organization_id.eq(of))
        .filter(credential_secrets::id.eq_any(ids()));
    let versions = credential_versions::table
        .filter(credential_versions::organization_id.eq(of))
        .filter(credential_versions::id.eq_any(ids()));
    let labels = credential_labels::table
        .filter(credential_labels::organization_id.eq(of))
        .filter(credential_labels::id.eq_any(ids()));
    let uses = credential_uses::table
        .filter(credential_uses::organization_id.eq(of))
        .filter(credential_uses::id.eq_any(ids()));
    let requests =
        check_requests::table.filter(check_requests::organization_id.eq(of)).filter(check_requests::id.eq_any(ids()));
    try_join!(
        tx.execute(diesel::delete(credentials)),
        tx.execute(diesel::delete(secrets)),
        tx.execute(diesel::delete(versions)),
        tx.execute(diesel::delete(labels)),
        tx.execute(diesel::delete(uses)),
        tx.execute(diesel::delete(requests)),
        count::add(tx, organization, -removed),
        tx.insert(audit::table, deleted.iter().map(|command| NewEntry::of(&command.audit))),
    )?;
    Ok(())
}
