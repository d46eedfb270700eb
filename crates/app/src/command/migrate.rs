//! `orgvault migrate`: brings the schema up to date, with progress.

use crate::compose;
use crate::events::ServerEvents;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress;
use crate::settings::Settings;
use serde::Serialize;
use vault_embed::{Migration, Opening};

#[derive(Serialize)]
struct Migrated {
    applied: Vec<String>,
}

/// Carries the command out.
pub(crate) async fn run(settings: &Settings, output: Output) -> Result<(), Failure> {
    let opening = with_bar(compose::serve(settings, "migrate", &ServerEvents::default())?.without_upkeep())?;
    let vault = opening.await.map_err(|error| compose::failure(settings, error))?;
    let rolling = settings.database.file().is_none() && vault.applied_migrations().iter().all(Migration::is_rolling);
    let applied: Vec<String> =
        vault.applied_migrations().iter().map(|migration| migration.version.to_owned()).collect();
    vault.close().await?;
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
    output.print(&Migrated { applied }, &text)
}

/// Has pending migrations applied, with a bar on standard error where it is a terminal.
pub(crate) fn with_bar(opening: Opening) -> Result<Opening, Failure> {
    let bar = progress::bar("{bar:30} {pos}/{len} {msg}")?; // dropped with the closure
    Ok(opening.migrate(move |migration, index, total| {
        bar.set_length(u64::try_from(total).unwrap_or_default());
        bar.set_position(u64::try_from(index).unwrap_or_default());
        bar.set_message(migration.version);
    }))
}
