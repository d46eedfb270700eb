//! Reserving a login attempt, before anything is hashed. Whatever the outcome, one statement looks up the address, one reads an
//! account or a decoy, one locks its throttle buckets, and one writes a row, in one commit.

use super::super::Transaction;
use super::super::account::directory;
use super::super::account::row::account_of;
use super::super::audit::AuditRecorder;
use super::attempts::Classes;
use super::decoys::{self, Part};
use super::found::find;
use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::accounts;
use crate::stored::StoredId as _;
use diesel::QueryDsl as _;
use vault_core::account::AccountRights;
use vault_core::lockout::AttemptDecision;
use vault_core::port::{Reservation, ReserveAttempt};

impl Transaction for ReserveAttempt {
    type Outcome = Reservation;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Reservation, Failure> {
        let reservation = reserve(tx, self).await?;
        if !matches!(reservation, Reservation::Account(_)) {
            // The decoy is written instead of a bucket.
            decoys::write(tx, Part::Class, self.decoy, self.now).await?;
        }
        audit.commit_without_entry();
        Ok(reservation)
    }
}

/// Counts the attempt, if its account exists, is active and is not locked.
async fn reserve(tx: &Tx<'_>, command: &ReserveAttempt) -> Result<Reservation, Failure> {
    let ReserveAttempt { address, decoy, network, now } = command;
    let found = match directory::account_of(tx, address).await? {
        Some(place) => find(tx, place).await?,
        None => None,
    };
    let Some(found) = found else {
        decoys::find(tx, *decoy).await?;
        decoys::lock_classes(tx, *decoy).await?;
        return Ok(Reservation::Unknown);
    };
    let (is_active, mut reserved) = found.decode()?;
    let AccountRights { organization, account, .. } = reserved.signed.grant;
    let classes = Classes { organization, account };
    let Some(counters) = classes.lock(tx, network).await? else {
        let version = account_of(organization.stored(), account.stored()).select(accounts::version);
        return match tx.first::<i64, _>(version).await? {
            Some(_) => Err(Failure::damaged("attempt_classes", account.to_string(), "the shared class is missing")),
            // Deleted since its address was looked up.
            None => Ok(Reservation::Unknown),
        };
    };
    if !is_active {
        return Ok(Reservation::Disabled(organization, account));
    }
    let (key, class) = counters.counting(network, *now);
    let AttemptDecision::Evaluate(counted) = class.decide(*now) else {
        return Ok(Reservation::Throttled(organization, account));
    };
    classes.set(tx, &key, counted).await?;
    reserved.attempts = counted.attempts;
    Ok(Reservation::Account(Box::new(reserved)))
}
