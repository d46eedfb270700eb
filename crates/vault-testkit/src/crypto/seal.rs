//! Sealing without encryption.

use super::digest::digest;
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::credential::{Card, CredentialData, CredentialType, Fingerprint, SecretBytes};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{
    CardContext, CardOpener, CredentialContext, IdGenerator, KeyRepository, Opener, Rewrapper, SealError,
    SealedCredential, Sealer,
};
use vault_core::sealed::{Blob, KeyState, OrganizationKeyRecord, OrganizationKeys, ReboundKeys, SealedData};
use vault_core::time::Timestamp;

/// Writes the context of a blob, followed by the plaintext. As a real sealer, it unseals only in the same context and
/// seals only under stored keys.
pub struct PlainSealer {
    keys: Arc<dyn KeyRepository>,
    ids: Arc<dyn IdGenerator>,
}

impl PlainSealer {
    /// Creates a sealer that uses the keys of `keys` and creates new ones with IDs from `ids`.
    pub fn new(keys: Arc<dyn KeyRepository>, ids: Arc<dyn IdGenerator>) -> Self {
        Self { keys, ids }
    }

    async fn keys(&self, organization: OrganizationId) -> Result<OrganizationKeys, SealError> {
        self.keys.organization_keys(organization).await?.ok_or(SealError::NoKeys)
    }

    /// Returns the IDs of the organization's keys.
    async fn known(&self, organization: OrganizationId) -> Result<Vec<KeyId>, SealError> {
        Ok(self.keys(organization).await?.keys.iter().map(|row| row.id).collect())
    }

    /// Refuses a key that the organization does not have.
    async fn require(&self, organization: OrganizationId, place: &Place, key: KeyId) -> Result<(), SealError> {
        if self.known(organization).await?.contains(&key) { Ok(()) } else { Err(place.unknown(key)) }
    }

    /// Returns the keys, or an empty list if the organization does not exist.
    async fn known_if_any(&self, organization: OrganizationId) -> Result<Vec<KeyId>, SealError> {
        match self.known(organization).await {
            Err(SealError::NoKeys) => Ok(Vec::new()),
            known => known,
        }
    }
}

#[async_trait]
impl Sealer for PlainSealer {
    async fn fingerprint(&self, organization: OrganizationId, data: &SecretBytes) -> Result<Fingerprint, SealError> {
        self.keys(organization).await?;
        // A digest, so that the fingerprint does not show the data.
        let digest = digest(0, "fingerprint", &[organization.as_bytes(), data.expose()]);
        Ok(Fingerprint::from_digest(digest.as_bytes()))
    }

    async fn seal(
        &self,
        key: KeyId,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
    ) -> Result<SealedData, SealError> {
        let place = Place::of_data(context);
        self.require(context.organization, &place, key).await?;
        // Stored in plaintext: this is the fake.
        let plain = [namespace.as_str().as_bytes(), b":", data.expose()].concat();
        Ok(SealedData { data_key: place.write(key, &[]), data: place.write(DATA_KEY, &plain) })
    }

    async fn seal_card(&self, key: KeyId, context: CardContext, card: &Card) -> Result<Blob, SealError> {
        let place = Place::of_card(context);
        self.require(context.organization, &place, key).await?;
        Ok(place.write(key, &card.to_bytes()))
    }

    fn new_organization_keys(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeys, SealError> {
        Ok(OrganizationKeys {
            fingerprint_key: KeyId::from_uuid(self.ids.random()),
            fingerprint_wrapped: Blob::from_bytes(b"not-a-key".to_vec()),
            keys: vec![self.new_organization_key(organization, now)?],
        })
    }

    async fn verify_organization_keys(&self, _: OrganizationId, _: &OrganizationKeys) -> Result<(), SealError> {
        Ok(())
    }

    async fn bind_organization_keys(
        &self,
        _: OrganizationId,
        before: &OrganizationKeys,
        _: &OrganizationKeys,
    ) -> Result<ReboundKeys, SealError> {
        Ok(ReboundKeys { before: before.fingerprint_wrapped.clone(), after: before.fingerprint_wrapped.clone() })
    }

    async fn reload_keys(&self) -> Result<(), SealError> {
        Ok(())
    }

    fn new_organization_key(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeyRecord, SealError> {
        Ok(OrganizationKeyRecord {
            organization,
            id: KeyId::from_uuid(self.ids.random()),
            state: KeyState::Active,
            wrapped: Blob::from_bytes(b"not-a-key".to_vec()),
            uses: 0,
            created_at: now,
        })
    }
}

#[async_trait]
impl CardOpener for PlainSealer {
    async fn open_cards<'a>(
        &self,
        organization: OrganizationId,
        cards: &[(CardContext, &'a Blob)],
    ) -> Result<Vec<Result<Card, SealError>>, SealError> {
        let known = self.known_if_any(organization).await?;
        Ok(cards
            .iter()
            .map(|(context, sealed)| open(&known, CardContext { organization, ..*context }, sealed))
            .collect())
    }
}

fn open(known: &[KeyId], context: CardContext, sealed: &Blob) -> Result<Card, SealError> {
    let place = Place::of_card(context);
    let plain = place.read(known, sealed)?;
    Card::from_bytes(&plain).map_err(|_| place.damaged())
}

#[async_trait]
impl Rewrapper for PlainSealer {
    async fn rewrap(
        &self,
        organization: OrganizationId,
        to: KeyId,
        credentials: Vec<SealedCredential>,
    ) -> Result<Vec<Result<SealedCredential, SealError>>, SealError> {
        let known = self.known(organization).await?;
        if !known.contains(&to) {
            let (table, column) = ("organization_keys", "id");
            return Err(SealError::UnknownKey { table, column, object: organization.to_string(), key: to });
        }
        Ok(credentials.into_iter().map(|one| rewrap_one(organization, &known, to, one)).collect())
    }
}

fn rewrap_one(
    organization: OrganizationId,
    known: &[KeyId],
    to: KeyId,
    before: SealedCredential,
) -> Result<SealedCredential, SealError> {
    let context = CardContext { organization, credential: before.id, revision: before.revision };
    let card = open(known, context, &before.card)?;
    let mut data = Vec::new();
    for (number, sealed) in before.data {
        let Some(version) = card.version(number) else { continue };
        let place =
            Place::of_data(CredentialContext { organization, credential: before.id, version: number, id: version.id });
        place.read(known, &sealed.data_key)?;
        data.push((number, SealedData { data_key: place.write(to, &[]), ..sealed }));
    }
    Ok(SealedCredential { card: Place::of_card(context).write(to, &card.to_bytes()), data, ..before })
}

#[async_trait]
impl Opener for PlainSealer {
    async fn open(
        &self,
        context: CredentialContext,
        namespace: &Namespace,
        kind: CredentialType,
        sealed: &SealedData,
    ) -> Result<CredentialData, SealError> {
        let (known, place) = (self.known(context.organization).await?, Place::of_data(context));
        place.read(&known, &sealed.data_key)?;
        let plain = place.read(&[DATA_KEY], &sealed.data)?;
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

    fn unknown(&self, key: KeyId) -> SealError {
        SealError::UnknownKey { table: self.table, column: "sealed", object: self.object.clone(), key }
    }

    fn damaged(&self) -> SealError {
        let reason = "not sealed by this deployment";
        SealError::Integrity { table: self.table, column: "sealed", object: self.object.clone(), reason }
    }

    fn write(&self, key: KeyId, plain: &[u8]) -> Blob {
        Blob::from_bytes([&[Blob::VERSION, 0], key.as_bytes().as_slice(), self.text.as_bytes(), plain].concat())
    }

    fn read(&self, known: &[KeyId], sealed: &Blob) -> Result<Vec<u8>, SealError> {
        let key = sealed.key().ok_or_else(|| self.damaged())?;
        if !known.contains(&key) {
            return Err(self.unknown(key));
        }
        let plain = sealed.as_bytes().get(HEADER..).and_then(|rest| rest.strip_prefix(self.text.as_bytes()));
        plain.map(<[u8]>::to_vec).ok_or_else(|| self.damaged())
    }
}
