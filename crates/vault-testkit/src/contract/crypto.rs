//! Contract tests for the crypto ports: sealing, digests and MACs, access tokens, passwords and passcodes.

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

/// Adapters of an instance under test.
pub trait CryptoSubject {
    /// Returns the ports of sealing, as a process that starts now has them. The organization keys are in `keys`.
    fn start(&self, keys: Arc<dyn KeyRepository>) -> SealingPorts;

    /// Returns the adapter for digests, and for MACs of rows.
    fn digester(&self) -> Arc<dyn KeyedDigester>;

    /// Returns the adapter for MACs of audit records and checkpoints.
    fn audit_sealer(&self) -> Arc<dyn AuditSealer>;

    /// Returns the issuer of access tokens.
    fn issuer(&self) -> Arc<dyn TokenIssuer>;

    /// Returns the instance that the tokens name.
    fn instance(&self) -> InstanceId;

    /// Returns the hasher of passwords. Cases hash several hundred times, so use the minimum parameters.
    fn hasher(&self) -> Arc<dyn PasswordHasher>;

    /// Returns the adapter that creates and verifies passcodes.
    fn passcodes(&self) -> Arc<dyn PasscodeVerifier>;
}

/// Generates a test for every case of the crypto ports.
///
/// Accepts an expression for a future that returns a [`CryptoSubject`](crate::contract::CryptoSubject): the adapters of
/// a new instance, whose keys no other instance has. It is evaluated as often as a case needs instances.
#[macro_export]
macro_rules! crypto_contract {
    ($make:expr) => {
        $crate::deployment_cases! { $make;
            sealing {
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
            sealed {
                every_flipped_byte_is_refused
                every_other_length_is_refused
                equal_data_has_different_ciphertexts
                sealed_data_contains_no_plaintext
                keys_of_another_deployment_open_nothing
            }
            digest {
                equal_parts_have_equal_digests
                digests_of_different_purposes_differ
                digest_parts_are_separated
                mac_verifies_only_for_signed_values
                digests_of_different_deployments_differ
            }
            entry_code {
                mac_covers_each_field_of_entry
                mac_covers_each_column_of_entry
                mac_covers_checkpoint
            }
            keyed {
                macs_of_another_deployment_do_not_verify
            }
            token {
                issued_tokens_verify
                every_flipped_bit_is_refused
                other_lengths_are_refused
                token_works_until_it_expires
                token_from_the_future_is_refused
                token_of_another_deployment_is_refused
            }
            forgery {
                tokens_cannot_be_spliced
                debug_of_tokens_shows_no_content
            }
            password {
                only_correct_password_verifies
                passwords_are_not_truncated
                missing_password_rejects_every_password
                row_copied_to_another_account_refuses_both_passwords
                verifier_is_bound_to_the_password
            }
            verifier {
                every_damaged_row_is_refused
                no_password_is_stored
                equal_passwords_are_stored_differently
                verifier_of_another_deployment_does_not_open
            }
            passcode {
                current_and_previous_step_are_accepted
                recovery_code_is_not_time_based
                every_seed_has_unique_passcodes
                seed_opens_only_in_its_row
                every_flipped_byte_of_a_seed_is_refused
                ten_recovery_codes_are_found_by_digest
            }
            seed {
                sealed_seed_contains_no_plaintext
                seed_of_another_deployment_does_not_open
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! deployment_cases {
    ($make:expr; $($subject:ident { $($case:ident)* })*) => {
        $($crate::deployment_cases! { @one $make; $subject { $($case)* } })*
    };
    (@one $make:expr; $subject:ident { $($case:ident)* }) => {
        mod $subject {
            #[allow(unused_imports, reason = "the constructor of the deployment is defined where the contract is invoked")]
            use super::*;

            $(
                #[test]
                fn $case() {
                    $crate::contract::run(async {}, async |(): &_| {
                        $crate::contract::$subject::$case(async || $make.await).await;
                    });
                }
            )*
        }
    };
}
