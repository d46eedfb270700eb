//! The store on PostgreSQL fulfils the contract of the ports. All cases share one database.

use crate::support::subject::OnPostgres;

vault_testkit::store_contract!(OnPostgres::shared());
