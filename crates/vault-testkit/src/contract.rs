//! Contract tests: cases that every implementation of the store ports and crypto ports must pass.
//!
//! There is one module per subject and one function per case; its documentation states the guarantee. Each case creates
//! its own organizations and accounts under its own ids, so cases can share a database and run in any order and in
//! parallel, also in several processes. All cases set the time themselves and never wait for it.
//!
//! A store implements [`ContractStore`], and a file under `tests/` contains at its top level:
//!
//! ```
//! use std::sync::Arc;
//! use vault_testkit::memory::MemoryStore;
//!
//! async fn store() -> Arc<MemoryStore> {
//!     Arc::new(MemoryStore::new())
//! }
//!
//! vault_testkit::store_contract!(store());
//! # fn main() {}
//! ```
//!
//! Each case becomes a test named after it, for example `lockout::parallel_attempts_gain_nothing`.
//!
//! Crypto adapters use [`crypto_contract!`](crate::crypto_contract).

pub mod account;
pub mod account_change;
pub mod activation;
mod activators;
pub mod admin;
pub mod audit;
pub mod authority;
pub mod check;
pub mod credential;
mod crypto;
pub mod digest;
pub mod entity;
pub mod entry_code;
pub mod federation;
pub mod forgery;
pub mod freeze;
pub mod health;
pub mod idempotency;
pub mod inspection;
pub mod instance_rotation;
pub mod integration;
pub mod invitation;
pub mod issue_credentials;
pub mod issuer;
pub mod key;
pub mod keyed;
pub mod life;
pub mod lockout;
pub mod log;
pub mod login;
pub mod lookups;
pub mod machine;
pub mod maintenance;
pub mod member;
mod members;
pub mod model;
mod model_activators;
pub mod organization;
pub mod own_account;
pub mod passcode;
pub mod password;
pub mod re_enrolment;
pub mod receiver;
pub mod restore;
pub mod rotation;
pub mod sealed;
pub mod sealing;
pub mod seed;
pub mod session;
pub mod standing;
pub mod tenant;
pub mod token;
mod tools;
pub mod verifier;
pub mod version;
pub mod whole;
mod world;

pub use self::crypto::*;

use crate::memory::MemoryStore;
use async_trait::async_trait;
use std::future::Future;
use std::sync::Arc;
use vault_core::id::OrganizationId;
use vault_core::port::{AccountStore, InspectionStore, OperatorStore, RotationStore, RowStore};

/// All store ports.
pub trait Store: OperatorStore + AccountStore + RotationStore + InspectionStore + RowStore + 'static {}

impl<T> Store for T where T: OperatorStore + AccountStore + RotationStore + InspectionStore + RowStore + 'static {}

/// Store under test, with access that the suite needs and no port provides.
#[async_trait]
pub trait ContractStore: Send + Sync + 'static {
    /// Returns the ports.
    fn ports(&self) -> Arc<dyn Store>;

    /// Returns the actions in the audit records of an organization, by their stored names, in any order.
    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String>;

    /// Returns the names of the tables, or their equivalents, that contain rows of an organization, except the audit
    /// log.
    async fn rows(&self, organization: OrganizationId) -> Vec<String>;
}

#[async_trait]
impl ContractStore for Arc<MemoryStore> {
    fn ports(&self) -> Arc<dyn Store> {
        Arc::clone(self) as Arc<dyn Store>
    }

    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        let ours = self.audit().into_iter().filter(|record| record.organization == Some(organization));
        ours.map(|record| record.action.as_str().to_owned()).collect()
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        MemoryStore::rows(self, organization)
    }
}

/// Runs one case on the subject that `make` returns, on a separate runtime with several threads.
pub fn run<S>(make: impl Future<Output = S>, case: impl AsyncFnOnce(&S)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let subject = make.await;
        case(&subject).await;
    });
}

/// Generates a test for every case.
///
/// Accepts an expression for a future that returns a [`ContractStore`](crate::contract::ContractStore). It is evaluated
/// once per case.
#[macro_export]
macro_rules! store_contract {
    ($make:expr) => {
        $crate::contract_cases! { $make;
            tenant {
                embedder_is_authorized_while_organization_is_active
                closed_organization_is_denied_every_operation
                deleted_organization_keeps_its_audit_log
                uses_and_checks_require_activation_process
            }
            credential {
                credential_is_shown_as_saved
                list_starts_with_newest
                list_is_filtered
                pages_are_stable_while_others_change_the_list
                organizations_are_isolated
                credential_is_deleted_once_in_parallel
                limit_is_enforced
                limit_is_exact_in_parallel
                inactive_key_is_refused
                concurrent_saves_are_decided_independently
                concurrent_repeats_do_not_count_towards_limit
                concurrent_deletes_are_decided_independently
            }
            version {
                replaced_version_is_kept_with_new_one
                version_is_staged_promoted_and_withdrawn
                destroyed_version_is_deleted_immediately
                change_of_stale_revision_is_refused
                parallel_changes_of_one_revision_apply_once
                replacement_has_one_effect_per_idempotency_key
                versions_change_only_for_their_organization
                deletion_removes_all_versions
                previous_version_is_shown_with_the_credential
            }
            life {
                credential_metadata_is_replaced
                metadata_needs_an_active_key
                list_is_filtered_by_labels
                list_is_filtered_by_expiry
                comparisons_are_counted
            }
            idempotency {
                request_has_one_effect
                request_has_one_effect_in_parallel
                parallel_requests_under_one_key_have_one_effect
                keys_are_independent_per_account
                earlier_save_is_found
                keys_are_compared_exactly
                replay_outlives_created_credential
                refused_request_leaves_its_key_free
            }
            key {
                instance_is_created_once
                root_key_is_replaced_once
                organization_keys_are_read
                block_of_uses_is_reserved_once
                uses_are_reserved_only_of_active_key
                key_is_replaced_once
            }
            log {
                entries_are_appended
                entries_may_lack_organization
                entries_are_appended_all_or_none
                entries_belong_to_one_organization
                change_without_audit_entry_is_rolled_back
            }
            machine {
                concurrent_clients_are_linearizable
            }
            member {
                idempotency_key_outlives_its_session
                session_is_authorized_until_it_ends
            }
            account {
                account_is_found_as_created
                address_belongs_to_one_account
                parallel_creations_of_one_address_create_one
                account_requires_organization
                accounts_are_listed_by_organization_newest_first
            }
            account_change {
                account_rights_are_replaced
                account_is_deleted
                every_change_but_unlocking_ends_sessions
                restored_role_does_not_revive_sessions
                stale_or_stray_change_changes_nothing
                parallel_changes_of_one_version_apply_once
            }
            authority {
                session_lists_only_its_organization
                ended_session_cannot_administer
                session_changes_only_its_organization
                last_active_admin_cannot_be_removed
                admins_cannot_demote_each_other_concurrently
                concurrent_demotions_keep_one_active_admin
            }
            invitation {
                invitation_is_found_as_created
                invited_address_is_reserved
                first_confirmation_gets_address
                twenty_addresses_in_use_stop_invitations
                parallel_invitations_of_one_address_create_one
                expired_invitation_is_replaced
                invitation_requires_organization
                newest_draft_applies
                confirmed_invitation_creates_account
                parallel_confirmations_create_one_account
                stray_draft_or_confirmation_changes_nothing
                disabled_organization_refuses_enrolment
                invited_role_is_replaced
                invitation_is_withdrawn
                admin_session_manages_only_own_invitations
                concurrently_lowered_role_is_lowered
            }
            re_enrolment {
                re_enrolling_account_cannot_log_in
                re_enrolled_account_keeps_role_and_data
                newest_re_enrolment_applies
                expired_re_enrolment_revives_nothing
                role_and_state_at_confirmation_apply
                deleted_account_is_not_re_enrolled
                confirmation_creates_or_re_enrols_by_invitation
                disabled_organization_refuses_re_enrolment
                session_re_enrols_only_in_its_organization
                owner_and_admins_get_notice_of_re_enrolment
                parallel_confirmations_re_enrol_once
                concurrent_change_survives_re_enrolment
                concurrent_login_leaves_no_session_after_re_enrolment
            }
            own_account {
                owner_reads_own_account
                owner_sets_concerns_aside
                ended_session_cannot_read_account
                owner_replaces_the_password
                owner_replaces_the_recovery_codes
                owner_replaces_the_seed
                pending_seed_allows_five_attempts_within_an_hour
                change_by_others_drops_pending_seed
                re_authentication_requires_session_of_account
                passcode_is_spent_once_across_operations
                re_authentication_resets_its_bucket
                owner_gets_notice_of_changes_by_others
            }
            lockout {
                reservation_contains_login_facts
                lockout_doubles_after_five_attempts
                clock_moved_back_ends_no_lockout
                parallel_attempts_gain_nothing
                parallel_attempts_from_known_network_gain_nothing
                unknown_addresses_are_never_locked_out
                known_networks_are_shared_by_processes
                account_deleted_during_attempts_is_unknown
                known_networks_have_separate_buckets
                known_networks_are_per_account
                hundred_attempts_lock_bucket
                reservation_returns_attempt_count
                unlocking_resets_lockouts_and_locked_buckets
                login_resets_only_its_bucket
                known_network_expires_after_90_days
                ninth_network_replaces_least_recently_used
            }
            login {
                login_creates_session
                step_is_spent_once_in_parallel
                recovery_code_is_spent_once_in_parallel
                earlier_step_is_refused
                only_own_recovery_codes_are_accepted
                recovery_code_spends_no_step
                login_fails_after_concurrent_account_change
                login_fails_after_organization_is_disabled
                rehash_is_no_password_change
                refused_login_stores_no_verifier
                twenty_wrong_passcodes_disable_steps
                twentieth_wrong_passcode_is_recorded
                locked_bucket_is_recorded
                spent_step_does_not_count_as_wrong
                wrong_passcode_count_decreases_weekly
                wrong_password_spends_nothing
                parallel_wrong_passcodes_all_count
                refusal_outlives_its_account
            }
            session {
                session_ends_once_in_parallel
                sessions_are_listed_to_their_owner
                latest_use_of_a_session_is_kept
                session_ends_another_of_its_account
            }
            organization {
                parallel_creations_of_one_name_create_one
                organization_is_found_by_id_and_name
                names_keep_their_spelling
                organizations_are_listed_by_name
                organization_state_is_set
                parallel_deletions_delete_once
            }
            audit {
                entries_are_read_as_written
                entries_are_listed_in_ranges
                checkpoint_covers_its_entries
                mismatched_checkpoint_changes_nothing
                parallel_checkpoints_form_one_chain
            }
            issuer {
                parallel_additions_of_one_issuer_create_one
                issuer_keys_are_recorded_only_in_row_read
            }
            integration {
                integration_is_found_as_created
                integration_name_is_scoped_to_organization
                parallel_integrations_of_one_name_create_one
                integration_requires_organization
                number_of_integrations_is_limited
                integrations_are_listed_by_organization_and_name
                stray_change_of_an_integration_changes_nothing
                parallel_rotations_apply_one_after_the_other
                expiring_integrations_are_found
                integration_is_deleted_with_organization
                users_administer_only_their_organization
            }
            entity {
                operation_that_records_nothing_changes_nothing
                versions_of_an_entity_rise_without_gaps
                entity_that_was_put_back_is_not_signed_again
                document_opens_only_in_its_row
                planted_lookup_leads_to_nothing
                entities_are_read_in_the_order_of_their_keys
            }
            freeze {
                namespace_is_frozen_until_it_is_thawed
                parallel_freezes_of_one_namespace_freeze_once
                namespaces_are_listed_with_counts
            }
            admin {
                session_freezes_only_namespaces_of_its_organization
            }
            activation {
                token_finds_its_integration
                rotated_integration_is_found_by_both_tokens
                credentials_are_fetched_as_saved
                activation_fetches_current_version
                refusals_are_ordered
                freeze_takes_effect_during_activations
                changed_integration_is_refused
                closed_organizations_integrations_are_refused
                count_of_active_activations_is_exact
                activations_are_listed_to_their_integration
                activation_ends_once_in_parallel
                aborted_activation_is_deleted
                token_use_is_recorded_to_the_minute
            }
            issue_credentials {
                issuance_is_recorded
                credentials_revoked_since_fetch_are_not_issued
                issuance_and_deletion_are_serialized
                concurrently_added_vend_rule_applies
                activation_is_renewable_until_expiry
                refused_renewal_keeps_activation
                renewal_and_end_are_serialized
            }
            check {
                checks_are_due_in_rounds
                check_result_applies_to_checked_version
                latest_activation_is_recorded
            }
            whole {
                disabling_revokes_sessions_permanently
                deletion_leaves_only_audit_log
                deletion_frees_name_and_addresses
                deletion_affects_no_other_organization
                unrecordable_change_is_rolled_back
                sessions_list_their_own_organizations_entries
            }
            standing {
                ended_session_is_refused_by_every_operation
                expired_session_is_refused_by_every_operation
                changed_account_is_refused_by_every_operation
                disabled_organization_is_refused_by_every_operation
                session_is_refused_for_other_organizations
                session_end_takes_effect_immediately
                credentials_outlive_account_that_saved_them
            }
            inspection {
                every_credential_has_a_row_key
                credential_is_read_completely
                every_row_under_instance_key_has_a_row_key
                changed_namespaces_are_read_by_organization
                newest_entries_of_a_row_are_first
                entries_with_states_are_returned_by_subject
                existing_rows_are_those_of_their_kind_and_place
            }
            lookups {
                address_is_unique_under_two_keys
                invitation_is_unique_under_two_keys
                rekeyed_account_is_found_under_new_key
                credential_is_rekeyed_only_if_unchanged
            }
            receiver {
                receivers_are_scoped_to_organization
                mail_is_sent_only_to_users
                deliveries_are_stored_once_and_kept
                receiver_that_returns_gone_is_disabled
                one_process_reads_events
                lockout_is_listed_in_notices
            }
            health {
                list_is_filtered_by_health
                counts_of_comparisons_are_deleted
                requested_check_runs_once
                requested_checks_are_limited
                issuance_is_recorded_as_use
                renewal_and_end_update_the_use
                holders_of_each_version_are_counted
                check_before_save_is_health_of_version
                actions_of_integrations_are_counted
            }
            rotation {
                rows_under_a_key_are_found_in_slices
                parts_are_resealed_and_other_columns_unchanged
                concurrently_changed_rows_are_not_resealed
                parts_are_resealed_only_under_active_key
                unreferenced_key_is_destroyed
                resealed_metadata_is_not_reverted
                rotation_with_concurrent_changes_loses_nothing
            }
            maintenance {
                expired_rows_are_deleted_in_slices
                store_responds_to_check
                credentials_are_counted_in_slices
                most_used_active_key_is_found
                deleted_re_enrolment_revives_nothing
            }
            model {
                random_commands_match_in_memory_store
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! contract_cases {
    ($make:expr; $($subject:ident { $($case:ident)* })*) => {
        $($crate::contract_cases! { @one $make; $subject { $($case)* } })*
    };
    (@one $make:expr; $subject:ident { $($case:ident)* }) => {
        mod $subject {
            #[allow(unused_imports, reason = "the constructor of the store is defined where the contract is invoked")]
            use super::*;

            $(
                #[test]
                fn $case() {
                    $crate::contract::run($make, async |store: &_| $crate::contract::$subject::$case(store).await);
                }
            )*
        }
    };
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// A case that is not in the list would never run.
    #[test]
    fn every_case_is_in_the_list() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/contract");
        let list = concat!(include_str!("contract.rs"), include_str!("contract/crypto.rs"));
        let mut cases = 0;
        for file in std::fs::read_dir(source).unwrap() {
            let path = file.unwrap().path();
            let alone = ["restore.rs", "instance_rotation.rs", "federation.rs"];
            if alone.iter().any(|name| path.ends_with(name)) {
                continue; // each of its cases needs a separate database
            }
            let text = std::fs::read_to_string(path).unwrap();
            let parts: Vec<_> = text.split("\npub async fn ").collect();
            for (before, rest) in parts.iter().zip(&parts[1..]) {
                let case = rest.split(['(', '<']).next().unwrap();
                if case == "play" {
                    continue; // what a failing sequence is pasted into
                }
                assert!(list.contains(&format!("                {case}\n")), "{case} is in no contract");
                assert!(before.lines().last().unwrap().starts_with("/// "), "{case} does not say what it guarantees");
                cases += 1;
            }
        }
        assert!(cases > 80, "{cases}");
    }
}
