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
    signing_keys_change_only_in_version_read:
        signing_keys_change_only_in_version_read_in_memory,
        signing_keys_change_only_in_version_read_on_sqlite,
        signing_keys_change_only_in_version_read_on_postgres;
    signing_keys_change_with_the_keyring:
        signing_keys_change_with_the_keyring_in_memory,
        signing_keys_change_with_the_keyring_on_sqlite,
        signing_keys_change_with_the_keyring_on_postgres;
    findings_of_publication_checks_are_recorded_once:
        findings_of_publication_checks_are_recorded_once_in_memory,
        findings_of_publication_checks_are_recorded_once_on_sqlite,
        findings_of_publication_checks_are_recorded_once_on_postgres;
    signing_keys_move_to_the_next_instance_key:
        signing_keys_move_to_the_next_instance_key_in_memory,
        signing_keys_move_to_the_next_instance_key_on_sqlite,
        signing_keys_move_to_the_next_instance_key_on_postgres;
}
