//! `orgvault migrate`: brings the schema up to date, with progress.

use crate::compose;
use crate::failure::Failure;
use crate::output::Output;
use crate::settings::Settings;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

#[derive(Serialize)]
struct Migrated {
    applied: Vec<String>,
}

/// Carries the command out.
pub(crate) async fn run(settings: &Settings, output: Output) -> Result<(), Failure> {
    let applied = apply(settings).await?;
    let text = match applied.len() {
        0 => "the schema is up to date".to_owned(),
        1 => format!("applied 1 migration: {}", applied.join(", ")),
        count => format!("applied {count} migrations: {}", applied.join(", ")),
    };
    output.print(&Migrated { applied }, &text)
}

/// Applies pending migrations, with a bar on standard error where it is a terminal.
pub(crate) async fn apply(settings: &Settings) -> Result<Vec<String>, Failure> {
    let bar = ProgressBar::no_length();
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?);
    let applied = compose::migrate(settings, "migrate", &|name: &str, index: usize, total: usize| {
        bar.set_length(u64::try_from(total).unwrap_or_default());
        bar.set_position(u64::try_from(index).unwrap_or_default());
        bar.set_message(name.to_owned());
    })
    .await?;
    bar.finish_and_clear();
    Ok(applied)
}
