//! Comparisons and checks of credentials: counted, requested, taken by an activation side, recorded.

use super::super::backend::{Connection, RunQuery, for_update, load_page};
use super::super::{Answer, Decided, Decision, Verdict, audit};
use super::row::{self, CheckColumns, StateColumns, of_credential, state_columns};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{
    check_requests, check_rounds, credential_secrets, credential_versions, credentials, organizations,
};
use crate::stored::{BEFORE_ALL_IDS, Column, StoredId as _};
use crate::transaction::authorize::authorize_and_lock;
use crate::transaction::hourly;
use crate::update::update;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _,
    OptionalExtension as _, QueryDsl as _,
};
use vault_core::credential::CredentialType;
use vault_core::hourly::HourlyLimit;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::organization::OrganizationState;
use vault_core::port::{
    CHECK_AGAIN_SECONDS, CHECKER_SECONDS, CheckRound, DueCheck, MatchCredential, NoteActivated, RecordCheck,
    RequestCheck, StoredCredential, TakeChecks, TakenCredential,
};
use vault_core::sealed::{Blob, SealedCredential};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

/// The key of the one row of `check_rounds`.
const SINGLETON: i64 = 1;

type CredentialKey = (OrganizationId, CredentialId);

impl Decision for MatchCredential {
    type Held = ();
    type Outcome = Answer<StoredCredential>;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer<StoredCredential>> {
        let (MatchCredential { organization, id }, now) = (command.act, command.now);
        let Some(credential) = row::read(&connection.tx(), organization, id).await? else {
            return Ok(Verdict::Refused(Err(Refusal::NotFound)));
        };
        let subject = format!("match:{id}");
        let counted = hourly::lock(&connection.tx(), organization, &subject, now).await?;
        if let Some(seconds) = counted.refused_for(HourlyLimit::MATCHES, now) {
            return Ok(Verdict::Refused(Err(Refusal::TooOften(seconds))));
        }
        hourly::count(&connection.tx(), organization, &subject, counted, now).await?;
        Ok(Verdict::Done(Ok(credential)))
    }
}

impl Decision for RequestCheck {
    type Held = ();
    type Outcome = Answer;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer> {
        let (RequestCheck { organization, id, version }, now) = (command.act, command.now);
        let Some(credential) = row::read(&connection.tx(), organization, id).await? else {
            return Ok(Verdict::Refused(Err(Refusal::NotFound)));
        };
        let version = version.or(credential.staged).unwrap_or(credential.version);
        if version != credential.version && !is_kept(connection, (organization, id), version, now).await? {
            return Ok(Verdict::Refused(Err(Refusal::NoSuchVersion)));
        }
        let seen: Option<i64> = check_rounds::table
            .filter(check_rounds::singleton.eq(SINGLETON))
            .select(check_rounds::seen_at)
            .get_result(connection)
            .await
            .optional()?;
        if seen.is_none_or(|seen| Timestamp::from_millis(seen).plus_seconds(CHECKER_SECONDS) < now) {
            return Ok(Verdict::Refused(Err(Refusal::NoChecker)));
        }
        let counted = hourly::lock(&connection.tx(), organization, hourly::CHECKS, now).await?;
        if let Some(seconds) = counted.refused_for(HourlyLimit::CHECKS, now) {
            return Ok(Verdict::Refused(Err(Refusal::TooOften(seconds))));
        }
        hourly::count(&connection.tx(), organization, hourly::CHECKS, counted, now).await?;
        let waiting = of_credential!(check_requests, organization, id);
        diesel::delete(waiting).execute(connection).await?;
        diesel::insert_into(check_requests::table)
            .values((
                check_requests::organization_id.eq(organization.stored()),
                check_requests::id.eq(id.stored()),
                check_requests::version.eq(version),
                check_requests::requested_at.eq(now.as_millis()),
            ))
            .execute(connection)
            .await?;
        Ok(Verdict::Done(Ok(())))
    }
}

/// Whether a version that is not the current one is still there.
async fn is_kept(
    connection: &mut Connection,
    (organization, id): CredentialKey,
    version: i64,
    now: Timestamp,
) -> Result<bool, Failure> {
    let destroy_at: Option<Option<i64>> = of_credential!(credential_versions, organization, id)
        .filter(credential_versions::version.eq(version))
        .select(credential_versions::destroy_at)
        .get_result(connection)
        .await
        .optional()?;
    Ok(destroy_at.is_some_and(|at| at.is_none_or(|at| now < Timestamp::from_millis(at))))
}

/// Takes what is due, so that no other activation side takes it too.
pub(crate) async fn take(connection: &mut Connection, act: &TakeChecks) -> Decided<Vec<DueCheck>> {
    let TakeChecks { now, most, turn } = *act;
    diesel::insert_into(check_rounds::table)
        .values((check_rounds::singleton.eq(SINGLETON), check_rounds::seen_at.eq(now.as_millis())))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    type RoundRow = (i64, Option<i64>, Option<Column<OrganizationId>>, Option<Column<CredentialId>>);
    let row = check_rounds::table.filter(check_rounds::singleton.eq(SINGLETON));
    let round = row.select((
        check_rounds::seen_at,
        check_rounds::began_at,
        check_rounds::organization_id,
        check_rounds::credential_id,
    ));
    let (seen_at, began_at, organization, credential): RoundRow = for_update!(round).get_result(connection).await?;
    let sound = |organization: Column<OrganizationId>, credential: Column<CredentialId>| {
        let organization = organization.decode("check_rounds", &SINGLETON, "organization_id")?;
        Ok::<_, Failure>((organization, credential.decode("check_rounds", &SINGLETON, "credential_id")?))
    };
    let after = organization.zip(credential).map(|(one, two)| sound(one, two)).transpose()?;
    let before = CheckRound { began_at: began_at.map(Timestamp::from_millis), after };
    let mut round = before;

    let mut due = requested(connection, now, most).await?;
    if let Some((most, every)) = turn
        && let Some(current) = round.due(every, now)
    {
        let turn = following(connection, current.after, most).await?;
        let places: Vec<_> = turn.iter().map(|(place, _)| *place).collect();
        round = current.past(&places, most);
        due.extend(turn);
    }
    // An activation side that has nothing to do writes now and then, and not each time it looks.
    let told = Timestamp::from_millis(seen_at).plus_seconds(CHECKER_SECONDS / 3) > now;
    if due.is_empty() && round == before && told {
        return Ok(Verdict::Recorded(Vec::new()));
    }
    update(row)
        .set((
            check_rounds::seen_at.eq(now.as_millis()),
            check_rounds::began_at.eq(round.began_at.map(Timestamp::as_millis)),
            check_rounds::organization_id.eq(round.after.map(|(organization, _)| organization.stored())),
            check_rounds::credential_id.eq(round.after.map(|(_, credential)| credential.stored())),
        ))
        .execute(connection)
        .await?;
    let mut checks = Vec::with_capacity(due.len());
    for (place, version) in due {
        checks.extend(read(connection, place, version).await?);
    }
    Ok(Verdict::Recorded(checks))
}

/// Requested checks that nobody works on, oldest first; they are taken.
async fn requested(
    connection: &mut Connection,
    now: Timestamp,
    most: usize,
) -> Result<Vec<(CredentialKey, i64)>, Failure> {
    let stale = now.plus_seconds(-CHECK_AGAIN_SECONDS).as_millis();
    let waiting = check_requests::table
        .inner_join(organizations::table.on(organizations::id.eq(check_requests::organization_id)))
        .filter(organizations::state.eq(OrganizationState::Active.as_str()))
        .filter(check_requests::taken_at.is_null().or(check_requests::taken_at.le(stale)))
        .order((check_requests::requested_at, check_requests::organization_id, check_requests::id))
        .select((check_requests::organization_id, check_requests::id, check_requests::version));
    let rows: Vec<(Column<OrganizationId>, Column<CredentialId>, i64)> = load_page!(waiting, connection, most).await?;
    let mut taken = Vec::with_capacity(rows.len());
    for (organization, id, version) in rows {
        let organization = organization.decode("check_requests", &"unknown", "organization_id")?;
        let id = id.decode("check_requests", &organization, "id")?;
        update(of_credential!(check_requests, organization, id))
            .set(check_requests::taken_at.eq(now.as_millis()))
            .execute(connection)
            .await?;
        taken.push(((organization, id), version));
    }
    Ok(taken)
}

/// The credentials of active organizations that follow on a place.
async fn following(
    connection: &mut Connection,
    after: Option<CredentialKey>,
    most: usize,
) -> Result<Vec<(CredentialKey, i64)>, Failure> {
    let start = (BEFORE_ALL_IDS, BEFORE_ALL_IDS);
    let (organization, id) = after.map_or(start, |(organization, id)| (organization.stored(), id.stored()));
    let following = credentials::table
        .inner_join(organizations::table.on(organizations::id.eq(credentials::organization_id)))
        .filter(organizations::state.eq(OrganizationState::Active.as_str()))
        .filter(credentials::organization_id.ge(organization))
        .filter(credentials::organization_id.gt(organization).or(credentials::id.gt(id)))
        .order((credentials::organization_id, credentials::id))
        .select((credentials::organization_id, credentials::id, credentials::version));
    let rows: Vec<(Column<OrganizationId>, Column<CredentialId>, i64)> =
        load_page!(following, connection, most).await?;
    let decode = |(organization, id, version): (Column<OrganizationId>, Column<CredentialId>, i64)| {
        let organization = organization.decode("credentials", &"unknown", "organization_id")?;
        Ok(((organization, id.decode("credentials", &organization, "id")?), version))
    };
    rows.into_iter().map(decode).collect()
}

type SealedColumns = (Column<KeyId>, Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>);
type DueRow = (i64, Column<CredentialType>, Column<Namespace>, StateColumns, Option<i64>, SealedColumns, CheckColumns);

/// A version with its sealed data; `None`: it is there no more.
pub(in super::super) async fn read(
    connection: &mut Connection,
    (organization, id): CredentialKey,
    version: i64,
) -> Result<Option<DueCheck>, Failure> {
    let found: Option<DueRow> = credentials::table
        .left_join(
            credential_secrets::table.on(credential_secrets::organization_id
                .eq(credentials::organization_id)
                .and(credential_secrets::id.eq(credentials::id))),
        )
        .filter(credentials::organization_id.eq(organization.stored()))
        .filter(credentials::id.eq(id.stored()))
        .select((
            credentials::version,
            credentials::kind,
            credentials::namespace,
            state_columns!(),
            credentials::last_activated_at,
            (
                credentials::key_id,
                credentials::information,
                credential_secrets::data_key.nullable(),
                credential_secrets::data.nullable(),
            ),
            (credentials::checked_at, credentials::check_since, credentials::check_failed),
        ))
        .get_result(connection)
        .await
        .optional()?;
    let Some((current, kind, namespace, state, last_activated_at, sealed, check)) = found else { return Ok(None) };
    let (vend, staged, revision, metadata_revision, code) = state;
    let (sealed, check, table) = if current == version {
        (sealed, check, "credentials")
    } else {
        let other: Option<(SealedColumns, CheckColumns)> = of_credential!(credential_versions, organization, id)
            .filter(credential_versions::version.eq(version))
            .select((
                (
                    credential_versions::key_id,
                    credential_versions::information,
                    credential_versions::data_key.nullable(),
                    credential_versions::data.nullable(),
                ),
                (credential_versions::checked_at, credential_versions::check_since, credential_versions::check_failed),
            ))
            .get_result(connection)
            .await
            .optional()?;
        let Some((sealed, check)) = other else { return Ok(None) };
        (sealed, check, "credential_versions")
    };
    let (key, information, data_key, data) = sealed;
    let missing = || Failure::damaged("credential_secrets", id.to_string(), "missing");
    Ok(Some(DueCheck {
        organization,
        namespace: namespace.decode("credentials", &id, "namespace")?,
        credential: TakenCredential {
            id,
            kind: kind.decode("credentials", &id, "type")?,
            version,
            sealed: SealedCredential {
                key: key.decode(table, &id, "key_id")?,
                data_key: Blob::from_bytes(data_key.ok_or_else(missing)?),
                data: Blob::from_bytes(data.ok_or_else(missing)?),
                information: Blob::from_bytes(information),
            },
            vend: vend.decode("credentials", &id, "vend")?,
            current,
            staged,
            revision,
            metadata_revision,
            code: code.decode("credentials", &id, "code")?,
            last_activated_at: last_activated_at.map(Timestamp::from_millis),
        },
        before: row::check(check, table, id)?,
    }))
}

pub(crate) async fn record(connection: &mut Connection, act: &RecordCheck) -> Decided<bool> {
    let RecordCheck { organization, id, version, check, audit: sealed } = act;
    let waiting = of_credential!(check_requests, organization, id);
    diesel::delete(waiting.filter(check_requests::version.eq(*version))).execute(connection).await?;
    let (at, since) = (check.at.as_millis(), check.since.as_millis());
    let failed = check.failed.map(|reason| reason.as_str());
    let mut stored = update(of_credential!(credentials, organization, id).filter(credentials::version.eq(*version)))
        .set((credentials::checked_at.eq(at), credentials::check_since.eq(since), credentials::check_failed.eq(failed)))
        .execute(connection)
        .await?;
    if stored == 0 {
        stored = update(
            of_credential!(credential_versions, organization, id).filter(credential_versions::version.eq(*version)),
        )
        .set((
            credential_versions::checked_at.eq(at),
            credential_versions::check_since.eq(since),
            credential_versions::check_failed.eq(failed),
        ))
        .execute(connection)
        .await?;
    }
    if stored > 0
        && let Some(sealed) = sealed
    {
        audit::record(connection, sealed).await?;
    }
    Ok(Verdict::Recorded(stored > 0))
}

pub(crate) async fn note_activated(connection: &mut Connection, act: &NoteActivated) -> Decided<()> {
    let mut ids: Vec<_> = act.credentials.iter().map(|id| id.stored()).collect();
    ids.sort_unstable();
    for id in ids {
        let minute = act.minute.as_millis();
        update(
            credentials::table
                .filter(credentials::organization_id.eq(act.organization.stored()))
                .filter(credentials::id.eq(id))
                .filter(credentials::last_activated_at.is_null().or(credentials::last_activated_at.lt(minute))),
        )
        .set(credentials::last_activated_at.eq(minute))
        .execute(connection)
        .await?;
    }
    Ok(Verdict::Recorded(()))
}
