//! The columns of an account that its MAC covers, read and written as a whole.

use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::schema::accounts;
use crate::stored::{Column, IdBytes, StoredId as _};
use crate::transaction::Read as _;
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable};
use vault_core::account::{AccountRights, AccountState, SignedAccount, ValidSessions};
use vault_core::audit::{RecordedRow, RowState, Subject};
use vault_core::digest::RowMac;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId, PasswordId, SeedId, SessionId};
use vault_core::port::RecordedStates;
use vault_core::role::Role;

pub(crate) const TABLE: &str = "accounts";

#[derive(Queryable, Selectable)]
#[diesel(table_name = accounts, check_for_backend(Db))]
pub(crate) struct SignedRow {
    organization_id: Column<OrganizationId>,
    id: Column<AccountId>,
    email: Column<EmailAddress>,
    role: Column<Role>,
    state: Column<AccountState>,
    version: i64,
    password_id: Column<PasswordId>,
    seed_id: Column<SeedId>,
    sessions_since: i64,
    kept_session: Column<SessionId>,
}

#[auto_type(no_type_alias)]
pub(crate) fn account_of(organization: IdBytes, account: IdBytes) -> _ {
    accounts::table.filter(accounts::organization_id.eq(organization)).filter(accounts::id.eq(account))
}

impl SignedRow {
    pub(crate) fn decode(self) -> Result<SignedAccount, Failure> {
        let account = self.id.decode(TABLE, &"unknown", "id")?;
        let grant = AccountRights {
            account,
            organization: self.organization_id.decode(TABLE, &account, "organization_id")?,
            email: self.email.decode(TABLE, &account, "email")?,
            role: self.role.decode(TABLE, &account, "role")?,
            state: self.state.decode(TABLE, &account, "state")?,
        };
        let seed = self.seed_id.decode(TABLE, &account, "seed_id")?;
        let password = self.password_id.decode(TABLE, &account, "password_id")?;
        let kept = self.kept_session.decode(TABLE, &account, "kept_session")?;
        let sessions = ValidSessions { since: self.sessions_since, kept };
        Ok(SignedAccount { grant, version: self.version, password, seed, sessions })
    }
}

/// Number of the newest entries about an account that are compared with its row. Entries of two servers may be ordered
/// differently than their changes.
const ENTRIES: usize = 16;

/// Writes the next version of the columns that the MAC covers, and the MAC. A row that is older than the audit log records was
/// put back outside the service: it is never signed again, because that would hide it.
pub(crate) async fn sign(tx: &Tx<'_>, signed: &SignedAccount, digest: &RowMac) -> Result<(), Failure> {
    let grant = &signed.grant;
    let (organization, subject, row) = (grant.organization, Subject::Account(grant.account), RecordedRow::Account);
    let newest = RecordedStates { organization, subject, row, namespace: None, limit: ENTRIES }.read(tx).await?;
    let recorded = newest.iter().filter_map(|entry| entry.left(row)).map(RowState::number).max();
    if recorded.is_some_and(|recorded| recorded >= signed.version) {
        let reason = "its state differs from the last recorded one";
        return Err(Failure::damaged(TABLE, grant.account.to_string(), reason));
    }
    let signed = tx.execute(diesel::update(account_of(grant.organization.stored(), grant.account.stored())).set((
        accounts::email.eq(grant.email.as_str()),
        accounts::role.eq(grant.role.as_str()),
        accounts::state.eq(grant.state.as_str()),
        accounts::version.eq(signed.version),
        accounts::password_id.eq(signed.password.stored()),
        accounts::seed_id.eq(signed.seed.stored()),
        accounts::sessions_since.eq(signed.sessions.since),
        accounts::kept_session.eq(signed.sessions.kept.stored()),
        accounts::grant_digest.eq(digest.code.as_bytes().as_slice()),
        accounts::grant_key_id.eq(digest.key.stored()),
    )));
    signed.await?;
    Ok(())
}
