//! Namespaces: frozen, thawed and listed.

use super::super::audit::AuditRecorder;
use super::super::authorize::{authorize, authorize_and_lock, lock_existing_organization};
use super::super::{Read, Transaction};
use super::lookup::{Range, range};
use super::row;
use crate::db::{Tx, narrow};
use crate::failure::Failure;
use crate::schema::{credentials, frozen_namespaces};
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _};
use std::collections::BTreeMap;
use vault_core::Command;
use vault_core::id::OrganizationId;
use vault_core::namespace::Namespace;
use vault_core::port::{
    FreezeNamespace, Freezing, FrozenNamespace, List, ListedNamespace, NAMESPACE_COUNT_LIMIT, NamePosition,
};
use vault_core::principal::Scope;
use vault_core::time::Timestamp;

/// The freeze of a namespace. A transaction that freezes locks every integration of the organization first: a namespace that
/// is not frozen stays so while another transaction has locked one of them.
#[auto_type(no_type_alias)]
pub(crate) fn freeze_of<'a>(organization: IdBytes, namespace: &'a str) -> _ {
    frozen_namespaces::table
        .filter(frozen_namespaces::organization_id.eq(organization))
        .filter(frozen_namespaces::namespace.eq(namespace))
}

impl Transaction for Command<FreezeNamespace> {
    /// The change. `None` if the organization does not exist.
    type Outcome = Option<Freezing>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Option<Freezing>, Failure> {
        authorize_and_lock(tx, &self.principal, self.now).await?;
        let FreezeNamespace { organization, namespace, frozen } = &self.payload;
        if !self.principal.reaches(*organization) || !lock_existing_organization(tx, *organization).await? {
            return Ok(None);
        }
        let integrations = row::lock_all(tx, *organization).await?;
        let integrations = integrations.iter().filter(|one| one.may_activate(namespace, self.now)).count();
        let integrations = i64::try_from(integrations).unwrap_or(i64::MAX);
        let credentials = count(tx, *organization, namespace).await?;
        let freeze = freeze_of(organization.stored(), namespace.as_str());
        let since: Option<i64> = tx.first(freeze.select(frozen_namespaces::frozen_at)).await?;
        // Without integrations nothing was locked: if several transactions race, the one that changes the row did it.
        let changed = match (since.is_some(), *frozen) {
            (false, true) => {
                let new = diesel::insert_into(frozen_namespaces::table).values((
                    frozen_namespaces::organization_id.eq(organization.stored()),
                    frozen_namespaces::namespace.eq(namespace.as_str()),
                    frozen_namespaces::frozen_at.eq(self.now.as_millis()),
                ));
                tx.execute(new.on_conflict_do_nothing()).await? == 1
            }
            (true, false) => {
                let freeze = freeze_of(organization.stored(), namespace.as_str());
                tx.execute(diesel::delete(freeze)).await? == 1
            }
            (false, false) | (true, true) => false,
        };
        if changed {
            audit.record(tx, &self.audit).await?;
        }
        Ok(Some(Freezing { changed, credentials, integrations }))
    }
}

/// Counts the credentials of a namespace, up to [`NAMESPACE_COUNT_LIMIT`].
async fn count(tx: &Tx<'_>, organization: OrganizationId, namespace: &Namespace) -> Result<i64, Failure> {
    let some = credentials::table
        .filter(credentials::organization_id.eq(organization.stored()))
        .filter(narrow(credentials::namespace.eq(namespace.as_str())))
        .select(credentials::version);
    let most = usize::try_from(NAMESPACE_COUNT_LIMIT).unwrap_or(usize::MAX);
    let counted: Vec<i64> = tx.page(some, most).await?;
    Ok(i64::try_from(counted.len()).unwrap_or(i64::MAX))
}

/// The frozen namespaces of an organization, or of all.
pub(crate) struct ListFrozen(pub(crate) List<NamePosition>);

impl Read for ListFrozen {
    type Outcome = Vec<FrozenNamespace>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<FrozenNamespace>, Failure> {
        let range = range(&self.0.principal, self.0.of, self.0.after.as_ref())?;
        authorize(tx, &self.0.principal, self.0.now).await?;
        frozen(tx, &range, self.0.limit).await
    }
}

type FrozenRow = (Column<OrganizationId>, Column<Namespace>, i64);

async fn frozen(tx: &Tx<'_>, range: &Range<'_>, limit: usize) -> Result<Vec<FrozenNamespace>, Failure> {
    use crate::schema::frozen_namespaces::{frozen_at, namespace, organization_id, table};
    let columns = (organization_id, namespace, frozen_at);
    let rows: Vec<FrozenRow> = match range.only {
        Some(organization) => {
            let own = table.filter(organization_id.eq(organization.stored())).filter(namespace.gt(range.name));
            tx.page(own.order(namespace).select(columns), limit).await?
        }
        None => {
            let same = organization_id.eq(range.organization).and(namespace.gt(range.name));
            let all = table.filter(organization_id.gt(range.organization).or(same));
            tx.page(all.order((organization_id, namespace)).select(columns), limit).await?
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

/// The namespaces of an organization that have credentials or are frozen.
impl Read for List<Namespace, OrganizationId> {
    type Outcome = Vec<ListedNamespace>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<ListedNamespace>, Failure> {
        let Self { principal, of: organization, after, limit, now } = self;
        let range = range(principal, Scope::One(*organization), None)?;
        authorize(tx, principal, *now).await?;
        let from = after.as_ref().map_or("", Namespace::as_str);
        let mut listed = BTreeMap::new();
        let mut last = from.to_owned();
        // One search of the index for each namespace, however many credentials it has.
        while listed.len() < *limit {
            let Some(namespace) = next(tx, *organization, &last).await? else { break };
            let credentials = count(tx, *organization, &namespace).await?;
            namespace.as_str().clone_into(&mut last);
            listed.insert(namespace.as_str().to_owned(), ListedNamespace { namespace, credentials, frozen_at: None });
        }
        for row in frozen(tx, &Range { name: from, ..range }, *limit).await? {
            let unused = ListedNamespace { namespace: row.namespace.clone(), credentials: 0, frozen_at: None };
            let entry = listed.entry(row.namespace.as_str().to_owned()).or_insert(unused);
            entry.frozen_at = Some(row.frozen_at);
        }
        Ok(listed.into_values().take(*limit).collect())
    }
}

/// Finds the first namespace after `last` that has credentials.
async fn next(tx: &Tx<'_>, organization: OrganizationId, last: &str) -> Result<Option<Namespace>, Failure> {
    let following = credentials::table
        .filter(credentials::organization_id.eq(organization.stored()))
        .filter(narrow(credentials::namespace.gt(last)))
        .order(credentials::namespace)
        .select(credentials::namespace);
    let found: Vec<Column<Namespace>> = tx.page(following, 1).await?;
    let decode = |namespace: Column<Namespace>| namespace.decode("credentials", &organization, "namespace");
    found.into_iter().next().map(decode).transpose()
}
