//! Versions of a credential: read, replaced, staged, promoted, destroyed.
//!
//! The current version is in `credentials` and `credential_secrets`, where saves, lists and activations find it. The
//! others are in `credential_versions`.

use super::super::authorize::{judge, judge_and_hold, judge_and_hold_with_key};
use super::super::backend::{Connection, RunQuery, for_update};
use super::super::{Answer, Decided, Decision, Verdict};
use super::credentials::{claim, find_earlier};
use super::labels;
use super::row::{self, CheckColumns, read};
use crate::failure::Failure;
use crate::schema::{credential_secrets, credential_versions, credentials};
use crate::stored::{Read, ToIdText as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::credential::Superseded;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    ChangeCredential, CredentialChange, Find, Idempotency, NewVersion, StoredDescription, StoredVersion, StoredVersions,
};
use vault_core::sealed::{Blob, SealedCredential};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

const TABLE: &str = "credential_versions";

pub(super) async fn versions(
    connection: &mut Connection,
    query: &Find<CredentialId>,
) -> Result<Option<StoredVersions>, Failure> {
    judge(connection, &query.principal, query.now).await??;
    let Some(current) = read(connection, query.of, query.key).await? else { return Ok(None) };
    let (highest, created_at): (i64, Option<i64>) = credentials::table
        .filter(credentials::organization_id.eq(query.of.text()))
        .filter(credentials::id.eq(query.key.text()))
        .select((credentials::highest_version, credentials::version_created_at))
        .get_result(connection)
        .await?;
    type Row = (i64, i64, Option<i64>, Option<i64>, CheckColumns, Read<KeyId>, Vec<u8>);
    let rows: Vec<Row> = credential_versions::table
        .filter(credential_versions::organization_id.eq(query.of.text()))
        .filter(credential_versions::id.eq(query.key.text()))
        .order(credential_versions::version)
        .select((
            credential_versions::version,
            credential_versions::created_at,
            credential_versions::superseded_at,
            credential_versions::destroy_at,
            (credential_versions::checked_at, credential_versions::check_since, credential_versions::check_failed),
            credential_versions::key_id,
            credential_versions::information,
        ))
        .load(connection)
        .await?;
    let decode = |(number, created_at, superseded_at, destroy_at, check, key, information): Row| {
        let superseded = superseded_at.zip(destroy_at).map(|(at, destroy_at)| Superseded {
            at: Timestamp::from_millis(at),
            destroy_at: Timestamp::from_millis(destroy_at),
        });
        Ok(StoredVersion {
            number,
            created_at: Timestamp::from_millis(created_at),
            superseded,
            check: row::check(check, TABLE, query.key)?,
            key: key.sound(TABLE, &query.key, "key_id")?,
            information: Blob::from_bytes(information),
        })
    };
    Ok(Some(StoredVersions {
        created_at: created_at.map_or(current.created_at, Timestamp::from_millis),
        current,
        highest,
        others: rows.into_iter().map(decode).collect::<Result<_, Failure>>()?,
    }))
}

impl Decision for ChangeCredential {
    /// Whether the key that a new version is sealed under is active.
    type Held = bool;
    type Outcome = Answer<i64>;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<bool, Failure> {
        let Command { principal, now, act, .. } = command;
        match sealing_key(act) {
            Some(key) => {
                let active = judge_and_hold_with_key(connection, principal, act.organization, key, *now).await?;
                let metadata = act.description.as_ref().and_then(|said| said.metadata.as_ref());
                Ok(active && metadata.filter(|said| said.revision > act.revision).is_none_or(|said| said.key == key))
            }
            None => {
                judge_and_hold(connection, principal, *now).await??;
                Ok(true)
            }
        }
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, key_active: bool) -> Decided<Answer<i64>> {
        let ChangeCredential { organization, id, revision, change, description, expires_at } = &command.act;
        let (place, now) = (Place { organization: *organization, id: *id }, command.now);
        let idempotency = new_version(change).and_then(|new| new.idempotency.as_ref());
        // A request that was carried out is answered as it was then, whatever has changed since.
        if let Some(idempotency) = idempotency
            && let Some(earlier) = find_earlier(connection, *organization, idempotency).await?
        {
            return Ok(Verdict::Refused(earlier.map(|(_, number)| number)));
        }
        let Some(row) = place.hold(connection).await? else {
            return Ok(Verdict::Refused(Err(Refusal::NotFound)));
        };
        if row.revision != *revision {
            return Ok(Verdict::Refused(Err(Refusal::Changed)));
        }
        if !key_active {
            return Ok(Verdict::Refused(Err(Refusal::Contended)));
        }
        let number = place.write(connection, row, change, *expires_at, now).await?;
        if let Some(description) = description {
            place.describe(connection, description).await?;
        }
        if let Some(idempotency) = idempotency {
            remember(connection, place, idempotency, number, now).await?;
        }
        Ok(Verdict::Done(Ok(number)))
    }
}

fn new_version(change: &CredentialChange) -> Option<&NewVersion> {
    match change {
        CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => Some(version),
        CredentialChange::Promote { .. } | CredentialChange::Destroy(_) | CredentialChange::Describe => None,
    }
}

/// The key that something new is sealed under.
fn sealing_key(act: &ChangeCredential) -> Option<KeyId> {
    let metadata = act.description.as_ref().and_then(|said| said.metadata.as_ref());
    // What was sealed for an earlier revision is stored again as it was.
    let metadata = metadata.filter(|said| said.revision > act.revision);
    new_version(&act.change).map(|new| new.sealed.key).or(metadata.map(|said| said.key))
}

async fn remember(
    connection: &mut Connection,
    place: Place,
    idempotency: &Idempotency,
    number: i64,
    now: Timestamp,
) -> Result<(), Failure> {
    let claimed = claim(connection, place.organization, (place.id, number), idempotency, now).await?;
    if claimed { Ok(()) } else { Err(Failure::Overtaken) }
}

/// Where a credential is.
#[derive(Clone, Copy)]
struct Place {
    organization: OrganizationId,
    id: CredentialId,
}

/// What the row says that a change relies on.
struct Current {
    version: i64,
    revision: i64,
    staged: Option<i64>,
    highest: i64,
    created_at: i64,
    key: String,
    information: Vec<u8>,
    check: StoredCheck,
}

/// The last check of a version, as its columns hold it.
type StoredCheck = (Option<i64>, Option<i64>, Option<String>);

/// A version's columns, wherever they are.
struct Parts {
    created_at: i64,
    key: String,
    information: Vec<u8>,
    data_key: Vec<u8>,
    data: Vec<u8>,
    check: StoredCheck,
}

impl Parts {
    fn new(sealed: &SealedCredential, now: Timestamp) -> Self {
        Self {
            created_at: now.as_millis(),
            key: sealed.key.text().as_str().to_owned(),
            information: sealed.information.as_bytes().to_vec(),
            data_key: sealed.data_key.as_bytes().to_vec(),
            data: sealed.data.as_bytes().to_vec(),
            check: (None, None, None),
        }
    }
}

impl Place {
    /// Reads the credential's row and keeps others from changing it.
    async fn hold(self, connection: &mut Connection) -> Result<Option<Current>, Failure> {
        type Row = (i64, i64, Option<i64>, i64, Option<i64>, i64, String, Vec<u8>, StoredCheck);
        let query = credentials::table
            .filter(credentials::organization_id.eq(self.organization.text()))
            .filter(credentials::id.eq(self.id.text()))
            .select((
                credentials::version,
                credentials::revision,
                credentials::staged_version,
                credentials::highest_version,
                credentials::version_created_at,
                credentials::created_at,
                credentials::key_id,
                credentials::information,
                (credentials::checked_at, credentials::check_since, credentials::check_failed),
            ));
        let row: Option<Row> = for_update!(query).get_result(connection).await.optional()?;
        Ok(row.map(|(version, revision, staged, highest, made, saved, key, information, check)| Current {
            version,
            revision,
            staged,
            highest,
            created_at: made.unwrap_or(saved),
            key,
            information,
            check,
        }))
    }

    /// Writes the change and gives the number of the version concerned.
    async fn write(
        self,
        connection: &mut Connection,
        mut row: Current,
        change: &CredentialChange,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<i64, Failure> {
        let (number, current) = match change {
            CredentialChange::Replace { version, destroy_at } => {
                self.keep(connection, &row, now, *destroy_at).await?;
                self.destroy(connection, &version.destroyed).await?;
                row.highest = version.number;
                (version.number, Some(Parts::new(&version.sealed, now)))
            }
            CredentialChange::Stage(version) => {
                self.destroy(connection, &version.destroyed).await?;
                self.insert(connection, version.number, Parts::new(&version.sealed, now), None).await?;
                (row.highest, row.staged) = (version.number, Some(version.number));
                (version.number, None)
            }
            CredentialChange::Promote { number, destroy_at, destroyed } => {
                let promoted = self.take(connection, *number).await?;
                self.keep(connection, &row, now, *destroy_at).await?;
                self.destroy(connection, destroyed).await?;
                row.staged = row.staged.filter(|staged| staged != number);
                (*number, Some(promoted))
            }
            CredentialChange::Destroy(number) => {
                self.destroy(connection, &[*number]).await?;
                row.staged = row.staged.filter(|staged| staged != number);
                (*number, None)
            }
            CredentialChange::Describe => (row.version, None),
        };
        if let Some(parts) = current {
            self.make_current(connection, number, parts).await?;
        }
        diesel::update(
            credentials::table
                .filter(credentials::organization_id.eq(self.organization.text()))
                .filter(credentials::id.eq(self.id.text())),
        )
        .set((
            credentials::revision.eq(row.revision + 1),
            credentials::highest_version.eq(row.highest),
            credentials::staged_version.eq(row.staged),
            credentials::updated_at.eq(now.as_millis()),
            credentials::expires_at.eq(row::expiry_column(expires_at)),
        ))
        .execute(connection)
        .await?;
        Ok(number)
    }

    /// Stores what is said of it from now on.
    async fn describe(self, connection: &mut Connection, description: &StoredDescription) -> Result<(), Failure> {
        diesel::update(
            credentials::table
                .filter(credentials::organization_id.eq(self.organization.text()))
                .filter(credentials::id.eq(self.id.text())),
        )
        .set(row::described!(description))
        .execute(connection)
        .await?;
        labels::delete(connection, self.organization, self.id).await?;
        labels::insert(connection, self.organization, self.id, &description.labels).await
    }

    /// Keeps the version that is current as a previous one.
    async fn keep(
        self,
        connection: &mut Connection,
        row: &Current,
        now: Timestamp,
        destroy_at: Timestamp,
    ) -> Result<(), Failure> {
        let (data_key, data): (Vec<u8>, Vec<u8>) = credential_secrets::table
            .filter(credential_secrets::organization_id.eq(self.organization.text()))
            .filter(credential_secrets::id.eq(self.id.text()))
            .select((credential_secrets::data_key, credential_secrets::data))
            .get_result(connection)
            .await?;
        let (created_at, key, information) = (row.created_at, row.key.clone(), row.information.clone());
        let parts = Parts { created_at, key, information, data_key, data, check: row.check.clone() };
        self.insert(connection, row.version, parts, Some(Superseded { at: now, destroy_at })).await
    }

    async fn insert(
        self,
        connection: &mut Connection,
        number: i64,
        parts: Parts,
        superseded: Option<Superseded>,
    ) -> Result<(), Failure> {
        diesel::insert_into(credential_versions::table)
            .values((
                credential_versions::organization_id.eq(self.organization.text()),
                credential_versions::id.eq(self.id.text()),
                credential_versions::version.eq(number),
                credential_versions::created_at.eq(parts.created_at),
                credential_versions::superseded_at.eq(superseded.map(|superseded| superseded.at.as_millis())),
                credential_versions::destroy_at.eq(superseded.map(|superseded| superseded.destroy_at.as_millis())),
                credential_versions::key_id.eq(parts.key),
                credential_versions::information.eq(parts.information),
                credential_versions::data_key.eq(parts.data_key),
                credential_versions::data.eq(parts.data),
                credential_versions::checked_at.eq(parts.check.0),
                credential_versions::check_since.eq(parts.check.1),
                credential_versions::check_failed.eq(parts.check.2),
            ))
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Takes a version out of those that are not current.
    async fn take(self, connection: &mut Connection, number: i64) -> Result<Parts, Failure> {
        let (created_at, key, information, data_key, data, check) = credential_versions::table
            .filter(credential_versions::organization_id.eq(self.organization.text()))
            .filter(credential_versions::id.eq(self.id.text()))
            .filter(credential_versions::version.eq(number))
            .select((
                credential_versions::created_at,
                credential_versions::key_id,
                credential_versions::information,
                credential_versions::data_key,
                credential_versions::data,
                (credential_versions::checked_at, credential_versions::check_since, credential_versions::check_failed),
            ))
            .get_result(connection)
            .await?;
        self.destroy(connection, &[number]).await?;
        Ok(Parts { created_at, key, information, data_key, data, check })
    }

    async fn destroy(self, connection: &mut Connection, numbers: &[i64]) -> Result<(), Failure> {
        for number in numbers {
            diesel::delete(
                credential_versions::table
                    .filter(credential_versions::organization_id.eq(self.organization.text()))
                    .filter(credential_versions::id.eq(self.id.text()))
                    .filter(credential_versions::version.eq(*number)),
            )
            .execute(connection)
            .await?;
        }
        Ok(())
    }

    async fn make_current(self, connection: &mut Connection, number: i64, parts: Parts) -> Result<(), Failure> {
        diesel::update(
            credentials::table
                .filter(credentials::organization_id.eq(self.organization.text()))
                .filter(credentials::id.eq(self.id.text())),
        )
        .set((
            credentials::version.eq(number),
            credentials::version_created_at.eq(parts.created_at),
            credentials::key_id.eq(parts.key),
            credentials::information.eq(parts.information),
            credentials::checked_at.eq(parts.check.0),
            credentials::check_since.eq(parts.check.1),
            credentials::check_failed.eq(parts.check.2),
        ))
        .execute(connection)
        .await?;
        diesel::update(
            credential_secrets::table
                .filter(credential_secrets::organization_id.eq(self.organization.text()))
                .filter(credential_secrets::id.eq(self.id.text())),
        )
        .set((credential_secrets::data_key.eq(parts.data_key), credential_secrets::data.eq(parts.data)))
        .execute(connection)
        .await?;
        Ok(())
    }
}
