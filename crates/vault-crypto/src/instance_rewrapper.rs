//! Creates keys of the instance, and rewraps and reseals under the active keys what older keys protect.

use crate::aead::AeadKey;
use crate::blob::OpenError;
use crate::context::Context;
use crate::entropy::{random_key, random_key_id};
use crate::error::{does_not_open, fault, no_entropy, not_sealed};
use crate::instance_keys::{Document, InstanceKeyring, InstanceKeys};
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::id::{AccountId, KeyId, OrganizationId};
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::port::{Entropy, InstanceRewrapper, InstanceRow, NextInstanceKey, SealError};
use vault_core::sealed::{
    Blob, InstanceKeyPurpose, InstanceKeyRecord, InstanceRecord, OrganizationKeys, SealedPassword, SealedSeed,
};
use vault_core::time::Timestamp;

/// Moves wrapped keys and sealed values to the active key of their purpose. It cannot open credentials.
pub struct InstanceKeyRewrapper {
    keys: Arc<InstanceKeyring>,
    entropy: Arc<dyn Entropy>,
}

impl InstanceKeyRewrapper {
    pub(crate) fn new(keys: Arc<InstanceKeyring>, entropy: Arc<dyn Entropy>) -> Self {
        Self { keys, entropy }
    }

    /// Returns the active key of `current` and the keyring document that it opens.
    fn document(&self, current: &InstanceRecord) -> Result<(Arc<InstanceKeys>, Document), SealError> {
        let active = self.keys.find(current.instance_key);
        let active = active.ok_or_else(|| fault("the active instance key is not loaded"))?;
        let opened = active.open_document(current.id, &current.keyring);
        let document = opened.map_err(|error| does_not_open(&Context::keyring(current.id), error))?;
        Ok((active, document))
    }

    fn wrap_again(&self, context: &Context, wrapped: &Blob) -> Result<Blob, SealError> {
        let (from, active) = (self.keys.sealed(context, wrapped)?, self.keys.active());
        if from.id() == active.id() { Ok(wrapped.clone()) } else { self.rewrap(context, &from, &active, wrapped) }
    }

    fn rewrap(
        &self,
        context: &Context,
        from: &InstanceKeys,
        to: &InstanceKeys,
        wrapped: &Blob,
    ) -> Result<Blob, SealError> {
        let key = from.wrap.unwrap(context, wrapped).map_err(|error| does_not_open(context, error))?;
        to.wrap.wrap(&*self.entropy, context, &key).map_err(not_sealed)
    }

    fn unwraps(&self, context: &Context, wrapped: &Blob) -> Result<(), SealError> {
        let keys = self.keys.sealed(context, wrapped)?;
        keys.wrap.unwrap(context, wrapped).map(drop).map_err(|error| does_not_open(context, error))
    }

    fn text_opens(
        &self,
        context: &Context,
        sealed: &Blob,
        of: impl Fn(&InstanceKeys) -> &AeadKey,
    ) -> Result<(), SealError> {
        let keys = self.keys.sealed(context, sealed)?;
        of(&keys).open(context, sealed).map(drop).map_err(|error| does_not_open(context, error))
    }

    fn can_decrypt_secrets(
        &self,
        account: AccountId,
        password: Option<&SealedPassword>,
        seed: &SealedSeed,
    ) -> Result<(), SealError> {
        let instance = self.keys.instance();
        if let Some(password) = password {
            self.text_opens(&Context::password(instance, account, password.id), &password.blob, |keys| &keys.password)?;
        }
        self.text_opens(&Context::seed(instance, account, seed.id), &seed.blob, |keys| &keys.seed)
    }

    /// Reseals a text with the key that `of` selects.
    fn seal_again(
        &self,
        context: &Context,
        sealed: &Blob,
        of: impl Fn(&InstanceKeys) -> &AeadKey,
    ) -> Result<Blob, SealError> {
        if is_blank(sealed) {
            return Ok(sealed.clone());
        }
        let (from, active) = (self.keys.sealed(context, sealed)?, self.keys.active());
        if from.id() == active.id() {
            return Ok(sealed.clone());
        }
        let text = of(&from).open(context, sealed).map_err(|error| does_not_open(context, error))?;
        of(&active).seal(&*self.entropy, context, &text).map_err(not_sealed)
    }
}

/// Zeros stand for the password and seed of an account that awaits its owner's enrolment.
fn is_blank(sealed: &Blob) -> bool {
    let bytes = sealed.as_bytes();
    !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0)
}

#[async_trait]
impl InstanceRewrapper for InstanceKeyRewrapper {
    fn terms(&self, current: &InstanceRecord) -> Result<Vec<KeyringEntry>, SealError> {
        Ok(self.document(current)?.1.content.terms().to_vec())
    }

    async fn next_instance_key(
        &self,
        current: &InstanceRecord,
        keys: &[InstanceKeyRecord],
        now: Timestamp,
    ) -> Result<NextInstanceKey, SealError> {
        let instance = current.id;
        let (from, document) = self.document(current)?;
        let id = random_key_id(&*self.entropy).map_err(no_entropy)?;
        let key = random_key(&*self.entropy).map_err(no_entropy)?;
        let to = InstanceKeys::derive(id, &key);
        let wrapped = self.keys.wrap_under_root(&Context::instance_key(instance, id), &key, current.root_key)?;
        let mut made = Vec::with_capacity(InstanceKeyPurpose::ALL.len());
        for purpose in InstanceKeyPurpose::ALL {
            made.push(to.new_purpose_key(&*self.entropy, instance, purpose, now).map_err(not_sealed)?);
        }
        let terms: Vec<_> =
            made.iter().map(|key| (key.purpose.into(), key.id)).chain([(KeyPurpose::Instance, id)]).collect();
        let document = document.content.with_terms(document.hash, &terms, now).map_err(fault)?;
        let keyring = to.seal_document(&*self.entropy, instance, &document).map_err(not_sealed)?;
        let mut rewrapped = Vec::with_capacity(keys.len());
        for row in keys {
            let context = Context::purpose_key(instance, row.purpose, row.id);
            let wrapped = self.rewrap(&context, &from, &to, &row.wrapped)?;
            rewrapped.push(InstanceKeyRecord { wrapped, ..row.clone() });
        }
        rewrapped.append(&mut made);
        let instance = InstanceRecord { instance_key: id, wrapped, keyring, ..current.clone() };
        Ok(NextInstanceKey { instance, keys: rewrapped })
    }

    fn keyring_without(&self, current: &InstanceRecord, key: KeyId) -> Result<Blob, SealError> {
        let (active, document) = self.document(current)?;
        if !document.content.retiring().any(|term| term.id == key) {
            return Ok(current.keyring.clone());
        }
        let document = document.content.without_term(document.hash, key).map_err(fault)?;
        active.seal_document(&*self.entropy, current.id, &document).map_err(not_sealed)
    }

    fn fingerprint_key(&self, organization: OrganizationId, keys: &OrganizationKeys) -> Result<Blob, SealError> {
        let context = Context::fingerprint_key(self.keys.instance(), organization, keys);
        self.wrap_again(&context, &keys.fingerprint_wrapped)
    }

    fn organization_key(&self, organization: OrganizationId, key: KeyId, wrapped: &Blob) -> Result<Blob, SealError> {
        self.wrap_again(&Context::organization_key(self.keys.instance(), organization, key), wrapped)
    }

    fn opens(&self, row: &InstanceRow) -> Result<(), SealError> {
        let instance = self.keys.instance();
        match row {
            InstanceRow::Organization { organization, keys } => {
                let context = Context::fingerprint_key(instance, *organization, keys);
                self.unwraps(&context, &keys.fingerprint_wrapped)
            }
            InstanceRow::OrganizationKey { organization, key, wrapped } => {
                self.unwraps(&Context::organization_key(instance, *organization, *key), wrapped)
            }
            // The signed row states whether there is something to decrypt.
            InstanceRow::Account { signed, password, seed, .. } if signed.awaits_enrolment() => {
                match is_blank(&password.blob) && is_blank(&seed.blob) {
                    true => Ok(()),
                    false => {
                        let context = Context::password(instance, signed.grant.account, password.id);
                        Err(does_not_open(&context, OpenError::OtherKey))
                    }
                }
            }
            InstanceRow::Account { signed, password, seed, .. } => {
                self.can_decrypt_secrets(signed.grant.account, Some(password), seed)
            }
            InstanceRow::Draft { account, draft, .. } => {
                self.can_decrypt_secrets(*account, Some(&draft.password), &draft.seed)
            }
            InstanceRow::PendingSeed { account, pending, .. } => {
                self.can_decrypt_secrets(*account, None, &pending.seed)
            }
            InstanceRow::Invitation(_) => Ok(()),
        }
    }

    fn password(&self, account: AccountId, sealed: &SealedPassword) -> Result<SealedPassword, SealError> {
        let context = Context::password(self.keys.instance(), account, sealed.id);
        Ok(SealedPassword { id: sealed.id, blob: self.seal_again(&context, &sealed.blob, |keys| &keys.password)? })
    }

    fn seed(&self, account: AccountId, sealed: &SealedSeed) -> Result<SealedSeed, SealError> {
        let context = Context::seed(self.keys.instance(), account, sealed.id);
        Ok(SealedSeed { id: sealed.id, blob: self.seal_again(&context, &sealed.blob, |keys| &keys.seed)? })
    }
}
