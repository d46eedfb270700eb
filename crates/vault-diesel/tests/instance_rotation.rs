//! Rotation of the instance key on both databases. Each case has a separate database.

use crate::support::subject::{OnPostgres, OnSqlite};
use std::sync::Arc;
use vault_testkit::contract::{instance_rotation, run};
use vault_testkit::memory::MemoryStore;

macro_rules! on_all_stores {
    ($($case:ident: $memory:ident, $sqlite:ident, $postgres:ident;)*) => {$(
        #[test]
        fn $memory() {
            run(async { Arc::new(MemoryStore::new()) }, "ROTATION.md", async |store: &_| instance_rotation::$case(store).await);
        }

        #[test]
        fn $sqlite() {
            run(OnSqlite::new(), "ROTATION.md", async |store: &_| instance_rotation::$case(store).await);
        }

        #[test]
        fn $postgres() {
            run(OnPostgres::alone(), "ROTATION.md", async |store: &_| instance_rotation::$case(store).await);
        }
    )*};
}

on_all_stores! {
    nothing_comes_under_a_replaced_instance_key:
        nothing_comes_under_a_replaced_instance_key_in_memory,
        nothing_comes_under_a_replaced_instance_key_on_sqlite,
        nothing_comes_under_a_replaced_instance_key_on_postgres;
    rows_move_to_the_next_instance_key:
        rows_move_to_the_next_instance_key_in_memory,
        rows_move_to_the_next_instance_key_on_sqlite,
        rows_move_to_the_next_instance_key_on_postgres;
    receivers_move_to_the_next_receiver_key:
        receivers_move_to_the_next_receiver_key_in_memory,
        receivers_move_to_the_next_receiver_key_on_sqlite,
        receivers_move_to_the_next_receiver_key_on_postgres;
    a_key_that_nothing_needs_is_destroyed:
        a_key_that_nothing_needs_is_destroyed_in_memory,
        a_key_that_nothing_needs_is_destroyed_on_sqlite,
        a_key_that_nothing_needs_is_destroyed_on_postgres;
}
