//! Checks of credentials: whether a credential is sufficient for a job until its end, and otherwise the remedy.

mod local;
mod reason;
mod report;

pub use local::{StorageReach, reach, verify_locally};
pub use reason::CheckReason;
pub use report::{Check, CheckKind, CheckReport, CheckResult};

use crate::field::{FieldCode, FieldError, child};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// An operation of a job on a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum StorageOperation {
    /// List names of objects.
    List,
    /// Read an object.
    Read,
    /// Write an object.
    Write,
}

named!(StorageOperation);

impl StorageOperation {
    /// Parses the operations in `texts`, without duplicates and in the order of [`StorageOperation::ALL`]. `pointer` is
    /// the position of the list in the request. An empty list checks only whether the provider accepts the credential.
    ///
    /// # Errors
    /// All unknown names, each at its position in the list.
    pub fn parse_all<T: AsRef<str>>(texts: &[T], pointer: &str) -> Result<Vec<Self>, Vec<FieldError>> {
        let mut operations = Vec::new();
        let mut errors = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            match Self::parse(text.as_ref()) {
                Some(operation) => operations.push(operation),
                None => {
                    let pointer = child(pointer, &index.to_string());
                    errors.push(FieldError::new(pointer, FieldCode::OutOfRange, "must be list, read or write"));
                }
            }
        }
        operations.sort_unstable();
        operations.dedup();
        if errors.is_empty() { Ok(operations) } else { Err(errors) }
    }
}
