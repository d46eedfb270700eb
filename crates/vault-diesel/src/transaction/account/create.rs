//! Creating accounts.

use super::super::Transaction;
use super::super::audit::AuditRecorder;
use super::super::authorize::{authorize_and_lock, lock_existing_organization};
use super::super::instance_key::require_active;
use super::{directory, invitation_row, recovery_codes};
use crate::db::Tx;
use crate::failure::Failure;
use crate::rows::logins::SHARED_CLASS;
use crate::schema::{account_logins, accounts, attempt_classes, invitations};
use crate::stored::StoredId as _;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::account::{ACCOUNT_LIMIT_REACHED, MAX_ACCOUNTS, SignedAccount};
use vault_core::digest::{Digest, RowMac};
use vault_core::id::OrganizationId;
use vault_core::passcode::TimeStep;
use vault_core::port::CreateAccount;
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

/// The latest used step of a TOTP secret that was never used.
pub(super) const NO_STEP: TimeStep = TimeStep(0);

impl Transaction for Command<CreateAccount> {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        authorize_and_lock(tx, &self.principal, self.now).await?;
        let Self { principal, now, payload, .. } = self;
        let grant = &payload.signed.grant;
        let blobs = [&payload.password.blob, &payload.seed.blob];
        require_active(tx, blobs.into_iter().filter_map(Blob::key).chain([payload.digest.key])).await?;
        if !principal.reaches(grant.organization) || !lock_existing_organization(tx, grant.organization).await? {
            return Err(Refusal::NoOrganization.into());
        }
        let invited = invitation_row::lock_by_address(tx, &payload.address, grant.organization).await?;
        if invited.as_ref().is_some_and(|invited| invited.invitation.is_open(*now)) {
            return Err(Refusal::AddressTaken.into());
        }
        if !has_room(tx, grant.organization).await? {
            return Err(ACCOUNT_LIMIT_REACHED.into());
        }
        if !directory::enter(tx, &payload.address, grant.organization, grant.account).await? {
            return Err(Refusal::AddressTaken.into());
        }
        // An invitation that was created in the meantime has claimed the address before this transaction could enter it.
        let entered = directory::invitation_of(tx, &payload.address, grant.organization).await?;
        if entered != invited.as_ref().map(|invited| invited.invitation.grant.account) {
            return Err(Refusal::AddressTaken.into());
        }
        if let Some(expired) = invited {
            invitation_row::remove(tx, &expired).await?;
        }
        let account = NewAccount {
            signed: &payload.signed,
            digest: &payload.digest,
            password: &payload.password,
            seed: &payload.seed,
            recovery_codes: &payload.recovery_codes,
            last_step: NO_STEP,
            created_at: *now,
        };
        insert(tx, account).await?;
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}

/// Returns whether the organization may have one more account or invitation.
pub(super) async fn has_room(tx: &Tx<'_>, organization: OrganizationId) -> Result<bool, Failure> {
    let accounts = accounts::table.filter(accounts::organization_id.eq(organization.stored()));
    let accounts: i64 = tx.one(accounts.count()).await?;
    let invited = invitations::table
        .filter(invitations::organization_id.eq(organization.stored()))
        .filter(invitations::state.is_null());
    let invited: i64 = tx.one(invited.count()).await?;
    Ok(accounts + invited < MAX_ACCOUNTS)
}

/// An account to be stored, whose address was entered in the directory.
pub(super) struct NewAccount<'a> {
    pub(super) signed: &'a SignedAccount,
    pub(super) digest: &'a RowMac,
    pub(super) password: &'a SealedPassword,
    pub(super) seed: &'a SealedSeed,
    pub(super) recovery_codes: &'a [Digest],
    /// The latest used step of the TOTP secret.
    pub(super) last_step: TimeStep,
    pub(super) created_at: Timestamp,
}

/// Stores an account with the rows that every account has.
pub(super) async fn insert(tx: &Tx<'_>, new: NewAccount<'_>) -> Result<(), Failure> {
    let SignedAccount { grant, version, sessions, .. } = new.signed;
    let (organization, account) = (grant.organization.stored(), grant.account.stored());
    let row = diesel::insert_into(accounts::table).values((
        accounts::organization_id.eq(organization),
        accounts::id.eq(account),
        accounts::email.eq(grant.email.as_str()),
        accounts::role.eq(grant.role.as_str()),
        accounts::state.eq(grant.state.as_str()),
        accounts::grant_digest.eq(new.digest.code.as_bytes().as_slice()),
        accounts::grant_key_id.eq(new.digest.key.stored()),
        accounts::version.eq(version),
        accounts::password.eq(new.password.blob.as_bytes()),
        accounts::password_id.eq(new.signed.password.stored()),
        accounts::seed_id.eq(new.seed.id.stored()),
        accounts::sessions_since.eq(sessions.since),
        accounts::kept_session.eq(sessions.kept.stored()),
        accounts::seed.eq(new.seed.blob.as_bytes()),
        accounts::created_at.eq(new.created_at.as_millis()),
        accounts::passcode_enrolled_at.eq(new.created_at.as_millis()),
    ));
    tx.execute(row).await?;
    let logins = diesel::insert_into(account_logins::table).values((
        account_logins::organization_id.eq(organization),
        account_logins::account_id.eq(account),
        account_logins::last_step.eq(new.last_step.0),
        account_logins::wrong_passcodes.eq(0),
    ));
    tx.execute(logins).await?;
    let shared_bucket = diesel::insert_into(attempt_classes::table).values((
        attempt_classes::organization_id.eq(organization),
        attempt_classes::account_id.eq(account),
        attempt_classes::network.eq(SHARED_CLASS),
        attempt_classes::attempts.eq(0),
    ));
    tx.execute(shared_bucket).await?;
    recovery_codes::insert(tx, grant.organization, grant.account, new.recovery_codes).await
}
