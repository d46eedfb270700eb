//! What a dry run found.

use super::{CheckReason, StorageOperation};

/// Kind of check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckKind {
    /// Whether the credential is complete enough for the tools that will use it.
    Settings,
    /// Whether the storage provider can be reached and accepts the credential.
    Authenticate,
    /// An operation.
    Operation(StorageOperation),
    /// Whether it will work until the time asked for.
    Lifetime,
    /// Whether it has no more rights than requested.
    LeastPrivilege,
}

impl CheckKind {
    /// The check's name.
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

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckResult {
    /// All is well.
    Passed,
    /// It will not work.
    Failed(CheckReason),
    /// It works, but somebody should know.
    Warning(CheckReason),
    /// Not tried.
    Skipped(CheckReason),
}

impl CheckResult {
    /// The result's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Warning(_) => "warning",
            Self::Skipped(_) => "skipped",
        }
    }

    /// Why it is not passed, where it is not.
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
    /// What it came to.
    pub result: CheckResult,
}

impl Check {
    /// A check that passed.
    pub const fn passed(kind: CheckKind) -> Self {
        Self { kind, result: CheckResult::Passed }
    }

    /// A check that failed.
    pub const fn failed(kind: CheckKind, reason: CheckReason) -> Self {
        Self { kind, result: CheckResult::Failed(reason) }
    }

    /// A check that passed, with a warning.
    pub const fn warning(kind: CheckKind, reason: CheckReason) -> Self {
        Self { kind, result: CheckResult::Warning(reason) }
    }

    /// A check that was not tried.
    pub const fn skipped(kind: CheckKind, reason: CheckReason) -> Self {
        Self { kind, result: CheckResult::Skipped(reason) }
    }
}

/// The checks of one credential, in the order in which they were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The checks.
    pub checks: Vec<Check>,
}

impl CheckReport {
    /// Whether the credential can be used: nothing failed.
    pub fn is_usable(&self) -> bool {
        !self.checks.iter().any(|check| matches!(check.result, CheckResult::Failed(_)))
    }

    /// The report with the checks of `other` behind its own.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.checks.extend(other.checks);
        self
    }
}
