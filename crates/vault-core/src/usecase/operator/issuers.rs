//! Issuers of identity tokens, which only operators manage.

use super::Operator;
use crate::audit::{Affected, AuditAction, AuditChange, ChangedField, Subject};
use crate::error::{Error, Refusal};
use crate::identity::{Issuer, IssuerName, StoredIssuer};
use crate::port::{Event, FetchedKeys, IssuerKeys, KeyUse, KeyedDigester, TokenVerifier};
use crate::principal::Principal;

impl Operator {
    /// Adds an issuer with its keys: those of `pasted`, otherwise those that it returns.
    ///
    /// # Errors
    /// [`Refusal::IssuerExists`] or [`Refusal::IssuerKeys`].
    pub async fn add_issuer(
        &self,
        issuer: Issuer,
        pasted: Option<String>,
        (verifier, keys, digester): (&dyn TokenVerifier, &dyn IssuerKeys, &dyn KeyedDigester),
    ) -> Result<StoredIssuer, Error> {
        let FetchedKeys { keys: found, source } = match pasted {
            Some(keys) => FetchedKeys { keys, source: issuer.source.clone() },
            None => keys.fetch(&issuer).await.map_err(|failure| Refusal::IssuerKeys(failure.0.into_owned()))?,
        };
        let issuer = Issuer { source, ..issuer };
        let key_use = issuer.key_use();
        match verifier.count_keys(&found, key_use) {
            None => return Err(Refusal::IssuerKeys("they are no JSON Web Key Set".to_owned()).into()),
            Some(count) if count.usable == 0 => {
                let expected = match key_use {
                    KeyUse::Signature => "a key with `use` sig or without `use`",
                    KeyUse::JwtSvid => "a key with `use` jwt-svid, or a set without any `use`",
                };
                let kinds = "RSA of at least 2,048 bits, P-256, P-384 or Ed25519";
                let reason = format!("none of them can verify a token ({count}); expected {expected}, {kinds}");
                return Err(Refusal::IssuerKeys(reason).into());
            }
            Some(_) => {}
        }
        let stored = StoredIssuer::sign(issuer, found, self.environment.now(), digester);
        let affected = named(&stored.issuer.name);
        let command =
            self.environment.command(&Principal::Operator, None, AuditAction::IssuerAdded, affected, stored.clone());
        let added = Event::recorded(&command.audit);
        self.store.add_issuer(command).await?;
        self.environment.emit(added);
        Ok(stored)
    }

    /// Returns all issuers, ordered by name.
    ///
    /// # Errors
    /// The store failed.
    pub async fn issuers(&self) -> Result<Vec<StoredIssuer>, Error> {
        Ok(self.store.list_issuers().await?)
    }

    /// Removes an issuer. Its tokens are refused when this returns.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] if no issuer has this name.
    pub async fn remove_issuer(&self, name: &IssuerName) -> Result<(), Error> {
        let affected = named(name);
        let command =
            self.environment.command(&Principal::Operator, None, AuditAction::IssuerRemoved, affected, name.clone());
        let removed = Event::recorded(&command.audit);
        if !self.store.remove_issuer(command).await? {
            return Err(Refusal::NotFound.into());
        }
        self.environment.emit(removed);
        Ok(())
    }
}

/// Returns the audited effect on the issuer with this name.
fn named(name: &IssuerName) -> Affected {
    Affected::from(Subject::Instance).changing([AuditChange::new(ChangedField::Issuer, None, Some(name.to_string()))])
}
