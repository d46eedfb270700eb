//! The reservation of an attempt, before anything is hashed. Whatever the outcome, one statement looks up the address,
//! one reads an account or a decoy, one locks its throttle buckets, and one writes a row, in one commit.

use super::Reservation;
use crate::account::AccountState;
use crate::digest::Digest;
use crate::email::EmailAddress;
use crate::id::OrganizationId;
use crate::lockout::AttemptDecision;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::organization::OrganizationState;

/// Reserves one attempt according to [`lockout`](crate::lockout). It is counted and committed before any hashing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReserveAttempt {
    /// The address.
    pub address: EmailAddress,
    /// Decoy row of the address, less than [`DECOYS`](crate::lockout::DECOYS).
    pub decoy: u16,
    /// Digest of the network.
    pub network: Digest,
}

impl Operation for ReserveAttempt {
    type Outcome = Reservation;
    const ACCESS: Access = Access::Write;

    /// The address is looked up in all organizations.
    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Reservation, Failure> {
        let reservation = self.reserve(unit).await?;
        if !matches!(reservation, Reservation::Account(_)) {
            // The decoy is written instead of a bucket.
            unit.rows().write_decoy_bucket(self.decoy, unit.now()).await?;
        }
        unit.commit_without_entry();
        Ok(reservation)
    }
}

impl ReserveAttempt {
    /// Counts the attempt, if its account exists, is active and is not locked.
    async fn reserve(&self, unit: &Unit<'_>) -> Result<Reservation, Failure> {
        let (rows, now) = (unit.rows(), unit.now());
        let found = match rows.account_of(&self.address).await? {
            Some(place) => rows.login_account(place).await?,
            None => None,
        };
        let Some((organization_state, mut reserved)) = found else {
            rows.read_decoy(self.decoy).await?;
            rows.lock_decoy_buckets(self.decoy).await?;
            return Ok(Reservation::Unknown);
        };
        let grant = &reserved.signed.grant;
        let place @ (organization, account) = (grant.organization, grant.account);
        let Some(counters) = rows.lock_buckets(place, Some(&self.network)).await? else {
            // Deleted since its address was looked up.
            return Ok(Reservation::Unknown);
        };
        if grant.state != AccountState::Active || organization_state != OrganizationState::Active {
            return Ok(Reservation::Disabled(organization, account));
        }
        let (key, class) = counters.counting(&self.network, now);
        let AttemptDecision::Evaluate(counted) = class.decide(now) else {
            return Ok(Reservation::Throttled(organization, account));
        };
        rows.set_bucket(place, &key, counted).await?;
        reserved.attempts = counted.attempts;
        Ok(Reservation::Account(Box::new(reserved)))
    }
}
