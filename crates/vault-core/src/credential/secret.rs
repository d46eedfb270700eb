//! Text and bytes that are wiped when dropped, and that cannot be printed, serialized or copied by mistake.

use std::fmt;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// Text that is, or may be, secret. It implements neither `Display`, `Serialize` nor `Clone`, and `Debug` does not show
/// it.
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Returns the text. Every call states in a comment why it needs it.
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

/// Bytes that are, or may be, secret. They implement neither `Serialize` nor `Clone`, `Debug` does not show them, and they are compared
/// in constant time.
pub struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    /// Returns the bytes. Every call states in a comment why it needs them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SecretBytes {}

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
