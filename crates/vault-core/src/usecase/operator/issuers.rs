//! Issuers of identity tokens, which only operators manage.

use super::Operator;
use crate::error::{Error, Refusal};
use crate::identity::{AddIssuer, Issuer, IssuerKeySet, IssuerName, ListIssuers, RemoveIssuer, StoredIssuer};
use crate::port::{FetchedKeys, IssuerKeys, KeyUse, TokenVerifier};

impl Operator {
    /// Adds an issuer with its keys: those of `pasted`, otherwise those that it returns.
    ///
    /// # Errors
    /// [`Refusal::IssuerExists`] or [`Refusal::IssuerKeys`].
    pub async fn add_issuer(
        &self,
        issuer: Issuer,
        pasted: Option<String>,
        (verifier, keys): (&dyn TokenVerifier, &dyn IssuerKeys),
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
        let set = IssuerKeySet::fetched(found, self.environment.now());
        self.run(AddIssuer { issuer, set }).await
    }

    /// Returns all issuers, ordered by name.
    ///
    /// # Errors
    /// The store failed.
    pub async fn issuers(&self) -> Result<Vec<StoredIssuer>, Error> {
        self.run(ListIssuers).await
    }

    /// Removes an issuer. Its tokens are refused when this returns.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] if no issuer has this name.
    pub async fn remove_issuer(&self, name: &IssuerName) -> Result<(), Error> {
        self.run(RemoveIssuer(name.clone())).await
    }
}
