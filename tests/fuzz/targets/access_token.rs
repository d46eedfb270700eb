//! An access token; or, beginning with `{`, what an authentic one says.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if text.starts_with('{') {
        vault_crypto::fuzzing::token_payload(text);
    } else {
        vault_crypto::fuzzing::access_token(text);
    }
});
