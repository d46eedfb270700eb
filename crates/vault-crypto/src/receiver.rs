//! Secrets of receivers and signatures of webhooks.

use crate::blob::{self, OpenError};
use crate::context::Context;
use crate::error::{damaged, does_not_open, no_entropy, not_sealed};
use crate::instance_keys::InstanceKeyring;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;
use std::sync::Arc;
use vault_core::id::ReceiverId;
use vault_core::port::{Entropy, OpenedTarget, ReceiverOpener, ReceiverSealer, SealError};
use vault_core::receiver::{SECRET_PREFIX, SealedTarget};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;
use zeroize::Zeroizing;

/// Length of a signing secret in bytes (Standard Webhooks 1.0: 24 to 64).
const SECRET: usize = 32;

/// Receiver keys and entropy for both adapters.
struct ReceiverKeys {
    keys: Arc<InstanceKeyring>,
    entropy: Arc<dyn Entropy>,
}

/// Two adapters that share one set of keys. Neither gives access to the other.
pub struct ReceiverCrypto {
    /// Seals addresses and secrets.
    pub sealer: Arc<dyn ReceiverSealer>,
    /// Opens them and signs.
    pub opener: Arc<dyn ReceiverOpener>,
}

struct Sealer(Arc<ReceiverKeys>);
struct Opener(Arc<ReceiverKeys>);

impl ReceiverCrypto {
    pub(crate) fn new(keys: Arc<InstanceKeyring>, entropy: Arc<dyn Entropy>) -> Self {
        let keys = Arc::new(ReceiverKeys { keys, entropy });
        Self { sealer: Arc::new(Sealer(Arc::clone(&keys))), opener: Arc::new(Opener(keys)) }
    }
}

impl ReceiverKeys {
    fn open(&self, context: &Context, sealed: &Blob) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let purposes = self.keys.purposes();
        let key = blob::sealing_key(sealed).and_then(|id| purposes.receiver.find(id));
        let opened = key.ok_or(OpenError::OtherKey).and_then(|key| key.open(context, sealed));
        opened.map_err(|error| does_not_open(context, error))
    }

    fn secret(&self, receiver: ReceiverId, number: i64, sealed: &Blob) -> Result<SecretString, SealError> {
        let opened = self.open(&Context::receiver_secret(self.keys.instance(), receiver, number), sealed)?;
        Ok(spelt(&opened))
    }
}

/// Returns a signing secret in the text form that receivers get.
fn spelt(secret: &[u8]) -> SecretString {
    let encoded = Zeroizing::new(STANDARD.encode(secret));
    SecretString::from(format!("{SECRET_PREFIX}{}", *encoded))
}

impl ReceiverSealer for Sealer {
    fn seal_address(&self, receiver: ReceiverId, address: &SecretString) -> Result<Blob, SealError> {
        let context = Context::receiver_address(self.0.keys.instance(), receiver);
        let address = address.expose_secret().as_bytes(); // to be sealed
        self.0.keys.purposes().receiver.active().key.seal(&*self.0.entropy, &context, address).map_err(not_sealed)
    }

    fn new_secret(&self, receiver: ReceiverId, number: i64) -> Result<(SecretString, Blob), SealError> {
        let mut secret = Zeroizing::new([0; SECRET]);
        self.0.entropy.fill(&mut *secret).map_err(no_entropy)?;
        let context = Context::receiver_secret(self.0.keys.instance(), receiver, number);
        let sealed = self
            .0
            .keys
            .purposes()
            .receiver
            .active()
            .key
            .seal(&*self.0.entropy, &context, &*secret)
            .map_err(not_sealed)?;
        Ok((spelt(&*secret), sealed))
    }
}

impl ReceiverOpener for Opener {
    fn open(&self, receiver: ReceiverId, target: &SealedTarget, now: Timestamp) -> Result<OpenedTarget, SealError> {
        let context = Context::receiver_address(self.0.keys.instance(), receiver);
        let address = self.0.open(&context, &target.address)?;
        let address = std::str::from_utf8(&address).map_err(|_| damaged(&context, "is no text"))?;
        let address = SecretString::from(address);
        let mut secrets = Vec::new();
        if !target.secret.as_bytes().is_empty() {
            secrets.push(self.0.secret(receiver, target.secret_number, &target.secret)?);
        }
        if !target.previous_secret.as_bytes().is_empty() && now < target.previous_until {
            secrets.push(self.0.secret(receiver, target.secret_number - 1, &target.previous_secret)?);
        }
        Ok(OpenedTarget { address, secrets })
    }

    fn sign(&self, secret: &SecretString, id: &str, at: Timestamp, body: &str) -> String {
        let text = secret.expose_secret(); // the key of the code
        let key = STANDARD.decode(text.strip_prefix(SECRET_PREFIX).unwrap_or(text)).map(Zeroizing::new);
        let key = key.unwrap_or_default();
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else { return String::new() };
        for part in [id, ".", &at.as_seconds().to_string(), ".", body] {
            mac.update(part.as_bytes());
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW, entropy, id, instance_keys};
    use vault_core::port::SealError;

    fn crypto() -> ReceiverCrypto {
        ReceiverCrypto::new(instance_keys(1), entropy())
    }

    fn target(crypto: &ReceiverCrypto, receiver: ReceiverId) -> (SecretString, SecretString, SealedTarget) {
        let (first, previous_secret) = crypto.sealer.new_secret(receiver, 1).unwrap();
        let (second, secret) = crypto.sealer.new_secret(receiver, 2).unwrap();
        let address = crypto.sealer.seal_address(receiver, &SecretString::from("https://hooks.example/x")).unwrap();
        let previous_until = NOW.plus_seconds(60);
        (first, second, SealedTarget { address, secret_number: 2, secret, previous_secret, previous_until })
    }

    #[test]
    fn both_secrets_sign_until_the_overlap_ends() {
        let (crypto, receiver) = (crypto(), ReceiverId::from_uuid(id(3)));
        let (first, second, target) = target(&crypto, receiver);
        let opened = crypto.opener.open(receiver, &target, NOW).unwrap();
        assert_eq!(opened.address.expose_secret(), "https://hooks.example/x");
        let texts = |opened: &OpenedTarget| {
            opened.secrets.iter().map(|secret| secret.expose_secret().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&opened), [second.expose_secret(), first.expose_secret()]);
        let later = crypto.opener.open(receiver, &target, NOW.plus_seconds(60)).unwrap();
        assert_eq!(texts(&later), [second.expose_secret()]);
    }

    #[test]
    fn secret_moved_to_another_receiver_or_number_does_not_open() {
        let (crypto, receiver) = (crypto(), ReceiverId::from_uuid(id(3)));
        let (.., target) = target(&crypto, receiver);
        let refused = |receiver, target: &SealedTarget| {
            matches!(crypto.opener.open(receiver, target, NOW), Err(SealError::Integrity { .. }))
        };
        assert!(refused(ReceiverId::from_uuid(id(4)), &target));
        assert!(refused(receiver, &SealedTarget { secret_number: 3, ..target.clone() }));
        let (secret, previous_secret) = (target.previous_secret.clone(), target.secret.clone());
        assert!(refused(receiver, &SealedTarget { secret, previous_secret, ..target }));
    }

    /// Example from the libraries of the specification.
    #[test]
    fn signatures_match_standard_webhooks() {
        let secret = SecretString::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let at = Timestamp::from_millis(1_614_265_330_000);
        let signature = crypto().opener.sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
