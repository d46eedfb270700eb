//! Optimistic changes of a credential: read it, decide, and write if it is unchanged.

use super::Vault;
use super::counted_sealer::Sealed;
use super::reading::Reading;
use crate::activation::VendRule;
use crate::audit::{AuditAction, AuditChange, ChangedField};
use crate::credential::{
    Card, CardVersion, ChangeCredential, CredentialForChange, CredentialType, Information, LastCheck, NewVersion,
    SecretBytes,
};
use crate::error::{Error, Refusal};
use crate::field::{FieldCode, FieldError};
use crate::id::{CredentialId, OrganizationId, VersionId};
use crate::port::{CardContext, CredentialContext, Event, Idempotency, RetryReason, StoredCredential, open_cards};
use crate::principal::Principal;
use crate::time::Timestamp;

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

/// Data of a version to create.
pub(super) struct NewData {
    pub(super) data: SecretBytes,
    pub(super) information: Information,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) check: Option<LastCheck>,
    pub(super) idempotency: Option<Idempotency>,
}

impl NewData {
    /// Returns the entry of the version in the card.
    pub(super) fn version(&self, number: i64, id: VersionId, now: Timestamp) -> CardVersion {
        let (expires_at, information) = (self.expires_at, self.information.clone());
        CardVersion { number, id, created_at: now, superseded: None, expires_at, information }
    }
}

/// A change to decide.
pub(super) struct Change<'a> {
    pub(super) credential: CredentialRef,
    pub(super) action: AuditAction,
    pub(super) new: Option<&'a NewData>,
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
    /// Reads the credential, calls `decide` with its card to decide the change, and writes it. `decide` returns the number of the
    /// affected version and the new card. Repeats this after a concurrent change.
    pub(super) async fn change(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        Change { credential: CredentialRef { id, revision }, action, new }: Change<'_>,
        decide: impl Fn(&Card, Timestamp) -> Result<(i64, Card), Error> + Send,
    ) -> Result<ChangedVersion, Error> {
        let mut reading = Reading::First;
        for _ in self.environment.attempts() {
            let read = CredentialForChange(organization, id);
            let row = self.operations.run(&self.environment, principal, read).await?;
            if revision.is_some_and(|revision| revision != row.revision) {
                return Err(Refusal::Changed.into());
            }
            let before = match self.card(organization, &row, reading).await {
                Err(error) if reading == Reading::First && error.is_unknown_key() => {
                    reading = Reading::Again;
                    continue;
                }
                card => card?,
            };
            let now = self.environment.now();
            let (number, after) = decide(&before, now)?;
            if after == before {
                return Ok(ChangedVersion { version: number, revision: None });
            }
            let after = after.at(now);
            let next = row.revision.saturating_add(1);
            let card_context = CardContext { organization, credential: id, revision: next };
            let data = new.zip(after.version(number)).map(|(new, version)| {
                (CredentialContext { organization, credential: id, version: number, id: version.id }, &new.data)
            });
            let Sealed { key, card, data } = self.sealer.seal((card_context, &after), data).await?;
            let has_other_labels = after.metadata.labels != before.metadata.labels;
            let (action, changes) = reported(action, &before, &after, number);
            let operation = ChangeCredential {
                organization,
                id,
                revision: row.revision,
                key,
                card,
                current: after.current.number,
                version: new.zip(data).zip(after.version(number)).map(|((new, data), version)| NewVersion {
                    number,
                    id: version.id,
                    data,
                    check: new.check,
                    idempotency: new.idempotency.clone(),
                }),
                effects: before.effects(&after),
                vend: after.vend,
                expires_at: after.expires_at(),
                labels: has_other_labels.then(|| after.metadata.labels.digests(&*self.digester, organization)),
                action,
                changes,
            };
            match self.operations.run(&self.environment, principal, operation).await {
                Err(Error::Refused(Refusal::Changed)) => {
                    self.environment.emit(Event::Retried(RetryReason::CredentialChanged));
                }
                Err(Error::Refused(Refusal::Contended)) => self.forget_key(organization, key),
                Err(Error::Seal(error)) => {
                    self.environment.report(&error);
                    return Err(error.into());
                }
                Ok(Some(version)) => return Ok(ChangedVersion { version, revision: None }),
                changed => return changed.map(|_| ChangedVersion { version: number, revision: Some(next) }),
            }
        }
        Err(Refusal::Contended.into())
    }

    /// Opens the card of one credential. Reports a failure unless the row is to be read again.
    pub(super) async fn card(
        &self,
        organization: OrganizationId,
        row: &StoredCredential,
        reading: Reading,
    ) -> Result<Card, Error> {
        let opened = open_cards(&*self.opener, organization, std::iter::once(row)).await?;
        let opened = opened.into_iter().next().ok_or(Refusal::NotFound)?;
        Ok(opened.inspect_err(|error| {
            if !reading.is_to_repeat(error) {
                self.environment.report(error);
            }
        })?)
    }
}

/// Returns the audit action and changes. The action is `action`, unless the change is more severe.
fn reported(action: AuditAction, before: &Card, after: &Card, number: i64) -> (AuditAction, Vec<AuditChange>) {
    let text = |number: i64| Some(number.to_string());
    let version = |from, to| vec![AuditChange::new(ChangedField::Version, from, to)];
    let (current, number) = (text(before.current.number), text(number));
    match action {
        AuditAction::CredentialStaged => (action, version(None, number)),
        AuditAction::CredentialVersionDestroyed => (action, version(number, None)),
        AuditAction::CredentialDescribed => described(before, after),
        _ => (action, version(current, number)),
    }
}

fn described(before: &Card, after: &Card) -> (AuditAction, Vec<AuditChange>) {
    let action = match (before.vend, after.vend) {
        (VendRule::Short, VendRule::Any) => AuditAction::CredentialVendRelaxed,
        (VendRule::Any, VendRule::Short) => AuditAction::CredentialVendRestricted,
        _ => AuditAction::CredentialDescribed,
    };
    let vend = |rule: &VendRule| Some(rule.as_str().to_owned());
    let mut changes = Vec::new();
    changes.extend(AuditChange::between(ChangedField::Vend, &before.vend, &after.vend, vend));
    let (old, new) = (&before.metadata, &after.metadata);
    changes.extend((old.labels != new.labels).then(|| AuditChange::withheld(ChangedField::Labels)));
    changes.extend((old.description != new.description).then(|| AuditChange::withheld(ChangedField::Description)));
    let (from, to) = (old.expires_at(before.current.number), new.expires_at(before.current.number));
    let text = |at: &Option<Timestamp>| at.and_then(Timestamp::to_rfc3339);
    changes.extend(AuditChange::between(ChangedField::ExpiresAt, &from, &to, text));
    (action, changes)
}

/// Returns the refusal of `vend: short` for data without a short-lived form.
pub(super) fn no_short_form(kind: CredentialType, reason: crate::check::CheckReason) -> Error {
    // The remedies name values of an activation's `vend`, which differ from those of a credential's rule.
    let wish = reason.remedy().replace("use vend raw or prefer-short", "set vend to any");
    let remedy = wish.replace("use vend prefer-short", "set vend to any");
    let detail = format!("this {} credential has no short-lived form: {remedy}", kind.as_str());
    FieldError::new("/vend", FieldCode::NotAllowed, detail).into()
}
