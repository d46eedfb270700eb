//! The reservation of an attempt, before anything is hashed. Whatever the outcome, one statement looks up the address, the
//! same ones read an account or the decoy and lock its throttle buckets, and one writes a bucket, in one commit.

use super::{DECOY, Reservation, ReservedAccount};
use crate::account::{Account, AccountSecrets};
use crate::digest::Digest;
use crate::email::EmailAddress;
use crate::entity::{EntityKey, Kind, Opened};
use crate::id::AccountId;
use crate::lockout::{AttemptDecision, BucketKey, ThrottleCounter};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::organization::OrganizationState;
use futures_util::try_join;

/// Reserves one attempt according to [`lockout`](crate::lockout). It is counted and committed before any hashing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReserveAttempt {
    /// The address.
    pub address: EmailAddress,
    /// Digest of the network.
    pub network: Digest,
}

impl Operation for ReserveAttempt {
    type Outcome = Reservation;
    /// The address is looked up in all organizations.
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Reservation, Failure> {
        let reservation = self.reserve(unit).await?;
        if !matches!(reservation, Reservation::Account(_)) {
            // Another time than before, because SQLite does not write a page that stays the same. No attempt is counted.
            let written = ThrottleCounter { attempts: 0, latest: Some(unit.now()) };
            unit.rows().set_bucket(DECOY, &BucketKey::Shared, written).await?;
        }
        unit.commit_without_entry();
        Ok(reservation)
    }
}

impl ReserveAttempt {
    /// Counts the attempt, if its account exists, is active and is not locked.
    async fn reserve(&self, unit: &Unit<'_>) -> Result<Reservation, Failure> {
        let (rows, now) = (unit.rows(), unit.now());
        let address = Account::at(&self.address);
        let found = rows.find_anywhere(address.index, &address.value).await?;
        let place = found.map_or(DECOY, |(organization, id)| (organization, AccountId::from_uuid(id)));
        let key = |kind| EntityKey { organization: place.0, kind, id: *place.1.as_uuid() };
        let (account, secrets, organization, counters) = try_join!(
            rows.entity(key(Kind::Account)),
            rows.entity(key(Kind::AccountSecrets)),
            rows.organization_state(place.0),
            rows.lock_buckets(place, Some(&self.network)),
        )?;
        let account = account.map(|row| unit.open_or_report::<Account>(&row)).transpose()?.flatten();
        let account = account.filter(|account| account.lookups().contains(&address));
        let secrets = secrets.map(|row| unit.open_or_report::<AccountSecrets>(&row)).transpose()?.flatten();
        // Without buckets, it was deleted since its address was looked up.
        let Some((account, counters)) = account.zip(counters) else { return Ok(Reservation::Unknown) };
        if !account.is_active() || organization != Some(OrganizationState::Active) {
            return Ok(Reservation::Disabled(place.0, place.1));
        }
        let (bucket, counter) = counters.counting(&self.network, now);
        let AttemptDecision::Evaluate(counted) = counter.decide(now) else {
            return Ok(Reservation::Throttled(place.0, place.1));
        };
        rows.set_bucket(place, &bucket, counted).await?;
        let is_named = secrets.as_ref().is_none_or(|secrets| account.secrets == Some(secrets.id));
        if !is_named {
            unit.report(key(Kind::AccountSecrets).damaged());
        }
        let (account, secrets) = (account.into_value(), secrets.filter(|_| is_named).map(Opened::into_value));
        Ok(Reservation::Account(Box::new(ReservedAccount { account, secrets, attempts: counted.attempts })))
    }
}
