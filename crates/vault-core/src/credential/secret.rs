//! Text and bytes that are wiped when dropped and that cannot be printed, serialised or copied by accident.

use std::fmt;
use zeroize::Zeroizing;

/// Text that is, or may be, secret. No `Display`, `Serialize` or `Clone`; `Debug` shows nothing of it.
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// The text. Every call states in a comment why it needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl From<&str> for SecretText {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(..)")
    }
}

/// Bytes that are, or may be, secret. No `Serialize` or `Clone`; `Debug` shows nothing of them.
pub struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    /// The bytes. Every call states in a comment why it needs them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for SecretBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes(..)")
    }
}
