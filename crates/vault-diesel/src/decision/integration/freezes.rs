//! Namespaces: frozen, thawed and listed.

use super::super::account::invitations::hold_presence;
use super::super::backend::{Connection, RunQuery, Store, load_page, narrow};
use super::super::{Decided, Decision, Verdict, decide};
use super::lookup::{Range, range};
use super::row;
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{credentials, frozen_namespaces};
use crate::stored::{Column, StoredId as _};
use crate::transaction::authorize::{authorize, authorize_and_lock};
use async_trait::async_trait;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use std::collections::BTreeMap;
use vault_core::Command;
use vault_core::id::OrganizationId;
use vault_core::namespace::Namespace;
use vault_core::port::{
    FreezeNamespace, FreezeRepository, Freezing, FrozenNamespace, List, ListedNamespace, NAMESPACE_COUNT_LIMIT,
    NamePosition, StoreError,
};
use vault_core::principal::Scope;
use vault_core::time::Timestamp;

#[async_trait]
impl FreezeRepository for Store {
    async fn freeze_namespace(&self, command: Command<FreezeNamespace>) -> Result<Option<Freezing>, StoreError> {
        self.write(command, |connection, command| Box::pin(decide(connection, command))).await
    }

    async fn list_frozen(&self, query: List<NamePosition>) -> Result<Vec<FrozenNamespace>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| {
            Box::pin(list_frozen(connection, query))
        })
        .await
    }

    async fn list_namespaces(
        &self,
        query: List<Namespace, OrganizationId>,
    ) -> Result<Vec<ListedNamespace>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| {
            Box::pin(list_namespaces(connection, query))
        })
        .await
    }
}

impl Decision for FreezeNamespace {
    type Held = ();
    type Outcome = Option<Freezing>;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Option<Freezing>> {
        let FreezeNamespace { organization, namespace, frozen } = &command.act;
        if !command.principal.reaches(*organization) || !hold_presence(connection, *organization).await? {
            return Ok(Verdict::Refused(None));
        }
        // What is activated with them is decided before or after.
        let integrations = row::take_all(connection, *organization).await?;
        let integrations = integrations.iter().filter(|one| one.may_activate(namespace, command.now)).count();
        let integrations = i64::try_from(integrations).unwrap_or(i64::MAX);
        let credentials = count(connection, *organization, namespace).await?;
        let since: Option<i64> = frozen_since!(organization, namespace).get_result(connection).await.optional()?;
        let changed = since.is_some() != *frozen;
        let freezing = Some(Freezing { changed, credentials, integrations });
        if !changed {
            return Ok(Verdict::Refused(freezing));
        }
        // Without integrations no row was taken that others wait for: of several at once, the one that changes the row did it.
        let rows = if *frozen {
            let values = (
                frozen_namespaces::organization_id.eq(organization.stored()),
                frozen_namespaces::namespace.eq(namespace.as_str()),
                frozen_namespaces::frozen_at.eq(command.now.as_millis()),
            );
            diesel::insert_into(frozen_namespaces::table)
                .values(values)
                .on_conflict_do_nothing()
                .execute(connection)
                .await?
        } else {
            let row = frozen_namespaces::table
                .filter(frozen_namespaces::organization_id.eq(organization.stored()))
                .filter(frozen_namespaces::namespace.eq(namespace.as_str()));
            diesel::delete(row).execute(connection).await?
        };
        if rows == 0 {
            return Ok(Verdict::Refused(Some(Freezing { changed: false, credentials, integrations })));
        }
        Ok(Verdict::Done(freezing))
    }
}

/// How many credentials a namespace has, counted to [`NAMESPACE_COUNT_LIMIT`].
async fn count(
    connection: &mut Connection,
    organization: OrganizationId,
    namespace: &Namespace,
) -> Result<i64, Failure> {
    let some = credentials::table
        .filter(credentials::organization_id.eq(organization.stored()))
        .filter(narrow!(credentials::namespace.eq(namespace.as_str())))
        .select(credentials::version);
    let most = usize::try_from(NAMESPACE_COUNT_LIMIT).unwrap_or(usize::MAX);
    let counted: Vec<i64> = load_page!(some, connection, most).await?;
    Ok(i64::try_from(counted.len()).unwrap_or(i64::MAX))
}

/// Since when a namespace is frozen; no row if it is not. Whoever freezes takes every integration of the organization: of
/// a namespace that is not frozen this stays true while one of them is taken or held.
macro_rules! frozen_since {
    ($organization:expr, $namespace:expr) => {{
        use crate::schema::frozen_namespaces;
        frozen_namespaces::table
            .filter(frozen_namespaces::organization_id.eq($organization.stored()))
            .filter(frozen_namespaces::namespace.eq($namespace.as_str()))
            .select(frozen_namespaces::frozen_at)
    }};
}

pub(crate) use frozen_since;

type FrozenRow = (Column<OrganizationId>, Column<Namespace>, i64);

async fn list_frozen(connection: &mut Connection, query: &List<NamePosition>) -> Result<Vec<FrozenNamespace>, Failure> {
    let range = range(&query.principal, query.of, query.after.as_ref())?;
    authorize(&connection.tx(), &query.principal, query.now).await?;
    frozen(connection, &range, query.limit).await
}

async fn frozen(connection: &mut Connection, range: &Range<'_>, limit: usize) -> Result<Vec<FrozenNamespace>, Failure> {
    let columns = (frozen_namespaces::organization_id, frozen_namespaces::namespace, frozen_namespaces::frozen_at);
    let rows: Vec<FrozenRow> = match range.only {
        Some(organization) => {
            let all = frozen_namespaces::table
                .filter(frozen_namespaces::organization_id.eq(organization.stored()))
                .filter(frozen_namespaces::namespace.gt(range.name))
                .order(frozen_namespaces::namespace)
                .select(columns);
            load_page!(all, connection, limit).await?
        }
        None => {
            let all = frozen_namespaces::table
                .filter(
                    frozen_namespaces::organization_id.gt(&range.organization).or(frozen_namespaces::organization_id
                        .eq(&range.organization)
                        .and(frozen_namespaces::namespace.gt(range.name))),
                )
                .order((frozen_namespaces::organization_id, frozen_namespaces::namespace))
                .select(columns);
            load_page!(all, connection, limit).await?
        }
    };
    rows.into_iter().map(decode).collect()
}

fn decode((organization, namespace, frozen_at): FrozenRow) -> Result<FrozenNamespace, Failure> {
    const TABLE: &str = "frozen_namespaces";
    let organization = organization.decode(TABLE, &"unknown", "organization_id")?;
    Ok(FrozenNamespace {
        organization,
        namespace: namespace.decode(TABLE, &organization, "namespace")?,
        frozen_at: Timestamp::from_millis(frozen_at),
    })
}

async fn list_namespaces(
    connection: &mut Connection,
    query: &List<Namespace, OrganizationId>,
) -> Result<Vec<ListedNamespace>, Failure> {
    let List { principal, of: organization, after, limit, now } = query;
    let range = range(principal, Scope::One(*organization), None)?;
    authorize(&connection.tx(), principal, *now).await?;
    let from = after.as_ref().map_or("", Namespace::as_str);
    let mut listed = BTreeMap::new();
    let mut last = from.to_owned();
    // One look at the index for each namespace, however many credentials it has.
    while listed.len() < *limit {
        let Some(namespace) = next(connection, *organization, &last).await? else { break };
        let credentials = count(connection, *organization, &namespace).await?;
        namespace.as_str().clone_into(&mut last);
        listed.insert(namespace.as_str().to_owned(), ListedNamespace { namespace, credentials, frozen_at: None });
    }
    for row in frozen(connection, &Range { name: from, ..range }, *limit).await? {
        let unused = ListedNamespace { namespace: row.namespace.clone(), credentials: 0, frozen_at: None };
        let entry = listed.entry(row.namespace.as_str().to_owned()).or_insert(unused);
        entry.frozen_at = Some(row.frozen_at);
    }
    Ok(listed.into_values().take(*limit).collect())
}

/// The first namespace after `last` that has credentials.
async fn next(
    connection: &mut Connection,
    organization: OrganizationId,
    last: &str,
) -> Result<Option<Namespace>, Failure> {
    let following = credentials::table
        .filter(credentials::organization_id.eq(organization.stored()))
        .filter(narrow!(credentials::namespace.gt(last)))
        .order(credentials::namespace)
        .select(credentials::namespace);
    let found: Vec<Column<Namespace>> = load_page!(following, connection, 1).await?;
    let sound = |namespace: Column<Namespace>| namespace.decode("credentials", &organization, "namespace");
    found.into_iter().next().map(sound).transpose()
}
