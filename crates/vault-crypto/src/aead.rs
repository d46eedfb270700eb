//! AES-256-GCM (NIST SP 800-38D) with random 96-bit nonces and 128-bit tags, and nothing else.

use crate::blob::{self, Format, HEADER, NONCE, OpenError, TAG};
use crate::context::Context;
use crate::key::SymmetricKey;
use crate::padding;
use aes_gcm::{AeadInOut as _, Aes256Gcm, KeyInit as _};
use vault_core::id::KeyId;
use vault_core::port::{Entropy, NoEntropy};
use vault_core::sealed::Blob;
use zeroize::{Zeroize as _, Zeroizing};

/// The reason why sealing failed. The copy of the plaintext is wiped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealingError {
    /// The entropy source returned no nonce.
    #[error(transparent)]
    NoEntropy(#[from] NoEntropy),
    /// The text exceeds the limit of the cipher (64 GiB).
    #[error("too long to be sealed")]
    TooLong,
}

/// An AES-256-GCM key whose schedule is expanded once, wiped on drop.
pub(crate) struct AeadKey {
    id: KeyId,
    cipher: Box<Aes256Gcm>,
}

impl AeadKey {
    /// Expands the key. Blobs contain `id` as their key ID.
    pub(crate) fn new(id: KeyId, key: &SymmetricKey) -> Self {
        // The cipher's key.
        Self { id, cipher: Box::new(Aes256Gcm::new(key.expose().into())) }
    }

    /// Returns the key ID that blobs contain.
    pub(crate) const fn id(&self) -> KeyId {
        self.id
    }

    /// Pads and seals a text.
    pub(crate) fn seal(&self, entropy: &dyn Entropy, context: &Context, text: &[u8]) -> Result<Blob, SealingError> {
        self.seal_as(Format::Padded, entropy, context, text)
    }

    /// Wraps a key.
    pub(crate) fn wrap(
        &self,
        entropy: &dyn Entropy,
        context: &Context,
        key: &SymmetricKey,
    ) -> Result<Blob, SealingError> {
        self.seal_as(Format::Key, entropy, context, key.expose()) // the key to wrap
    }

    fn seal_as(
        &self,
        format: Format,
        entropy: &dyn Entropy,
        context: &Context,
        text: &[u8],
    ) -> Result<Blob, SealingError> {
        let mut nonce = [0; NONCE];
        entropy.fill(&mut nonce)?;
        let padded = match format {
            Format::Padded => padding::padded_length(text.len()),
            Format::Key => text.len(),
        };
        // Allocate the final size: a buffer that grows would leave a copy of the plaintext in memory.
        let mut bytes = Vec::with_capacity(HEADER + padded + TAG);
        blob::begin(&mut bytes, format, self.id, &nonce);
        bytes.extend_from_slice(text);
        if format == Format::Padded {
            padding::pad(&mut bytes, HEADER);
        }
        let associated = context.associated_data(format, self.id);
        match self.encrypt(&nonce, &associated, &mut bytes[HEADER..]) {
            Ok(tag) => {
                bytes.extend_from_slice(&tag);
                Ok(Blob::from_bytes(bytes))
            }
            Err(error) => {
                bytes.zeroize();
                Err(error)
            }
        }
    }

    /// Opens a sealed text and removes the padding.
    pub(crate) fn open(&self, context: &Context, blob: &Blob) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let mut bytes = self.open_as(Format::Padded, context, blob)?;
        let length = padding::unpadded_length(&bytes).ok_or(OpenError::Malformed)?;
        bytes.truncate(length);
        Ok(bytes)
    }

    pub(crate) fn unwrap(&self, context: &Context, blob: &Blob) -> Result<SymmetricKey, OpenError> {
        let mut bytes = self.open_as(Format::Key, context, blob)?;
        let key: &mut [u8; SymmetricKey::LENGTH] = bytes.as_mut_slice().try_into().map_err(|_| OpenError::Malformed)?;
        Ok(SymmetricKey::take(key))
    }

    /// Decrypts a blob of `format`. The buffer contains plaintext only after the tag is verified, and is always wiped.
    fn open_as(&self, format: Format, context: &Context, blob: &Blob) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let parts = blob::read(blob.as_bytes(), format)?;
        if parts.key != self.id {
            return Err(OpenError::OtherKey);
        }
        let associated = context.associated_data(format, self.id);
        let mut bytes = Zeroizing::new(parts.ciphertext.to_vec());
        self.decrypt(parts.nonce, &associated, &mut bytes, parts.tag)?;
        Ok(bytes)
    }

    fn encrypt(&self, nonce: &[u8; NONCE], associated: &[u8], text: &mut [u8]) -> Result<[u8; TAG], SealingError> {
        let tag = self.cipher.encrypt_inout_detached(nonce.into(), associated, text.into());
        tag.map(Into::into).map_err(|_| SealingError::TooLong)
    }

    fn decrypt(
        &self,
        nonce: &[u8; NONCE],
        associated: &[u8],
        text: &mut [u8],
        tag: &[u8; TAG],
    ) -> Result<(), OpenError> {
        let opened = self.cipher.decrypt_inout_detached(nonce.into(), associated, text.into(), tag.into());
        opened.map_err(|_| OpenError::NotAuthentic)
    }
}

#[cfg(test)]
mod tests;
