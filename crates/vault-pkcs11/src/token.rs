//! Wrapping and unwrapping in the token.

use crate::failure::TokenError;
use crate::uri::TokenUri;
use async_trait::async_trait;
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Function, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::{Attribute, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::types::RawAuthPin;
use rustix::process::geteuid;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vault_core::credential::SecretBytes;
use vault_core::port::{Cause, Entropy, KeyService, KeyServiceError};
use zeroize::Zeroizing;

/// Timeout of a use, in seconds. A token in a network takes several seconds during a failover.
const LONGEST: u64 = 30;
const NONCE: usize = 12;
const TAG: usize = 16;
const TAG_BITS: u64 = 128;

/// Returns the PIN without a line end. Called at each use.
pub type Pin = Arc<dyn Fn() -> Result<Zeroizing<Vec<u8>>, Cause> + Send + Sync>;

/// A key in a token.
pub struct TokenKey {
    name: String,
    place: Arc<TokenReference>,
}

struct TokenReference {
    uri: TokenUri,
    pin: Pin,
    entropy: Arc<dyn Entropy>,
}

impl TokenKey {
    /// Creates a reference to the key that `uri` names, without contacting the token.
    pub fn new(uri: TokenUri, pin: Pin, entropy: Arc<dyn Entropy>) -> Self {
        // The name contains only the key's id, so that a copy of the key in a second token is the same root key.
        let id: String = uri.id.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { name: format!("pkcs11:{id}"), place: Arc::new(TokenReference { uri, pin, entropy }) }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&TokenReference, &Session, ObjectHandle) -> Result<T, KeyServiceError> + Send + 'static,
    ) -> Result<T, KeyServiceError> {
        let place = Arc::clone(&self.place);
        let working = tokio::task::spawn_blocking(move || place.with_key(work));
        match tokio::time::timeout(Duration::from_secs(LONGEST), working).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) | Err(_) => Err(TokenError::Timeout(LONGEST).into()),
        }
    }
}

#[async_trait]
impl KeyService for TokenKey {
    fn key(&self) -> &str {
        &self.name
    }

    async fn seal(&self, secret: &SecretBytes, context: &[u8]) -> Result<Vec<u8>, KeyServiceError> {
        let secret = Zeroizing::new(secret.expose().to_vec()); // the future must own it
        let context = context.to_vec();
        self.run(move |place, session, key| {
            let mut nonce = [0; NONCE];
            place.entropy.fill(&mut nonce).map_err(|error| KeyServiceError::Refused(error.into()))?;
            let sealed = {
                let parameters = GcmParams::new(&mut nonce, &context, TAG_BITS.into()).map_err(TokenError::from)?;
                session.encrypt(&Mechanism::AesGcm(parameters), key, &secret).map_err(TokenError::from)?
            };
            if sealed.len() != secret.len() + TAG {
                return Err(TokenError::Malformed.into());
            }
            // Some tokens replace the nonce by their own.
            Ok([&nonce[..], &sealed].concat())
        })
        .await
    }

    async fn open(&self, sealed: &[u8], context: &[u8]) -> Result<SecretBytes, KeyServiceError> {
        let Some((nonce, sealed)) = sealed.split_first_chunk::<NONCE>().filter(|(_, sealed)| sealed.len() > TAG) else {
            return Err(KeyServiceError::DoesNotOpen);
        };
        let (mut nonce, sealed, context) = (*nonce, sealed.to_vec(), context.to_vec());
        self.run(move |_, session, key| {
            let parameters = GcmParams::new(&mut nonce, &context, TAG_BITS.into()).map_err(TokenError::from)?;
            match session.decrypt(&Mechanism::AesGcm(parameters), key, &sealed) {
                Ok(opened) => Ok(SecretBytes::from(opened)),
                Err(error) if is_not_authentic(&error) => Err(KeyServiceError::DoesNotOpen),
                Err(error) => Err(TokenError::from(error).into()),
            }
        })
        .await
    }
}

/// Returns whether the error is one with which tokens report a wrong tag.
const fn is_not_authentic(error: &Error) -> bool {
    matches!(
        error,
        Error::Pkcs11(
            RvError::EncryptedDataInvalid
                | RvError::EncryptedDataLenRange
                | RvError::DataInvalid
                | RvError::SignatureInvalid,
            _
        )
        // SoftHSM returns only these general errors.
        | Error::Pkcs11(RvError::GeneralError | RvError::FunctionFailed, Function::Decrypt)
    )
}

impl TokenReference {
    /// Loads the module, finds token and key, runs `work` and unloads the module.
    fn with_key<T>(
        &self,
        work: impl FnOnce(&Self, &Session, ObjectHandle) -> Result<T, KeyServiceError>,
    ) -> Result<T, KeyServiceError> {
        let pin = RawAuthPin::from(Box::new((self.pin)().map_err(TokenError::Pin)?.to_vec()));
        let module = load(self.uri.module())?;
        let (client, ours) = (module, CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK));
        let ours = match client.initialize(ours) {
            Ok(()) => true,
            // Another use in this process initialized the module and will finalize it.
            Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => false,
            Err(error) => return Err(TokenError::from(error).into()),
        };
        let done = self.with_session(&client, &pin, |session| {
            let key = self.find_key(session)?;
            work(self, session, key)
        });
        if ours {
            // The work is done, so an error of this call has no effect.
            let _ = client.finalize();
        }
        done
    }

    fn with_session<T>(
        &self,
        client: &Pkcs11,
        pin: &RawAuthPin,
        work: impl FnOnce(&Session) -> Result<T, KeyServiceError>,
    ) -> Result<T, KeyServiceError> {
        let session = client.open_ro_session(self.find_slot(client)?).map_err(TokenError::from)?;
        match session.login_with_raw(UserType::User, pin) {
            Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => {}
            Err(error) => return Err(TokenError::from(error).into()),
        }
        let done = work(&session);
        let _ = session.logout(); // the session is closed in any case
        done
    }

    fn find_slot(&self, client: &Pkcs11) -> Result<cryptoki::slot::Slot, TokenError> {
        let mut fitting = Vec::new();
        for slot in client.get_slots_with_token()? {
            let Ok(token) = client.get_token_info(slot) else { continue };
            let fits = self.uri.token.as_deref().is_none_or(|label| label == token.label())
                && self.uri.serial.as_deref().is_none_or(|serial| serial == token.serial_number())
                && self.uri.slot.is_none_or(|number| number == slot.id());
            if fits && token.token_initialized() {
                fitting.push(slot);
            }
        }
        match fitting[..] {
            [slot] => Ok(slot),
            [] => Err(TokenError::NoToken(self.uri.to_string())),
            _ => Err(TokenError::SeveralTokens(self.uri.to_string(), fitting.len())),
        }
    }

    fn find_key(&self, session: &Session) -> Result<ObjectHandle, TokenError> {
        let mut wanted = vec![
            Attribute::Class(ObjectClass::SECRET_KEY),
            Attribute::KeyType(KeyType::AES),
            Attribute::Id(self.uri.id.clone()),
        ];
        wanted.extend(self.uri.label.as_ref().map(|label| Attribute::Label(label.clone().into_bytes())));
        match session.find_objects(&wanted)?[..] {
            [key] => Ok(key),
            [] => Err(TokenError::NoKey(self.uri.to_string())),
            ref several => Err(TokenError::SeveralKeys(self.uri.to_string(), several.len())),
        }
    }
}

/// Loads a module. Only root and its owner may have write permission, because its code runs with the rights of this
/// process.
fn load(path: &Path) -> Result<Pkcs11, TokenError> {
    let flawed = |reason: String| TokenError::Module { path: path.to_owned(), reason };
    let found = path.metadata().map_err(|error| flawed(format!("cannot be read: {error}")))?;
    if !found.is_file() {
        return Err(flawed("is not a file".to_owned()));
    }
    if found.uid() != 0 && found.uid() != geteuid().as_raw() {
        return Err(flawed(format!(
            "belongs to user {}; expected a file of root or of this process's user",
            found.uid()
        )));
    }
    if found.mode() & 0o022 != 0 {
        return Err(flawed(format!("has mode {:04o}, so other users can change it", found.mode() & 0o7777)));
    }
    Pkcs11::new(path).map_err(|error| flawed(format!("cannot be loaded: {error}")))
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenKey({})", self.name)
    }
}
