//! Optimistic changes of a credential: read it, decide, and write if it is unchanged.

use super::Vault;
use super::reading::Reading;
use crate::activation::VendRule;
use crate::audit::{AuditAction, AuditChange, ChangedField};
use crate::credential::{
    ChangeCredential, CredentialChange, CredentialState, CredentialType, Information, Metadata, VersionsForChange,
    effective_expiry,
};
use crate::error::{Error, Refusal};
use crate::field::{FieldCode, FieldError};
use crate::id::{CredentialId, OrganizationId};
use crate::port::{
    CredentialContext, Event, RetryReason, SealError, SealedInformation, StoredCredential, StoredMetadata,
    StoredVersions,
};
use crate::principal::Principal;
use crate::time::Timestamp;
use crate::usecase::sound_under_known_keys;

/// A credential as a client has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialRef {
    /// ID of the credential.
    pub id: CredentialId,
    /// Revision that it must still have. `None` overwrites concurrent changes.
    pub revision: Option<i64>,
}

impl From<CredentialId> for CredentialRef {
    /// References the credential in any revision.
    fn from(id: CredentialId) -> Self {
        Self { id, revision: None }
    }
}

/// A credential as read for a change.
#[derive(Clone)]
pub(super) struct Read {
    pub(super) versions: StoredVersions,
    pub(super) metadata: Metadata,
    pub(super) reading: Reading,
}

/// A decided change.
pub(super) struct Decided {
    pub(super) change: CredentialChange,
    pub(super) metadata: Metadata,
    pub(super) vend: VendRule,
    /// Expiry in the data of the version that is current after the change.
    pub(super) data_expires_at: Option<Timestamp>,
}

/// A completed change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedVersion {
    /// Number of the affected version.
    pub version: i64,
    /// Revision after the change. `None` if this request changed nothing.
    pub revision: Option<i64>,
}

impl Vault {
    /// Reads the credential, calls `decide` to decide the change and writes it. Repeats this after a concurrent change.
    pub(super) async fn change<F: Future<Output = Result<Decided, Error>> + Send>(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        credential: CredentialRef,
        action: AuditAction,
        decide: impl Fn(Read) -> F + Send,
    ) -> Result<ChangedVersion, Error> {
        let CredentialRef { id, revision } = credential;
        let mut reading = Reading::First;
        for _ in self.environment.attempts() {
            let read = VersionsForChange(organization, id);
            let versions = self.operations.run(&self.environment, principal, read).await?;
            let seen = versions.current.revision;
            if revision.is_some_and(|revision| revision != seen) {
                return Err(Refusal::Changed.into());
            }
            let mac_is_valid = || versions.current.mac_is_valid(&*self.digester, organization);
            if !sound_under_known_keys(&*self.digester, mac_is_valid).await? {
                return Err(Refusal::Damaged { table: "credentials", id: id.to_string() }.into());
            }
            let opened_and_decided = async {
                let metadata = self.metadata(organization, &versions.current, reading).await?;
                let read = Read { versions, metadata, reading };
                let decided = decide(read.clone()).await?;
                Ok((read, decided))
            };
            let (read, decided) = match opened_and_decided.await {
                Err(Error::Seal(error)) if reading.is_to_repeat(&error) => {
                    reading = Reading::Again;
                    continue;
                }
                decided => decided?,
            };
            let before = read.versions.current.state();
            let (current, staged) = decided.change.versions_after(before.version, before.staged);
            let expires_at = effective_expiry(decided.metadata.expires_at(current), decided.data_expires_at);
            let description = self.describing(organization, &read, &decided).await?;
            if description.is_none() && matches!(decided.change, CredentialChange::Describe) {
                return Ok(ChangedVersion { version: current, revision: None });
            }
            let keys = [
                match &decided.change {
                    CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => {
                        Some(version.sealed.key)
                    }
                    _ => None,
                },
                description.as_ref().and_then(|description| Some(description.metadata.as_ref()?.key)),
            ];
            let (action, changes) = reported(action, &read, &decided);
            let said = match &description {
                Some(description) => description.metadata.as_ref().map(|metadata| metadata.revision),
                None => before.metadata_revision,
            };
            // Versions past their retention leave the list after maintenance has deleted their rows.
            let (now, others) = (self.environment.now(), &read.versions.others);
            let listed =
                read.versions.current.listed.records().filter(|record| {
                    record.is_kept(now) || others.iter().any(|version| version.number == record.number)
                });
            let listed = decided.change.listed_after(before.version, &listed.collect());
            let after = CredentialState {
                vend: decided.vend,
                version: current,
                staged,
                highest: decided.change.highest_after(before.highest),
                listed: &listed,
                revision: seen.saturating_add(1),
                metadata_revision: said,
                ..before
            };
            let code = after.code(&*self.digester, organization, id);
            let change = decided.change;
            let revision = Some(seen.saturating_add(1));
            let operation = ChangeCredential {
                organization,
                id,
                revision: seen,
                change,
                listed,
                description,
                code,
                expires_at,
                action,
                changes,
            };
            match self.operations.run(&self.environment, principal, operation).await {
                Err(Error::Refused(Refusal::Changed)) => {
                    self.environment.emit(Event::Retried(RetryReason::CredentialChanged));
                }
                Err(Error::Refused(Refusal::Contended)) => self.forget_keys(organization, keys),
                changed => return changed.map(|version| ChangedVersion { version, revision }),
            }
        }
        Err(Refusal::Contended.into())
    }

    /// Returns the metadata and vend rule to store, or `None` if they are unchanged.
    async fn describing(
        &self,
        organization: OrganizationId,
        read: &Read,
        decided: &Decided,
    ) -> Result<Option<StoredMetadata>, Error> {
        let current = &read.versions.current;
        let id = current.id;
        let same = decided.metadata == read.metadata;
        if same && decided.vend == current.vend {
            return Ok(None);
        }
        let place = (organization, id, current.revision.saturating_add(1));
        Ok(Some(match same {
            true => StoredMetadata {
                metadata: current.metadata.clone(),
                labels: read.metadata.labels.digests(&*self.digester, organization),
                vend: decided.vend,
            },
            false => self.description(place, &decided.metadata, decided.vend).await?,
        }))
    }

    /// Returns the metadata and vend rule to store for a revision of a credential.
    pub(super) async fn description(
        &self,
        (organization, credential, revision): (OrganizationId, CredentialId, i64),
        metadata: &Metadata,
        vend: VendRule,
    ) -> Result<StoredMetadata, Error> {
        let context = CredentialContext { organization, credential, version: revision, id: None };
        let sealed = match *metadata == Metadata::default() {
            true => None,
            false => Some(self.sealer.seal_metadata(context, metadata).await?),
        };
        Ok(StoredMetadata { metadata: sealed, labels: metadata.labels.digests(&*self.digester, organization), vend })
    }

    /// Decrypts the metadata of one credential.
    async fn metadata(
        &self,
        organization: OrganizationId,
        row: &StoredCredential,
        reading: Reading,
    ) -> Result<Metadata, Error> {
        let Some(sealed) = &row.metadata else { return Ok(Metadata::default()) };
        let context = CredentialContext { organization, credential: row.id, version: sealed.revision, id: None };
        let sealed = [SealedInformation { context, key: sealed.key, blob: &sealed.blob }];
        self.only(self.opener.open_metadata(organization, &sealed).await?, reading)
    }

    /// Decrypts the information of the current version.
    pub(super) async fn information(
        &self,
        organization: OrganizationId,
        row: &StoredCredential,
        reading: Reading,
    ) -> Result<Information, Error> {
        let context = row.context(organization, row.version);
        self.open_one(SealedInformation { context, key: row.key, blob: &row.information }, reading).await
    }

    /// Decrypts the information of one version.
    pub(super) async fn open_one(&self, sealed: SealedInformation<'_>, reading: Reading) -> Result<Information, Error> {
        self.only(self.opener.open_information(sealed.context.organization, &[sealed]).await?, reading)
    }

    /// Returns the single result. Reports a failure unless the row is to be read again.
    fn only<T>(&self, opened: Vec<Result<T, SealError>>, reading: Reading) -> Result<T, Error> {
        let none = || SealError::Fault("nothing was opened".into());
        let opened = opened.into_iter().next().ok_or_else(none)?;
        Ok(opened.inspect_err(|error| {
            if !reading.is_to_repeat(error) {
                self.environment.report(error);
            }
        })?)
    }

    /// Returns the expiry in the data of the current version, or `None` if its information is damaged.
    ///
    /// # Errors
    /// An unknown key at the first reading.
    pub(super) async fn data_expires_at(
        &self,
        organization: OrganizationId,
        row: &StoredCredential,
        reading: Reading,
    ) -> Result<Option<Timestamp>, Error> {
        match self.information(organization, row, reading).await {
            Err(Error::Seal(error)) if reading.is_to_repeat(&error) => Err(error.into()),
            information => Ok(information.ok().and_then(|information| information.expires_at())),
        }
    }
}

/// Returns the audit action and changes. The action is `action`, unless the change is more severe.
fn reported(action: AuditAction, read: &Read, decided: &Decided) -> (AuditAction, Vec<AuditChange>) {
    let (current, before, after) = (&read.versions.current, &read.metadata, &decided.metadata);
    let number = |number: i64| Some(number.to_string());
    let version = |from, to| AuditChange::new(ChangedField::Version, from, to);
    let mut changes = Vec::new();
    let mut graver = None;
    match &decided.change {
        CredentialChange::Replace { version: new, .. } => {
            changes.push(version(number(current.version), number(new.number)));
        }
        CredentialChange::Stage(new) => changes.push(version(None, number(new.number))),
        CredentialChange::Promote { number: to, .. } => changes.push(version(number(current.version), number(*to))),
        CredentialChange::Destroy(gone) => changes.push(version(number(*gone), None)),
        CredentialChange::Describe => {
            let vend = |rule: &VendRule| Some(rule.as_str().to_owned());
            if decided.vend != current.vend {
                graver = Some(match decided.vend {
                    VendRule::Any => AuditAction::CredentialVendRelaxed,
                    VendRule::Short => AuditAction::CredentialVendRestricted,
                });
            }
            changes.extend(AuditChange::between(ChangedField::Vend, &current.vend, &decided.vend, vend));
            changes.extend((before.labels != after.labels).then(|| AuditChange::withheld(ChangedField::Labels)));
            let described = before.description != after.description;
            changes.extend(described.then(|| AuditChange::withheld(ChangedField::Description)));
            let (from, to) = (before.expires_at(current.version), after.expires_at(current.version));
            let text = |at: &Option<Timestamp>| at.and_then(Timestamp::to_rfc3339);
            changes.extend(AuditChange::between(ChangedField::ExpiresAt, &from, &to, text));
        }
    }
    (graver.unwrap_or(action), changes)
}

/// Returns the refusal of `vend: short` for data without a short-lived form.
pub(super) fn no_short_form(kind: CredentialType, reason: crate::check::CheckReason) -> Error {
    // The remedies name values of an activation's `vend`, which differ from those of a credential's rule.
    let wish = reason.remedy().replace("use vend raw or prefer-short", "set vend to any");
    let remedy = wish.replace("use vend prefer-short", "set vend to any");
    let detail = format!("this {} credential has no short-lived form: {remedy}", kind.as_str());
    FieldError::new("/vend", FieldCode::NotAllowed, detail).into()
}
