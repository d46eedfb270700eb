//! Conversion of check results for responses and problems.

use vault_api::CheckItem;
use vault_core::check::{CheckReason, CheckReport};

/// Converts the checks of one credential.
pub(crate) fn items(report: &CheckReport) -> Vec<CheckItem> {
    let item = |check: &vault_core::check::Check| {
        let reason = check.result.reason();
        CheckItem {
            check: check.kind.as_str().into(),
            result: check.result.as_str().into(),
            reason: reason.map(|reason| reason.as_str().into()),
            remedy: reason.map(CheckReason::remedy).map(Into::into),
        }
    };
    report.checks.iter().map(item).collect()
}
