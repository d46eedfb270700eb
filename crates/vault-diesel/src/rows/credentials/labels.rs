//! Keyed digests of labels, by which a list finds credentials.

use crate::db::Tx;
use crate::failure::Failure;
use crate::new_row::NewLabel;
use crate::schema::credential_labels;
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, OrganizationId};

#[auto_type(no_type_alias)]
fn labels_of(organization: IdBytes, id: IdBytes) -> _ {
    credential_labels::table
        .filter(credential_labels::organization_id.eq(organization))
        .filter(credential_labels::id.eq(id))
}

/// Replaces the labels of a credential.
pub(crate) async fn replace(
    tx: &Tx<'_>,
    organization: OrganizationId,
    id: CredentialId,
    labels: &[Digest],
) -> Result<(), Failure> {
    tx.execute(diesel::delete(labels_of(organization.stored(), id.stored()))).await?;
    let rows = labels.iter().map(|label| NewLabel::of(organization, id, label));
    tx.insert(credential_labels::table, rows).await?;
    Ok(())
}

/// Reads the labels of a credential.
pub(crate) async fn read(tx: &Tx<'_>, organization: OrganizationId, id: CredentialId) -> Result<Vec<Digest>, Failure> {
    let labels = labels_of(organization.stored(), id.stored()).select(credential_labels::label);
    let labels: Vec<Column<Digest>> = tx.load(labels).await?;
    labels.into_iter().map(|label| label.decode("credential_labels", &id, "label")).collect()
}
