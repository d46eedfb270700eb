//! Stores that violate one guarantee each: the contract suite must fail on them, in the listed case.

use async_trait::async_trait;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use vault_core::id::OrganizationId;
use vault_core::port::*;
use vault_testkit::contract::*;
use vault_testkit::faulty::Faulty;
use vault_testkit::memory::{Defect, MemoryStore};

/// A store in memory with its properties, and its ports as the suite sees them.
pub(crate) struct Subjected {
    pub(crate) memory: Arc<MemoryStore>,
    pub(crate) ports: Arc<dyn Store>,
}

#[async_trait]
impl ContractStore for Subjected {
    fn ports(&self) -> Arc<dyn Store> {
        Arc::clone(&self.ports)
    }

    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        self.memory.audit_actions(organization).await
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        self.memory.rows(organization).await
    }
}

type Wrong = Faulty<MemoryStore>;

fn passes(memory: MemoryStore, wrong: impl FnOnce(Wrong) -> Wrong, case: impl AsyncFnOnce(&Subjected)) -> bool {
    let memory = Arc::new(memory);
    let subject = Subjected { ports: Arc::new(wrong(Faulty::new(Arc::clone(&memory)))), memory };
    catch_unwind(AssertUnwindSafe(|| run(async { subject }, case))).is_ok()
}

#[test]
fn second_creation_of_the_instance_is_found() {
    let wrong =
        |store: Wrong| store.answering("create_instance", |answer: &mut Result<bool, StoreError>| *answer = Ok(true));
    let case = async |subject: &Subjected| key::instance_is_created_once(subject).await;
    assert!(!passes(MemoryStore::new(), wrong, case));
}

#[test]
fn defects_of_rows_are_found() {
    macro_rules! found {
        ($($defect:ident in $module:ident::$case:ident;)*) => {$(
            let case = async |subject: &Subjected| $module::$case(subject).await;
            assert!(!passes(MemoryStore::flawed(Defect::$defect), |store| store, case), stringify!($case));
        )*};
    }
    found! {
        AuditIsOptional in log::change_without_audit_entry_is_rolled_back;
        CountsLess in credential::limit_is_enforced;
        CountsLess in credential::limit_is_exact_in_parallel;
        CountsLess in machine::concurrent_clients_are_linearizable;
        ForgetsRequests in idempotency::request_has_one_effect;
        ForgetsRequests in idempotency::parallel_requests_under_one_key_have_one_effect;
        ForgetsRequests in idempotency::replay_outlives_created_credential;
        ForgetsRequests in machine::concurrent_clients_are_linearizable;
        KeepsVersions in version::destroyed_version_is_deleted_immediately;
        KeepsLabels in life::description_is_replaced;
        ReversesCredentials in activation::credentials_are_fetched_as_saved;
        HidesFreezes in activation::freeze_takes_effect_during_activations;
        CountsLess in activation::count_of_active_activations_is_exact;
        KeepsActivations in activation::aborted_activation_is_deleted;
        KeepsActivations in activation::activation_ends_once_in_parallel;
        SealsAgain in audit::mismatched_checkpoint_changes_nothing;
        RenewsNothing in issue_credentials::activation_is_renewable_until_expiry;
        IgnoresVendRules in issue_credentials::concurrently_added_vend_rule_applies;
        HidesCredentials in inspection::every_credential_has_a_row_key;
        InspectsLess in inspection::credential_is_read_completely;
        MixesNamespaces in inspection::newest_entries_of_a_row_are_first;
    }
}
