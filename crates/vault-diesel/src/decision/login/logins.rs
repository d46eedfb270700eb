//! Attempts: reserved before anything is hashed. Whatever comes of it: one statement looks up the address, one reads an
//! account or a decoy, one takes its classes, and one writes a row, in one commit.

use super::super::account::directory;
use super::super::account::row::{SignedRow, TABLE, signed_columns};
use super::super::backend::{Connection, RunQuery, Store};
use super::super::{Decided, Verdict};
use super::attempts::{self, Classes};
use super::decoys::{self, Part};
use super::proof;
use crate::failure::Failure;
use crate::schema::{accounts, organizations};
use crate::stored::{CodeColumns, Column, StoredId as _};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _, Queryable};
use vault_core::account::{AccountGrant, AccountState};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::AttemptDecision;
use vault_core::organization::OrganizationState;
use vault_core::port::{
    ConcludeAttempt, Conclusion, LoginAttemptRepository, Reservation, ReserveAttempt, ReservedAccount, StoreError,
};
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

#[async_trait]
impl LoginAttemptRepository for Store {
    async fn reserve_attempt(&self, command: ReserveAttempt) -> Result<Reservation, StoreError> {
        self.write(command, |connection, command| Box::pin(reserve(connection, command))).await
    }

    async fn conclude_attempt(&self, command: ConcludeAttempt) -> Result<Conclusion, StoreError> {
        self.write(command, |connection, command| Box::pin(conclude(connection, command))).await
    }

    async fn network_is_known(&self, network: Digest, now: Timestamp) -> Result<bool, StoreError> {
        self.read((network, now), |connection, asked| Box::pin(attempts::is_known(connection, asked))).await
    }
}

/// An account that an address leads to, with its organization's state.
#[derive(Queryable)]
pub(crate) struct FoundRow {
    organization_state: Column<OrganizationState>,
    signed: SignedRow,
    digest: CodeColumns,
    password: Column<Blob>,
    seed: Column<Blob>,
}

async fn reserve(connection: &mut Connection, command: &ReserveAttempt) -> Decided<Reservation> {
    let ReserveAttempt { address, decoy, network, now } = command;
    let place = directory::account_of(connection, address).await?;
    let found = match place {
        Some(place) => find(connection, place).await?,
        None => None,
    };
    let Some(found) = found else {
        decoys::find(connection, *decoy).await?;
        decoys::take_classes(connection, *decoy).await?;
        return uncounted(connection, *decoy, *now, Reservation::Unknown).await;
    };
    let (is_active, mut reserved) = found.decode()?;
    let AccountGrant { organization, account, .. } = reserved.signed.grant;
    let classes = Classes { organization, account };
    let Some(held) = classes.hold(connection, network).await? else {
        if is_there(connection, organization, account).await? {
            return Err(Failure::damaged("attempt_classes", account.to_string(), "the shared class is missing"));
        }
        // Deleted since it was looked for.
        return uncounted(connection, *decoy, *now, Reservation::Unknown).await;
    };
    if !is_active {
        return uncounted(connection, *decoy, *now, Reservation::Disabled(organization, account)).await;
    }
    let (key, class) = held.counting(network, *now);
    let AttemptDecision::Evaluate(counted) = class.decide(*now) else {
        return uncounted(connection, *decoy, *now, Reservation::Throttled(organization, account)).await;
    };
    classes.set(connection, key, counted).await?;
    reserved.attempts = counted.attempts;
    Ok(Verdict::Recorded(Reservation::Account(Box::new(reserved))))
}

/// Writes the decoy in the place of a class.
async fn uncounted(
    connection: &mut Connection,
    decoy: u16,
    now: Timestamp,
    reservation: Reservation,
) -> Decided<Reservation> {
    decoys::write(connection, Part::Class, decoy, now).await?;
    Ok(Verdict::RefusedOnRecord(reservation))
}

/// Reads an account with its organization. `None`: it was deleted since its address was looked up.
async fn find(
    connection: &mut Connection,
    (organization, account): (OrganizationId, AccountId),
) -> Result<Option<FoundRow>, Failure> {
    Ok(accounts::table
        .inner_join(organizations::table.on(organizations::id.eq(accounts::organization_id)))
        .filter(accounts::organization_id.eq(organization.stored()))
        .filter(accounts::id.eq(account.stored()))
        .select((
            organizations::state,
            signed_columns!(),
            (accounts::grant_digest, accounts::grant_key_id),
            accounts::password,
            accounts::seed,
        ))
        .get_result(connection)
        .await
        .optional()?)
}

async fn is_there(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<bool, Failure> {
    let version: Option<i64> = accounts::table
        .filter(accounts::organization_id.eq(organization.stored()))
        .filter(accounts::id.eq(account.stored()))
        .select(accounts::version)
        .get_result(connection)
        .await
        .optional()?;
    Ok(version.is_some())
}

impl FoundRow {
    /// Whether it may log in at all, and what it is decided on.
    pub(crate) fn decode(self) -> Result<(bool, ReservedAccount), Failure> {
        let signed = self.signed.decode()?;
        let (organization, account) = (signed.grant.organization, signed.grant.account);
        let organization_state = self.organization_state.decode("organizations", &organization, "state")?;
        let is_active = signed.grant.state == AccountState::Active && organization_state == OrganizationState::Active;
        let reserved = ReservedAccount {
            digest: self.digest.decode(TABLE, &account, "grant_digest")?,
            password: SealedPassword(self.password.decode(TABLE, &account, "password")?),
            seed: SealedSeed { id: signed.seed, blob: self.seed.decode(TABLE, &account, "seed")? },
            signed,
            attempts: 0,
        };
        Ok((is_active, reserved))
    }
}

async fn conclude(connection: &mut Connection, command: &ConcludeAttempt) -> Decided<Conclusion> {
    match command {
        ConcludeAttempt::Decoy { decoy, recovery_code, entry } => {
            proof::conclude_decoy(connection, *decoy, recovery_code.as_ref(), entry).await
        }
        ConcludeAttempt::Account(proof) => proof::conclude(connection, proof).await,
    }
}
