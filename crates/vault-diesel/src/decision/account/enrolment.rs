//! Enrolling: an invited person's draft, and the account that is made of it.

use super::super::authorize::hold_organization;
use super::super::backend::{Connection, RunQuery};
use super::super::{Answer, Decided, Verdict, audit};
use super::accounts::{NewAccount, insert_account};
use super::directory;
use super::invitation_row::{self, Held};
use crate::failure::Failure;
use crate::schema::enrolment_drafts;
use crate::stored::{Digests, Read, ToIdText as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::Refusal;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::invitation::EnrolmentDraft;
use vault_core::port::{ConfirmEnrolment, WriteDraft};
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

const TABLE: &str = "enrolment_drafts";

/// The row of a draft.
macro_rules! row_of {
    ($organization:expr, $account:expr) => {
        enrolment_drafts::table
            .filter(enrolment_drafts::organization_id.eq($organization.text()))
            .filter(enrolment_drafts::account_id.eq($account.text()))
    };
}

pub(crate) async fn write_draft(connection: &mut Connection, command: &WriteDraft) -> Decided<bool> {
    let WriteDraft { organization, account, code, draft, now, audit: entry } = command;
    if hold_open(connection, *organization, *account, code, *now).await?.is_none() {
        return Ok(Verdict::Refused(false));
    }
    invitation_row::remove_draft(connection, *organization, *account).await?;
    diesel::insert_into(enrolment_drafts::table)
        .values((
            enrolment_drafts::organization_id.eq(organization.text()),
            enrolment_drafts::account_id.eq(account.text()),
            enrolment_drafts::password.eq(draft.password.0.as_bytes()),
            enrolment_drafts::seed_id.eq(draft.seed.id.text()),
            enrolment_drafts::seed.eq(draft.seed.blob.as_bytes()),
            enrolment_drafts::recovery_codes.eq(Digests::bytes(&draft.recovery_codes)),
        ))
        .execute(connection)
        .await?;
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(true))
}

pub(crate) async fn confirm(connection: &mut Connection, command: &ConfirmEnrolment) -> Decided<Answer> {
    let ConfirmEnrolment { signed, digest, code, version, step, now, audit: entry } = command;
    let (organization, account) = (signed.grant.organization, signed.grant.account);
    let held = hold_open(connection, organization, account, code, *now).await?;
    let Some(held) = held.filter(|held| held.stored.version == *version) else {
        return Ok(Verdict::Refused(Err(Refusal::Contended)));
    };
    let draft = draft_of(connection, organization, account).await?;
    let Some(draft) = draft.filter(|draft| draft.seed.id == command.seed()) else {
        return Ok(Verdict::Refused(Err(Refusal::Contended)));
    };
    if !directory::enter(connection, &held.address, organization, account).await? {
        return Ok(Verdict::Refused(Err(Refusal::AddressInUse)));
    }
    invitation_row::remove(connection, &held).await?;
    let account = NewAccount {
        signed,
        digest,
        address: &held.address,
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

/// Takes an invitation that can be taken up now by this code.
async fn hold_open(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    code: &Digest,
    now: Timestamp,
) -> Result<Option<Held>, Failure> {
    if hold_organization(connection, organization).await?.is_err() {
        return Ok(None);
    }
    let held = invitation_row::hold(connection, organization, account).await?;
    Ok(held.filter(|held| held.stored.invitation.code == *code && held.stored.invitation.is_open(now)))
}

/// The seed of the newest draft.
pub(crate) async fn drafted_seed(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<SealedSeed>, Failure> {
    let row: Option<(Read<SeedId>, Read<Blob>)> = row_of!(organization, account)
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
    type Row = (Read<Blob>, Read<SeedId>, Read<Blob>, Read<Digests>);
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
    let Digests(recovery_codes) = recovery_codes.sound(TABLE, &account, "recovery_codes")?;
    Ok(Some(EnrolmentDraft {
        password: SealedPassword(password.sound(TABLE, &account, "password")?),
        seed: seed(account, seed_id, seed_blob)?,
        recovery_codes,
    }))
}

fn seed(account: AccountId, id: Read<SeedId>, blob: Read<Blob>) -> Result<SealedSeed, Failure> {
    Ok(SealedSeed { id: id.sound(TABLE, &account, "seed_id")?, blob: blob.sound(TABLE, &account, "seed")? })
}
