//! The transactions of the store, compiled once for both databases.
//!
//! A transaction authorizes and locks what it relies on, calls a pure rule of `vault-core`, and writes. Run again on the same
//! facts, it has the same outcome. [`Read`] is a transaction that only reads. A transaction that writes gets an
//! [`AuditRecorder`](audit::AuditRecorder): what it does not record is not committed.
//!
//! Locks are acquired in one order everywhere: organization, integrations (by id); then what belongs to the account or the integration.

pub(crate) mod audit;
pub(crate) mod credential;
pub(crate) mod hourly;
pub(crate) mod lease;
pub(crate) mod maintenance;
pub(crate) mod organization;
pub(crate) mod schema_version;
pub(crate) mod work;

use crate::db::Tx;
use crate::failure::Failure;
use audit::AuditRecorder;

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    /// Nothing was written, so nothing is rolled back.
    Unchanged,
    RollBack,
}

/// The outcome of a transaction and how it ends, or why it failed.
pub(crate) type Ended<T> = Result<(T, End), Failure>;

/// A transaction that only reads.
pub(crate) trait Read: Send + Sync + 'static {
    /// What it returns.
    type Outcome: Send + 'static;

    /// Authorizes and reads.
    fn read(&self, tx: &Tx<'_>) -> impl Future<Output = Result<Self::Outcome, Failure>> + Send;
}

/// A transaction that writes.
pub(crate) trait Transaction: Send + Sync + 'static {
    /// What it returns.
    type Outcome: Send + 'static;

    /// Authorizes, decides and writes. It commits if it records something; otherwise what it wrote is rolled back.
    ///
    /// # Errors
    /// [`Failure::Denied`] and [`Failure::Refused`] are what a rule decided. They commit nothing.
    fn run(
        &self,
        tx: &Tx<'_>,
        audit: &mut AuditRecorder,
    ) -> impl Future<Output = Result<Self::Outcome, Failure>> + Send;
}

/// Runs a transaction that writes. Returns its outcome, with what a rule refused, and how it ends.
async fn run_in<T: Transaction>(tx: &Tx<'_>, transaction: &T) -> Ended<Result<T::Outcome, Failure>> {
    let mut audit = AuditRecorder::default();
    let outcome = transaction.run(tx, &mut audit).await;
    let commits = match &outcome {
        Ok(_) => audit.commits(),
        Err(Failure::Denied(_) | Failure::Refused(_)) => false,
        Err(_) => return outcome.map(|outcome| (Ok(outcome), End::RollBack)),
    };
    let end = match (commits, tx.has_written()) {
        (true, _) => End::Commit,
        (false, true) => End::RollBack,
        (false, false) => End::Unchanged,
    };
    Ok((outcome, end))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::db::OpenTx as _;
    use crate::schema::organizations;
    use crate::stored::StoredId as _;
    use diesel::connection::SimpleConnection as _;
    use diesel::{Connection as _, ExpressionMethods as _, SqliteConnection};
    use vault_core::Refusal;
    use vault_core::id::OrganizationId;

    struct Case {
        writes: bool,
        commits: bool,
        refuses: bool,
    }

    impl Transaction for Case {
        type Outcome = ();

        async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
            if self.writes {
                let organization = organizations::id.eq(OrganizationId::from_bytes([1; 16]).stored());
                let new = (organization, organizations::credentials.eq(0), organizations::key_uses.eq(0));
                tx.execute(diesel::insert_into(organizations::table).values(new)).await?;
            }
            if self.commits {
                audit.commit_without_entry();
            }
            if self.refuses { Err(Refusal::NotFound.into()) } else { Ok(()) }
        }
    }

    #[tokio::test]
    async fn transactions_commit_only_if_they_record_something() {
        for (writes, commits, refuses, expected) in [
            (true, true, false, End::Commit),
            (true, false, false, End::RollBack),
            (false, false, false, End::Unchanged),
            (false, false, true, End::Unchanged),
            (true, false, true, End::RollBack),
            (true, true, true, End::RollBack),
        ] {
            let mut connection = SqliteConnection::establish(":memory:").unwrap();
            connection
                .batch_execute("CREATE TABLE organizations (id BLOB, credentials BIGINT, key_uses BIGINT)")
                .unwrap();
            let (outcome, end) = run_in(&connection.tx(), &Case { writes, commits, refuses }).await.unwrap();
            assert_eq!((outcome.is_err(), end), (refuses, expected));
        }
    }
}
