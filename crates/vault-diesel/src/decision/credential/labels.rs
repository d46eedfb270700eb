//! Digests of labels, by which a list finds credentials.

use super::super::backend::{Connection, RunQuery, execute_each};
use super::row::of_credential;
use crate::failure::Failure;
use crate::new_row::NewLabel;
use crate::schema::credential_labels;
use crate::stored::Column;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, OrganizationId};

pub(in super::super) async fn insert(
    connection: &mut Connection,
    organization: OrganizationId,
    id: CredentialId,
    labels: &[Digest],
) -> Result<(), Failure> {
    let rows = labels
        .iter()
        .map(|label| diesel::insert_into(credential_labels::table).values(NewLabel::of(organization, id, label)));
    execute_each!(connection, rows)?;
    Ok(())
}

pub(in super::super) async fn delete(
    connection: &mut Connection,
    organization: OrganizationId,
    id: CredentialId,
) -> Result<(), Failure> {
    diesel::delete(of_credential!(credential_labels, organization, id)).execute(connection).await?;
    Ok(())
}

/// The digests of a credential.
pub(in super::super) async fn of(
    connection: &mut Connection,
    organization: OrganizationId,
    id: CredentialId,
) -> Result<Vec<Digest>, Failure> {
    let labels = of_credential!(credential_labels, organization, id).select(credential_labels::label);
    let labels: Vec<Column<Digest>> = labels.load(connection).await?;
    labels.into_iter().map(|label| label.decode("credential_labels", &id, "label")).collect()
}
