//! `orgvault audit …`

mod reading;

use crate::cli::AuditCommand;
use crate::compose;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::settings::Settings;
use crate::text::counted;
use serde::Serialize;
use std::io::Write as _;
use vault_core::audit::{AuditFinding, AuditVerification};
use vault_embed::OpenVault;

/// How many findings one JSON document holds.
const DOCUMENTED: usize = 10_000;

/// What verifying came to, as scripts read it.
#[derive(Serialize)]
struct Verified {
    /// How many entries stand as they were sealed.
    verified: u64,
    checkpoints: u64,
    unsealed: u64,
    newest_checkpoint: i64,
    /// The checkpoint up to which entries were removed (`--keep-audit`); 0 if none were.
    start: i64,
    /// The checkpoint that the anchor knows; none if there is no anchor.
    anchor: Option<i64>,
    /// How many findings there are.
    found: u64,
    /// The first 10,000 of them.
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

/// Carries the command out.
pub(crate) async fn run(
    settings: &Settings,
    vault: &OpenVault,
    command: AuditCommand,
    output: Output,
) -> Result<(), Failure> {
    match command {
        AuditCommand::Verify => verify(settings, vault, output).await,
        AuditCommand::List { filter, limit } => reading::list(vault, filter, limit, output).await,
        AuditCommand::Export { filter, limit, output: file } => {
            reading::export(vault, filter, limit, file.as_deref()).await
        }
    }
}

async fn verify(settings: &Settings, vault: &OpenVault, output: Output) -> Result<(), Failure> {
    let anchor = vault.read_anchor(&compose::anchor(settings));
    let known = anchor.as_ref().ok().copied().flatten().map(|anchor| anchor.checkpoint);
    let mut findings = Vec::new();
    let mut report = |finding: AuditFinding| {
        if !output.is_json() {
            let _ = writeln!(std::io::stdout(), "{finding}"); // whoever reads may have read enough
        } else if findings.len() < DOCUMENTED {
            findings.push(Finding::from(finding));
        }
    };
    let mut progress = Progress::of("verifying the audit")?;
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
        Some(number) => format!(" The anchor knows checkpoint {number}."),
        None => " There is no anchor here, so a cut-off end would not be found.".to_owned(),
    };
    output.print(&document, &text)?;
    if found > 0 {
        return Err(Failure::new(format!(
            "the audit was changed outside OrgVault: {}. Keep a copy of the database, and compare it with a backup",
            counted(found, "finding")
        )));
    }
    Ok(anchor.map(drop)?)
}
