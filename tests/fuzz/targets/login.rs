//! The body of a login.

#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| vault_http::fuzzing::login(body));
