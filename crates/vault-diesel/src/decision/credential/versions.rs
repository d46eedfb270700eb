//! Versions of a credential: read, replaced, staged, promoted, destroyed.
//!
//! The current version is in `credentials` and `credential_secrets`, where saves, lists and activations find it. The
//! others are in `credential_versions`.

use super::super::authorize::{self, facts_of, judge_and_hold, judge_and_hold_with_key, judged_facts, load_judged};
use super::super::backend::{Connection, RunQuery, for_update, load_page, together};
use super::super::{Answer, Decided, Decision, Verdict, audit, execute_together};
use super::credentials::{claim, find_earlier, under_one_key};
use super::labels;
use super::row::{self, CheckColumns, CredentialRow, columns, decode, of_credential};
use crate::failure::Failure;
use crate::schema::{credential_secrets, credential_versions, credentials};
use crate::stored::{Read, ToIdText as _};
use crate::update::update;
use diesel::sql_types::{BigInt, Nullable};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, Insertable as _, IntoSql as _, JoinOnDsl as _,
    NullableExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable, Selectable,
    SelectableHelper as _,
};
use vault_core::credential::Superseded;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    ChangeCredential, CredentialChange, Find, Idempotency, NewVersion, StoredVersion, StoredVersions,
};
use vault_core::sealed::{Blob, SealedCredential, SealedMetadata};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

const TABLE: &str = "credential_versions";
/// Versions are counted from 1.
const NO_VERSION: i64 = 0;

/// Reads a credential with its versions, in one statement.
pub(in super::super) async fn versions(
    connection: &mut Connection,
    query: &Find<CredentialId>,
) -> Result<Option<StoredVersions>, Failure> {
    type Version = (i64, i64, Option<i64>, Option<i64>, CheckColumns, Read<KeyId>, Vec<u8>);
    type Row = (CredentialRow, i64, i64, Option<Version>);
    let of_both = credential_versions::organization_id.eq(credentials::organization_id);
    let of_both = of_both.and(credential_versions::id.eq(credentials::id));
    let joined = credentials::table
        .left_join(credential_versions::table.on(of_both))
        .filter(credentials::organization_id.eq(query.of.text()))
        .filter(credentials::id.eq(query.key.text()))
        .order(credential_versions::version)
        .select((
            columns!(),
            credentials::highest_version,
            credentials::version_created_at,
            (
                credential_versions::version,
                credential_versions::created_at,
                credential_versions::superseded_at,
                credential_versions::destroy_at,
                (credential_versions::checked_at, credential_versions::check_since, credential_versions::check_failed),
                credential_versions::key_id,
                credential_versions::information,
            )
                .nullable(),
        ));
    let rows: Vec<Row> = load_judged!(joined, connection, usize::MAX, &query.principal, query.now);
    let mut current = None;
    let mut others = Vec::new();
    for (row, highest, created_at, version) in rows {
        current.get_or_insert((row, highest, created_at));
        others.extend(version);
    }
    let Some((current, highest, created_at)) = current else { return Ok(None) };
    let current = decode(current)?;
    let version = |(number, created_at, superseded_at, destroy_at, check, key, information): Version| {
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
        created_at: Timestamp::from_millis(created_at),
        current,
        highest,
        others: others.into_iter().map(version).collect::<Result<_, Failure>>()?,
    }))
}

impl Decision for ChangeCredential {
    /// Whether the key that a new version is sealed under is active.
    type Held = bool;
    type Outcome = Answer<i64>;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<bool, Failure> {
        let Command { principal, now, act, .. } = command;
        let key_active = match sealing_key(act) {
            Some(key) => judge_and_hold_with_key(connection, principal, act.organization, key, *now).await?,
            None => {
                judge_and_hold(connection, principal, *now).await??;
                true
            }
        };
        Ok(key_active && is_under_one_key(act))
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, key_active: bool) -> Decided<Answer<i64>> {
        let ChangeCredential { organization, id, change, .. } = &command.act;
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
        if let Some(refusal) = row.refusal(&command.act, key_active) {
            return Ok(Verdict::Refused(Err(refusal)));
        }
        let number = place.write(connection, row, command).await?;
        if let Some(idempotency) = idempotency {
            remember(connection, place, idempotency, number, now).await?;
        }
        Ok(Verdict::Recorded(Ok(number)))
    }
}

fn new_version(change: &CredentialChange) -> Option<&NewVersion> {
    match change {
        CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => Some(version),
        CredentialChange::Promote { .. } | CredentialChange::Destroy(_) | CredentialChange::Describe => None,
    }
}

/// The key that something new is sealed under.
pub(crate) fn sealing_key(act: &ChangeCredential) -> Option<KeyId> {
    new_version(&act.change).map(|new| new.sealed.key).or(new_metadata(act).map(|said| said.key))
}

/// Whether everything new is sealed under one key: another one was replaced meanwhile.
pub(crate) fn is_under_one_key(act: &ChangeCredential) -> bool {
    sealing_key(act).is_none_or(|key| under_one_key(key, new_metadata(act)))
}

/// The metadata that is new: what was sealed for an earlier revision is stored again as it was.
fn new_metadata(act: &ChangeCredential) -> Option<&SealedMetadata> {
    let metadata = act.description.as_ref().and_then(|said| said.metadata.as_ref());
    metadata.filter(|said| said.revision > act.revision)
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

/// Keeps the version that is current as a previous one, until `destroy_at`.
macro_rules! kept {
    ($place:expr, $superseded:expr) => {{
        let of_both = credential_secrets::organization_id.eq(credentials::organization_id);
        let of_both = of_both.and(credential_secrets::id.eq(credentials::id));
        credentials::table
            .inner_join(credential_secrets::table.on(of_both))
            .filter(credentials::organization_id.eq($place.organization.text()))
            .filter(credentials::id.eq($place.id.text()))
            .select((
                credentials::organization_id,
                credentials::id,
                credentials::version,
                credentials::version_created_at,
                $superseded.at.as_millis().into_sql::<Nullable<BigInt>>(),
                $superseded.destroy_at.as_millis().into_sql::<Nullable<BigInt>>(),
                credentials::key_id,
                credentials::information,
                credential_secrets::data_key,
                credential_secrets::data,
                (credentials::checked_at, credentials::check_since, credentials::check_failed),
            ))
            .insert_into(credential_versions::table)
            .into_columns((
                credential_versions::organization_id,
                credential_versions::id,
                credential_versions::version,
                credential_versions::created_at,
                credential_versions::superseded_at,
                credential_versions::destroy_at,
                credential_versions::key_id,
                credential_versions::information,
                credential_versions::data_key,
                credential_versions::data,
                (credential_versions::checked_at, credential_versions::check_since, credential_versions::check_failed),
            ))
    }};
}

/// One of the versions that are not current.
macro_rules! other {
    ($place:expr, $number:expr) => {
        of_credential!(credential_versions, $place.organization, $place.id)
            .filter(credential_versions::version.eq($number))
    };
}

/// Where a credential is.
#[derive(Clone, Copy)]
struct Place {
    organization: OrganizationId,
    id: CredentialId,
}

/// What the row says that a change relies on.
#[derive(Queryable, Selectable)]
#[diesel(table_name = credentials)]
pub(crate) struct Current {
    version: i64,
    pub(crate) revision: i64,
    staged_version: Option<i64>,
    highest_version: i64,
    key_id: String,
    expires_at: i64,
    metadata_key_id: Option<String>,
}

impl Current {
    /// Why the change may not be made. `key_active`: whether the key is that it brings something sealed under.
    pub(crate) fn refusal(&self, change: &ChangeCredential, key_active: bool) -> Option<Refusal> {
        if self.revision != change.revision {
            return Some(Refusal::Changed);
        }
        // Metadata that is stored again as it was read may have been moved to another key since.
        let metadata = change.description.as_ref().and_then(|said| said.metadata.as_ref());
        let stale = metadata.is_some_and(|said| {
            said.revision <= self.revision && self.metadata_key_id.as_deref() != Some(said.key.text().as_str())
        });
        (!key_active || stale).then_some(Refusal::Contended)
    }
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
        let row = of_credential!(credentials, self.organization, self.id).select(Current::as_select());
        Ok(for_update!(row).get_result(connection).await.optional()?)
    }

    /// Writes and records the change, and gives the number of the version concerned.
    async fn write(
        self,
        connection: &mut Connection,
        mut row: Current,
        command: &Command<ChangeCredential>,
    ) -> Result<i64, Failure> {
        let (act, now) = (&command.act, command.now);
        let (number, current) = match &act.change {
            CredentialChange::Replace { version, destroy_at } => {
                row.highest_version = version.number;
                (version.number, Some((Parts::new(&version.sealed, now), *destroy_at, version.destroyed.as_slice())))
            }
            CredentialChange::Stage(version) => {
                self.destroy(connection, &version.destroyed).await?;
                self.stage(connection, version.number, Parts::new(&version.sealed, now)).await?;
                (row.highest_version, row.staged_version) = (version.number, Some(version.number));
                (version.number, None)
            }
            CredentialChange::Promote { number, destroy_at, destroyed } => {
                let promoted = self.take(connection, *number).await?;
                row.staged_version = row.staged_version.filter(|staged| staged != number);
                (*number, Some((promoted, *destroy_at, destroyed.as_slice())))
            }
            CredentialChange::Destroy(number) => {
                self.destroy(connection, &[*number]).await?;
                row.staged_version = row.staged_version.filter(|staged| staged != number);
                (*number, None)
            }
            CredentialChange::Describe => (row.version, None),
        };
        let expires_at = row::expiry_column(act.expires_at);
        // A column that keeps its value is left out: its indexes are then left as they are.
        let changed = (
            credentials::revision.eq(row.revision + 1),
            credentials::code.eq(act.code.as_bytes().as_slice()),
            credentials::highest_version.eq(row.highest_version),
            credentials::staged_version.eq(row.staged_version),
            credentials::updated_at.eq(now.as_millis()),
            (row.expires_at != expires_at).then(|| credentials::expires_at.eq(expires_at)),
            act.description.as_ref().map(|description| row::described!(description)),
        );
        let credential = of_credential!(credentials, self.organization, self.id);
        let record = audit::entry(&command.audit);
        match &current {
            Some((parts, destroy_at, destroyed)) => {
                let secrets = update(of_credential!(credential_secrets, self.organization, self.id)).set((
                    credential_secrets::data_key.eq(parts.data_key.as_slice()),
                    credential_secrets::data.eq(parts.data.as_slice()),
                ));
                let (checked_at, check_since, check_failed) = &parts.check;
                let made_current = (
                    credentials::version.eq(number),
                    credentials::version_created_at.eq(parts.created_at),
                    (row.key_id != parts.key).then(|| credentials::key_id.eq(parts.key.as_str())),
                    credentials::information.eq(parts.information.as_slice()),
                    credentials::checked_at.eq(checked_at),
                    credentials::check_since.eq(check_since),
                    credentials::check_failed.eq(check_failed.as_deref()),
                );
                let credential = update(credential).set((changed, made_current));
                // Mostly one is destroyed at most. It makes room for what is kept, which lies beside it: the other order has SQLite split
                // a page and join it again. What was current may be among those destroyed; it must be kept before it can go.
                let first = destroyed.iter().copied().find(|number| *number != row.version).unwrap_or(NO_VERSION);
                let gone = diesel::delete(other!(self, first));
                let kept = kept!(self, Superseded { at: now, destroy_at: *destroy_at });
                let (_, kept, ..) = execute_together!(connection, gone, kept, secrets, credential, record)?;
                if kept == 0 {
                    return Err(Failure::damaged("credential_secrets", self.id.to_string(), "missing"));
                }
                let rest: Vec<i64> = destroyed.iter().copied().filter(|number| *number != first).collect();
                self.destroy(connection, &rest).await?;
            }
            None => {
                update(credential).set(changed).execute(connection).await?;
                record.execute(connection).await?;
            }
        }
        if let Some(description) = &act.description {
            labels::delete(connection, self.organization, self.id).await?;
            labels::insert(connection, self.organization, self.id, &description.labels).await?;
        }
        Ok(number)
    }

    async fn stage(self, connection: &mut Connection, number: i64, parts: Parts) -> Result<(), Failure> {
        diesel::insert_into(credential_versions::table)
            .values((
                credential_versions::organization_id.eq(self.organization.text()),
                credential_versions::id.eq(self.id.text()),
                credential_versions::version.eq(number),
                credential_versions::created_at.eq(parts.created_at),
                credential_versions::key_id.eq(parts.key),
                credential_versions::information.eq(parts.information),
                credential_versions::data_key.eq(parts.data_key),
                credential_versions::data.eq(parts.data),
            ))
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Takes a version out of those that are not current.
    async fn take(self, connection: &mut Connection, number: i64) -> Result<Parts, Failure> {
        let (created_at, key, information, data_key, data, check) = other!(self, number)
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
            diesel::delete(other!(self, *number)).execute(connection).await?;
        }
        Ok(())
    }
}
