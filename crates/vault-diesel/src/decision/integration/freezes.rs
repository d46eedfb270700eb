//! Frozen namespaces.

use super::super::account::invitations::hold_presence;
use super::super::authorize::judge_and_hold;
use super::super::backend::{Connection, RunQuery, Store};
use super::super::{Decided, Verdict, audit};
use super::lookup::confine;
use super::row as integration_row;
use crate::failure::Failure;
use crate::schema::frozen_namespaces;
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::id::OrganizationId;
use vault_core::namespace::Namespace;
use vault_core::port::{FreezeNamespace, FreezeOutcome, FreezeRepository, FrozenNamespace, ListFrozen, StoreError};
use vault_core::principal::Denial;
use vault_core::time::Timestamp;

#[async_trait]
impl FreezeRepository for Store {
    async fn freeze_namespace(&self, command: FreezeNamespace) -> Result<FreezeOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(freeze(connection, command))).await
    }

    async fn list_frozen(&self, query: ListFrozen) -> Result<Result<Vec<FrozenNamespace>, Denial>, StoreError> {
        self.read(query, |connection, query| Box::pin(list(connection, query))).await
    }
}

async fn freeze(connection: &mut Connection, command: &FreezeNamespace) -> Decided<FreezeOutcome> {
    let FreezeNamespace { authority, organization, namespace, frozen, now, audit: entry } = command;
    if let Err(refusal) = judge_and_hold(connection, authority, *now).await? {
        return Ok(Verdict::Undo(FreezeOutcome::Refused(refusal)));
    }
    if !authority.reaches(*organization) || !hold_presence(connection, *organization).await? {
        return Ok(Verdict::Undo(FreezeOutcome::NoOrganization));
    }
    if *frozen {
        // What is activated with them comes before or after.
        integration_row::take_all(connection, *organization).await?;
    }
    let changed = if *frozen {
        diesel::insert_into(frozen_namespaces::table)
            .values((
                frozen_namespaces::organization_id.eq(organization.text()),
                frozen_namespaces::namespace.eq(namespace.as_str()),
                frozen_namespaces::frozen_at.eq(now.as_millis()),
            ))
            .on_conflict_do_nothing()
            .execute(connection)
            .await?
    } else {
        diesel::delete(
            frozen_namespaces::table
                .filter(frozen_namespaces::organization_id.eq(organization.text()))
                .filter(frozen_namespaces::namespace.eq(namespace.as_str())),
        )
        .execute(connection)
        .await?
    };
    if changed == 0 {
        return Ok(Verdict::Undo(FreezeOutcome::Unchanged));
    }
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(FreezeOutcome::Changed))
}

/// Whether a namespace is frozen. If not, it stays so while an integration of the organization is taken.
pub(crate) async fn is_frozen(
    connection: &mut Connection,
    organization: OrganizationId,
    namespace: &Namespace,
) -> Result<bool, Failure> {
    let since: Option<i64> = frozen_namespaces::table
        .filter(frozen_namespaces::organization_id.eq(organization.text()))
        .filter(frozen_namespaces::namespace.eq(namespace.as_str()))
        .select(frozen_namespaces::frozen_at)
        .get_result(connection)
        .await
        .optional()?;
    Ok(since.is_some())
}

type FrozenRow = (Read<OrganizationId>, Read<Namespace>, i64);

async fn list(
    connection: &mut Connection,
    query: &ListFrozen,
) -> Result<Result<Vec<FrozenNamespace>, Denial>, Failure> {
    let organization = match confine(connection, &query.scope, query.now).await? {
        Ok(organization) => organization,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let all = frozen_namespaces::table
        .order((frozen_namespaces::organization_id, frozen_namespaces::namespace))
        .select((frozen_namespaces::organization_id, frozen_namespaces::namespace, frozen_namespaces::frozen_at));
    let rows: Vec<FrozenRow> = match organization {
        Some(id) => all.filter(frozen_namespaces::organization_id.eq(id.text())).load(connection).await?,
        None => all.load(connection).await?,
    };
    Ok(Ok(rows.into_iter().map(decode).collect::<Result<_, _>>()?))
}

fn decode((organization, namespace, frozen_at): FrozenRow) -> Result<FrozenNamespace, Failure> {
    const TABLE: &str = "frozen_namespaces";
    let organization = organization.sound(TABLE, &"unknown", "organization_id")?;
    Ok(FrozenNamespace {
        organization,
        namespace: namespace.sound(TABLE, &organization, "namespace")?,
        frozen_at: Timestamp::from_millis(frozen_at),
    })
}
