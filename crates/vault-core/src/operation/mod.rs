//! Operations: each is one transaction, in one file with its data and what it reads, decides and writes.

mod cache;
mod key_uses;
mod replace_instance;
mod reseal;
mod run;
mod unit;

pub use cache::Cache;
pub use key_uses::KeyUses;
pub use replace_instance::{CountUnder, InstanceChange, ReplaceInstance, ReplacedInstance};
pub(crate) use reseal::rewrapped;
pub use reseal::{Reseal, Resealed};
pub use run::{End, Operations, Ports, Work};
pub use unit::Unit;
pub(crate) use unit::flat;

use crate::entity::EntityKey;
use crate::error::Refusal;
use crate::field::FieldError;
use crate::id::OrganizationId;
use crate::port::{RowsError, SealError};
use crate::principal::Denial;

/// Access of an operation to rows, with the organization that owns them, if it is one: for the lock, fair scheduling and the node
/// that stores them.
pub enum Access<O> {
    /// It reads one snapshot.
    Read(fn(&O) -> Option<OrganizationId>),
    /// It writes under the lock of the organization.
    Write(fn(&O) -> Option<OrganizationId>),
}

/// An operation: data that can be queued, run again and share a commit.
///
/// `PartialEq` keeps ports out of it, because a trait object does not implement it. What is slow (password hashing, networks)
/// therefore cannot run within a transaction:
///
/// ```compile_fail,E0369
/// use vault_core::operation::{Access, Failure, Operation, Unit};
/// trait Hasher: Send + Sync {}
/// #[derive(PartialEq)]
/// struct Slow(std::sync::Arc<dyn Hasher>);
/// impl Operation for Slow {
///     type Outcome = ();
///     const ACCESS: Access<Self> = Access::Read(|_| None);
///     async fn run(&self, _unit: &Unit<'_>) -> Result<(), Failure> { Ok(()) }
/// }
/// ```
pub trait Operation: PartialEq + Sized + Send + Sync + 'static {
    /// What it returns.
    type Outcome: Send + 'static;
    /// Its access to rows.
    const ACCESS: Access<Self>;
    /// Returns whether it sends all its statements together, the authorization last. A read then needs no transaction.
    const IS_ONE_EXCHANGE: fn(&Self) -> bool = |_| false;
    /// True if it may take long, because no request waits for it.
    const IS_LONG: bool = false;

    /// Authorizes, reads, decides and writes. May run several times, and commits at most once.
    fn run(&self, unit: &Unit<'_>) -> impl Future<Output = Result<Self::Outcome, Failure>> + Send;
}

/// Reason why an operation has no outcome. Nothing of it is committed.
#[derive(Debug)]
pub enum Failure {
    /// The principal is not authorized.
    Denied(Denial),
    /// A rule forbids the operation.
    Refused(Refusal),
    /// Values of the request are invalid.
    Invalid(Vec<FieldError>),
    /// A row was changed outside the service. The error names the row, never its content.
    Damaged {
        /// The row.
        key: EntityKey,
        /// The violation.
        reason: &'static str,
    },
    /// A document names a key that is not loaded.
    UnknownKey {
        /// Its row.
        key: EntityKey,
    },
    /// The loaded instance key is not the active one. The operation runs again with it.
    Overtaken,
    /// A document could not be sealed.
    Seal(SealError),
    /// The store failed.
    Rows(RowsError),
}

impl From<Denial> for Failure {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<FieldError> for Failure {
    fn from(error: FieldError) -> Self {
        Self::Invalid(vec![error])
    }
}

impl From<RowsError> for Failure {
    fn from(error: RowsError) -> Self {
        Self::Rows(error)
    }
}
