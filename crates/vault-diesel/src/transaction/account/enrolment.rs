//! Enrolment: the draft of an invited user, and the account that is created from it or gets its secrets.

use super::super::Transaction;
use super::super::audit::AuditRecorder;
use super::super::authorize::lock_organization;
use super::super::instance_key::require_active;
use super::create::{NewAccount, insert};
use super::invitation_row::{self, draft_of};
use super::row::{account_of, sign};
use super::{change, directory};
use crate::db::{Db, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{accounts, enrolment_drafts};
use crate::stored::{CodeColumns, Column, Digests, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::Refusal;
use vault_core::account::AccountRights;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId, PasswordId, SeedId};
use vault_core::invitation::{EnrolmentDraft, StoredInvitation};
use vault_core::port::{ConfirmEnrolment, WriteDraft};
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

const TABLE: &str = "enrolment_drafts";

/// Stores the draft of an open invitation.
impl Transaction for WriteDraft {
    /// Whether the invitation was open.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { organization, account, code, draft, now, audit: entry } = self;
        let blobs = [&draft.password.blob, &draft.seed.blob];
        require_active(tx, blobs.into_iter().filter_map(Blob::key).chain([draft.digest.key])).await?;
        if lock_open(tx, *organization, *account, code, *now).await?.is_none() {
            return Ok(false);
        }
        invitation_row::remove_draft(tx, *organization, *account).await?;
        let new = diesel::insert_into(enrolment_drafts::table).values((
            enrolment_drafts::organization_id.eq(organization.stored()),
            enrolment_drafts::account_id.eq(account.stored()),
            enrolment_drafts::password_id.eq(draft.password.id.stored()),
            enrolment_drafts::password.eq(draft.password.blob.as_bytes()),
            enrolment_drafts::seed_id.eq(draft.seed.id.stored()),
            enrolment_drafts::seed.eq(draft.seed.blob.as_bytes()),
            enrolment_drafts::recovery_codes.eq(Digests::bytes(&draft.recovery_codes)),
            enrolment_drafts::digest.eq(draft.digest.code.as_bytes().as_slice()),
            enrolment_drafts::digest_key_id.eq(draft.digest.key.stored()),
        ));
        tx.execute(new).await?;
        audit.record(tx, entry).await?;
        Ok(true)
    }
}

impl Transaction for ConfirmEnrolment {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        let Self { signed, account_version, digest, code, version, step, now, audit: entry, address, draft: read } =
            self;
        let (organization, account) = (signed.grant.organization, signed.grant.account);
        require_active(tx, [digest.key]).await?;
        if let Some(version) = account_version
            && !lock_account(tx, &signed.grant, *version).await?
        {
            return Err(Refusal::Contended.into());
        }
        let stored = lock_open(tx, organization, account, code, *now).await?;
        let re_enrols = account_version.is_some();
        let as_read =
            |stored: &StoredInvitation| stored.version == *version && stored.invitation.re_enrols() == re_enrols;
        let Some(stored) = stored.filter(as_read) else { return Err(Refusal::Contended.into()) };
        let draft = read_draft(tx, organization, account).await?;
        let Some(draft) = draft.filter(|draft| draft.digest == *read) else {
            return Err(Refusal::Contended.into());
        };
        if !re_enrols && !directory::enter(tx, address, organization, account).await? {
            return Err(Refusal::AddressInUse.into());
        }
        invitation_row::remove(tx, &stored).await?;
        if re_enrols {
            renew(tx, self, &draft).await?;
        } else {
            let account = NewAccount {
                signed,
                digest,
                password: &draft.password,
                seed: &draft.seed,
                recovery_codes: &draft.recovery_codes,
                last_step: *step,
                created_at: *now,
            };
            insert(tx, account).await?;
        }
        audit.record(tx, entry).await?;
        Ok(())
    }
}

/// Locks the account that is re-enrolled, in the order of locks. Returns whether it has this version.
async fn lock_account(tx: &Tx<'_>, grant: &AccountRights, version: i64) -> Result<bool, Failure> {
    if !lock_organization(tx, grant.organization).await? {
        return Ok(false);
    }
    let row = account_of(grant.organization.stored(), grant.account.stored()).select(accounts::version);
    Ok(tx.first::<i64, _>(locked(row, Update)).await? == Some(version))
}

/// Sets the secrets of the draft in the account that was locked.
async fn renew(tx: &Tx<'_>, command: &ConfirmEnrolment, draft: &EnrolmentDraft) -> Result<(), Failure> {
    let grant = &command.signed.grant;
    let row = diesel::update(account_of(grant.organization.stored(), grant.account.stored()));
    tx.execute(row.set(accounts::password.eq(draft.password.blob.as_bytes()))).await?;
    change::set_passcode(tx, grant, &draft.seed, &draft.recovery_codes, command.step, command.now).await?;
    sign(tx, &command.signed, &command.digest).await
}

/// Locks an invitation, if this code can accept it now.
async fn lock_open(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
    code: &Digest,
    now: Timestamp,
) -> Result<Option<StoredInvitation>, Failure> {
    if !lock_organization(tx, organization).await? {
        return Ok(None);
    }
    let stored = invitation_row::lock(tx, organization, account).await?;
    Ok(stored.filter(|stored| stored.invitation.code == *code && stored.invitation.is_open(now)))
}

/// A draft.
#[derive(Queryable, Selectable)]
#[diesel(table_name = enrolment_drafts, check_for_backend(Db))]
pub(crate) struct DraftRow {
    password_id: Column<PasswordId>,
    password: Column<Blob>,
    seed_id: Column<SeedId>,
    seed: Column<Blob>,
    recovery_codes: Column<Digests>,
    #[diesel(select_expression = (enrolment_drafts::digest, enrolment_drafts::digest_key_id))]
    digest: CodeColumns,
}

impl DraftRow {
    pub(crate) fn decode(self, account: AccountId) -> Result<EnrolmentDraft, Failure> {
        let Digests(recovery_codes) = self.recovery_codes.decode(TABLE, &account, "recovery_codes")?;
        let id = self.password_id.decode(TABLE, &account, "password_id")?;
        let password = SealedPassword { id, blob: self.password.decode(TABLE, &account, "password")? };
        let id = self.seed_id.decode(TABLE, &account, "seed_id")?;
        let seed = SealedSeed { id, blob: self.seed.decode(TABLE, &account, "seed")? };
        Ok(EnrolmentDraft { password, seed, recovery_codes, digest: self.digest.decode(TABLE, &account, "digest")? })
    }
}

pub(super) async fn read_draft(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<EnrolmentDraft>, Failure> {
    let row = tx.first(draft_of(organization.stored(), account.stored()).select(DraftRow::as_select())).await?;
    row.map(|row: DraftRow| row.decode(account)).transpose()
}
