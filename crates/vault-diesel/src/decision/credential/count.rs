//! How many credentials an organization has. Diesel never caches an `UPDATE` it builds; this one is part of every
//! save and delete, so it is a fragment with an id of its own.

use super::super::backend::{Connection, Database, RunQuery, for_update};
use crate::failure::Failure;
use crate::schema::credential_counts;
use crate::stored::{IdText, ToIdText as _};
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Text};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, QueryResult};
use vault_core::id::OrganizationId;

/// The number of credentials of `organization`, which nobody else then changes; `None`: there is no such organization.
pub(crate) async fn hold(connection: &mut Connection, organization: OrganizationId) -> Result<Option<i64>, Failure> {
    let counted = for_update!(
        credential_counts::table
            .filter(credential_counts::organization_id.eq(organization.text()))
            .select(credential_counts::credentials)
    );
    Ok(counted.get_result(connection).await.optional()?)
}

/// The statement that adds `change` to the number of credentials.
#[derive(Clone, Copy, QueryId)]
pub(crate) struct Count {
    organization: IdText,
    change: i64,
}

impl Count {
    pub(crate) fn by(organization: OrganizationId, change: i64) -> Self {
        Self { organization: organization.text(), change }
    }
}

impl QueryFragment<Database> for Count {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Database>) -> QueryResult<()> {
        out.push_sql("UPDATE credential_counts SET credentials = credentials + ");
        out.push_bind_param::<BigInt, _>(&self.change)?;
        out.push_sql(" WHERE organization_id = ");
        out.push_bind_param::<Text, _>(&self.organization)
    }
}
