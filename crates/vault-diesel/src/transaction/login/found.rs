//! The row of an account that logs in, and of a decoy.

use super::super::account::row::{SignedRow, TABLE};
use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::{accounts, lookups};
use crate::stored::{CodeColumns, Column, StoredId as _};
use diesel::{ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _, Queryable, SelectableHelper as _};
use vault_core::account::AccountState;
use vault_core::entity::Index;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::organization::OrganizationState;
use vault_core::port::ReservedAccount;
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};

/// An account of an address, with the state of its organization.
#[derive(Queryable)]
pub(crate) struct FoundRow {
    organization_state: Column<OrganizationState>,
    signed: SignedRow,
    digest: CodeColumns,
    password: Column<Blob>,
    seed: Column<Blob>,
}

/// Reads an account with its organization. Returns `None` if it was deleted since its address was looked up.
pub(super) async fn find(
    tx: &Tx<'_>,
    (organization, account): (OrganizationId, AccountId),
) -> Result<Option<FoundRow>, Failure> {
    let found = accounts::table
        .inner_join(lookups::table.on(lookups::organization_id.eq(accounts::organization_id)))
        .filter(lookups::name.eq(Index::OrganizationState.as_str()))
        .filter(accounts::organization_id.eq(organization.stored()))
        .filter(accounts::id.eq(account.stored()))
        .select((
            lookups::value,
            SignedRow::as_select(),
            (accounts::grant_digest, accounts::grant_key_id),
            accounts::password,
            accounts::seed,
        ));
    Ok(tx.first(found).await?)
}

impl FoundRow {
    /// Returns whether the account may log in at all, and the facts for evaluating the attempt.
    pub(crate) fn decode(self) -> Result<(bool, ReservedAccount), Failure> {
        let signed = self.signed.decode()?;
        let (organization, account) = (signed.grant.organization, signed.grant.account);
        let organization_state = self.organization_state.decode("lookups", &organization, "value")?;
        let is_active = signed.grant.state == AccountState::Active && organization_state == OrganizationState::Active;
        let reserved = ReservedAccount {
            digest: self.digest.decode(TABLE, &account, "grant_digest")?,
            password: SealedPassword { id: signed.password, blob: self.password.decode(TABLE, &account, "password")? },
            seed: SealedSeed { id: signed.seed, blob: self.seed.decode(TABLE, &account, "seed")? },
            signed,
            attempts: 0,
        };
        Ok((is_active, reserved))
    }
}
