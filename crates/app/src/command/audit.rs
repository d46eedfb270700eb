//! `orgvault audit …`

mod reading;

use super::target::{Target, wait};
use crate::cli::AuditCommand;
use crate::compose;
use crate::progress::Progress;
use crate::settings::Settings;
use serde::Serialize;
use std::io::Write as _;
use vault_cli::failure::Failure;
use vault_cli::output::Output;
use vault_cli::text::counted;
use vault_core::audit::{AuditFinding, AuditVerification};
use vault_embed::OpenVault;

/// Maximum number of findings in one JSON document.
const DOCUMENTED: usize = 10_000;

/// The result of `audit verify` in JSON output.
#[derive(Serialize)]
struct Verified {
    /// Number of entries that match their seal.
    verified: u64,
    checkpoints: u64,
    unsealed: u64,
    newest_checkpoint: i64,
    /// Checkpoint up to which `--keep-audit` removed entries. 0 if none were removed.
    start: i64,
    /// Checkpoint in the anchor file. `None` if there is no anchor.
    anchor: Option<i64>,
    /// Total number of findings.
    found: u64,
    /// The first 10,000 findings.
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    kind: &'static str,
    entry: Option<String>,
    checkpoint: Option<i64>,
    detail: String,
}

impl From<AuditFinding> for Finding {
    fn from(finding: AuditFinding) -> Self {
        let (kind, entry, checkpoint) = (finding.kind(), finding.entry(), finding.checkpoint());
        Self { kind, entry, checkpoint, detail: finding.to_string() }
    }
}

pub(crate) fn run(target: &Target<'_>, command: AuditCommand, output: Output) -> Result<(), Failure> {
    match command {
        AuditCommand::Verify => {
            let (settings, vault) = target.database("audit verify")?;
            wait(verify(settings, vault, output))
        }
        AuditCommand::List { filter, limit, json_lines: true, output: file } => {
            reading::export(target, *filter, limit, &file)
        }
        AuditCommand::List { filter, limit, .. } => reading::list(target, *filter, limit, output),
    }
}

async fn verify(settings: &Settings, vault: &OpenVault, output: Output) -> Result<(), Failure> {
    let anchor = vault.read_anchor(&compose::anchor(settings));
    let known = anchor.as_ref().ok().copied().flatten().map(|anchor| anchor.checkpoint);
    let mut findings = Vec::new();
    let mut report = |finding: AuditFinding| {
        if !output.is_json() {
            let _ = writeln!(std::io::stdout(), "{finding}"); // the reader may have closed the pipe
        } else if findings.len() < DOCUMENTED {
            findings.push(Finding::from(finding));
        }
    };
    let mut progress = Progress::of("verifying the audit log")?;
    let mut tell = |done, total| progress.tell(done, total);
    let verification = vault.operator().verify_audit(known, &mut report, &mut tell).await?;
    drop(progress);
    let AuditVerification { entries, checkpoints, unsealed, newest, start, findings: found, .. } = verification;
    let (newest_checkpoint, anchored) = (newest, known.map(|mark| mark.number));
    let document = Verified {
        verified: entries,
        checkpoints,
        unsealed,
        newest_checkpoint,
        start,
        anchor: anchored,
        found,
        findings,
    };
    let mut text = format!("Verified {} in {}.", counted(entries, "entry"), counted(checkpoints, "checkpoint"));
    if unsealed > 0 {
        text += &format!(" Not sealed yet: {}.", counted(unsealed, "entry"));
    }
    if start > 0 {
        text += &format!(" Entries up to checkpoint {start} were removed, because they are older than --keep-audit.");
    }
    text += &match anchored {
        Some(number) => format!(" The anchor contains checkpoint {number}."),
        None => " No anchor is available, so a truncated end cannot be detected.".to_owned(),
    };
    output.print(&document, &text)?;
    if found > 0 {
        return Err(Failure::new(format!(
            "the audit log was modified outside OrgVault: {}. Keep a copy of the database, and compare it with a backup",
            counted(found, "finding")
        )));
    }
    Ok(anchor.map(drop)?)
}
