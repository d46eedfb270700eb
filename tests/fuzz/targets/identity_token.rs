//! An identity token of a workload; or, beginning with `{`, the keys of its issuer.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if text.starts_with('{') {
        vault_crypto::fuzzing::key_set(text);
    } else {
        vault_crypto::fuzzing::identity_token(text);
    }
});
