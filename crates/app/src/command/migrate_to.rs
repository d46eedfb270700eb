//! `orgvault migrate-to`: moves the vault from the embedded database to PostgreSQL.

use crate::cli::MigrateToArgs;
use crate::compose;
use crate::events::ServerEvents;
use crate::progress::{self, SHARE};
use crate::root_key;
use crate::settings::Settings;
use serde::Serialize;
use std::fmt::Write as _;
use vault_cli::failure::Failure;
use vault_cli::output::Output;
use vault_diesel::{CopiedTable, Progress, Step, TransferError};
use vault_embed::{Error, OpenVault, migrate_to};

/// Page of the operator documentation about the migration.
const PAGE: &str = "docs/operate/migrate-to-postgresql.md";

#[derive(Serialize)]
struct Moved {
    database: String,
    instance: String,
    dry_run: bool,
    rows: u64,
    tables: Vec<MovedTable>,
}

#[derive(Serialize)]
struct MovedTable {
    name: String,
    rows: u64,
    /// SHA-256 of the table's rows, in hexadecimal.
    digest: String,
}

pub(crate) async fn run(settings: &Settings, args: MigrateToArgs, output: Output) -> Result<(), Failure> {
    if settings.database.file().is_none() {
        return Err(Failure::new(format!("{}. Nothing was done", Error::NotEmbedded("moved"))));
    }
    if args.url.file().is_some() {
        return Err(Failure::usage(format!("URL: {}", Error::NotPostgres)));
    }
    let vault = match args.dry_run {
        true => compose::open(settings).await?,
        false => {
            let opening = compose::serve(settings, "migrate-to", &ServerEvents::default()).await?.without_maintenance();
            opening.await.map_err(|error| compose::failure(settings, error))?
        }
    };
    let moved = move_vault(settings, &vault, &args).await;
    let closed = vault.close().await;
    let tables = moved?;
    closed?;
    let moved = Moved {
        database: args.url.to_string(),
        instance: vault.instance().to_string(),
        dry_run: args.dry_run,
        rows: tables.iter().map(|table| table.rows).sum(),
        tables: tables.into_iter().map(MovedTable::from).collect(),
    };
    output.print(&moved, &moved.text(settings))
}

async fn move_vault(settings: &Settings, vault: &OpenVault, args: &MigrateToArgs) -> Result<Vec<CopiedTable>, Failure> {
    let bar = progress::bar(SHARE)?;
    let mut reported = None;
    let mut tell = |progress: Progress<'_>| {
        // Both steps read all rows, so each is half of the total.
        let (doing, before) = match progress.step {
            Step::Copying => ("copying", 0),
            Step::Comparing => ("comparing", progress.total),
        };
        let (done, all) = (before + progress.done, progress.total * 2);
        bar.set_length(all);
        bar.set_position(done);
        bar.set_message(format!("{doing} {}", progress.table));
        // Without a terminal, log a line per tenth.
        let tenth = done * 10 / all.max(1);
        if bar.is_hidden() && reported != Some(tenth) {
            reported = Some(tenth);
            tracing::info!(table = progress.table, "{doing} rows, {}% done", tenth * 10);
        }
    };
    let root_key = root_key::load(settings).await?;
    let moved = migrate_to(vault, root_key, &args.url, args.dry_run, &mut tell).await;
    moved.map_err(|error| failure(error, &args.url.to_string()))
}

/// Describes why the vault was not moved, and the next step.
fn failure(error: Error, target: &str) -> Failure {
    const UNCHANGED: &str = "Nothing was moved";
    let advice = match &error {
        Error::Transfer(
            TransferError::NotEmpty(_)
            | TransferError::OtherVault(_)
            | TransferError::OlderSchema(_)
            | TransferError::NewerSchema(_)
            | TransferError::UnreleasedSchema(_)
            | TransferError::Tables(_),
        ) => format!("{UNCHANGED}. Create an empty database for this vault and run the command again with its URL"),
        Error::Transfer(TransferError::Differs { .. }) => format!(
            "{UNCHANGED}. Either the vault was moved there before and is in use there: set --database-url to it. Or the file \
             was written to since: create another empty database and run the command again with its URL. See {PAGE}"
        ),
        Error::Transfer(TransferError::Unconfirmed(_)) => "Run the command again, which completes the move".to_owned(),
        Error::Incomplete(_) => {
            "The file is unchanged and still the vault. Remove the cause, then run the command again".to_owned()
        }
        Error::Transfer(TransferError::Connect(_)) => format!("{UNCHANGED}. Check the URL {target}"),
        _ => format!("{UNCHANGED}. Remove the cause, then run the command again"),
    };
    Failure::new(format!("{}. {advice}", Failure::from(error)))
}

impl Moved {
    fn text(&self, settings: &Settings) -> String {
        let Self { database, rows, tables, .. } = self;
        let count = tables.len();
        if self.dry_run {
            return format!(
                "Dry run: copied {rows} rows in {count} tables to {database}, compared them, and undid it. Nothing was \
                 moved. To move the vault, stop the server and run the command without --dry-run."
            );
        }
        let mut text =
            format!("Moved the vault to {database}: {rows} rows in {count} tables, compared with the file.\n");
        let file = settings.database.file().map(|file| file.display().to_string()).unwrap_or_default();
        let _ = write!(
            text,
            "\nNext:\n\n\
             1. Give the service's role its rights, unless it owns the tables: {PAGE}.\n\
             2. Set ORGVAULT_DATABASE_URL (or database-url in the settings file) to the new database, for the service and \
             for commands. The root key stays the same.\n\
             3. Start the service, or with that variable in the environment: {}\n\
             4. Back up the new database.\n\n\
             The file {file} was not changed. Commands refuse it because {file}.moved exists. Keep the file and {file}.key \
             until you have a backup of the new database.",
            settings.command_line_without_database("serve")
        );
        text
    }
}

impl From<CopiedTable> for MovedTable {
    fn from(table: CopiedTable) -> Self {
        let digest = table.digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { name: table.name, rows: table.rows, digest }
    }
}
