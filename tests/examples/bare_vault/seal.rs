//! Seals and unseals rows, and checks tokens, as the vault does: AES-256-GCM with a data key for each row, and PASETO.

use crate::Failure;
use crate::row::Sealed;
use aes_gcm::{AeadInOut as _, Aes256Gcm, KeyInit as _};
use pasetors::keys::SymmetricKey;
use pasetors::token::{Local, UntrustedToken};
use pasetors::version4::{LocalToken, V4};
use serde_json::{Value, json};
use uuid::Uuid;

/// Format, version and key id before a nonce.
const HEADER: usize = 18;
const NONCE: usize = 12;
/// Plaintext is padded to a multiple of it.
const STEP: usize = 256;
/// Additional authenticated data: in the vault, it names the row.
const ASSOCIATED: &[u8] = &[0x11; 120];

/// The keys of a bare vault.
pub(super) struct Keys {
    information: Aes256Gcm,
    data_keys: Aes256Gcm,
    tokens: SymmetricKey<V4>,
}

impl Keys {
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self {
            information: Aes256Gcm::new(&[1; 32].into()),
            data_keys: Aes256Gcm::new(&[2; 32].into()),
            tokens: SymmetricKey::from(&[3; 32]).map_err(|_| "no key")?,
        })
    }

    /// A token of a session.
    pub(super) fn token(&self, session: Uuid) -> Result<String, Failure> {
        let claims = json!({
            "iss": "orgvault", "aud": "a1b2c3d4-5d7a-4f3e-8a52-2f9d1c7e4b60", "jti": session.to_string(),
            "sub": "2c9e7a44-91d3-4a0b-b1c5-7e3f8d2a6c11", "org": crate::SAVED.to_string(), "role": "editor",
            "iat": "2026-11-23T00:00:00Z", "exp": "2026-11-24T00:00:00Z",
        });
        Ok(LocalToken::encrypt(&self.tokens, claims.to_string().as_bytes(), None, None).map_err(|_| "no token")?)
    }

    /// The session of a token.
    pub(super) fn session(&self, token: &str) -> Option<Uuid> {
        let untrusted = UntrustedToken::<Local, V4>::try_from(token).ok()?;
        let opened = LocalToken::decrypt(&self.tokens, &untrusted, None, None).ok()?;
        let claims: Value = serde_json::from_str(opened.payload()).ok()?;
        claims.get("jti")?.as_str()?.parse().ok()
    }

    /// Seals the data of a save: what a list shows of it, the data, and the key of the data.
    #[expect(clippy::disallowed_methods, reason = "not the vault: its port adds nothing to a bound")]
    pub(super) fn seal(&self, data: &mut Value) -> Option<Sealed> {
        let mut random = [0; 32 + 3 * NONCE];
        getrandom::fill(&mut random).ok()?;
        let (key, nonces) = random.split_at(32);
        let [first, second, third] = [0, 1, 2].map(|place| &nonces[place * NONCE..(place + 1) * NONCE]);
        let sealed_data = seal(&Aes256Gcm::new(key.try_into().ok()?), first, &serde_json::to_vec(data).ok()?, STEP)?;
        data.as_object_mut()?.remove("secret_access_key")?;
        Some(Sealed {
            information: seal(&self.information, second, &serde_json::to_vec(data).ok()?, STEP)?,
            data_key: seal(&self.data_keys, third, key, 1)?,
            data: sealed_data,
        })
    }

    /// Returns sealed values like those of the credentials that the load saves.
    pub(super) fn sample(&self) -> Result<Sealed, Failure> {
        let mut data = json!({
            "access_key_id": "AKIAV7Q2MXTE00000000",
            "secret_access_key": "q9LmZ4tXv+R7dK2s/Bn8wYpJ5hGc1EfU00000000",
            "bucket": "northwind-datalake-prod", "region": "eu-central-1",
            "endpoint": "https://s3.eu-central-1.amazonaws.com", "key_prefix": "exports/daily/",
        });
        self.seal(&mut data).ok_or_else(|| "a sample that cannot be sealed".into())
    }

    /// Unseals the value that a list shows, as JSON text.
    pub(super) fn open<'a>(&self, sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        let (head, text) = sealed.split_at_mut_checked(HEADER + NONCE)?;
        let (text, tag) = text.split_at_mut_checked(text.len().checked_sub(16)?)?;
        let nonce: &[u8] = head.get(HEADER..)?;
        let tag: &[u8] = tag;
        self.information
            .decrypt_inout_detached(nonce.try_into().ok()?, ASSOCIATED, (&mut *text).into(), tag.try_into().ok()?)
            .ok()?;
        Some(text.trim_ascii_end())
    }
}

fn seal(cipher: &Aes256Gcm, nonce: &[u8], text: &[u8], step: usize) -> Option<Vec<u8>> {
    let padded = text.len().next_multiple_of(step);
    let mut bytes = Vec::with_capacity(HEADER + NONCE + padded + 16);
    bytes.resize(HEADER, 0);
    bytes.extend_from_slice(nonce);
    bytes.extend_from_slice(text);
    bytes.resize(HEADER + NONCE + padded, b' ');
    let text = &mut bytes[HEADER + NONCE..];
    let tag = cipher.encrypt_inout_detached(nonce.try_into().ok()?, ASSOCIATED, text.into()).ok()?;
    bytes.extend_from_slice(&tag);
    Some(bytes)
}
