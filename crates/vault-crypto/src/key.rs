//! 256-bit keys in memory.

use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A 256-bit key. On the heap, so that moving it leaves no copies; wiped when dropped.
///
/// No `Clone`, `Serialize` or comparison; `Debug` shows no byte of it.
#[derive(ZeroizeOnDrop)]
pub struct SymmetricKey(Box<[u8; Self::LENGTH]>);

impl SymmetricKey {
    /// The length of a key, in bytes.
    pub const LENGTH: usize = 32;

    /// The key whose bytes `fill` writes in place.
    ///
    /// # Errors
    /// The error of `fill`; the bytes written so far are wiped.
    pub(crate) fn try_fill<E>(fill: impl FnOnce(&mut [u8; Self::LENGTH]) -> Result<(), E>) -> Result<Self, E> {
        let mut key = Self(Box::new([0; Self::LENGTH]));
        fill(&mut key.0)?;
        Ok(key)
    }

    /// The key with these bytes. Wipes the argument.
    pub fn take(bytes: &mut [u8; Self::LENGTH]) -> Self {
        let key = Self(Box::new(*bytes));
        bytes.zeroize();
        key
    }

    /// The key's bytes. Every call states in a comment why it needs them.
    pub fn expose(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

impl fmt::Debug for SymmetricKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SymmetricKey(..)")
    }
}
