//! The body of a request about an integration, or by one.

#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| vault_http::fuzzing::integration(body));
