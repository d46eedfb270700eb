//! Results of a check.

use super::{CheckReason, StorageOperation};

/// Kind of check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckKind {
    /// Whether the settings are complete for the tools that use the credential.
    Settings,
    /// Whether the storage provider can be reached and accepts the credential.
    Authenticate,
    /// Whether the provider trust of a keyless credential is closed.
    Trust,
    /// Whether an operation is permitted.
    Operation(StorageOperation),
    /// Whether it is valid until the requested time.
    Lifetime,
    /// Whether it has no more rights than requested.
    LeastPrivilege,
}

impl CheckKind {
    /// Returns the name of the check.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Authenticate => "authenticate",
            Self::Trust => "trust",
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

    const fn severity(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Skipped(_) => 1,
            Self::Warning(_) => 2,
            Self::Failed(_) => 3,
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// Kind of check.
    pub kind: CheckKind,
    /// Result.
    pub result: CheckResult,
    /// The bucket, if the credential has several and this one did not pass.
    pub bucket: Option<String>,
}

impl Check {
    const fn of(kind: CheckKind, result: CheckResult) -> Self {
        Self { kind, result, bucket: None }
    }

    /// Creates a check that passed.
    pub const fn passed(kind: CheckKind) -> Self {
        Self::of(kind, CheckResult::Passed)
    }

    /// Creates a check that failed.
    pub const fn failed(kind: CheckKind, reason: CheckReason) -> Self {
        Self::of(kind, CheckResult::Failed(reason))
    }

    /// Creates a check that passed with a warning.
    pub const fn warning(kind: CheckKind, reason: CheckReason) -> Self {
        Self::of(kind, CheckResult::Warning(reason))
    }

    /// Creates a check that was skipped.
    pub const fn skipped(kind: CheckKind, reason: CheckReason) -> Self {
        Self::of(kind, CheckResult::Skipped(reason))
    }
}

/// Checks of one credential, in the order of their execution.
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
