//! What the code of an account's row covers, read and written as a whole.

use super::super::backend::{Connection, RunQuery};
use crate::failure::Failure;
use crate::schema::accounts;
use crate::stored::{Column, StoredId as _};
use crate::update::update;
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable};
use vault_core::account::{AccountGrant, AccountState, SignedAccount};
use vault_core::digest::RowMac;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::role::Role;

pub(crate) const TABLE: &str = "accounts";

/// The columns of [`SignedRow`].
macro_rules! signed_columns {
    () => {
        (
            accounts::organization_id,
            accounts::id,
            accounts::email,
            accounts::role,
            accounts::state,
            accounts::version,
            accounts::password_version,
            accounts::seed_id,
        )
    };
}

/// The row of an account: takes what has a `grant`'s organization and account.
macro_rules! row_of {
    ($owner:expr) => {
        accounts::table
            .filter(accounts::organization_id.eq($owner.organization.stored()))
            .filter(accounts::id.eq($owner.account.stored()))
    };
}

pub(crate) use {row_of, signed_columns};

#[derive(Queryable)]
pub(crate) struct SignedRow {
    organization: Column<OrganizationId>,
    account: Column<AccountId>,
    email: Column<EmailAddress>,
    role: Column<Role>,
    state: Column<AccountState>,
    version: i64,
    password_version: i64,
    seed: Column<SeedId>,
}

impl SignedRow {
    pub(crate) fn decode(self) -> Result<SignedAccount, Failure> {
        let account = self.account.decode(TABLE, &"unknown", "id")?;
        let grant = AccountGrant {
            account,
            organization: self.organization.decode(TABLE, &account, "organization_id")?,
            email: self.email.decode(TABLE, &account, "email")?,
            role: self.role.decode(TABLE, &account, "role")?,
            state: self.state.decode(TABLE, &account, "state")?,
        };
        let seed = self.seed.decode(TABLE, &account, "seed_id")?;
        Ok(SignedAccount { grant, version: self.version, password_version: self.password_version, seed })
    }
}

/// Writes what a row is signed with, and its code.
pub(crate) async fn sign(connection: &mut Connection, signed: &SignedAccount, digest: &RowMac) -> Result<(), Failure> {
    update(row_of!(signed.grant))
        .set((
            accounts::email.eq(signed.grant.email.as_str()),
            accounts::role.eq(signed.grant.role.as_str()),
            accounts::state.eq(signed.grant.state.as_str()),
            accounts::version.eq(signed.version),
            accounts::password_version.eq(signed.password_version),
            accounts::seed_id.eq(signed.seed.stored()),
            accounts::grant_digest.eq(digest.code.as_bytes().as_slice()),
            accounts::grant_key_id.eq(digest.key.stored()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}
