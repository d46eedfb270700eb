//! The footer of an access token, both as it travels and before its encoding.

#![no_main]

libfuzzer_sys::fuzz_target!(|footer: &[u8]| vault_crypto::fuzzing::token_footer(footer));
