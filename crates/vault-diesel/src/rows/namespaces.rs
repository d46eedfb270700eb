//! Namespaces of credentials.

use super::{TxRows, several, then};
use crate::db::narrow;
use crate::schema::credentials;
use crate::stored::{Column, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::id::OrganizationId;
use vault_core::namespace::Namespace;
use vault_core::port::{NamespaceRows, Reply};

impl NamespaceRows for TxRows<'_> {
    fn count_in(&self, organization: OrganizationId, namespace: &Namespace, most: usize) -> Reply<'_, i64> {
        let some = credentials::table
            .filter(credentials::organization_id.eq(organization.stored()))
            .filter(narrow(credentials::namespace.eq(namespace.as_str().to_owned())))
            .select(credentials::version);
        several(async move {
            self.insert_pending_credentials().await?;
            let counted: Vec<i64> = self.tx.page(some, most).await?;
            Ok(i64::try_from(counted.len()).unwrap_or(i64::MAX))
        })
    }

    fn namespace_after(&self, organization: OrganizationId, after: &str) -> Reply<'_, Option<Namespace>> {
        let following = credentials::table
            .filter(credentials::organization_id.eq(organization.stored()))
            .filter(narrow(credentials::namespace.gt(after)))
            .order(credentials::namespace)
            .select(credentials::namespace);
        then(self.tx.page(following, 1), move |found: Vec<Column<Namespace>>| {
            let decode = |namespace: Column<Namespace>| namespace.decode("credentials", &organization, "namespace");
            found.into_iter().next().map(decode).transpose()
        })
    }
}
