//! The transactions of the store, compiled once for both databases.
//!
//! A transaction authorizes and locks what it relies on, calls a pure rule of `vault-core`, and writes. Run again on the same
//! facts, it has the same outcome. [`Read`] is a transaction that only reads. A transaction that writes gets an
//! [`AuditRecorder`](audit::AuditRecorder): what it does not record is not committed.
//!
//! Locks are acquired in one order everywhere: credential count, organization, accounts (by id, if several), sessions
//! (likewise), organization key, invitation, integrations (by id); then what belongs to the account, the invitation or the
//! integration.
//!
//! The folder `decision` has the transactions that are still compiled once per database. Both kinds run on one connection:
//! [`OpenTx`](crate::db::OpenTx) borrows it.

pub(crate) mod account;
pub(crate) mod activation;
pub(crate) mod audit;
pub(crate) mod authorize;
pub(crate) mod batch;
pub(crate) mod credential;
pub(crate) mod hourly;
pub(crate) mod inspection;
pub(crate) mod instance_key;
pub(crate) mod integration;
pub(crate) mod issuers;
pub(crate) mod login;
pub(crate) mod lookups;
pub(crate) mod maintenance;
pub(crate) mod organization;
pub(crate) mod receiver;
pub(crate) mod schema_version;

use crate::db::Tx;
use crate::failure::Failure;
use audit::AuditRecorder;

/// What a transaction decided, and whether it commits.
#[derive(Debug)]
pub(crate) enum Verdict<T> {
    /// Commits, and `decide` records it.
    Done(T),
    /// Commits, and is recorded already.
    Recorded(T),
    /// Refused before the first write.
    Refused(T),
    /// Refused after a write, which is rolled back.
    Undo(T),
}

impl<T> Verdict<T> {
    /// The outcome, whether it commits or not.
    pub(crate) fn into_outcome(self) -> T {
        match self {
            Self::Done(outcome) | Self::Recorded(outcome) | Self::Refused(outcome) | Self::Undo(outcome) => outcome,
        }
    }
}

/// A verdict, or why the transaction failed.
pub(crate) type Decided<T> = Result<Verdict<T>, Failure>;

/// A transaction that only reads.
pub(crate) trait Read: Sync {
    /// What it returns.
    type Outcome: Send;

    /// Authorizes and reads.
    fn read(&self, tx: &Tx<'_>) -> impl Future<Output = Result<Self::Outcome, Failure>> + Send;
}

/// A transaction that writes.
pub(crate) trait Transaction: Sync {
    /// What it returns.
    type Outcome: Send;

    /// Authorizes, decides and writes. It commits if it records something; otherwise what it wrote is rolled back.
    ///
    /// # Errors
    /// [`Failure::Denied`] and [`Failure::Refused`] are what a rule decided. They commit only what
    /// [`AuditRecorder::record_refusal`] recorded.
    fn run(
        &self,
        tx: &Tx<'_>,
        audit: &mut AuditRecorder,
    ) -> impl Future<Output = Result<Self::Outcome, Failure>> + Send;
}

/// Runs a transaction that writes, inside the transaction that the store began.
pub(crate) async fn run<T: Transaction>(tx: &Tx<'_>, transaction: &T) -> Decided<Result<T::Outcome, Failure>> {
    let mut audit = AuditRecorder::default();
    let outcome = transaction.run(tx, &mut audit).await;
    let commits = match &outcome {
        Ok(_) => audit.commits(),
        Err(Failure::Denied(_) | Failure::Refused(_)) => audit.commits_refusal(),
        Err(_) => return outcome.map(|outcome| Verdict::Undo(Ok(outcome))),
    };
    Ok(match (commits, tx.has_written()) {
        (true, _) => Verdict::Recorded(outcome),
        (false, true) => Verdict::Undo(outcome),
        (false, false) => Verdict::Refused(outcome),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::db::OpenTx as _;
    use crate::schema::credential_counts;
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
                let organization = credential_counts::organization_id.eq(OrganizationId::from_bytes([1; 16]).stored());
                let new = (organization, credential_counts::credentials.eq(0));
                tx.execute(diesel::insert_into(credential_counts::table).values(new)).await?;
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
            (true, true, false, "Recorded(Ok(()))"),
            (true, false, false, "Undo(Ok(()))"),
            (false, false, false, "Refused(Ok(()))"),
            (false, false, true, "Refused(Err(Refused(NotFound)))"),
            (true, false, true, "Undo(Err(Refused(NotFound)))"),
            // Only `record_refusal` commits what a refused transaction wrote.
            (true, true, true, "Undo(Err(Refused(NotFound)))"),
        ] {
            let mut connection = SqliteConnection::establish(":memory:").unwrap();
            connection
                .batch_execute("CREATE TABLE credential_counts (organization_id BLOB, credentials BIGINT)")
                .unwrap();
            let verdict = run(&connection.tx(), &Case { writes, commits, refuses }).await.unwrap();
            assert_eq!(format!("{verdict:?}"), expected);
        }
    }
}
