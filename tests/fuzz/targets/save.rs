//! The body of a save: all four types of credential.

#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| vault_http::fuzzing::save(body));
