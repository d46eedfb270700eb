//! Checks of the stored data.

use super::{Check, CheckName, Outcome};
use crate::compose;
use crate::progress::{self, Progress};
use crate::settings::Settings;
use std::sync::Arc;
use vault_cli::failure::Failure;
use vault_cli::text::counted;
use vault_core::audit::AuditFinding;
use vault_core::port::Opener;
use vault_core::usecase::RowFinding;
use vault_embed::OpenVault;

/// Maximum number of reported findings.
const SHOWN: usize = 10_000;
/// Number of rows per batch.
const AT_A_TIME: usize = 256;
const SHARED_REMEDY: &str = "Stop the server, keep a copy of the database, and compare it with a backup. The attacker may still have write access.";

fn reported(findings: &mut Vec<String>, finding: String) {
    if findings.len() < SHOWN {
        findings.push(finding);
    }
}

/// Verifies every page of the embedded database file.
pub(super) async fn pages(vault: &OpenVault, findings: &mut Vec<String>) -> Option<Check> {
    let remedy = "Stop the server, check the disk, and restore the newest backup.";
    match vault.check_pages().await {
        Ok(None) => None,
        Ok(Some(violations)) if violations.is_empty() => {
            Some(Check::passed(CheckName::Pages, "every page of the database file is unchanged"))
        }
        Ok(Some(violations)) => {
            let found = format!("{} in the database file", counted(violations.len() as u64, "finding"));
            violations.into_iter().for_each(|violation| reported(findings, format!("database file: {violation}")));
            Some(Check::other(CheckName::Pages, Outcome::Failed, found, remedy))
        }
        Err(error) => Some(Check::other(
            CheckName::Pages,
            Outcome::Failed,
            format!("the database file cannot be read: {error}"),
            remedy,
        )),
    }
}

/// Reports a check that could not read its data, for example from a damaged page, so that the other checks still run.
pub(super) fn unreadable(check: CheckName, failure: &Failure) -> Check {
    let remedy =
        "See the log of the database. If its disk is damaged, restore the newest backup (docs/operate/backup.md).";
    Check::other(check, Outcome::Failed, format!("it cannot be read: {failure}"), remedy)
}

/// Verifies the audit log up to the checkpoint in the anchor.
pub(super) async fn audit(
    settings: &Settings,
    vault: &OpenVault,
    findings: &mut Vec<String>,
) -> Result<Check, Failure> {
    let epoch = vault.restore_epoch().await?;
    let anchor = match vault.read_anchor(&compose::anchor(settings)) {
        Ok(Some(anchor)) if anchor.epoch != epoch => {
            let found = "the database was restored, but the anchor was not updated".to_owned();
            let remedy =
                "If you restored it: `orgvault restore --after-external`. If not, it was modified: stop the server.";
            return Ok(Check::other(CheckName::Audit, Outcome::Failed, found, remedy));
        }
        Ok(anchor) => anchor.map(|anchor| anchor.checkpoint),
        Err(error) => {
            let found = format!("the anchor cannot be used: {error}");
            let remedy = "See docs/operate/backup.md, \"The anchor\".";
            return Ok(Check::other(CheckName::Audit, Outcome::Failed, found, remedy));
        }
    };
    let mut progress = Progress::of("verifying the audit log")?;
    let mut tell = |done, total| progress.tell(done, total);
    let mut report = |finding: AuditFinding| reported(findings, finding.to_string());
    let verified = vault.operator().verify_audit(anchor, &mut report, &mut tell).await?;
    if verified.findings > 0 {
        let found = format!("{} in the audit log", counted(verified.findings, "finding"));
        return Ok(Check::other(CheckName::Audit, Outcome::Failed, found, SHARED_REMEDY));
    }
    let found = format!("{} are unchanged", counted(verified.entries, "entry"));
    match anchor {
        Some(_) => Ok(Check::passed(CheckName::Audit, found)),
        None => {
            let remedy =
                "Run this on the host with a server's anchor, which contains the newest checkpoint of the audit log.";
            Ok(Check::other(
                CheckName::Audit,
                Outcome::Warning,
                format!("{found}, but a truncated end cannot be detected"),
                remedy,
            ))
        }
    }
}

/// Verifies every row with encrypted data or a MAC.
pub(super) async fn rows(
    vault: &OpenVault,
    opener: Arc<dyn Opener>,
    findings: &mut Vec<String>,
) -> Result<Check, Failure> {
    let bar = progress::bar("{spinner} checking stored rows: {pos} rows, {elapsed}")?;
    let (mut round, mut found) = (vault.inspector(Some(opener)).begin(), 0_u64);
    let mut report = |finding: RowFinding| {
        found += 1;
        reported(findings, finding.to_string());
    };
    while round.step(AT_A_TIME, &mut report).await? {
        bar.set_position(round.rows());
    }
    drop(bar);
    let rows = counted(round.rows(), "row");
    if found > 0 {
        let found = format!("{} in {rows}", counted(found, "finding"));
        return Ok(Check::other(CheckName::Rows, Outcome::Failed, found, SHARED_REMEDY));
    }
    Ok(Check::passed(CheckName::Rows, format!("{rows} can be decrypted and match the audit log")))
}
