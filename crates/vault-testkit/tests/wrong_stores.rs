//! Stores that violate one guarantee each: the contract suite must fail on them, in the listed case.

use async_trait::async_trait;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use vault_core::activation::{
    AbortActivation, FetchCredentials, FetchedCredential, ForIntegration, IssuanceRefusal, IssueCredentials,
};
use vault_core::id::{AccountId, OrganizationId};
use vault_core::port::*;
use vault_core::principal::{Principal, Scope};
use vault_testkit::clock::SequentialIds;
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

/// Each line has the violation of the store, its implementation, and the case that detects it.
macro_rules! wrong_stores {
    ($($does:ident: $alter:expr => $module:ident::$case:ident;)*) => {$(
        #[test]
        fn $does() {
            let case = async |subject: &Subjected| $module::$case(subject).await;
            assert!(!passes(MemoryStore::new(), $alter, case), "the case did not notice");
        }
    )*};
}

fn returns_true(method: &'static str) -> impl FnOnce(Wrong) -> Wrong {
    move |store| store.answering(method, |answer: &mut Result<bool, StoreError>| *answer = Ok(true))
}

fn returns_success(method: &'static str) -> impl FnOnce(Wrong) -> Wrong {
    move |store| store.answering(method, |answer: &mut Result<(), StoreError>| *answer = Ok(()))
}

/// Returns credentials for an activation that it must reject.
fn takes_anyway(refused: impl Fn(&StoreError) -> bool + Send + Sync + 'static) -> impl FnOnce(Wrong) -> Wrong {
    move |store| {
        store.answering("fetch_credentials", move |answer: &mut Result<Vec<FetchedCredential>, StoreError>| {
            if answer.as_ref().is_err_and(&refused) {
                *answer = Ok(Vec::new());
            }
        })
    }
}

wrong_stores! {
    it_reserves_a_block_of_uses_twice: returns_true("reserve_key_uses") => key::block_of_uses_is_reserved_once;
    it_replaces_a_key_twice: returns_true("replace_organization_key") => key::key_is_replaced_once;
    it_creates_two_instances: returns_true("create_instance") => key::instance_is_created_once;
    it_replaces_a_root_key_twice: returns_true("replace_root_key") => key::root_key_is_replaced_once;
    it_enrols_every_confirmation: returns_success("confirm_enrolment")
        => invitation::parallel_confirmations_create_one_account;
    it_re_enrols_every_confirmation: returns_success("confirm_enrolment")
        => re_enrolment::parallel_confirmations_re_enrol_once;
    it_invites_everybody: returns_success("create_invitation") => invitation::parallel_invitations_of_one_address_create_one;
    it_assigns_an_address_twice: returns_success("create_account")
        => account::parallel_creations_of_one_address_create_one;
    it_changes_an_account_twice: returns_success("change_account")
        => account_change::parallel_changes_of_one_version_apply_once;
    its_pages_of_accounts_restart: |store: Wrong| {
        let pages = Mutex::new(0);
        store.altered(move |query: &mut List<(OrganizationId, AccountId)>| {
            let mut pages = pages.lock().unwrap();
            *pages += 1; // not for ever, because the case must end
            if *pages < 8 {
                query.after = None;
            }
        })
    } => account::accounts_are_listed_by_organization_newest_first;
    it_lists_the_accounts_of_all: |store: Wrong| {
        store.altered(|query: &mut List<(OrganizationId, AccountId)>| {
            query.of = Scope::All;
            query.principal = Principal::Operator;
        })
    } => authority::session_lists_only_its_organization;
    it_takes_the_newest_first: |store: Wrong| {
        store.answering("fetch_credentials", |answer: &mut Result<Vec<FetchedCredential>, StoreError>| {
            if let Ok(taken) = answer {
                taken.reverse();
            }
        })
    } => activation::credentials_are_fetched_as_saved;
    it_fetches_from_frozen_namespaces: takes_anyway(|error| matches!(error, StoreError::Refused(vault_core::Refusal::Frozen)))
        => activation::freeze_takes_effect_during_activations;
    it_takes_more_than_allowed: |store: Wrong| {
        store.altered(|command: &mut ForIntegration<FetchCredentials>| command.payload.most += 1)
    } => activation::refusals_are_ordered;
    it_lets_a_changed_integration_act: takes_anyway(|error| matches!(error, StoreError::Denied(_)))
        => activation::changed_integration_is_refused;
    its_activations_outlast_their_time: |store: Wrong| {
        store.altered(|command: &mut ForIntegration<FetchCredentials>| {
            if let Some(activation) = &mut command.payload.activation {
                activation.expires_at = activation.expires_at.plus_seconds(1);
            }
        })
    } => activation::activations_are_listed_to_their_integration;
    it_keeps_aborted_activations: |store: Wrong| {
        let ids = SequentialIds::seeded(9);
        store.altered(move |command: &mut AbortActivation| {
            command.activation = vault_core::id::ActivationId::from_uuid(ids.random());
        })
    } => activation::aborted_activation_is_deleted;
    it_records_no_issuance: |store: Wrong| {
        store.altered(|command: &mut ForIntegration<IssueCredentials>| {
            command.audit.record.action = vault_core::audit::AuditAction::ActivationStarted;
        })
    } => issue_credentials::issuance_is_recorded;
    it_issues_deleted_credentials: |store: Wrong| {
        store.altered(|command: &mut ForIntegration<IssueCredentials>| command.payload.credentials.clear())
    } => issue_credentials::issuance_and_deletion_are_serialized;
    it_renews_nothing: |store: Wrong| {
        store.altered(|command: &mut ForIntegration<IssueCredentials>| command.payload.renewal = false)
    } => issue_credentials::activation_is_renewable_until_expiry;
    it_gives_up_what_it_does_not_renew: |store: Wrong| {
        store.altered(|command: &mut ForIntegration<IssueCredentials>| command.payload.renewal = false)
    } => issue_credentials::refused_renewal_keeps_activation;
    it_renews_what_has_ended: |store: Wrong| {
        store.answering("issue_credentials", |answer: &mut Result<Option<IssuanceRefusal>, StoreError>| {
            *answer = Ok(Some(IssuanceRefusal::Changed));
        })
    } => issue_credentials::renewal_and_end_are_serialized;
    it_ignores_vend_rules: |store: Wrong| {
        store.altered(|command: &mut ForIntegration<IssueCredentials>| {
            for one in &mut command.payload.credentials {
                one.form = vault_core::activation::VendedForm::Short;
            }
        })
    } => issue_credentials::concurrently_added_vend_rule_applies;
    it_sets_the_last_activation_back: |store: Wrong| {
        let latest = Mutex::new(None::<vault_core::time::Timestamp>);
        store.answering("fetch_credentials", move |answer: &mut Result<Vec<FetchedCredential>, StoreError>| {
            for row in answer.iter_mut().flatten() {
                let mut latest = latest.lock().unwrap();
                row.last_activated_at = row.last_activated_at.map(|at| {
                    let shown = latest.map_or(at, |_| at.plus_seconds(-60));
                    *latest = Some(at);
                    shown
                });
            }
        })
    } => check::latest_activation_is_recorded;
    it_ends_an_activation_twice: returns_true("end_activation") => activation::activation_ends_once_in_parallel;
    it_has_room_for_one_activation_too_many: |store: Wrong| {
        store.altered(|command: &mut ForIntegration<FetchCredentials>| {
            if let Some(activation) = &mut command.payload.activation {
                activation.limit += 1;
            }
        })
    } => activation::count_of_active_activations_is_exact;
    it_issues_to_revoked_integrations: |store: Wrong| {
        store.answering("issue_credentials", |answer: &mut Result<Option<IssuanceRefusal>, StoreError>| *answer = Ok(None))
    } => issue_credentials::credentials_revoked_since_fetch_are_not_issued;
    it_hides_credentials_from_inspections: |store: Wrong| {
        store.answering("credential_places", |answer: &mut Result<Vec<StoredRowKey>, StoreError>| *answer = Ok(Vec::new()))
    } => inspection::every_credential_has_a_row_key;
    it_inspects_the_current_version_alone: |store: Wrong| {
        store.answering("whole_credential", |answer: &mut Result<Option<WholeCredential>, StoreError>| {
            if let Ok(Some(whole)) = answer {
                whole.sealed.retain(|taken| taken.version == whole.versions.current.version);
            }
        })
    } => inspection::credential_is_read_completely;
    it_takes_any_namespaces_entries: |store: Wrong| {
        store.altered(|query: &mut RecordedStates| query.namespace = None)
    } => inspection::newest_entries_of_a_row_are_first;
    it_lists_the_audit_of_all: |store: Wrong| {
        store.altered(|query: &mut List<String, AuditRange>| {
            query.of.scope = Scope::All;
            query.principal = Principal::Operator;
        })
    } => whole::sessions_list_their_own_organizations_entries;
    it_adds_any_checkpoint: returns_true("add_checkpoint") => audit::mismatched_checkpoint_changes_nothing;
    it_destroys_keys_in_use: |store: Wrong| {
        store.answering("destroy_organization_key", |answer: &mut Result<KeyDestruction, StoreError>| {
            *answer = Ok(KeyDestruction::Destroyed);
        })
    } => rotation::unreferenced_key_is_destroyed;
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
        AuditIsOptional in whole::unrecordable_change_is_rolled_back;
        AuditIsOptional in log::change_without_audit_entry_is_rolled_back;
        CountsLess in credential::limit_is_enforced;
        CountsLess in credential::limit_is_exact_in_parallel;
        CountsLess in machine::concurrent_clients_are_linearizable;
        AnyKeyIsActive in credential::inactive_key_is_refused;
        ForgetsRequests in idempotency::request_has_one_effect;
        ForgetsRequests in idempotency::parallel_requests_under_one_key_have_one_effect;
        ForgetsRequests in idempotency::replay_outlives_created_credential;
        ForgetsRequests in machine::concurrent_clients_are_linearizable;
        KeepsVersions in version::destroyed_version_is_deleted_immediately;
        KeepsLabels in life::credential_metadata_is_replaced;
    }
}
