//! Enrolling: an invited person's draft, and the account that is made of it or has its secrets.

use super::super::backend::{Connection, RunQuery, for_update};
use super::super::organization::keys::require_active;
use super::super::{Answer, Decided, Verdict, audit};
use super::accounts::{NewAccount, insert_account};
use super::invitation_row;
use super::row::{row_of as account_row, sign};
use super::{change, directory};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{accounts, enrolment_drafts};
use crate::stored::{Column, Digests, StoredId as _};
use crate::transaction::authorize::lock_organization;
use crate::update::update;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::Refusal;
use vault_core::account::AccountGrant;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::invitation::{EnrolmentDraft, StoredInvitation};
use vault_core::port::{ConfirmEnrolment, WriteDraft};
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

const TABLE: &str = "enrolment_drafts";

/// The row of a draft.
macro_rules! row_of {
    ($organization:expr, $account:expr) => {
        enrolment_drafts::table
            .filter(enrolment_drafts::organization_id.eq($organization.stored()))
            .filter(enrolment_drafts::account_id.eq($account.stored()))
    };
}

pub(crate) async fn write_draft(connection: &mut Connection, command: &WriteDraft) -> Decided<bool> {
    let WriteDraft { organization, account, code, draft, now, audit: entry } = command;
    require_active(connection, [&draft.password.0, &draft.seed.blob].into_iter().filter_map(Blob::key)).await?;
    if hold_open(connection, *organization, *account, code, *now).await?.is_none() {
        return Ok(Verdict::Refused(false));
    }
    invitation_row::remove_draft(connection, *organization, *account).await?;
    diesel::insert_into(enrolment_drafts::table)
        .values((
            enrolment_drafts::organization_id.eq(organization.stored()),
            enrolment_drafts::account_id.eq(account.stored()),
            enrolment_drafts::password.eq(draft.password.0.as_bytes()),
            enrolment_drafts::seed_id.eq(draft.seed.id.stored()),
            enrolment_drafts::seed.eq(draft.seed.blob.as_bytes()),
            enrolment_drafts::recovery_codes.eq(Digests::bytes(&draft.recovery_codes)),
        ))
        .execute(connection)
        .await?;
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(true))
}

pub(crate) async fn confirm(connection: &mut Connection, command: &ConfirmEnrolment) -> Decided<Answer> {
    let ConfirmEnrolment { signed, account_version, digest, code, version, step, now, audit: entry, address } = command;
    let (organization, account) = (signed.grant.organization, signed.grant.account);
    require_active(connection, [digest.key]).await?;
    if let Some(version) = account_version
        && !take_account(connection, &signed.grant, *version).await?
    {
        return Ok(Verdict::Refused(Err(Refusal::Contended)));
    }
    let held = hold_open(connection, organization, account, code, *now).await?;
    let as_read =
        |held: &StoredInvitation| held.version == *version && held.invitation.re_enrols() == account_version.is_some();
    let Some(held) = held.filter(as_read) else {
        return Ok(Verdict::Refused(Err(Refusal::Contended)));
    };
    let draft = draft_of(connection, organization, account).await?;
    let Some(draft) = draft.filter(|draft| draft.seed.id == command.seed()) else {
        return Ok(Verdict::Refused(Err(Refusal::Contended)));
    };
    if account_version.is_some() {
        invitation_row::remove(connection, &held).await?;
        renew(connection, command, &draft).await?;
        audit::record(connection, entry).await?;
        return Ok(Verdict::Recorded(Ok(())));
    }
    if !directory::enter(connection, address, organization, account).await? {
        return Ok(Verdict::Refused(Err(Refusal::AddressInUse)));
    }
    invitation_row::remove(connection, &held).await?;
    let account = NewAccount {
        signed,
        digest,
        password: &draft.password,
        seed: &draft.seed,
        recovery_codes: &draft.recovery_codes,
        last_step: *step,
        created_at: *now,
    };
    insert_account(connection, account).await?;
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(Ok(())))
}

/// Takes the account that is re-enrolled, in the order of locks. Whether it has this version.
async fn take_account(connection: &mut Connection, grant: &AccountGrant, version: i64) -> Result<bool, Failure> {
    if !lock_organization(&connection.tx(), grant.organization).await? {
        return Ok(false);
    }
    let row = account_row!(grant).select(accounts::version);
    let found: Option<i64> = for_update!(row).get_result(connection).await.optional()?;
    Ok(found == Some(version))
}

/// Gives the account that was taken the secrets of the draft.
async fn renew(connection: &mut Connection, command: &ConfirmEnrolment, draft: &EnrolmentDraft) -> Result<(), Failure> {
    let grant = &command.signed.grant;
    update(account_row!(grant)).set(accounts::password.eq(draft.password.0.as_bytes())).execute(connection).await?;
    change::set_passcode(connection, grant, &draft.seed, &draft.recovery_codes, command.step, command.now).await?;
    sign(connection, &command.signed, &command.digest).await
}

/// Takes an invitation that can be taken up now by this code.
async fn hold_open(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    code: &Digest,
    now: Timestamp,
) -> Result<Option<StoredInvitation>, Failure> {
    if !lock_organization(&connection.tx(), organization).await? {
        return Ok(None);
    }
    let held = invitation_row::hold(connection, organization, account).await?;
    Ok(held.filter(|held| held.invitation.code == *code && held.invitation.is_open(now)))
}

/// The seed of the newest draft.
pub(crate) async fn drafted_seed(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<SealedSeed>, Failure> {
    let row: Option<(Column<SeedId>, Column<Blob>)> = row_of!(organization, account)
        .select((enrolment_drafts::seed_id, enrolment_drafts::seed))
        .get_result(connection)
        .await
        .optional()?;
    row.map(|(id, blob)| seed(account, id, blob)).transpose()
}

async fn draft_of(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<EnrolmentDraft>, Failure> {
    type Row = (Column<Blob>, Column<SeedId>, Column<Blob>, Column<Digests>);
    let row: Option<Row> = row_of!(organization, account)
        .select((
            enrolment_drafts::password,
            enrolment_drafts::seed_id,
            enrolment_drafts::seed,
            enrolment_drafts::recovery_codes,
        ))
        .get_result(connection)
        .await
        .optional()?;
    let Some((password, seed_id, seed_blob, recovery_codes)) = row else { return Ok(None) };
    let Digests(recovery_codes) = recovery_codes.decode(TABLE, &account, "recovery_codes")?;
    Ok(Some(EnrolmentDraft {
        password: SealedPassword(password.decode(TABLE, &account, "password")?),
        seed: seed(account, seed_id, seed_blob)?,
        recovery_codes,
    }))
}

fn seed(account: AccountId, id: Column<SeedId>, blob: Column<Blob>) -> Result<SealedSeed, Failure> {
    Ok(SealedSeed { id: id.decode(TABLE, &account, "seed_id")?, blob: blob.decode(TABLE, &account, "seed")? })
}
