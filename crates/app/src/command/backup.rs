//! `orgvault backup`: copies the embedded database into one file while servers use it.

use crate::cli::BackupArgs;
use crate::compose;
use crate::progress::{self, SHARE};
use crate::root_key;
use crate::settings::Settings;
use indicatif::ProgressBar;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use vault_cli::failure::Failure;
use vault_cli::output::Output;
use vault_cli::text::{counted, quoted};
use vault_embed::{Backup, BackupProgress, BackupStep, BackupTarget, Error, OpenVault};

/// Section of the operator documentation about backups of PostgreSQL.
pub(crate) const POSTGRES_PAGE: &str = "docs/operate/backup.md, \"Backup of PostgreSQL\"";

#[derive(Serialize)]
struct Made {
    backup: String,
    bytes: u64,
    instance: String,
    created_at: String,
    rows: u64,
    tables: BTreeMap<String, u64>,
}

pub(crate) async fn run(settings: &Settings, args: BackupArgs, output: Output) -> Result<(), Failure> {
    if settings.database.file().is_none() {
        return Err(Failure::new(format!(
            "the vault is on PostgreSQL, which `orgvault backup` does not back up. Use pg_dump or physical backups: \
             {POSTGRES_PAGE}. Nothing was done"
        )));
    }
    let vault = compose::open(settings).await?;
    let made = make(settings, &vault, &args).await;
    let closed = vault.close().await;
    let made = made?;
    closed?;
    let document = Made::of(&made, &vault);
    let restore = format!("{} {}", settings.command_line("restore"), quoted(&document.backup));
    output.print(&document, &document.text(&restore))
}

async fn make(settings: &Settings, vault: &OpenVault, args: &BackupArgs) -> Result<Backup, Failure> {
    let root_key = root_key::load(settings).await?;
    let mut bar = Bar::new()?;
    let made =
        vault_embed::backup(vault, root_key, BackupTarget::Named(&args.target), &mut |progress| bar.tell(progress))
            .await;
    made.map_err(failure)
}

/// Describes why the backup failed, and the next step.
pub(crate) fn failure(error: Error) -> Failure {
    let advice = match &error {
        Error::Full(_) => {
            "Free space, or choose another directory: a backup needs twice its size while it is created. No backup was created"
        }
        Error::FileExists(_) | Error::NoDirectory(_) | Error::Taken { .. } => "No backup was created",
        _ => "No backup was created. Fix the cause, then run the command again",
    };
    Failure::new(format!("{}. {advice}", Failure::from(error)))
}

/// Interval of progress lines within a step, if there is no terminal.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// The progress of a backup or restore: a bar on a terminal, otherwise a line per step and at intervals.
pub(crate) struct Bar {
    bar: ProgressBar,
    reported: Option<(BackupStep, Instant)>,
}

impl Bar {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self { bar: progress::bar(SHARE)?, reported: None })
    }

    pub(crate) fn tell(&mut self, progress: BackupProgress) {
        let doing = match progress.step {
            BackupStep::Copying => "copying the database",
            BackupStep::Checking => "checking the copy",
            BackupStep::Packing => "writing the archive",
            BackupStep::Unpacking => "unpacking the backup",
            BackupStep::Replaying => "comparing with the database in use",
        };
        self.bar.set_message(doing);
        match progress.bytes {
            Some((done, total)) => {
                self.bar.set_length(total);
                self.bar.set_position(done);
            }
            None => self.bar.unset_length(),
        }
        let is_reported = self.reported.is_some_and(|(step, at)| step == progress.step && at.elapsed() < TELL_EVERY);
        if self.bar.is_hidden() && !is_reported {
            self.reported = Some((progress.step, Instant::now()));
            match progress.bytes.filter(|(done, _)| *done > 0) {
                Some((done, total)) => tracing::info!("{doing}, {}% done", done * 100 / total.max(1)),
                None => tracing::info!("{doing}"),
            }
        }
    }
}

impl Made {
    fn of(made: &Backup, vault: &OpenVault) -> Self {
        Self {
            backup: made.path.display().to_string(),
            bytes: made.size,
            instance: vault.instance().to_string(),
            created_at: made.created_at.to_rfc3339().unwrap_or_default(),
            rows: made.rows.iter().map(|table| table.rows).sum(),
            tables: made.rows.iter().map(|table| (table.table.clone(), table.rows)).collect(),
        }
    }

    fn text(&self, restore: &str) -> String {
        let of = |table: &str| self.tables.get(table).copied().unwrap_or_default();
        let rows = |table: &str, row: &str| counted(of(table), row);
        format!(
            "Backed up the vault to {}\n  {} bytes, the state of {}\n  {}, {}, {}, {}\n  checked: it can be decrypted with the root key, every page and table is valid, all \
             {} rows exist\n\nThe root key is not in it. Keep a copy of the key, but not with the backup.\nRestore it with: \
             {restore}\n",
            self.backup,
            self.bytes,
            self.created_at,
            rows("organizations", "organization"),
            // Without the decoy.
            counted(of("account_logins").saturating_sub(1), "account"),
            rows("credentials", "credential"),
            rows("audit", "audit entry"),
            self.rows,
        )
    }
}
