//! An e-mail address.

#![no_main]

use vault_core::email::EmailAddress;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let parsed = EmailAddress::parse(text);
    // The case of ASCII letters does not distinguish accounts, and does not affect whether an address is valid.
    assert_eq!(parsed, EmailAddress::parse(&text.to_ascii_uppercase()));
    assert_eq!(parsed, EmailAddress::parse(&text.to_ascii_lowercase()));
    match parsed {
        Ok(address) => {
            let canonical = address.as_str();
            assert_eq!(EmailAddress::parse(canonical).as_ref(), Ok(&address), "canonical once, canonical always");
            assert!(canonical.len() <= EmailAddress::MAX_LENGTH);
            assert!(canonical.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()));
            assert_eq!(canonical.matches('@').count(), 1);
            let local = text.rsplit_once('@').map(|(local, _)| local.to_ascii_lowercase());
            assert_eq!(Some(address.local_part()), local.as_deref(), "the local part is kept but for its case");
        }
        Err(error) => assert_eq!(error.to_string(), vault_core::email::InvalidEmailAddress.to_string()),
    }
});
