//! Receivers with secrets in plaintext.

use secrecy::{ExposeSecret as _, SecretString};
use vault_core::id::ReceiverId;
use vault_core::port::{OpenedTarget, ReceiverOpener, ReceiverSealer, SealError};
use vault_core::receiver::SealedTarget;
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

/// Stores addresses and signing secrets in plaintext, and does not sign.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainReceivers;

impl ReceiverSealer for PlainReceivers {
    fn seal_address(&self, _receiver: ReceiverId, address: &SecretString) -> Result<Blob, SealError> {
        Ok(Blob::from_bytes(address.expose_secret().as_bytes().to_vec()))
    }

    fn new_secret(&self, receiver: ReceiverId, number: i64) -> Result<(SecretString, Blob), SealError> {
        let text = format!("whsec_{number}-{receiver}");
        Ok((SecretString::from(&*text), Blob::from_bytes(text.into_bytes())))
    }
}

impl ReceiverOpener for PlainReceivers {
    fn open(&self, _receiver: ReceiverId, target: &SealedTarget, now: Timestamp) -> Result<OpenedTarget, SealError> {
        let text = |blob: &Blob| SecretString::from(String::from_utf8_lossy(blob.as_bytes()).into_owned());
        let previous = Some(&target.previous_secret).filter(|_| now < target.previous_until);
        let secrets = [Some(&target.secret), previous].into_iter().flatten();
        let secrets = secrets.filter(|blob| !blob.as_bytes().is_empty()).map(text).collect();
        Ok(OpenedTarget { address: text(&target.address), secrets })
    }

    fn sign(&self, secret: &SecretString, id: &str, at: Timestamp, _body: &str) -> String {
        format!("v1,{}/{id}/{}", secret.expose_secret(), at.as_seconds())
    }
}
