//! An access token or, if the input starts with `{`, the claims of an authentic one.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if text.starts_with('{') {
        vault_crypto::fuzzing::token_payload(text);
    } else {
        vault_crypto::fuzzing::access_token(text);
    }
});
