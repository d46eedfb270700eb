//! Credentials.

use super::row::{CheckRow, CredentialRow, IdempotencyRow, VersionRow};
use super::{Answer, Decided, MemoryStore, State};
use async_trait::async_trait;
use std::collections::BTreeMap;
use vault_core::credential::Superseded;
use vault_core::hourly::HourlyLimit;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    CHECKER_SECONDS, ChangeCredential, CredentialChange, CredentialRepository, CredentialUse, DeleteCredential, Find,
    Idempotency, List, ListCredentials, ListedRows, MatchCredential, RequestCheck, SaveCredential, StoreError,
    StoredCredential, StoredMetadata, StoredVersion, StoredVersions, UsePosition,
};
use vault_core::sealed::KeyState;
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

#[async_trait]
impl CredentialRepository for MemoryStore {
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        Ok(self.carry_out(command, |state, _, now, act| save(state, now, act))??)
    }

    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            Ok(query.key.and_then(|idempotency| state.earlier_save(query.of, &idempotency)).transpose()?)
        })?
    }

    async fn list_credentials(&self, query: ListCredentials) -> Result<ListedRows, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            let mut rows: Vec<_> = state
                .credentials_of(query.organization)
                .rev()
                .filter(|row| query.holds(&row.stored, &row.labels))
                .map(|row| row.stored.clone())
                .collect();
            if query.expires_before.is_some() {
                rows.sort_by_key(|row| (row.expires_at, row.id));
            }
            rows.retain(|row| {
                query.after.is_none_or(|after| match query.expires_before {
                    Some(_) => (row.expires_at, row.id) > (after.expires_at, after.id),
                    None => row.id < after.id,
                })
            });
            rows.truncate(query.limit);
            Ok(ListedRows { rows, searched_to: None })
        })?
    }

    async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            Ok(state.credentials.get(&(query.of, query.key)).map(|row| row.stored.clone()))
        })?
    }

    async fn credential_versions(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            Ok(state.credentials.get(&(query.of, query.key)).map(CredentialRow::versions))
        })?
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError> {
        Ok(self.carry_out(command, |state, _, now, act| change(state, now, act))??)
    }

    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError> {
        let deleted: Answer<bool> = self.carry_out(command, |state, _, _, act| {
            let place = (act.organization, act.id);
            match state.credentials.get(&place) {
                None => Decided::Refused(Ok(false)),
                Some(row) if act.revision.is_some_and(|revision| revision != row.stored.revision) => {
                    Decided::Refused(Err(Refusal::Changed))
                }
                Some(_) => {
                    state.credentials.remove(&place);
                    state.uses.remove(&place);
                    state.checks.remove(&place);
                    Decided::Done(Ok(true))
                }
            }
        })?;
        Ok(deleted?)
    }

    async fn match_credential(&self, command: Command<MatchCredential>) -> Result<StoredCredential, StoreError> {
        let found: Answer<StoredCredential> = self.carry_out(command, |state, _, now, act| {
            let MatchCredential { organization, id } = act;
            let Some(row) = state.credentials.get(&(organization, id)) else {
                return Decided::Refused(Err(Refusal::NotFound));
            };
            let (stored, subject) = (row.stored.clone(), format!("match:{id}"));
            if let Some(seconds) = state.refused_for(organization, &subject, HourlyLimit::MATCHES, now) {
                return Decided::Refused(Err(Refusal::TooOften(seconds)));
            }
            state.count(organization, &subject, now);
            Decided::Done(Ok(stored))
        })?;
        Ok(found?)
    }

    async fn request_check(&self, command: Command<RequestCheck>) -> Result<(), StoreError> {
        let requested: Answer = self.carry_out(command, |state, _, now, act| match state.request(&act, now) {
            Ok(()) => Decided::Done(Ok(())),
            Err(refusal) => Decided::Refused(Err(refusal)),
        })?;
        Ok(requested?)
    }

    async fn list_uses(
        &self,
        query: List<UsePosition, (OrganizationId, CredentialId)>,
    ) -> Result<Option<Vec<CredentialUse>>, StoreError> {
        self.decide(|state| {
            state.judge(&query.principal, query.now)?;
            if !state.credentials.contains_key(&query.of) {
                return Ok(None);
            }
            let name = |id| Some(state.integrations.get(&(query.of.0, id))?.integration.name.clone());
            let uses = state.uses.get(&query.of).into_iter().flatten();
            let uses = uses.map(|one| CredentialUse { name: name(one.integration), ..one.clone() });
            let position = |one: &CredentialUse| (one.at, one.activation);
            let mut uses: Vec<_> = uses
                .filter(|one| query.after.is_none_or(|after| position(one) < (after.at, after.activation)))
                .collect();
            uses.sort_by_key(|one| std::cmp::Reverse(position(one)));
            uses.truncate(query.limit);
            Ok(Some(uses))
        })?
    }
}

fn save(state: &mut State, now: Timestamp, command: SaveCredential) -> Decided<Answer<CredentialId>> {
    let limit_reached = command.limit_reached();
    let SaveCredential {
        organization,
        id,
        version,
        kind,
        namespace,
        sealed,
        description,
        code,
        expires_at,
        idempotency,
        limit,
    } = command;
    // First of all: a request that was carried out is answered as it was then, whatever has changed since.
    if let Some(earlier) = idempotency.as_ref().and_then(|key| state.earlier_save(organization, key)) {
        return Decided::Refused(earlier.map(|(credential, _)| credential));
    }
    let active = state.active_key(organization);
    if active != Some(sealed.key) || description.metadata.as_ref().is_some_and(|said| active != Some(said.key)) {
        return Decided::Refused(Err(Refusal::Contended));
    }
    let count = i64::try_from(state.credentials_of(organization).count()).unwrap_or(i64::MAX);
    if count >= limit {
        return Decided::Refused(Err(limit_reached));
    }
    if let Some(idempotency) = idempotency {
        state.remember(organization, idempotency, (id, version), now);
    }
    let stored = StoredCredential {
        id,
        kind,
        namespace,
        version,
        created_at: now,
        updated_at: now,
        revision: 1,
        staged: None,
        expires_at,
        vend: description.vend,
        code,
        metadata: description.metadata,
        check: None,
        last_activated_at: None,
        key: sealed.key,
        information: sealed.information.clone(),
    };
    let (labels, others) = (description.labels, BTreeMap::new());
    let row = CredentialRow { stored, sealed, labels, version_created_at: now, highest: version, others };
    state.credentials.insert((organization, id), row);
    Decided::Done(Ok(id))
}

fn change(state: &mut State, now: Timestamp, command: ChangeCredential) -> Decided<Answer<i64>> {
    let ChangeCredential { organization, id, revision, change, description, code, expires_at } = command;
    let new = match &change {
        CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => Some(version.clone()),
        CredentialChange::Promote { .. } | CredentialChange::Destroy(_) | CredentialChange::Describe => None,
    };
    if let Some(idempotency) = new.as_ref().and_then(|version| version.idempotency.as_ref())
        && let Some(earlier) = state.earlier_save(organization, idempotency)
    {
        return Decided::Refused(earlier.map(|(_, version)| version));
    }
    let active_key = state.active_key(organization);
    let Some(row) = state.credentials.get_mut(&(organization, id)) else {
        return Decided::Refused(Err(Refusal::NotFound));
    };
    if row.stored.revision != revision {
        return Decided::Refused(Err(Refusal::Changed));
    }
    let said = description.as_ref().and_then(|said| said.metadata.as_ref());
    if said.is_some_and(|said| said.revision <= revision && row.stored.metadata.as_ref() != Some(said)) {
        return Decided::Refused(Err(Refusal::Contended));
    }
    let said = said.filter(|said| said.revision > revision).map(|said| said.key);
    let keys = new.iter().map(|version| version.sealed.key).chain(said);
    if keys.into_iter().any(|key| active_key != Some(key)) {
        return Decided::Refused(Err(Refusal::Contended));
    }
    let number = match change {
        CredentialChange::Replace { version, destroy_at } => {
            row.highest = version.number;
            let superseded = Superseded { at: now, destroy_at };
            let new = VersionRow { sealed: version.sealed, created_at: now, superseded: None, check: None };
            row.make_current(version.number, new, superseded);
            row.destroy(&version.destroyed);
            version.number
        }
        CredentialChange::Stage(version) => {
            row.highest = version.number;
            row.destroy(&version.destroyed);
            let staged = VersionRow { sealed: version.sealed, created_at: now, superseded: None, check: None };
            row.others.insert(version.number, staged);
            version.number
        }
        CredentialChange::Promote { number, destroy_at, destroyed } => {
            let promoted = row.others.remove(&number).expect("it was read with this revision");
            row.make_current(number, promoted, Superseded { at: now, destroy_at });
            row.destroy(&destroyed);
            number
        }
        CredentialChange::Destroy(number) => {
            row.destroy(&[number]);
            number
        }
        CredentialChange::Describe => row.stored.version,
    };
    if let Some(StoredMetadata { metadata, labels, vend }) = description {
        (row.stored.metadata, row.labels, row.stored.vend) = (metadata, labels, vend);
    }
    row.stored.code = code;
    row.stored.expires_at = expires_at;
    row.stored.staged = row.others.iter().find(|(_, other)| other.superseded.is_none()).map(|(number, _)| *number);
    row.stored.revision += 1;
    row.stored.updated_at = now;
    if let Some(idempotency) = new.and_then(|version| version.idempotency) {
        state.remember(organization, idempotency, (id, number), now);
    }
    Decided::Done(Ok(number))
}

impl CredentialRow {
    /// The credential and its versions, without their data.
    pub(super) fn versions(&self) -> StoredVersions {
        StoredVersions {
            current: self.stored.clone(),
            created_at: self.version_created_at,
            highest: self.highest,
            others: self.others.iter().map(|(number, version)| version.stored(*number)).collect(),
        }
    }

    fn make_current(&mut self, number: i64, new: VersionRow, superseded: Superseded) {
        let before = VersionRow {
            sealed: std::mem::replace(&mut self.sealed, new.sealed),
            created_at: std::mem::replace(&mut self.version_created_at, new.created_at),
            superseded: Some(superseded),
            check: std::mem::replace(&mut self.stored.check, new.check),
        };
        self.others.insert(std::mem::replace(&mut self.stored.version, number), before);
        self.stored.key = self.sealed.key;
        self.stored.information = self.sealed.information.clone();
    }

    fn destroy(&mut self, numbers: &[i64]) {
        self.others.retain(|number, _| !numbers.contains(number));
    }
}

impl VersionRow {
    fn stored(&self, number: i64) -> StoredVersion {
        StoredVersion {
            number,
            created_at: self.created_at,
            superseded: self.superseded,
            check: self.check,
            key: self.sealed.key,
            information: self.sealed.information.clone(),
        }
    }
}

impl State {
    /// Why something is refused that was done `most` times within the hour.
    pub(super) fn refused_for(
        &self,
        organization: OrganizationId,
        subject: &str,
        most: u32,
        now: Timestamp,
    ) -> Option<u32> {
        self.hourly.get(&(organization, subject.to_owned()))?.refused_for(most, now)
    }

    pub(super) fn count(&mut self, organization: OrganizationId, subject: &str, now: Timestamp) {
        let counted = self.hourly.entry((organization, subject.to_owned())).or_default();
        *counted = counted.plus_one(now);
    }

    fn request(&mut self, act: &RequestCheck, now: Timestamp) -> Answer {
        let RequestCheck { organization, id, version } = *act;
        let row = self.credentials.get(&(organization, id)).ok_or(Refusal::NotFound)?;
        let version = version.or(row.stored.staged).unwrap_or(row.stored.version);
        let kept = row.others.get(&version).is_some_and(|other| other.superseded.is_none_or(|it| it.is_kept(now)));
        if version != row.stored.version && !kept {
            return Err(Refusal::NoSuchVersion);
        }
        if self.checker_seen_at.is_none_or(|seen| seen.plus_seconds(CHECKER_SECONDS) < now) {
            return Err(Refusal::NoChecker);
        }
        if let Some(seconds) = self.refused_for(organization, "checks", HourlyLimit::CHECKS, now) {
            return Err(Refusal::TooOften(seconds));
        }
        self.count(organization, "checks", now);
        self.checks.insert((organization, id), CheckRow { version, requested_at: now, taken_at: None });
        Ok(())
    }

    pub(super) fn credentials_of(
        &self,
        organization: OrganizationId,
    ) -> impl DoubleEndedIterator<Item = &CredentialRow> {
        let first = (organization, CredentialId::from_bytes([0x00; 16]));
        let last = (organization, CredentialId::from_bytes([0xff; 16]));
        self.credentials.range(first..=last).map(|(_, row)| row)
    }

    fn remember(
        &mut self,
        organization: OrganizationId,
        idempotency: Idempotency,
        (credential, version): (CredentialId, i64),
        now: Timestamp,
    ) {
        let row = IdempotencyRow { body: idempotency.body, credential, version, created_at: now };
        self.idempotency.insert((organization, idempotency.account, idempotency.key), row);
    }

    /// The credential and version that an earlier request under the key made.
    fn earlier_save(
        &self,
        organization: OrganizationId,
        idempotency: &Idempotency,
    ) -> Option<Answer<(CredentialId, i64)>> {
        let place = (organization, idempotency.account, idempotency.key.clone());
        let earlier = self.idempotency.get(&place)?;
        let same = earlier.body == idempotency.body;
        Some(if same { Ok((earlier.credential, earlier.version)) } else { Err(Refusal::IdempotencyMismatch) })
    }

    pub(super) fn active_key(&self, organization: OrganizationId) -> Option<KeyId> {
        let keys = &self.organization_keys.get(&organization)?.keys;
        keys.iter().find(|key| key.state == KeyState::Active).map(|key| key.id)
    }
}
