//! Making instance keys, and making again under the active one what another one has wrapped and sealed.

use crate::aead::AeadKey;
use crate::context::Context;
use crate::entropy::{random_key, random_key_id};
use crate::error::{does_not_open, fault, no_entropy, not_sealed};
use crate::instance_keys::{Document, InstanceKeyring, InstanceKeys};
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::id::{AccountId, KeyId, OrganizationId};
use vault_core::keyring::TermPurpose;
use vault_core::port::{Entropy, InstanceRewrapper, InstanceRow, NextInstanceKey, SealError};
use vault_core::sealed::{Blob, InstanceKeyRecord, InstanceRecord, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

/// Moves what lies under one instance key to the active one. Opens no credential.
pub struct InstanceKeyRewrapper {
    keys: Arc<InstanceKeyring>,
    entropy: Arc<dyn Entropy>,
}

impl InstanceKeyRewrapper {
    pub(crate) fn new(keys: Arc<InstanceKeyring>, entropy: Arc<dyn Entropy>) -> Self {
        Self { keys, entropy }
    }

    /// The active key of `current`, and the document that it opens.
    fn document(&self, current: &InstanceRecord) -> Result<(Arc<InstanceKeys>, Document), SealError> {
        let active = self.keys.find(current.instance_key);
        let active = active.ok_or_else(|| fault("the active instance key is not known"))?;
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
        // Zeros stand for what an account does not have.
        if sealed.key().is_none() {
            return Ok(());
        }
        let keys = self.keys.sealed(context, sealed)?;
        of(&keys).open(context, sealed).map(drop).map_err(|error| does_not_open(context, error))
    }

    fn secrets_open(
        &self,
        account: AccountId,
        password: Option<&SealedPassword>,
        seed: &SealedSeed,
    ) -> Result<(), SealError> {
        let instance = self.keys.instance();
        if let Some(password) = password {
            self.text_opens(&Context::password(instance, account), &password.0, |keys| &keys.password)?;
        }
        self.text_opens(&Context::seed(instance, account, seed.id), &seed.blob, |keys| &keys.seed)
    }

    /// A text, sealed again by the key that `of` picks.
    fn seal_again(
        &self,
        context: &Context,
        sealed: &Blob,
        of: impl Fn(&InstanceKeys) -> &AeadKey,
    ) -> Result<Blob, SealError> {
        // Zeros stand for what an account does not have.
        if sealed.key().is_none() {
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

#[async_trait]
impl InstanceRewrapper for InstanceKeyRewrapper {
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
        let wrapped = self.keys.wrap_under_root(&Context::instance_key(instance, id), &key, current.root_key).await?;
        let document = document.content.with_term(document.hash, TermPurpose::Instance, id, now).map_err(fault)?;
        let keyring = to.seal_document(&*self.entropy, instance, &document).map_err(not_sealed)?;
        let mut rewrapped = Vec::with_capacity(keys.len());
        for row in keys {
            let context = Context::purpose_key(instance, row.purpose, row.id);
            let wrapped = self.rewrap(&context, &from, &to, &row.wrapped)?;
            rewrapped.push(InstanceKeyRecord { wrapped, ..row.clone() });
        }
        let instance = InstanceRecord { instance_key: id, wrapped, keyring, ..current.clone() };
        Ok(NextInstanceKey { instance, keys: rewrapped })
    }

    fn keyring_without(&self, current: &InstanceRecord, key: KeyId) -> Result<Blob, SealError> {
        let (active, document) = self.document(current)?;
        if !document.content.has(TermPurpose::Instance, key) {
            return Ok(current.keyring.clone());
        }
        let document = document.content.without_term(document.hash, key).map_err(fault)?;
        active.seal_document(&*self.entropy, current.id, &document).map_err(not_sealed)
    }

    fn fingerprint_key(&self, organization: OrganizationId, key: KeyId, wrapped: &Blob) -> Result<Blob, SealError> {
        self.wrap_again(&Context::fingerprint_key(self.keys.instance(), organization, key), wrapped)
    }

    fn organization_key(&self, organization: OrganizationId, key: KeyId, wrapped: &Blob) -> Result<Blob, SealError> {
        self.wrap_again(&Context::organization_key(self.keys.instance(), organization, key), wrapped)
    }

    fn opens(&self, row: &InstanceRow) -> Result<(), SealError> {
        let instance = self.keys.instance();
        match row {
            InstanceRow::Organization { organization, key, wrapped } => {
                self.unwraps(&Context::fingerprint_key(instance, *organization, *key), wrapped)
            }
            InstanceRow::OrganizationKey { organization, key, wrapped } => {
                self.unwraps(&Context::organization_key(instance, *organization, *key), wrapped)
            }
            InstanceRow::Account { signed, password, seed, .. } => {
                self.secrets_open(signed.grant.account, Some(password), seed)
            }
            InstanceRow::Draft { account, password, seed, .. } => self.secrets_open(*account, Some(password), seed),
            InstanceRow::PendingSeed { account, seed, .. } => self.secrets_open(*account, None, seed),
            InstanceRow::Invitation(_) | InstanceRow::Integration(_) => Ok(()),
        }
    }

    fn password(&self, account: AccountId, sealed: &SealedPassword) -> Result<SealedPassword, SealError> {
        let context = Context::password(self.keys.instance(), account);
        Ok(SealedPassword(self.seal_again(&context, &sealed.0, |keys| &keys.password)?))
    }

    fn seed(&self, account: AccountId, sealed: &SealedSeed) -> Result<SealedSeed, SealError> {
        let context = Context::seed(self.keys.instance(), account, sealed.id);
        Ok(SealedSeed { id: sealed.id, blob: self.seal_again(&context, &sealed.blob, |keys| &keys.seed)? })
    }
}
