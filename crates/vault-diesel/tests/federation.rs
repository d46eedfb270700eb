//! Signing keys of federation tokens on both databases. Each case has a separate database.

use crate::support::subject::{OnPostgres, OnSqlite};
use std::sync::Arc;
use vault_testkit::contract::{federation, run};
use vault_testkit::memory::MemoryStore;

macro_rules! on_all_stores {
    ($($case:ident: $memory:ident, $sqlite:ident, $postgres:ident;)*) => {$(
        #[test]
        fn $memory() {
            run(async { Arc::new(MemoryStore::new()) }, async |store: &_| federation::$case(store).await);
        }

        #[test]
        fn $sqlite() {
            run(OnSqlite::new(), async |store: &_| federation::$case(store).await);
        }

        #[test]
        fn $postgres() {
            run(OnPostgres::alone(), async |store: &_| federation::$case(store).await);
        }
    )*};
}

on_all_stores! {
    signing_keys_change_one_after_the_other:
        signing_keys_change_one_after_the_other_in_memory,
        signing_keys_change_one_after_the_other_on_sqlite,
        signing_keys_change_one_after_the_other_on_postgres;
    signing_keys_that_were_put_back_are_not_used:
        signing_keys_that_were_put_back_are_not_used_in_memory,
        signing_keys_that_were_put_back_are_not_used_on_sqlite,
        signing_keys_that_were_put_back_are_not_used_on_postgres;
    publication_checks_are_recorded_once:
        publication_checks_are_recorded_once_in_memory,
        publication_checks_are_recorded_once_on_sqlite,
        publication_checks_are_recorded_once_on_postgres;
}
