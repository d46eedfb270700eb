//! How many credentials an organization has. Diesel never caches an `UPDATE` it builds; these two lie on the
//! path of every save and delete, so they are fragments with an id of their own.

use super::backend::{Connection, Database, RunQuery};
use crate::failure::Failure;
use crate::stored::{IdText, ToIdText as _};
use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Text};
use vault_core::id::OrganizationId;

/// Counts one more. `false`: there are as many as there may be, or there is no such organization.
pub(super) async fn add(
    connection: &mut Connection,
    organization: OrganizationId,
    limit: i64,
) -> Result<bool, Failure> {
    Ok(AddOne { organization: organization.text(), limit }.execute(connection).await? == 1)
}

/// Counts one less.
pub(super) async fn subtract(connection: &mut Connection, organization: OrganizationId) -> Result<(), Failure> {
    SubtractOne { organization: organization.text() }.execute(connection).await?;
    Ok(())
}

#[derive(Clone, Copy, QueryId)]
struct AddOne {
    organization: IdText,
    limit: i64,
}

impl QueryFragment<Database> for AddOne {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Database>) -> QueryResult<()> {
        out.push_sql("UPDATE credential_counts SET credentials = credentials + 1 WHERE organization_id = ");
        out.push_bind_param::<Text, _>(&self.organization)?;
        out.push_sql(" AND credentials < ");
        out.push_bind_param::<BigInt, _>(&self.limit)
    }
}

#[derive(Clone, Copy, QueryId)]
struct SubtractOne {
    organization: IdText,
}

impl QueryFragment<Database> for SubtractOne {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Database>) -> QueryResult<()> {
        out.push_sql("UPDATE credential_counts SET credentials = credentials - 1 WHERE organization_id = ");
        out.push_bind_param::<Text, _>(&self.organization)
    }
}
