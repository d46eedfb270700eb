//! The body of an invitation, an enrolment, a change of an account or of one's own.

#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| vault_http::fuzzing::account(body));
