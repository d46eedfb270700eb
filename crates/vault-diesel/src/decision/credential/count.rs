//! How many credentials an organization has.

use super::super::backend::{Connection, Database, RunQuery, for_update};
use crate::failure::Failure;
use crate::schema::credential_counts;
use crate::stored::StoredId as _;
use crate::update::update;
use diesel::query_builder::{QueryFragment, QueryId};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::id::OrganizationId;

macro_rules! row_of {
    ($organization:expr) => {
        credential_counts::table.filter(credential_counts::organization_id.eq($organization.stored()))
    };
}

/// The number of credentials of `organization`, which nobody else then changes; `None`: there is no such organization.
pub(crate) async fn hold(connection: &mut Connection, organization: OrganizationId) -> Result<Option<i64>, Failure> {
    let counted = for_update!(row_of!(organization).select(credential_counts::credentials));
    Ok(counted.get_result(connection).await.optional()?)
}

/// The statement that adds `change` to the number of credentials.
pub(crate) fn add(organization: OrganizationId, change: i64) -> impl QueryFragment<Database> + QueryId + Send {
    update(row_of!(organization)).set(credential_counts::credentials.eq(credential_counts::credentials + change))
}
