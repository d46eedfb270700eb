//! What a dry run found.

use super::{CheckReason, StorageOperation};

/// What was tried.
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

    const fn severity(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Skipped(_) => 1,
            Self::Warning(_) => 2,
            Self::Failed(_) => 3,
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// What was tried.
    pub kind: CheckKind,
    /// What it came to.
    pub result: CheckResult,
    /// The bucket, if the credential has several and this one did not pass.
    pub bucket: Option<String>,
}

impl Check {
    const fn of(kind: CheckKind, result: CheckResult) -> Self {
        Self { kind, result, bucket: None }
    }

    /// A check that passed.
    pub const fn passed(kind: CheckKind) -> Self {
        Self::of(kind, CheckResult::Passed)
    }

    /// A check that failed.
    pub const fn failed(kind: CheckKind, reason: CheckReason) -> Self {
        Self::of(kind, CheckResult::Failed(reason))
    }

    /// A check that passed, with a warning.
    pub const fn warning(kind: CheckKind, reason: CheckReason) -> Self {
        Self::of(kind, CheckResult::Warning(reason))
    }

    /// A check that was not tried.
    pub const fn skipped(kind: CheckKind, reason: CheckReason) -> Self {
        Self::of(kind, CheckResult::Skipped(reason))
    }
}

/// The checks of one credential, in the order in which they were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The checks.
    pub checks: Vec<Check>,
}

impl CheckReport {
    /// The report of a credential with several buckets, of the reports of each bucket. Of each kind of check it has the
    /// worst result, and the first bucket with this result.
    pub fn of_buckets<'a>(reports: impl IntoIterator<Item = (&'a str, Vec<Check>)>) -> Self {
        let mut worst: Vec<Check> = Vec::new();
        for (bucket, checks) in reports {
            for mut check in checks {
                if check.result != CheckResult::Passed {
                    check.bucket = Some(bucket.to_owned());
                }
                match worst.iter_mut().find(|known| known.kind == check.kind) {
                    Some(known) if known.result.severity() < check.result.severity() => *known = check,
                    Some(_) => {}
                    None => worst.push(check),
                }
            }
        }
        Self { checks: worst }
    }

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
