//! Sealing without encryption.

use super::digest::digest;
use std::sync::Arc;
use vault_core::credential::{Card, CredentialData, CredentialType, Fingerprint, SecretBytes};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{CardContext, CredentialContext, IdGenerator, Opener, SealError, SealedCredential, Sealer};
use vault_core::sealed::{Blob, OrganizationKeys, SealedData, WrappedKey};
use vault_core::time::Timestamp;

/// Writes the context of a blob, followed by the plaintext. As a real sealer, it unseals only in the same context and only what
/// is sealed under the given keys.
pub struct PlainSealer(Arc<dyn IdGenerator>);

impl PlainSealer {
    /// Creates a sealer that creates keys with IDs from `ids`.
    pub fn new(ids: Arc<dyn IdGenerator>) -> Self {
        Self(ids)
    }
}

impl Sealer for PlainSealer {
    fn fingerprint(
        &self,
        organization: OrganizationId,
        _keys: &OrganizationKeys,
        data: &SecretBytes,
    ) -> Result<Fingerprint, SealError> {
        // A digest, so that the fingerprint does not show the data.
        let digest = digest(0, "fingerprint", &[organization.as_bytes(), data.expose()]);
        Ok(Fingerprint::from_digest(digest.as_bytes()))
    }

    fn seal(
        &self,
        keys: &OrganizationKeys,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
    ) -> Result<SealedData, SealError> {
        let place = Place::of_data(context);
        // Stored in plaintext: this is the fake.
        let plain = [namespace.as_str().as_bytes(), b":", data.expose()].concat();
        Ok(SealedData { data_key: place.write(keys.active.id, &[]), data: place.write(DATA_KEY, &plain) })
    }

    fn seal_card(&self, keys: &OrganizationKeys, context: CardContext, card: &Card) -> Result<Blob, SealError> {
        Ok(Place::of_card(context).write(keys.active.id, &card.to_bytes()))
    }

    fn open_card(&self, keys: &OrganizationKeys, context: CardContext, sealed: &Blob) -> Result<Card, SealError> {
        let place = Place::of_card(context);
        Card::from_bytes(&place.read(keys, sealed)?).map_err(|_| place.damaged())
    }

    fn rewrap(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
        before: &SealedCredential,
    ) -> Result<SealedCredential, SealError> {
        let (credential, key) = (before.id, keys.active.id);
        let context = CardContext { organization, credential, revision: before.revision };
        let card = self.open_card(keys, context, &before.card)?;
        let mut data = Vec::new();
        for (number, sealed) in &before.data {
            let Some(version) = card.version(*number) else { continue };
            let place =
                Place::of_data(CredentialContext { organization, credential, version: *number, id: version.id });
            place.read(keys, &sealed.data_key)?;
            data.push((*number, SealedData { data_key: place.write(key, &[]), data: sealed.data.clone() }));
        }
        let card = self.seal_card(keys, context, &card)?;
        Ok(SealedCredential { id: credential, key, revision: before.revision, card, data })
    }

    fn new_keys(&self, organization: OrganizationId, now: Timestamp) -> Result<OrganizationKeys, SealError> {
        let fingerprint = self.new_key(organization, now)?;
        Ok(OrganizationKeys { fingerprint, active: self.new_key(organization, now)?, retiring: Vec::new() })
    }

    fn new_key(&self, _organization: OrganizationId, created_at: Timestamp) -> Result<WrappedKey, SealError> {
        let (id, wrapped) = (KeyId::from_uuid(self.0.random()), Blob::from_bytes(b"not-a-key".to_vec()));
        Ok(WrappedKey { id, wrapped, created_at })
    }
}

impl Opener for PlainSealer {
    fn open(
        &self,
        keys: &OrganizationKeys,
        context: CredentialContext,
        namespace: &Namespace,
        kind: CredentialType,
        sealed: &SealedData,
    ) -> Result<CredentialData, SealError> {
        let place = Place::of_data(context);
        place.read(keys, &sealed.data_key)?;
        let plain = place.plain(&sealed.data)?;
        let json = plain.strip_prefix(format!("{namespace}:").as_bytes()).ok_or_else(|| place.damaged())?;
        CredentialData::from_canonical_json(kind, json).map_err(|_| place.damaged())
    }
}

/// Represents the data keys of all credentials: data is not sealed under an organization key.
const DATA_KEY: KeyId = KeyId::from_bytes([0; 16]);
/// Length of the header of a blob with its key.
const HEADER: usize = 18;

/// Table and ID of a row, and the text that binds a blob to it.
struct Place {
    table: &'static str,
    object: String,
    text: String,
}

impl Place {
    fn of_data(CredentialContext { organization, credential, version, id }: CredentialContext) -> Self {
        let text = format!("not-sealed:data:{organization}:{credential}:{version}:{id}:");
        Self { table: "credential_secrets", object: credential.to_string(), text }
    }

    fn of_card(CardContext { organization, credential, revision }: CardContext) -> Self {
        let text = format!("not-sealed:card:{organization}:{credential}:{revision}:");
        Self { table: "credentials", object: credential.to_string(), text }
    }

    fn damaged(&self) -> SealError {
        let reason = "not sealed by this deployment";
        SealError::Integrity { table: self.table, column: "sealed", object: self.object.clone(), reason }
    }

    fn write(&self, key: KeyId, plain: &[u8]) -> Blob {
        Blob::from_bytes([&[Blob::VERSION, 0], key.as_bytes().as_slice(), self.text.as_bytes(), plain].concat())
    }

    fn read(&self, keys: &OrganizationKeys, sealed: &Blob) -> Result<Vec<u8>, SealError> {
        let key = sealed.key().ok_or_else(|| self.damaged())?;
        if keys.find(key).is_none() {
            let (table, column, object) = (self.table, "sealed", self.object.clone());
            return Err(SealError::UnknownKey { table, column, object, key });
        }
        self.plain(sealed)
    }

    fn plain(&self, sealed: &Blob) -> Result<Vec<u8>, SealError> {
        let plain = sealed.as_bytes().get(HEADER..).and_then(|rest| rest.strip_prefix(self.text.as_bytes()));
        plain.map(<[u8]>::to_vec).ok_or_else(|| self.damaged())
    }
}
