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
                credential_is_sealed_under_the_key_that_is_named
                credential_opens_only_in_its_row
                list_opens_only_for_one_organization
                list_may_use_several_keys
                fingerprints_distinguish_data_within_organization
                organization_without_keys_neither_seals_nor_opens
                new_keys_have_unique_ids
                moved_data_opens_only_with_its_new_key
                unopenable_data_is_not_resealed
                errors_contain_no_secret
            }
        }
        $crate::$cryptography! { $make;
            sealed in "CRYPTO.md" {
                every_flipped_byte_is_refused
                every_other_length_is_refused
                equal_data_has_different_ciphertexts
                sealed_data_contains_no_plaintext
                keys_of_another_deployment_open_nothing
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
                digests_of_different_purposes_differ
                digest_parts_are_separated
                mac_verifies_only_for_signed_values
                digests_of_different_deployments_differ
            }
            entry_code in "embed/own-store.md" {
                mac_covers_each_field_of_entry
                mac_covers_each_column_of_entry
                mac_covers_checkpoint
            }
        }
        $crate::$cryptography! { $make;
            keyed in "CRYPTO.md" {
                macs_of_another_deployment_do_not_verify
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
                token_works_until_it_expires
                token_from_the_future_is_refused
                token_of_another_deployment_is_refused
            }
        }
        $crate::$cryptography! { $make;
            forgery in "CRYPTO.md" {
                tokens_cannot_be_spliced
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
                only_correct_password_verifies
                passwords_are_not_truncated
                missing_password_rejects_every_password
                row_copied_to_another_account_refuses_both_passwords
                verifier_is_bound_to_the_password
            }
        }
        $crate::$cryptography! { $make;
            verifier in "CRYPTO.md" {
                every_damaged_row_is_refused
                no_password_is_stored
                equal_passwords_are_stored_differently
                verifier_of_another_deployment_does_not_open
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
                recovery_code_is_not_time_based
                every_seed_has_unique_passcodes
                seed_opens_only_in_its_row
                every_flipped_byte_of_a_seed_is_refused
                ten_recovery_codes_are_found_by_digest
            }
        }
        $crate::$cryptography! { $make;
            seed in "CRYPTO.md" {
                sealed_seed_contains_no_plaintext
                seed_of_another_deployment_does_not_open
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
            #[allow(unused_imports, reason = "the constructor of the deployment is defined where the contract is invoked")]
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
