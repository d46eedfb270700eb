//! Checks of credentials: requested, claimed by an activation process, recorded.

use super::row::credential_of;
use super::sealed::secrets_of;
use crate::db::{Reply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{check_requests, check_rounds, credential_secrets, credentials, lookups};
use crate::stored::{BEFORE_ALL_IDS, Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _};
use futures_util::try_join;
use vault_core::credential::{CHECK_AGAIN_SECONDS, CheckRound, LastCheck, VersionKey};
use vault_core::entity::Index;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::organization::OrganizationState;
use vault_core::time::Timestamp;

/// The key of the one row of `check_rounds`.
const SINGLETON: i64 = 1;

#[auto_type(no_type_alias)]
fn requests_of(organization: IdBytes, id: IdBytes) -> _ {
    check_requests::table.filter(check_requests::organization_id.eq(organization)).filter(check_requests::id.eq(id))
}

/// Queues a check, in place of an earlier request for the credential.
pub(crate) async fn request(
    tx: &Tx<'_>,
    organization: OrganizationId,
    id: CredentialId,
    version: i64,
    at: Timestamp,
) -> Result<(), Failure> {
    tx.execute(diesel::delete(requests_of(organization.stored(), id.stored()))).await?;
    let new = diesel::insert_into(check_requests::table).values((
        check_requests::organization_id.eq(organization.stored()),
        check_requests::id.eq(id.stored()),
        check_requests::version.eq(version),
        check_requests::requested_at.eq(at.as_millis()),
    ));
    tx.execute(new).await?;
    Ok(())
}

/// Reads when an activation process last claimed checks.
pub(crate) fn seen_at<'t>(tx: &'t Tx<'_>) -> Reply<'t, Option<i64>> {
    tx.first(check_rounds::table.filter(check_rounds::singleton.eq(SINGLETON)).select(check_rounds::seen_at))
}

/// Locks the round of checks, which it creates at `now`. Returns also when an activation process last asked.
pub(crate) async fn lock_round(tx: &Tx<'_>, now: Timestamp) -> Result<(Timestamp, CheckRound), Failure> {
    let new = diesel::insert_into(check_rounds::table)
        .values((check_rounds::singleton.eq(SINGLETON), check_rounds::seen_at.eq(now.as_millis())))
        .on_conflict_do_nothing();
    tx.execute(new).await?;
    let row = check_rounds::table.filter(check_rounds::singleton.eq(SINGLETON)).select((
        check_rounds::seen_at,
        check_rounds::began_at,
        check_rounds::organization_id,
        check_rounds::credential_id,
    ));
    type Row = (i64, Option<i64>, Option<Column<OrganizationId>>, Option<Column<CredentialId>>);
    let (seen_at, began_at, organization, credential): Row = tx.one(locked(row, Update)).await?;
    let decode = |(organization, credential): (Column<OrganizationId>, Column<CredentialId>)| {
        let organization = organization.decode("check_rounds", &SINGLETON, "organization_id")?;
        Ok::<_, Failure>((organization, credential.decode("check_rounds", &SINGLETON, "credential_id")?))
    };
    let after = organization.zip(credential).map(decode).transpose()?;
    Ok((Timestamp::from_millis(seen_at), CheckRound { began_at: began_at.map(Timestamp::from_millis), after }))
}

/// Stores the round of checks, and when an activation process last asked.
pub(crate) fn set_round<'t>(tx: &'t Tx<'_>, now: Timestamp, round: CheckRound) -> Reply<'t, usize> {
    let row = diesel::update(check_rounds::table.filter(check_rounds::singleton.eq(SINGLETON)));
    tx.execute(row.set((
        check_rounds::seen_at.eq(now.as_millis()),
        check_rounds::began_at.eq(round.began_at.map(Timestamp::as_millis)),
        check_rounds::organization_id.eq(round.after.map(|(organization, _)| organization.stored())),
        check_rounds::credential_id.eq(round.after.map(|(_, credential)| credential.stored())),
    )))
}

/// Claims requested checks that no process works on, oldest first.
pub(crate) async fn claim_requested(tx: &Tx<'_>, now: Timestamp, most: usize) -> Result<Vec<VersionKey>, Failure> {
    let stale = now.plus_seconds(-CHECK_AGAIN_SECONDS).as_millis();
    let waiting = check_requests::table
        .inner_join(lookups::table.on(lookups::organization_id.eq(check_requests::organization_id)))
        .filter(lookups::name.eq(Index::OrganizationState.as_str()))
        .filter(lookups::value.eq(OrganizationState::Active.as_str()))
        .filter(check_requests::taken_at.is_null().or(check_requests::taken_at.le(stale)))
        .order((check_requests::requested_at, check_requests::organization_id, check_requests::id))
        .select((check_requests::organization_id, check_requests::id, check_requests::version));
    let rows: Vec<(Column<OrganizationId>, Column<CredentialId>, i64)> = tx.page(waiting, most).await?;
    let mut claimed = Vec::with_capacity(rows.len());
    for (organization, id, version) in rows {
        let organization = organization.decode("check_requests", &"unknown", "organization_id")?;
        let id = id.decode("check_requests", &organization, "id")?;
        let request = diesel::update(requests_of(organization.stored(), id.stored()));
        tx.execute(request.set(check_requests::taken_at.eq(now.as_millis()))).await?;
        claimed.push(VersionKey { organization, id, version });
    }
    Ok(claimed)
}

/// Lists the credentials of active organizations after a position.
pub(crate) async fn following(
    tx: &Tx<'_>,
    after: Option<(OrganizationId, CredentialId)>,
    most: usize,
) -> Result<Vec<VersionKey>, Failure> {
    let start = (BEFORE_ALL_IDS, BEFORE_ALL_IDS);
    let (organization, id) = after.map_or(start, |(organization, id)| (organization.stored(), id.stored()));
    let following = credentials::table
        .inner_join(lookups::table.on(lookups::organization_id.eq(credentials::organization_id)))
        .filter(lookups::name.eq(Index::OrganizationState.as_str()))
        .filter(lookups::value.eq(OrganizationState::Active.as_str()))
        .filter(credentials::organization_id.ge(organization))
        .filter(credentials::organization_id.gt(organization).or(credentials::id.gt(id)))
        .order((credentials::organization_id, credentials::id))
        .select((credentials::organization_id, credentials::id, credentials::version));
    let decode = |(organization, id, version): (Column<OrganizationId>, Column<CredentialId>, i64)| {
        let organization = organization.decode("credentials", &"unknown", "organization_id")?;
        Ok(VersionKey { organization, id: id.decode("credentials", &organization, "id")?, version })
    };
    tx.page(following, most).await?.into_iter().map(decode).collect()
}

/// Removes the requested check of a version.
pub(crate) fn remove_request<'t>(tx: &'t Tx<'_>, key: VersionKey) -> Reply<'t, usize> {
    let request = requests_of(key.organization.stored(), key.id.stored());
    tx.execute(diesel::delete(request.filter(check_requests::version.eq(key.version))))
}

/// Stores the result of a check. Returns `false` if the version does not exist.
pub(crate) async fn set_check(tx: &Tx<'_>, key: VersionKey, check: LastCheck) -> Result<bool, Failure> {
    let (organization, id, version) = (key.organization.stored(), key.id.stored(), key.version);
    let (at, since) = (check.at.as_millis(), check.since.as_millis());
    let failed = check.failed.map(|reason| reason.as_str());
    let secret = diesel::update(secrets_of(organization, id).filter(credential_secrets::version.eq(version))).set((
        credential_secrets::checked_at.eq(at),
        credential_secrets::check_since.eq(since),
        credential_secrets::check_failed.eq(failed),
    ));
    // Lists show that of the current version.
    let current = diesel::update(credential_of(organization, id).filter(credentials::version.eq(version))).set((
        credentials::checked_at.eq(at),
        credentials::check_since.eq(since),
        credentials::check_failed.eq(failed),
    ));
    let (secrets, _) = try_join!(tx.execute(secret), tx.execute(current))?;
    Ok(secrets > 0)
}

/// Stores the minute of the last activation of credentials, unless a later one is stored.
pub(crate) async fn set_activated(
    tx: &Tx<'_>,
    organization: OrganizationId,
    credentials: &[CredentialId],
    minute: Timestamp,
) -> Result<(), Failure> {
    let minute = minute.as_millis();
    for id in credentials {
        let earlier = credentials::last_activated_at.is_null().or(credentials::last_activated_at.lt(minute));
        let credential = diesel::update(credential_of(organization.stored(), id.stored()).filter(earlier));
        tx.execute(credential.set(credentials::last_activated_at.eq(minute))).await?;
    }
    Ok(())
}
