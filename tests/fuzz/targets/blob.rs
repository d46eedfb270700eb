//! Parses a stored sealed blob.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    vault_crypto::fuzzing::blob(bytes);
    vault_crypto::fuzzing::padding(bytes);
});
