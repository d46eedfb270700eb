//! Rotation of the instance key on both databases. Each case has a separate database.

use crate::support::subject::{OnPostgres, OnSqlite};
use std::sync::Arc;
use vault_testkit::contract::{instance_rotation, run};
use vault_testkit::memory::MemoryStore;

macro_rules! on_all_stores {
    ($($case:ident: $memory:ident, $sqlite:ident, $postgres:ident;)*) => {$(
        #[test]
        fn $memory() {
            run(async { Arc::new(MemoryStore::new()) }, async |store: &_| instance_rotation::$case(store).await);
        }

        #[test]
        fn $sqlite() {
            run(OnSqlite::new(), async |store: &_| instance_rotation::$case(store).await);
        }

        #[test]
        fn $postgres() {
            run(OnPostgres::alone(), async |store: &_| instance_rotation::$case(store).await);
        }
    )*};
}

on_all_stores! {
    replaced_instance_key_protects_no_new_row:
        replaced_instance_key_protects_no_new_row_in_memory,
        replaced_instance_key_protects_no_new_row_on_sqlite,
        replaced_instance_key_protects_no_new_row_on_postgres;
    needed_instance_key_stays:
        needed_instance_key_stays_in_memory,
        needed_instance_key_stays_on_sqlite,
        needed_instance_key_stays_on_postgres;
    unused_key_is_destroyed:
        unused_key_is_destroyed_in_memory,
        unused_key_is_destroyed_on_sqlite,
        unused_key_is_destroyed_on_postgres;
}
