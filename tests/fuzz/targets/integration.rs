//! The body of what is asked about an integration, or by one.

#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| vault_http::fuzzing::integration(body));
