//! 256-bit keys in memory.

use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A 256-bit key, stored on the heap so that a move leaves no copy, and wiped on drop.
///
/// The type implements neither `Clone`, `Serialize` nor comparison. `Debug` omits the bytes.
#[derive(ZeroizeOnDrop)]
pub(crate) struct SymmetricKey(Box<[u8; Self::LENGTH]>);

impl SymmetricKey {
    /// The length of a key, in bytes.
    pub(crate) const LENGTH: usize = 32;

    /// Creates a key whose bytes `fill` writes in place.
    ///
    /// # Errors
    /// The error of `fill`. The bytes written so far are wiped.
    pub(crate) fn try_fill<E>(fill: impl FnOnce(&mut [u8; Self::LENGTH]) -> Result<(), E>) -> Result<Self, E> {
        let mut key = Self(Box::new([0; Self::LENGTH]));
        fill(&mut key.0)?;
        Ok(key)
    }

    /// Creates a key from these bytes and wipes the argument.
    pub(crate) fn take(bytes: &mut [u8; Self::LENGTH]) -> Self {
        let key = Self(Box::new(*bytes));
        bytes.zeroize();
        key
    }

    /// Returns the bytes of the key. A comment at each call states why it needs them.
    pub(crate) fn expose(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

impl fmt::Debug for SymmetricKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SymmetricKey(..)")
    }
}
