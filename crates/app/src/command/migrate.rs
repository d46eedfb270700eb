//! `orgvault migrate`: applies schema migrations and, on request, distributes tables with Citus.

use crate::cli::MigrateArgs;
use crate::compose;
use crate::events::ServerEvents;
use crate::progress;
use crate::settings::Settings;
use serde::Serialize;
use std::time::Instant;
use vault_cli::failure::Failure;
use vault_cli::output::Output;
use vault_cli::text::counted;
use vault_diesel::Migration;
use vault_embed::{OpenVault, Opening};

#[derive(Serialize)]
struct Migrated {
    applied: Vec<String>,
    /// Number of distributed tables, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    spread: Option<usize>,
}

pub(crate) async fn run(settings: &Settings, args: &MigrateArgs, output: Output) -> Result<(), Failure> {
    let opening = with_bar(compose::serve(settings, "migrate", &ServerEvents::default()).await?.without_maintenance())?;
    let vault = opening.await.map_err(|error| compose::failure(settings, error))?;
    let rolling = settings.database.file().is_none() && vault.applied_migrations().iter().all(Migration::is_rolling);
    let applied: Vec<String> =
        vault.applied_migrations().iter().map(|migration| migration.version.to_owned()).collect();
    let placed = if args.spread { spread(&vault).await } else { notice(&vault).await };
    vault.close().await?;
    let (spread, placed) = placed?;
    let text = match applied.len() {
        0 => "No migration is pending.".to_owned(),
        1 => format!("Applied 1 migration: {}", applied.join(", ")),
        count => format!("Applied {count} migrations: {}", applied.join(", ")),
    };
    let text = match (applied.is_empty(), rolling) {
        (true, _) => text,
        (false, true) => format!("{text}\nServers of the previous version may keep running. Replace them one by one."),
        (false, false) => format!("{text}\nStop all servers of earlier versions."),
    };
    output.print(&Migrated { applied, spread }, &(text + &placed))
}

/// Distributes the tables. Returns the number of moved tables and a message.
async fn spread(vault: &OpenVault) -> Result<(Option<usize>, String), Failure> {
    let started = Instant::now();
    let moved =
        vault.spread().await.map_err(|error| Failure::new(format!("the tables were not distributed: {error}")))?;
    let text = match moved {
        0 => "\nAll tables are already distributed correctly.".to_owned(),
        moved => {
            let tables = counted(u64::try_from(moved).unwrap_or(u64::MAX), "table");
            format!(
                "\nSpread {tables} in {:.1} s. `orgvault doctor` shows where they lie.",
                started.elapsed().as_secs_f64()
            )
        }
    };
    Ok((Some(moved), text))
}

/// Returns a message if the database supports distributed tables but has none.
async fn notice(vault: &OpenVault) -> Result<(Option<usize>, String), Failure> {
    let could_be = vault.spreading().await.is_ok_and(|found| found.is_some_and(|found| found.is_absent()));
    let text = match could_be {
        true => {
            "\nThe database has the extension Citus, but no table is distributed. To distribute them, run `orgvault migrate --spread`."
        }
        false => "",
    };
    Ok((None, text.to_owned()))
}

/// Applies pending migrations, with a progress bar on standard error if it is a terminal.
pub(crate) fn with_bar(opening: Opening) -> Result<Opening, Failure> {
    let bar = progress::bar("{bar:30} {pos}/{len} {msg}")?; // dropped together with the closure
    Ok(opening.migrate(move |migration, index, total| {
        bar.set_length(u64::try_from(total).unwrap_or_default());
        bar.set_position(u64::try_from(index).unwrap_or_default());
        bar.set_message(migration.version);
    }))
}
