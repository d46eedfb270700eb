//! Results of a check.

use super::{CheckReason, StorageOperation};

/// Kind of check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckKind {
    /// Whether the settings are complete for the tools that use the credential.
    Settings,
    /// Whether the storage provider can be reached and accepts the credential.
    Authenticate,
    /// Whether an operation is permitted.
    Operation(StorageOperation),
    /// Whether it is valid until the requested time.
    Lifetime,
    /// Whether it has no more rights than requested.
    LeastPrivilege,
}

impl CheckKind {
    /// Returns the name of the check.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Authenticate => "authenticate",
            Self::Operation(operation) => operation.as_str(),
            Self::Lifetime => "lifetime",
            Self::LeastPrivilege => "least-privilege",
        }
    }
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckResult {
    /// The check passed.
    Passed,
    /// The credential will not work.
    Failed(CheckReason),
    /// The credential works, with a warning.
    Warning(CheckReason),
    /// The check was skipped.
    Skipped(CheckReason),
}

impl CheckResult {
    /// Returns the name of the result.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Warning(_) => "warning",
            Self::Skipped(_) => "skipped",
        }
    }

    /// Returns the reason, unless the check passed.
    pub const fn reason(self) -> Option<CheckReason> {
        match self {
            Self::Passed => None,
            Self::Failed(reason) | Self::Warning(reason) | Self::Skipped(reason) => Some(reason),
        }
    }
}

/// One check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// Kind of check.
    pub kind: CheckKind,
    /// Result.
    pub result: CheckResult,
}

impl Check {
    /// Creates a check that passed.
    pub const fn passed(kind: CheckKind) -> Self {
        Self { kind, result: CheckResult::Passed }
    }

    /// Creates a check that failed.
    pub const fn failed(kind: CheckKind, reason: CheckReason) -> Self {
        Self { kind, result: CheckResult::Failed(reason) }
    }

    /// Creates a check that passed with a warning.
    pub const fn warning(kind: CheckKind, reason: CheckReason) -> Self {
        Self { kind, result: CheckResult::Warning(reason) }
    }

    /// Creates a check that was skipped.
    pub const fn skipped(kind: CheckKind, reason: CheckReason) -> Self {
        Self { kind, result: CheckResult::Skipped(reason) }
    }
}

/// Checks of one credential, in the order of their execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The checks.
    pub checks: Vec<Check>,
}

impl CheckReport {
    /// Returns whether the credential can be used, because no check failed.
    pub fn is_usable(&self) -> bool {
        !self.checks.iter().any(|check| matches!(check.result, CheckResult::Failed(_)))
    }

    /// Appends the checks of `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.checks.extend(other.checks);
        self
    }
}
