//! Maintenance of accounts and activations: what nobody took up or confirmed in time, what was told long ago, and what is
//! over.

use super::super::backend::{Connection, RunQuery, for_update};
use super::super::{Decided, Verdict};
use crate::failure::Failure;
use crate::schema::{
    account_notices, activations, credential_uses, credential_versions, enrolment_codes, enrolment_drafts,
    hourly_counts, invitations, invited_addresses, pending_seeds,
};
use crate::stored::AnyId;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use std::collections::BTreeMap;
use vault_core::hourly::HOUR_SECONDS;
use vault_core::notice::NOTICE_SECONDS;
use vault_core::port::USE_SECONDS;
use vault_core::time::Timestamp;

type ByOrganization = BTreeMap<AnyId, Vec<AnyId>>;

/// An invitation that is over, as its columns say: damage must not keep it.
pub(crate) struct Over {
    organization: AnyId,
    account: AnyId,
    code: Vec<u8>,
}

/// The invitations that are over, in the order in which they are then taken.
pub(crate) async fn invitations_over(connection: &mut Connection, now: Timestamp) -> Result<Vec<Over>, Failure> {
    let rows: Vec<(AnyId, AnyId, Vec<u8>)> = invitations::table
        .filter(invitations::expires_at.le(now.as_millis()))
        .order((invitations::organization_id, invitations::account_id))
        .limit(super::SLICE)
        .select((invitations::organization_id, invitations::account_id, invitations::code))
        .load(connection)
        .await?;
    let over = |(organization, account, code)| Over { organization, account, code };
    Ok(rows.into_iter().map(over).collect())
}

pub(crate) async fn delete_invitations(
    connection: &mut Connection,
    (now, found): &(Timestamp, Vec<Over>),
) -> Decided<usize> {
    let mut deleted = 0;
    for Over { organization, account, code } in found {
        let row = invitations::table
            .filter(invitations::organization_id.eq(organization))
            .filter(invitations::account_id.eq(account))
            .filter(invitations::expires_at.le(now.as_millis()));
        let there: Option<i64> =
            for_update!(row.select(invitations::version)).get_result(connection).await.optional()?;
        if there.is_none() {
            continue;
        }
        let draft = enrolment_drafts::table
            .filter(enrolment_drafts::organization_id.eq(organization))
            .filter(enrolment_drafts::account_id.eq(account));
        let entry = invited_addresses::table
            .filter(invited_addresses::organization_id.eq(organization))
            .filter(invited_addresses::account_id.eq(account));
        diesel::delete(draft).execute(connection).await?;
        diesel::delete(enrolment_codes::table.filter(enrolment_codes::code.eq(code))).execute(connection).await?;
        diesel::delete(entry).execute(connection).await?;
        deleted += diesel::delete(row).execute(connection).await?;
    }
    Ok(Verdict::Recorded(deleted))
}

const fn old_before(now: Timestamp) -> i64 {
    now.plus_seconds(-NOTICE_SECONDS).as_millis()
}

pub(crate) async fn old_notices(
    connection: &mut Connection,
    now: Timestamp,
) -> Result<BTreeMap<(AnyId, AnyId), Vec<i64>>, Failure> {
    let rows: Vec<(AnyId, AnyId, i64)> = account_notices::table
        .filter(account_notices::at.le(old_before(now)))
        .limit(super::SLICE)
        .select((account_notices::organization_id, account_notices::account_id, account_notices::at))
        .load(connection)
        .await?;
    let mut found = BTreeMap::new();
    for (organization, account, at) in rows {
        found.entry((organization, account)).or_insert_with(Vec::new).push(at);
    }
    Ok(found)
}

pub(crate) async fn delete_notices(
    connection: &mut Connection,
    (now, found): &(Timestamp, BTreeMap<(AnyId, AnyId), Vec<i64>>),
) -> Decided<usize> {
    let mut deleted = 0;
    for ((organization, account), moments) in found {
        deleted += diesel::delete(
            account_notices::table
                .filter(account_notices::organization_id.eq(organization))
                .filter(account_notices::account_id.eq(account))
                .filter(account_notices::at.eq_any(moments))
                .filter(account_notices::at.le(old_before(*now))),
        )
        .execute(connection)
        .await?;
    }
    Ok(Verdict::Recorded(deleted))
}

pub(crate) async fn seeds_over(connection: &mut Connection, now: Timestamp) -> Result<ByOrganization, Failure> {
    let rows: Vec<(AnyId, AnyId)> = pending_seeds::table
        .filter(pending_seeds::expires_at.le(now.as_millis()))
        .limit(super::SLICE)
        .select((pending_seeds::organization_id, pending_seeds::account_id))
        .load(connection)
        .await?;
    let mut found = ByOrganization::new();
    for (organization, account) in rows {
        found.entry(organization).or_default().push(account);
    }
    Ok(found)
}

pub(crate) async fn delete_seeds(
    connection: &mut Connection,
    (now, found): &(Timestamp, ByOrganization),
) -> Decided<usize> {
    let mut deleted = 0;
    for (organization, accounts) in found {
        deleted += diesel::delete(
            pending_seeds::table
                .filter(pending_seeds::organization_id.eq(organization))
                .filter(pending_seeds::account_id.eq_any(accounts))
                .filter(pending_seeds::expires_at.le(now.as_millis())),
        )
        .execute(connection)
        .await?;
    }
    Ok(Verdict::Recorded(deleted))
}

pub(crate) async fn activations_over(connection: &mut Connection, now: Timestamp) -> Result<ByOrganization, Failure> {
    let rows: Vec<(AnyId, AnyId)> = activations::table
        .filter(activations::expires_at.le(now.as_millis()))
        .limit(super::SLICE)
        .select((activations::organization_id, activations::id))
        .load(connection)
        .await?;
    let mut found = ByOrganization::new();
    for (organization, id) in rows {
        found.entry(organization).or_default().push(id);
    }
    Ok(found)
}

pub(crate) async fn delete_activations(
    connection: &mut Connection,
    (now, found): &(Timestamp, ByOrganization),
) -> Decided<usize> {
    let mut deleted = 0;
    for (organization, ids) in found {
        deleted += diesel::delete(
            activations::table
                .filter(activations::organization_id.eq(organization))
                .filter(activations::id.eq_any(ids))
                .filter(activations::expires_at.le(now.as_millis())),
        )
        .execute(connection)
        .await?;
    }
    Ok(Verdict::Recorded(deleted))
}

/// A previous version: organization, credential, number.
type Version = (AnyId, AnyId, i64);

pub(crate) async fn versions_over(connection: &mut Connection, now: Timestamp) -> Result<Vec<Version>, Failure> {
    Ok(credential_versions::table
        .filter(credential_versions::destroy_at.le(now.as_millis()))
        .limit(super::SLICE)
        .select((credential_versions::organization_id, credential_versions::id, credential_versions::version))
        .load(connection)
        .await?)
}

pub(crate) async fn delete_versions(
    connection: &mut Connection,
    (now, found): &(Timestamp, Vec<Version>),
) -> Decided<usize> {
    let mut deleted = 0;
    for (organization, id, version) in found {
        deleted += diesel::delete(
            credential_versions::table
                .filter(credential_versions::organization_id.eq(organization))
                .filter(credential_versions::id.eq(id))
                .filter(credential_versions::version.eq(version))
                .filter(credential_versions::destroy_at.le(now.as_millis())),
        )
        .execute(connection)
        .await?;
    }
    Ok(Verdict::Recorded(deleted))
}

/// A use of a credential: organization, credential, time, activation.
type Use = (AnyId, AnyId, i64, AnyId);

pub(crate) async fn old_uses(connection: &mut Connection, now: Timestamp) -> Result<Vec<Use>, Failure> {
    Ok(credential_uses::table
        .filter(credential_uses::expires_at.le(now.plus_seconds(-USE_SECONDS).as_millis()))
        .limit(super::SLICE)
        .select((
            credential_uses::organization_id,
            credential_uses::id,
            credential_uses::at,
            credential_uses::activation_id,
        ))
        .load(connection)
        .await?)
}

pub(crate) async fn delete_uses(connection: &mut Connection, found: &Vec<Use>) -> Decided<usize> {
    let mut deleted = 0;
    for (organization, id, at, activation) in found {
        deleted += diesel::delete(
            credential_uses::table
                .filter(credential_uses::organization_id.eq(organization))
                .filter(credential_uses::id.eq(id))
                .filter(credential_uses::at.eq(at))
                .filter(credential_uses::activation_id.eq(activation)),
        )
        .execute(connection)
        .await?;
    }
    Ok(Verdict::Recorded(deleted))
}

const fn counted_before(now: Timestamp) -> i64 {
    now.plus_seconds(-HOUR_SECONDS).as_millis()
}

/// Counts whose hour is over: organization and subject.
pub(crate) async fn counts_over(connection: &mut Connection, now: Timestamp) -> Result<Vec<(AnyId, String)>, Failure> {
    Ok(hourly_counts::table
        .filter(hourly_counts::since.le(counted_before(now)))
        .limit(super::SLICE)
        .select((hourly_counts::organization_id, hourly_counts::subject))
        .load(connection)
        .await?)
}

pub(crate) async fn delete_counts(
    connection: &mut Connection,
    (now, found): &(Timestamp, Vec<(AnyId, String)>),
) -> Decided<usize> {
    let mut deleted = 0;
    for (organization, subject) in found {
        deleted += diesel::delete(
            hourly_counts::table
                .filter(hourly_counts::organization_id.eq(organization))
                .filter(hourly_counts::subject.eq(subject))
                .filter(hourly_counts::since.le(counted_before(*now))),
        )
        .execute(connection)
        .await?;
    }
    Ok(Verdict::Recorded(deleted))
}
