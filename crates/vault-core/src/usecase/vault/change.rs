//! Change a credential in steps that no other change comes between: read it, judge, write if it is still the same.

use super::Vault;
use crate::audit::{AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::id::{CredentialId, OrganizationId};
use crate::port::{ChangeCredential, CredentialChange, Event, Find, StoreError, StoredVersions};
use crate::principal::Principal;
use std::future::Future;

/// How often a change is judged anew because others change the same credential.
const ATTEMPTS: usize = 16;

/// A credential as a client has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialRef {
    /// Which.
    pub id: CredentialId,
    /// The revision that it must still have; `None`: the last writer wins.
    pub revision: Option<i64>,
}

impl From<CredentialId> for CredentialRef {
    /// The credential, whatever its revision.
    fn from(id: CredentialId) -> Self {
        Self { id, revision: None }
    }
}

impl Vault {
    /// Reads the credential, has `judge` say what changes, and writes that; judged anew where another change came
    /// between. Gives the number of the version concerned.
    pub(super) async fn change<F>(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        credential: CredentialRef,
        action: AuditAction,
        mut judge: impl FnMut(StoredVersions) -> F + Send,
    ) -> Result<i64, Error>
    where
        F: Future<Output = Result<CredentialChange, Error>> + Send,
    {
        let CredentialRef { id, revision } = credential;
        for _ in 0..ATTEMPTS {
            let versions = self.versions_of(principal, organization, id).await?;
            let read = versions.current.revision;
            if revision.is_some_and(|revision| revision != read) {
                return Err(Refusal::Changed.into());
            }
            let change = judge(versions).await?;
            let key = match &change {
                CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => {
                    Some(version.sealed.key)
                }
                CredentialChange::Promote { .. } | CredentialChange::Destroy(_) => None,
            };
            let act = ChangeCredential { organization, id, revision: read, change };
            let command = self.ambient.command(principal, Some(organization), action, Subject::Credential(id), act);
            let changed = Event::recorded(&command.audit);
            match self.store.change_credential(command).await {
                Ok(number) => {
                    self.ambient.emit(changed);
                    return Ok(number);
                }
                Err(StoreError::Refused(Refusal::Changed)) => {}
                // The key was replaced between sealing and writing.
                Err(StoreError::Refused(Refusal::Contended)) => {
                    key.iter().for_each(|key| self.sealer.forget(organization, *key));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::Contended.into())
    }

    /// Reads a credential with its versions.
    pub(super) async fn versions_of(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        id: CredentialId,
    ) -> Result<StoredVersions, Error> {
        let query = Find { principal: principal.clone(), of: organization, key: id, now: self.ambient.now() };
        Ok(self.store.credential_versions(query).await?.ok_or(Refusal::NotFound)?)
    }
}
