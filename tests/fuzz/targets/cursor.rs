//! The query of a list, and the cursor in it.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    vault_http::fuzzing::list_query(text);
    vault_crypto::fuzzing::cursor(text);
});
