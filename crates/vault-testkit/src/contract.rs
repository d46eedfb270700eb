//! Contract tests: cases that every implementation of the store ports and crypto ports must pass.
//!
//! There is one module per subject and one function per case; its documentation states the guarantee. Each case creates
//! its own organizations and accounts under its own ids, so cases can share a database and run in any order and in
//! parallel, also in several processes. All cases set the time themselves and never wait for it.
//!
//! An adapter with all ports implements [`Subject`] and [`ContractStore`] and contains, at the top level of a file
//! under `tests/`:
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
//! Each case becomes a test named after it, for example `lockout::parallel_attempts_win_nothing`. A failing case prints
//! the page about its subject.
//!
//! An adapter with only the account ports implements [`Subject`] and [`AccountSubject`] and uses
//! `account_contract!(store())`. An adapter with only the operator ports implements [`OperatorSubject`] and uses
//! `operator_contract!(store())`.
//!
//! Ports of other groups do not create organizations: an adapter with only these also implements [`Organizations`], and
//! [`SessionSubject`] if it has sessions.
//!
//! | Ports of | Trait | Line |
//! |---|---|---|
//! | credentials | [`CredentialSubject`] | `credential_contract!(store())` |
//! | integrations | [`IntegrationSubject`] | `integration_contract!(store())` |
//! | activations | [`ActivationSubject`] | `activation_contract!(store())` |
//!
//! A store without sessions, used only for the users of embedding services, is declared by
//! `credential_contract!(embedders: store())` and `integration_contract!(embedders: store())`; the cases about sessions
//! are then skipped. The activation cases need no sessions, because integrations are the principals there.
//!
//! Crypto adapters use [`sealing_contract!`](crate::sealing_contract), [`digest_contract!`](crate::digest_contract),
//! [`token_contract!`](crate::token_contract), [`password_contract!`](crate::password_contract) and
//! [`passcode_contract!`](crate::passcode_contract).

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

use self::world::World;
use crate::clock::ManualClock;
use crate::memory::MemoryStore;
use async_trait::async_trait;
use std::future::Future;
use std::sync::Arc;
use vault_core::Command;
use vault_core::id::OrganizationId;
use vault_core::organization::OrganizationState;
use vault_core::port::{
    AccountStore, ActivationStore, ChangeCredential, ChangeIntegration, CreateIntegration, CreateOrganization,
    CredentialStore, DeleteCredential, EventStore, Expired, FreezeNamespace, InspectionStore, IntegrationStore,
    OperatorStore, RotationStore, SaveCredential,
};
use vault_core::principal::SessionPrincipal;
use vault_core::role::Role;
use vault_core::time::Timestamp;

/// All store ports.
pub trait Store:
    CredentialStore
    + OperatorStore
    + AccountStore
    + IntegrationStore
    + ActivationStore
    + RotationStore
    + InspectionStore
    + EventStore
    + 'static
{
}

impl<T> Store for T where
    T: CredentialStore
        + OperatorStore
        + AccountStore
        + IntegrationStore
        + ActivationStore
        + RotationStore
        + InspectionStore
        + EventStore
        + 'static
{
}

/// Store under test, with access that the suite needs and no port provides.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// Returns the actions in the audit records of an organization, by their stored names, in any order.
    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String>;

    /// Returns the names of the tables, or their equivalents, that contain rows of an organization, except the audit
    /// log.
    async fn rows(&self, organization: OrganizationId) -> Vec<String>;
}

/// Store under test with all ports.
pub trait ContractStore: Subject {
    /// Returns the ports.
    fn ports(&self) -> Arc<dyn Store>;
}

/// Store under test with the account ports: [`AccountStore`], including organizations.
pub trait AccountSubject: Subject {
    /// Returns the ports.
    fn accounts(&self) -> Arc<dyn AccountStore>;
}

impl<T: ContractStore> AccountSubject for T {
    fn accounts(&self) -> Arc<dyn AccountStore> {
        self.ports()
    }
}

/// Store under test with the operator ports: [`OperatorStore`].
pub trait OperatorSubject: Subject {
    /// Returns the ports.
    fn operator(&self) -> Arc<dyn OperatorStore>;
}

impl<T: ContractStore> OperatorSubject for T {
    fn operator(&self) -> Arc<dyn OperatorStore> {
        self.ports()
    }
}

/// Store under test that can create organizations, where no port of a group creates any.
#[async_trait]
pub trait Organizations: Subject {
    /// Adds an active organization with its keys.
    async fn add_organization(&self, command: CreateOrganization);

    /// Disables an organization for all users, or enables it again.
    async fn set_state(&self, organization: OrganizationId, state: OrganizationState);

    /// Deletes an organization with all its data except the audit log.
    async fn delete_organization(&self, organization: OrganizationId);
}

/// Store under test with the credential ports: [`CredentialStore`].
pub trait CredentialSubject: Organizations {
    /// Returns the ports.
    fn credentials(&self) -> Arc<dyn CredentialStore>;
}

/// Store under test with the integration ports: [`IntegrationStore`].
#[async_trait]
pub trait IntegrationSubject: Organizations {
    /// Returns the ports.
    fn integrations(&self) -> Arc<dyn IntegrationStore>;

    /// Saves a credential, which counts in its namespace.
    async fn add_credential(&self, command: Command<SaveCredential>);
}

/// Store under test with the activation ports: [`ActivationStore`].
///
/// The suite creates the data that activations depend on with the methods below. Commands have the form that the ports
/// of the same name accept, and none of them may be rejected.
#[async_trait]
pub trait ActivationSubject: Organizations {
    /// Returns the ports.
    fn activations(&self) -> Arc<dyn ActivationStore>;

    /// Creates an integration.
    async fn create_integration(&self, command: Command<CreateIntegration>);

    /// Changes or deletes an integration.
    async fn change_integration(&self, command: Command<ChangeIntegration>);

    /// Freezes or unfreezes a namespace.
    async fn freeze_namespace(&self, command: Command<FreezeNamespace>);

    /// Saves a credential.
    async fn save_credential(&self, command: Command<SaveCredential>);

    /// Replaces a credential's data or metadata, or stages or promotes a version.
    async fn change_credential(&self, command: Command<ChangeCredential>);

    /// Deletes a credential.
    async fn delete_credential(&self, command: Command<DeleteCredential>);
}

/// Store under test with sessions.
#[async_trait]
pub trait SessionSubject: Organizations {
    /// Creates two sessions of one new account with this role, at the time `now`.
    async fn sessions(&self, organization: OrganizationId, role: Role, now: Timestamp) -> [SessionPrincipal; 2];

    /// Ends a session.
    async fn end_session(&self, session: SessionPrincipal, now: Timestamp);
}

#[async_trait]
impl<T: ContractStore> Organizations for T {
    async fn add_organization(&self, command: CreateOrganization) {
        assert!(self.ports().create_organization(command).await.unwrap(), "a new name is free");
    }

    async fn set_state(&self, organization: OrganizationId, state: OrganizationState) {
        World::within(self, organization, ManualClock::START).set_state(state).await;
    }

    async fn delete_organization(&self, organization: OrganizationId) {
        let world = World::within(self, organization, ManualClock::START);
        assert!(world.store.delete_organization(organization::deletion(&world)).await.unwrap());
        while world.store.delete_expired(Expired::Erasures, world.now()).await.unwrap() > 0 {}
    }
}

impl<T: ContractStore> CredentialSubject for T {
    fn credentials(&self) -> Arc<dyn CredentialStore> {
        self.ports()
    }
}

#[async_trait]
impl<T: ContractStore> IntegrationSubject for T {
    fn integrations(&self) -> Arc<dyn IntegrationStore> {
        self.ports()
    }

    async fn add_credential(&self, command: Command<SaveCredential>) {
        self.ports().save_credential(command).await.unwrap();
    }
}

#[async_trait]
impl<T: ContractStore> ActivationSubject for T {
    fn activations(&self) -> Arc<dyn ActivationStore> {
        self.ports()
    }

    async fn create_integration(&self, command: Command<CreateIntegration>) {
        self.ports().create_integration(command).await.unwrap();
    }

    async fn change_integration(&self, command: Command<ChangeIntegration>) {
        self.ports().change_integration(command).await.unwrap();
    }

    async fn freeze_namespace(&self, command: Command<FreezeNamespace>) {
        assert!(self.ports().freeze_namespace(command).await.unwrap().is_some_and(|freezing| freezing.changed));
    }

    async fn save_credential(&self, command: Command<SaveCredential>) {
        self.ports().save_credential(command).await.unwrap();
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) {
        self.ports().change_credential(command).await.unwrap();
    }

    async fn delete_credential(&self, command: Command<DeleteCredential>) {
        assert!(self.ports().delete_credential(command).await.unwrap());
    }
}

#[async_trait]
impl<T: ContractStore> SessionSubject for T {
    async fn sessions(&self, organization: OrganizationId, role: Role, now: Timestamp) -> [SessionPrincipal; 2] {
        let world = World::within(self, organization, now);
        let holder = world.holder(role).await;
        [world.log_in(&holder).await, world.log_in(&holder).await]
    }

    async fn end_session(&self, session: SessionPrincipal, now: Timestamp) {
        let world = World::within(self, session.organization, now);
        assert!(world.store.end_session(world.end_session(&session)).await.unwrap());
    }
}

#[async_trait]
impl Subject for Arc<MemoryStore> {
    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        let ours = self.audit().into_iter().filter(|record| record.organization == Some(organization));
        ours.map(|record| record.action.as_str().to_owned()).collect()
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        MemoryStore::rows(self, organization)
    }
}

impl ContractStore for Arc<MemoryStore> {
    fn ports(&self) -> Arc<dyn Store> {
        Arc::clone(self) as Arc<dyn Store>
    }
}

/// Runs one case on the subject that `make` returns, on a separate runtime with several threads. `page` is the page
/// that states the guarantee.
#[allow(clippy::print_stdout, reason = "a test that fails shows what it printed")]
pub fn run<S>(make: impl Future<Output = S>, page: &str, case: impl AsyncFnOnce(&S)) {
    println!("What this case shows stands in its documentation and in docs/{page}.");
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
        $crate::credential_contract!($make);
        $crate::account_contract!($make);
        $crate::operator_contract!($make);
        $crate::integration_contract!($make);
        $crate::activation_contract!($make);
        $crate::contract_cases! { $make;
            whole in "embed/own-store.md" {
                disabling_ends_sessions_for_good
                deletion_leaves_nothing_but_the_audit
                deletion_frees_name_and_addresses
                deletion_leaves_others_alone
                what_cannot_be_recorded_does_not_happen
                sessions_list_their_own_organizations_entries
            }
            standing in "SECURITY.md" {
                an_ended_session_is_refused_everything
                an_expired_session_is_refused_everything
                a_changed_account_is_refused_everything
                a_disabled_organization_is_refused_everything
                a_session_is_worth_nothing_to_others
                the_end_of_a_session_takes_effect_at_once
                credentials_outlast_the_account_that_saved_them
            }
            inspection in "embed/own-store.md" {
                every_credential_has_a_place
                a_credential_is_read_whole
                every_row_under_the_instance_key_has_a_place
                closures_are_those_of_the_organization
                the_newest_entries_about_a_row_come_first
            }
            lookups in "CRYPTO.md" {
                an_address_is_unique_under_two_keys
                an_invitation_is_unique_under_two_keys
                a_moved_account_is_found_under_the_new_key
                a_credential_moves_if_it_is_as_read
            }
            receiver in "RECEIVERS.md" {
                receivers_are_their_organizations
                mail_goes_to_members_alone
                deliveries_are_stored_once_and_kept
                a_receiver_that_is_gone_is_disabled
                one_process_reads_events
                a_lockout_is_found_among_the_notices
            }
            health in "jobs/storage.md" {
                a_list_is_filtered_by_health
                counts_of_comparisons_are_deleted
                a_requested_check_is_made_once
                requested_checks_are_limited
                what_is_handed_out_is_a_use
                renewal_and_end_update_the_use
                a_check_before_a_save_is_the_health_of_its_version
                actions_of_integrations_are_counted
            }
            rotation in "ROTATION.md" {
                what_a_key_seals_is_found_in_slices
                parts_are_moved_and_nothing_else_changes
                what_changed_meanwhile_is_not_moved
                parts_are_moved_to_the_active_key_only
                a_key_is_destroyed_when_nothing_names_it
                metadata_that_was_moved_is_not_put_back
                a_rotation_beside_changes_loses_nothing
            }
            maintenance in "why/databases.md" {
                what_has_expired_is_deleted_in_slices
                the_store_answers
                credentials_are_counted_in_slices
                the_most_used_active_key_is_found
                a_re_enrolment_that_was_swept_revives_nothing
            }
            model in "why/databases.md" {
                random_commands_come_to_what_they_come_to_in_memory
            }
        }
    };
}

/// Generates a test for every case of the account ports: enrolment, logins, sessions and administration.
///
/// Accepts an expression for a future that returns an [`AccountSubject`](crate::contract::AccountSubject). It is
/// evaluated once per case.
#[macro_export]
macro_rules! account_contract {
    ($make:expr) => {
        $crate::contract_cases! { $make;
            account in "API.md" {
                an_account_is_found_as_it_was_made
                an_address_belongs_to_one_account
                parallel_creations_of_one_address_make_one
                an_account_needs_an_organization
                accounts_are_listed_by_organization_newest_first
                reading_a_passcode_is_recorded
            }
            account_change in "SECURITY.md" {
                a_grant_is_replaced
                a_password_is_replaced
                a_passcode_is_replaced
                an_account_is_deleted
                every_change_but_unlocking_ends_sessions
                a_role_that_returns_revives_no_session
                a_stale_or_stray_change_changes_nothing
                parallel_changes_of_one_version_make_one
            }
            authority in "SECURITY.md" {
                a_session_sees_its_own_organization
                an_ended_session_administers_nothing
                a_session_changes_its_own_organization
                the_last_active_admin_stays
                two_admins_do_not_take_each_other
                concurrent_demotions_keep_one_active_admin
            }
            invitation in "API.md" {
                an_invitation_is_found_as_it_was_made
                an_invited_address_is_taken
                the_first_to_confirm_has_the_address
                twenty_addresses_in_use_stop_invitations
                parallel_invitations_of_one_address_make_one
                an_invitation_that_is_over_is_replaced
                an_invitation_needs_an_organization
                the_newest_draft_counts
                a_confirmed_invitation_is_an_account
                parallel_confirmations_make_one_account
                a_stray_draft_or_confirmation_changes_nothing
                a_disabled_organization_enrols_nobody
                an_invited_role_is_replaced
                an_invitation_is_withdrawn
                an_admins_session_reaches_its_own_invitations
                a_role_lowered_beside_a_confirmation_is_lowered
            }
            re_enrolment in "SECURITY.md" {
                a_re_enrolling_account_has_nothing_to_log_in_with
                a_re_enrolled_account_is_what_it_was
                the_newest_re_enrolment_counts
                an_expired_re_enrolment_revives_nothing
                role_and_state_at_the_confirmation_hold
                a_deleted_account_is_not_re_enrolled
                a_confirmation_does_what_its_invitation_is_for
                a_disabled_organization_re_enrols_nobody
                a_session_re_enrols_its_own_organization
                owner_and_admins_get_notice_of_re_enrolment
                parallel_confirmations_re_enrol_once
                a_change_beside_a_re_enrolment_is_not_lost
                a_login_beside_a_re_enrolment_leaves_no_session
            }
            own_account in "API.md" {
                an_account_is_shown_to_its_owner
                an_ended_session_sees_no_account
                an_owner_replaces_the_password
                an_owner_replaces_the_recovery_codes
                an_owner_replaces_the_seed
                a_waiting_seed_is_tried_five_times_within_an_hour
                a_change_from_outside_drops_a_waiting_seed
                a_proof_needs_a_session_of_its_account
                a_proof_is_spent_once_whatever_for
                a_proof_resets_its_class_as_a_login_does
                owner_gets_notice_of_changes_by_others
            }
            lockout in "SECURITY.md" {
                a_reservation_carries_the_facts
                five_attempts_are_free_then_waits_double
                a_clock_set_back_ends_no_wait
                parallel_attempts_win_nothing
                parallel_attempts_from_a_known_network_win_nothing
                unknown_addresses_never_wait
                networks_are_known_to_all
                a_reset_lifts_closed_classes
                an_account_deleted_beside_attempts_is_nobody
                known_networks_are_classes_of_their_own
                networks_are_known_per_account
                a_hundred_attempts_close_a_class
                a_reservation_says_how_many_attempts_were_counted
                unlocking_lifts_waits_and_closed_classes
                a_login_resets_its_own_class
                a_network_is_forgotten_after_90_days
                the_ninth_network_replaces_the_one_unused_for_longest
            }
            login in "SECURITY.md" {
                a_login_makes_a_session
                a_step_is_spent_once_in_parallel
                a_recovery_code_is_spent_once_in_parallel
                an_earlier_step_is_refused
                only_the_accounts_own_recovery_codes_count
                a_recovery_code_spends_no_step
                a_login_is_overtaken_by_each_change
                a_login_is_overtaken_by_its_organization
                a_new_verifier_is_no_new_password
                a_refused_login_stores_no_verifier
                twenty_wrong_passcodes_disable_steps
                the_twentieth_wrong_passcode_is_recorded
                a_closed_class_is_recorded
                a_spent_step_is_no_wrong_passcode
                a_week_forgives_one_wrong_passcode
                a_wrong_password_spends_nothing
                parallel_wrong_passcodes_all_count
                a_refusal_outlasts_its_account
            }
            session in "SECURITY.md" {
                a_session_ends_once_in_parallel
                sessions_are_listed_to_their_owner
                the_latest_use_of_a_session_is_kept
                a_session_ends_another_of_its_account
            }
        }
    };
}

/// Generates a test for every case of the operator ports: organizations, the audit log and its checkpoints.
///
/// Accepts an expression for a future that returns an [`OperatorSubject`](crate::contract::OperatorSubject). It is
/// evaluated once per case. Keys and the audit log also belong to the credential ports and are tested with those.
#[macro_export]
macro_rules! operator_contract {
    ($make:expr) => {
        $crate::contract_cases! { $make;
            organization in "embed/own-store.md" {
                a_name_is_taken_once_whatever_its_case
                parallel_creations_of_one_name_make_one
                an_organization_is_found_by_id_and_name
                names_keep_their_spelling
                organizations_are_listed_by_name
                a_state_is_set
                parallel_deletions_delete_once
            }
            audit in "operate/audit.md" {
                entries_are_read_as_they_were_written
                entries_are_listed_in_ranges
                a_checkpoint_holds_its_entries
                a_checkpoint_that_does_not_fit_changes_nothing
                parallel_checkpoints_make_one_chain
            }
            issuer in "jobs/identity.md" {
                parallel_additions_of_one_issuer_make_one
                keys_are_noted_at_the_row_that_was_read
            }
        }
    };
}

/// Generates a test for every case of the credential ports.
///
/// Accepts an expression for a future that returns a [`SessionSubject`](crate::contract::SessionSubject) or, after
/// `embedders:`, a [`CredentialSubject`](crate::contract::CredentialSubject). It is evaluated once per case.
#[macro_export]
macro_rules! credential_contract {
    (@each $make:expr; $sessions:ident) => {
        $crate::contract_cases! { $make;
            tenant in "embed/own-store.md" {
                an_embedder_acts_while_its_organization_is_in_use
                a_closed_organization_is_denied_everything
                a_deleted_organization_leaves_its_audit_alone
                nothing_is_used_or_checked_without_an_activation_side
            }
            credential in "embed/own-store.md" {
                a_credential_is_shown_as_it_was_saved
                a_list_begins_with_the_newest
                a_list_is_filtered
                pages_are_stable_while_others_change_the_list
                organizations_see_nothing_of_each_other
                a_credential_is_deleted_once_in_parallel
                a_limit_is_kept
                a_limit_is_exact_in_parallel
                an_inactive_key_is_refused
                saves_at_once_are_judged_each_for_itself
                repeats_at_once_take_no_room
                deletes_at_once_are_judged_each_for_itself
            }
            version in "embed/own-store.md" {
                a_replaced_version_is_kept_beside_the_new_one
                a_version_is_staged_promoted_and_taken_back
                destroyed_version_is_deleted_immediately
                a_change_of_what_was_read_before_another_change_is_refused
                parallel_changes_of_one_revision_make_one
                a_replacement_has_one_effect_per_idempotency_key
                versions_change_for_their_own_organization_alone
                deletion_takes_all_versions
                the_previous_version_is_shown_with_the_credential
            }
            life in "embed/own-store.md" {
                what_is_said_of_a_credential_is_replaced
                metadata_needs_an_active_key
                a_list_is_filtered_by_labels
                a_list_is_filtered_by_expiry
                comparisons_are_counted
            }
            idempotency in "embed/own-store.md" {
                a_request_has_one_effect
                a_request_has_one_effect_in_parallel
                parallel_requests_under_one_key_have_one_effect
                keys_are_independent_per_account
                an_earlier_save_is_found
                keys_are_compared_exactly
                a_replay_outlasts_what_it_made
                a_refused_request_leaves_its_key_free
            }
            key in "embed/own-store.md" {
                an_instance_is_made_once
                the_root_key_is_replaced_once
                an_organizations_keys_are_read
                a_block_of_uses_is_taken_once
                uses_are_taken_of_the_active_key_only
                a_key_is_replaced_once
            }
            log in "embed/own-store.md" {
                entries_are_appended
                entries_need_no_organization
                entries_are_appended_all_or_none
                entries_belong_to_one_organization
                a_change_without_its_entry_does_not_happen
            }
            machine in "embed/own-store.md" {
                clients_at_once_see_one_order
            }
        }
        $crate::$sessions! { $make;
            member in "embed/own-store.md" {
                a_key_outlasts_its_session
                a_session_acts_until_it_ends
            }
        }
    };
    (embedders: $make:expr) => {
        $crate::credential_contract! { @each $make; skipped_cases }
    };
    ($make:expr) => {
        $crate::credential_contract! { @each $make; contract_cases }
    };
}

/// Generates a test for every case of the integration ports: integrations and frozen namespaces.
///
/// Accepts an expression for a future that returns an [`IntegrationSubject`](crate::contract::IntegrationSubject),
/// which must also be a [`SessionSubject`](crate::contract::SessionSubject) unless it follows `embedders:`. It is
/// evaluated once per case.
#[macro_export]
macro_rules! integration_contract {
    (@each $make:expr; $sessions:ident) => {
        $crate::contract_cases! { $make;
            integration in "jobs/run.md" {
                an_integration_is_found_as_it_was_made
                an_integrations_name_is_its_organizations_own
                parallel_integrations_of_one_name_make_one
                an_integration_needs_an_organization
                the_number_of_integrations_is_limited
                integrations_are_listed_by_organization_and_name
                a_stale_or_stray_change_of_an_integration_changes_nothing
                parallel_rotations_of_one_version_make_one
                an_integration_does_not_outlast_its_organization
                an_embedder_administers_its_own_organization
            }
            freeze in "jobs/run.md" {
                a_namespace_is_frozen_until_it_is_thawed
                parallel_freezes_of_one_namespace_make_one
                namespaces_are_listed_with_what_they_have
            }
        }
        $crate::$sessions! { $make;
            admin in "jobs/run.md" {
                an_admins_session_reaches_its_own_integrations
                an_ended_session_administers_no_integration
                a_session_freezes_its_own_organizations_namespaces
            }
        }
    };
    (embedders: $make:expr) => {
        $crate::integration_contract! { @each $make; skipped_cases }
    };
    ($make:expr) => {
        $crate::integration_contract! { @each $make; contract_cases }
    };
}

/// Generates a test for every case of the activation ports.
///
/// Accepts an expression for a future that returns an [`ActivationSubject`](crate::contract::ActivationSubject). It is
/// evaluated once per case.
#[macro_export]
macro_rules! activation_contract {
    ($make:expr) => {
        $crate::contract_cases! { $make;
            activation in "jobs/run.md" {
                a_token_finds_its_integration
                a_rotated_integration_is_found_by_both_tokens
                credentials_are_taken_as_they_were_saved
                an_activation_takes_the_current_version
                refusals_come_in_their_order
                freeze_takes_effect_during_activations
                a_changed_integration_is_refused
                a_closed_organizations_integrations_are_refused
                the_number_of_live_activations_is_exact
                activations_are_listed_to_their_integration
                an_activation_ends_once_in_parallel
                an_aborted_activation_is_gone
                the_use_of_a_token_is_noted_to_the_minute
            }
            issue_credentials in "jobs/run.md" {
                what_is_handed_out_is_recorded
                credentials_revoked_since_fetch_are_not_issued
                issuance_and_deletion_are_serialized
                concurrently_added_vend_rule_applies
                an_activation_is_renewed_while_it_lives
                a_refused_renewal_leaves_the_activation
                a_renewal_and_an_end_are_decided_one_after_the_other
            }
            check in "jobs/run.md" {
                checks_come_in_rounds
                a_check_is_of_the_version_that_it_was_made_of
                the_latest_activation_is_noted
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! contract_cases {
    ($make:expr; $($subject:ident in $page:literal { $($case:ident)* })*) => {
        $($crate::contract_cases! { @one $make; $subject in $page { $($case)* } })*
    };
    (@one $make:expr; $subject:ident in $page:literal { $($case:ident)* }) => {
        mod $subject {
            #[allow(unused_imports, reason = "what makes the store lies where the contract is called for")]
            use super::*;

            $(
                #[test]
                fn $case() {
                    $crate::contract::run($make, $page, async |store: &_| $crate::contract::$subject::$case(store).await);
                }
            )*
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! skipped_cases {
    ($make:expr; $($subject:ident in $page:literal { $($case:ident)* })*) => {
        $(mod $subject {
            $(
                #[test]
                #[ignore = "the store is declared to act for embedders alone, who have no sessions"]
                fn $case() {}
            )*
        })*
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

    /// The page names every module with cases.
    #[test]
    fn page_names_every_module_with_cases() {
        let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(crate_root.join("../../docs/embed/own-store.md")).unwrap();
        let mut modules = 0;
        for file in std::fs::read_dir(crate_root.join("src/contract")).unwrap() {
            let path = file.unwrap().path();
            if std::fs::read_to_string(&path).unwrap().contains("\npub async fn ") {
                let module = path.file_stem().unwrap().to_str().unwrap();
                assert!(page.contains(&format!("`{module}`")), "{module} is not on the page");
                modules += 1;
            }
        }
        assert!(modules > 30, "{modules}");
    }

    /// The page names every port.
    #[test]
    fn every_port_is_on_the_page() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
        let (page, listing) =
            (read("docs/EMBEDDING.md") + &read("docs/embed/own-store.md"), read("tests/public-api.txt"));
        let ports = listing.lines().filter_map(|line| line.strip_prefix("pub trait vault_core::port::"));
        let names = |text: &str| text.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect::<Vec<_>>();
        let ports: Vec<_> = ports.map(|port| names(port)[0].clone()).collect();
        let said = names(&page);
        let missing: Vec<_> = ports.iter().filter(|port| !said.contains(port)).collect();
        assert!(
            ports.len() > 30 && missing.is_empty(),
            "neither docs/EMBEDDING.md nor docs/embed/own-store.md names {missing:?}"
        );
    }

    #[test]
    fn every_page_is_there() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let lists = concat!(include_str!("contract.rs"), include_str!("contract/crypto.rs"));
        let pages = lists.split(" in \"").skip(1).filter_map(|rest| rest.split_once('"'));
        let pages: Vec<_> = pages.filter(|(_, rest)| rest.starts_with(" {")).map(|(page, _)| page).collect();
        assert!(pages.len() > 20 && pages.iter().all(|page| docs.join(page).is_file()), "{pages:?}");
    }
}
