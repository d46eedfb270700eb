//! Issuers of identity tokens, which only operators manage.

use super::Operator;
use crate::audit::{Affected, AuditAction, AuditChange, ChangedField, RecordedRow, RowState, Subject};
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
        let affected = left(&stored.issuer, stored.issuer.states(digester).current());
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
        let found = self.store.find_issuers(vec![name.clone()]).await?.pop().ok_or(Refusal::NotFound)?;
        let affected = left(&found.issuer, RowState::Gone);
        let command =
            self.environment.command(&Principal::Operator, None, AuditAction::IssuerRemoved, affected, found.issuer.id);
        let removed = Event::recorded(&command.audit);
        if !self.store.remove_issuer(command).await? {
            return Err(Refusal::NotFound.into());
        }
        self.environment.emit(removed);
        Ok(())
    }
}

/// Returns the issuer with the state of its row after an operation.
fn left(issuer: &Issuer, state: RowState) -> Affected {
    let name = AuditChange::new(ChangedField::Issuer, None, Some(issuer.name.to_string()));
    Subject::Issuer(issuer.id).left(RecordedRow::Issuer, state).changing([name])
}
