//! Accepted and refused passwords.

use proptest::prelude::*;
use secrecy::{ExposeSecret, SecretString};
use vault_core::email::EmailAddress;
use vault_core::password::{PasswordError, check_new_password, generate_password};
use vault_core::port::{Entropy, NoEntropy};

fn check(password: &str) -> Result<(), PasswordError> {
    let email = EmailAddress::parse("jane.doe@corp.example").unwrap();
    check_new_password(&SecretString::from(password), &email, "Corp Industries")
}

#[test]
fn common_passwords_are_refused() {
    assert_eq!(check("short"), Err(PasswordError::TooShort));
    assert_eq!(check(&"x".repeat(1_025)), Err(PasswordError::TooLong));
    for common in ["password", "Password1", "12345678", "QWERTYUIOP", "iloveyou", "trustno1"] {
        assert_eq!(check(common), Err(PasswordError::Common), "{common}");
    }
    for guess in ["jane.doe@corp.example", "Jane.Doe", "jane.doe123", "corp industries", "OrgVault", "orgvault2026!"] {
        assert_eq!(check(guess), Err(PasswordError::Guessable), "{guess}");
    }
}

#[test]
fn address_with_other_trailing_digits_is_refused_as_password() {
    let email = EmailAddress::parse("jane1985@corp.example").unwrap();
    for guess in ["jane1985", "jane19850", "Jane1985!"] {
        let checked = check_new_password(&SecretString::from(guess), &email, "Area 51");
        assert_eq!(checked, Err(PasswordError::Guessable), "{guess}");
    }
    assert_eq!(check_new_password(&SecretString::from("jane198x"), &email, "Area 51"), Ok(()));
}

#[test]
fn any_characters_are_accepted_without_composition_rules() {
    for sound in
        ["eight ch", "correct horse battery staple ", "пароль-пароль", "🔐🔑🗝️🔒🔏🔐🔑🗝", "with\u{0}nul inside"]
    {
        assert_eq!(check(sound), Ok(()), "{sound}");
    }
    assert_eq!(check(&"x".repeat(1_024)), Ok(()));
}

struct Bytes(u8);

impl Entropy for Bytes {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = self.0.wrapping_add(u8::try_from(index % 256).unwrap().wrapping_mul(37));
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn generated_password_is_always_accepted(seed in any::<u8>()) {
        let password = generate_password(&Bytes(seed)).unwrap();
        prop_assert_eq!(password.expose_secret().len(), 26);
        prop_assert_eq!(check(password.expose_secret()), Ok(()));
    }
}
