//! The dry run: whether a credential can do what a job needs until it is done, and otherwise how to fix it.

mod local;
mod reason;
mod report;

pub use local::{StorageReach, judge_locally, reach};
pub use reason::CheckReason;
pub use report::{Check, CheckKind, CheckReport, CheckResult};

use crate::field::{FieldCode, FieldError, child};

/// Something that a job wants to do with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageOperation {
    /// List names of objects.
    List,
    /// Read an object.
    Read,
    /// Write an object.
    Write,
}

impl StorageOperation {
    /// Every operation.
    pub const ALL: [Self; 3] = [Self::List, Self::Read, Self::Write];

    /// The operation's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// The operation of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == text)
    }

    /// The operations named by `texts`, each once and in the order of [`StorageOperation::ALL`]; `pointer` is
    /// the place of the list in the request. An empty list checks only whether the provider accepts the credential.
    ///
    /// # Errors
    /// All names that are none, each at its place in the list.
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
