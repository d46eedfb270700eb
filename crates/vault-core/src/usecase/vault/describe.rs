//! Changes of a credential's metadata: labels, description, expiry and vend rule.

use super::{CredentialRef, Vault};
use crate::credential::{ChangedVersion, CredentialEdit, CredentialPatch};
use crate::error::Error;
use crate::principal::Principal;

impl Vault {
    /// Changes the metadata of a credential. A patch without changes writes nothing.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`](crate::Refusal::NotFound), also for a credential of another organization.
    /// - [`Refusal::Changed`](crate::Refusal::Changed) or [`Refusal::Contended`](crate::Refusal::Contended).
    /// - [`Error::Invalid`]: too many labels, the data has no short-lived form, or a keyless credential gets another
    ///   vend rule.
    /// - [`Error::Denied`]: a principal that is not an admin changes `short` to `any`.
    pub async fn describe(
        &self,
        principal: &Principal,
        credential: CredentialRef,
        request: CredentialPatch,
    ) -> Result<ChangedVersion, Error> {
        self.change(principal, credential, CredentialEdit::Describe(request), None).await
    }
}
