//! Root key in a token or a key management service.

use crate::blob::{self, Format, OpenError};
use crate::context::Context;
use crate::key::SymmetricKey;
use crate::wrapper::{KeyWrapper, WrapError};
use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::sync::Arc;
use vault_core::credential::SecretBytes;
use vault_core::id::KeyId;
use vault_core::port::{KeyService, KeyServiceError};
use vault_core::sealed::Blob;
use zeroize::Zeroizing;

/// Prefix of the key's name in the digest that is the root key's id.
const ID: &[u8] = b"orgvault/1/root key service\0";
/// Length of version, algorithm and key id in bytes.
const HEADER: usize = 2 + 16;

/// Root key that never leaves its token or service.
pub struct ServiceRootKey {
    id: KeyId,
    service: Arc<dyn KeyService>,
}

impl ServiceRootKey {
    /// Creates the root key of `service`. Its id is derived from the key's name; the service is not contacted yet.
    pub fn new(service: Arc<dyn KeyService>) -> Self {
        let digest = Sha256::new().chain_update(ID).chain_update(service.key().as_bytes()).finalize();
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        Self { id: KeyId::from_bytes(id), service }
    }
}

#[async_trait]
impl KeyWrapper for ServiceRootKey {
    fn id(&self) -> KeyId {
        self.id
    }

    async fn wrap(&self, context: &Context, key: &SymmetricKey) -> Result<Blob, WrapError> {
        let secret = SecretBytes::from(key.expose().to_vec()); // what the service is to seal
        let associated = context.to_associated_data(Format::Service, self.id);
        let sealed = self.service.seal(&secret, &associated).await?;
        let mut bytes = Vec::with_capacity(HEADER + sealed.len());
        bytes.extend_from_slice(&Format::Service.to_bytes());
        bytes.extend_from_slice(self.id.as_bytes());
        bytes.extend_from_slice(&sealed);
        Ok(Blob::from_bytes(bytes))
    }

    async fn unwrap(&self, context: &Context, wrapped: &Blob) -> Result<SymmetricKey, WrapError> {
        let sealed = sealed(wrapped.as_bytes())?;
        if blob::sealing_key(wrapped) != Some(self.id) {
            return Err(OpenError::OtherKey.into());
        }
        let associated = context.to_associated_data(Format::Service, self.id);
        let opened = self.service.open(sealed, &associated).await?;
        let exact = <[u8; SymmetricKey::LENGTH]>::try_from(opened.expose()).map_err(|_| OpenError::Malformed)?;
        Ok(SymmetricKey::take(&mut Zeroizing::new(exact)))
    }
}

/// Returns the part of a blob that the service produced.
fn sealed(bytes: &[u8]) -> Result<&[u8], OpenError> {
    let ([version, algorithm], _) = bytes.split_first_chunk().ok_or(OpenError::Truncated)?;
    let [expected_version, expected_algorithm] = Format::Service.to_bytes();
    if *version != expected_version {
        return Err(OpenError::UnknownVersion);
    }
    if *algorithm != expected_algorithm {
        return Err(OpenError::UnknownAlgorithm);
    }
    bytes.get(HEADER..).filter(|sealed| !sealed.is_empty()).ok_or(OpenError::Truncated)
}

impl From<KeyServiceError> for WrapError {
    fn from(error: KeyServiceError) -> Self {
        match error {
            KeyServiceError::DoesNotOpen => Self::DoesNotOpen(OpenError::NotAuthentic),
            KeyServiceError::Unavailable(cause) => Self::Unavailable(cause),
            error => Self::Source(error.into()),
        }
    }
}

impl fmt::Debug for ServiceRootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceRootKey({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{id, key, key_id};
    use aes_gcm::aead::Aead as _;
    use aes_gcm::aead::Payload;
    use aes_gcm::{Aes256Gcm, KeyInit as _};
    use vault_core::id::InstanceId;

    /// Service with one key that uses the same nonce every time.
    struct Fixed(&'static str);

    impl Fixed {
        fn cipher() -> Aes256Gcm {
            Aes256Gcm::new(&[7; 32].into())
        }
    }

    #[async_trait]
    impl KeyService for Fixed {
        fn key(&self) -> &str {
            self.0
        }

        async fn seal(&self, secret: &SecretBytes, context: &[u8]) -> Result<Vec<u8>, KeyServiceError> {
            let payload = Payload { msg: secret.expose(), aad: context };
            Self::cipher().encrypt(&[1; 12].into(), payload).map_err(|_| KeyServiceError::DoesNotOpen)
        }

        async fn open(&self, sealed: &[u8], context: &[u8]) -> Result<SecretBytes, KeyServiceError> {
            let opened = Self::cipher().decrypt(&[1; 12].into(), Payload { msg: sealed, aad: context });
            opened.map(SecretBytes::from).map_err(|_| KeyServiceError::DoesNotOpen)
        }
    }

    fn root(name: &'static str) -> ServiceRootKey {
        ServiceRootKey::new(Arc::new(Fixed(name)))
    }

    /// A stored wrap must open in every later version: the id derived from a name and the format of a wrap are fixed.
    #[tokio::test]
    async fn wrap_format_is_pinned() {
        let root = root("one");
        assert_eq!(root.id().to_string(), "bb9cc929-99a5-a544-507e-353ccedd1ae7");
        let context = Context::database_key(key_id(2));
        let committed = hex_literal::hex!(
            "0103bb9cc92999a5a544507e353ccedd1ae775e58cb197b7e504dad8d12f7f27"
            "6123bbef01e20f8f2209432d5e7c799417991823e6803c81e04f7c6d94af08f6da66"
        );
        let opened = root.unwrap(&context, &Blob::from_bytes(committed.to_vec())).await.unwrap();
        assert_eq!(opened.expose(), key(3).expose());
        assert_eq!(root.wrap(&context, &key(3)).await.unwrap().as_bytes(), committed);
    }

    #[tokio::test]
    async fn wrapped_key_opens_only_in_its_context_under_its_key() {
        let root = root("one");
        let instance = InstanceId::from_uuid(id(1));
        let context = Context::instance_key(instance, key_id(2));
        let wrapped = root.wrap(&context, &key(3)).await.unwrap();
        assert_eq!(root.unwrap(&context, &wrapped).await.unwrap().expose(), key(3).expose());
        for other in [
            Context::instance_key(instance, key_id(4)),
            Context::instance_key(InstanceId::from_uuid(id(5)), key_id(2)),
            Context::database_key(key_id(2)),
        ] {
            let refused = root.unwrap(&other, &wrapped).await;
            assert!(matches!(refused, Err(WrapError::DoesNotOpen(OpenError::NotAuthentic))));
        }
        let refused = self::root("two").unwrap(&context, &wrapped).await;
        assert!(matches!(refused, Err(WrapError::DoesNotOpen(OpenError::OtherKey))));
        for place in 0..wrapped.as_bytes().len() {
            let mut bytes = wrapped.as_bytes().to_vec();
            bytes[place] ^= 1;
            let refused = root.unwrap(&context, &Blob::from_bytes(bytes)).await;
            assert!(matches!(refused, Err(WrapError::DoesNotOpen(_))), "byte {place}");
            let cut = Blob::from_bytes(wrapped.as_bytes()[..place].to_vec());
            assert!(root.unwrap(&context, &cut).await.is_err(), "{place} bytes");
        }
        // A wrap of a file is not accepted for a service, nor the other way round.
        let (_directory, file) = crate::testing::root();
        let of_file = file.wrap(&context, &key(3)).await.unwrap();
        assert!(root.unwrap(&context, &of_file).await.is_err());
        assert!(file.unwrap(&context, &wrapped).await.is_err());
    }
}
