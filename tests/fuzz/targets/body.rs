//! The body of a request with a type of its own.

#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| vault_http::fuzzing::body(body));
