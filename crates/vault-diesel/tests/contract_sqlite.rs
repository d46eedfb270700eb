//! The embedded store fulfils the contract of the ports.

use crate::support::subject::OnSqlite;

vault_testkit::store_contract!(OnSqlite::new());
