//! Contract tests for the crypto ports: sealing, digests and MACs, access tokens, passwords and passcodes.
//!
//! Each macro takes an expression for a future that returns a subject: the adapters of a new instance, whose keys no
//! other instance has. It is evaluated as often as a case needs instances. An adapter contains, at the top level of a
//! file under `tests/`:
//!
//! ```
//! use std::sync::Arc;
//! use vault_core::id::InstanceId;
//! use vault_core::port::TokenIssuer;
//! use vault_testkit::clock::SequentialIds;
//! use vault_testkit::contract::TokenSubject;
//! use vault_testkit::crypto::FakeTokens;
//!
//! struct Deployment(InstanceId);
//!
//! impl TokenSubject for Deployment {
//!     fn issuer(&self) -> Arc<dyn TokenIssuer> {
//!         Arc::new(FakeTokens::new(self.0))
//!     }
//!
//!     fn instance(&self) -> InstanceId {
//!         self.0
//!     }
//! }
//!
//! async fn deployment() -> Deployment {
//!     use vault_core::port::IdGenerator as _;
//!     static IDS: std::sync::LazyLock<SequentialIds> = std::sync::LazyLock::new(SequentialIds::default);
//!     Deployment(InstanceId::from_uuid(IDS.random()))
//! }
//!
//! vault_testkit::token_contract!(deployment());
//! # fn main() {}
//! ```
//!
//! Fakes, which neither encrypt nor authenticate, put `fakes:` before the expression: the cases that only real
//! cryptography passes are then skipped.

use std::sync::Arc;
use vault_core::id::InstanceId;
use vault_core::port::{
    AuditSealer, InformationOpener, KeyRepository, KeyedDigester, Opener, PasscodeVerifier, PasswordHasher, Rewrapper,
    Sealer, TokenIssuer,
};

/// Ports of sealing.
#[derive(Clone)]
pub struct SealingPorts {
    /// Seals only. It cannot decrypt.
    pub sealer: Arc<dyn Sealer>,
    /// Decrypts information and metadata.
    pub lister: Arc<dyn InformationOpener>,
    /// Decrypts data.
    pub opener: Arc<dyn Opener>,
    /// Reseals under another key.
    pub rewrapper: Arc<dyn Rewrapper>,
}

/// Adapters of an instance that encrypt and decrypt credentials.
pub trait SealingSubject {
    /// Returns the ports, as a process that starts now has them. The organization keys are in `keys`.
    fn start(&self, keys: Arc<dyn KeyRepository>) -> SealingPorts;
}

/// Adapters of an instance that compute digests and MACs.
pub trait DigestSubject {
    /// Returns the adapter for digests, and for MACs of rows.
    fn digester(&self) -> Arc<dyn KeyedDigester>;

    /// Returns the adapter for MACs of audit records and checkpoints.
    fn audit_sealer(&self) -> Arc<dyn AuditSealer>;
}

/// Adapter of an instance that issues access tokens.
pub trait TokenSubject {
    /// Returns the port.
    fn issuer(&self) -> Arc<dyn TokenIssuer>;

    /// Returns the instance that the tokens name.
    fn instance(&self) -> InstanceId;
}

/// Adapter of an instance that hashes passwords. Cases hash several hundred times, so use the minimum parameters.
pub trait PasswordSubject {
    /// Returns the port.
    fn hasher(&self) -> Arc<dyn PasswordHasher>;
}

/// Adapter of an instance that creates and verifies passcodes.
pub trait PasscodeSubject {
    /// Returns the port.
    fn passcodes(&self) -> Arc<dyn PasscodeVerifier>;
}

/// Generates a test for every case of the sealing ports.
///
/// Takes an expression for a future that returns a [`SealingSubject`](crate::contract::SealingSubject) or, after
/// `fakes:`, one that does not encrypt.
#[macro_export]
macro_rules! sealing_contract {
    (@each $make:expr; $cryptography:ident) => {
        $crate::deployment_cases! { $make;
            sealing in "embed/own-store.md" {
                sealed_data_opens
                a_credential_is_sealed_under_the_key_that_is_named
                a_credential_opens_in_its_place_only
                a_list_is_of_one_organization
                a_list_may_lie_under_several_keys
                fingerprints_tell_data_apart_within_an_organization
                an_organization_without_keys_neither_seals_nor_opens
                new_keys_have_ids_of_their_own
                moved_data_opens_only_with_its_new_key
                what_does_not_open_is_not_moved
                no_secret_is_in_an_error
            }
        }
        $crate::$cryptography! { $make;
            sealed in "CRYPTO.md" {
                every_flipped_byte_is_refused
                every_other_length_is_refused
                nothing_is_sealed_twice_alike
                sealed_data_contains_no_plaintext
                another_deployment_opens_nothing
            }
        }
    };
    (fakes: $make:expr) => {
        $crate::sealing_contract! { @each $make; cases_without_fakes }
    };
    ($make:expr) => {
        $crate::sealing_contract! { @each $make; deployment_cases }
    };
}

/// Generates a test for every case of digests and MACs.
///
/// Takes an expression for a future that returns a [`DigestSubject`](crate::contract::DigestSubject) or, after
/// `fakes:`, one that has no keys.
#[macro_export]
macro_rules! digest_contract {
    (@each $make:expr; $cryptography:ident) => {
        $crate::deployment_cases! { $make;
            digest in "embed/own-store.md" {
                equal_parts_have_equal_digests
                digests_of_different_purposes_never_agree
                parts_do_not_run_together
                mac_verifies_only_for_signed_values
                digests_of_different_deployments_never_agree
            }
            entry_code in "embed/own-store.md" {
                a_change_of_any_field_shows
                a_change_of_any_column_shows
                a_change_of_a_checkpoint_shows
            }
        }
        $crate::$cryptography! { $make;
            keyed in "CRYPTO.md" {
                no_code_is_another_deployments
            }
        }
    };
    (fakes: $make:expr) => {
        $crate::digest_contract! { @each $make; cases_without_fakes }
    };
    ($make:expr) => {
        $crate::digest_contract! { @each $make; deployment_cases }
    };
}

/// Generates a test for every case of access tokens.
///
/// Takes an expression for a future that returns a [`TokenSubject`](crate::contract::TokenSubject) or, after `fakes:`,
/// one whose tokens can be forged.
#[macro_export]
macro_rules! token_contract {
    (@each $make:expr; $cryptography:ident) => {
        $crate::deployment_cases! { $make;
            token in "embed/own-store.md" {
                issued_tokens_verify
                every_flipped_bit_is_refused
                other_lengths_are_refused
                a_token_works_until_it_expires
                a_token_of_the_future_is_refused
                no_token_is_another_deployments
            }
        }
        $crate::$cryptography! { $make;
            forgery in "CRYPTO.md" {
                no_token_is_put_together_of_two
                debug_of_tokens_shows_no_content
            }
        }
    };
    (fakes: $make:expr) => {
        $crate::token_contract! { @each $make; cases_without_fakes }
    };
    ($make:expr) => {
        $crate::token_contract! { @each $make; deployment_cases }
    };
}

/// Generates a test for every case of passwords.
///
/// Takes an expression for a future that returns a [`PasswordSubject`](crate::contract::PasswordSubject) or, after
/// `fakes:`, one that stores passwords without hashing.
#[macro_export]
macro_rules! password_contract {
    (@each $make:expr; $cryptography:ident) => {
        $crate::deployment_cases! { $make;
            password in "embed/own-store.md" {
                the_right_password_and_no_other
                no_password_is_cut_short
                without_a_stored_password_every_password_is_wrong
                a_row_copied_to_another_account_refuses_both_passwords
                a_verifier_is_bound_to_the_password
            }
        }
        $crate::$cryptography! { $make;
            verifier in "CRYPTO.md" {
                every_damaged_row_is_refused
                no_password_is_stored
                equal_passwords_are_stored_differently
                no_password_is_another_deployments
            }
        }
    };
    (fakes: $make:expr) => {
        $crate::password_contract! { @each $make; cases_without_fakes }
    };
    ($make:expr) => {
        $crate::password_contract! { @each $make; deployment_cases }
    };
}

/// Generates a test for every case of passcodes.
///
/// Takes an expression for a future that returns a [`PasscodeSubject`](crate::contract::PasscodeSubject) or, after
/// `fakes:`, one that does not seal.
#[macro_export]
macro_rules! passcode_contract {
    (@each $make:expr; $cryptography:ident) => {
        $crate::deployment_cases! { $make;
            passcode in "embed/own-store.md" {
                current_and_previous_step_are_accepted
                a_recovery_code_is_no_time_based_code
                every_seed_has_codes_of_its_own
                a_seed_opens_in_its_place_only
                every_flipped_byte_of_a_seed_is_refused
                recovery_codes_are_ten_and_found_by_their_digest
            }
        }
        $crate::$cryptography! { $make;
            seed in "CRYPTO.md" {
                sealed_seed_contains_no_plaintext
                no_seed_is_another_deployments
            }
        }
    };
    (fakes: $make:expr) => {
        $crate::passcode_contract! { @each $make; cases_without_fakes }
    };
    ($make:expr) => {
        $crate::passcode_contract! { @each $make; deployment_cases }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! deployment_cases {
    ($make:expr; $($subject:ident in $page:literal { $($case:ident)* })*) => {
        $($crate::deployment_cases! { @one $make; $subject in $page { $($case)* } })*
    };
    (@one $make:expr; $subject:ident in $page:literal { $($case:ident)* }) => {
        mod $subject {
            #[allow(unused_imports, reason = "what makes the deployment lies where the contract is called for")]
            use super::*;

            $(
                #[test]
                fn $case() {
                    $crate::contract::run(async {}, $page, async |(): &_| {
                        $crate::contract::$subject::$case(async || $make.await).await;
                    });
                }
            )*
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! cases_without_fakes {
    ($make:expr; $($subject:ident in $page:literal { $($case:ident)* })*) => {
        $(mod $subject {
            $(
                #[test]
                #[ignore = "the adapter is declared to be a fake, which hides and proves nothing"]
                fn $case() {}
            )*
        })*
    };
}
