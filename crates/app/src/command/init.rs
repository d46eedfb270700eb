//! `orgvault init`: data directory, root key and schema, nothing else.

use crate::compose;
use crate::failure::Failure;
use crate::output::Output;
use crate::settings::{Database, Settings};
use serde::Serialize;

#[derive(Serialize)]
struct Made {
    data_dir: String,
    root_key_file: String,
    database: String,
    instance: String,
}

/// Carries the command out.
pub(crate) async fn run(settings: &Settings, output: Output) -> Result<(), Failure> {
    compose::make_data_dir(settings)?;
    let vault = compose::create(settings)?.await.map_err(|error| compose::failure(settings, error))?;
    vault.close().await?;
    let made = Made {
        data_dir: settings.data_dir.display().to_string(),
        root_key_file: settings.root_key_file.display().to_string(),
        database: settings.database.to_string(),
        instance: vault.instance().to_string(),
    };
    let text = format!(
        "A new vault is in {}.\n{}\n\nNext: orgvault org create NAME, orgvault account create --org NAME --email ADDRESS --role admin, orgvault serve.",
        made.data_dir,
        root_key_warning(settings)
    );
    output.print(&made, &text)
}

/// What whoever makes a root key must be told.
pub(crate) fn root_key_warning(settings: &Settings) -> String {
    let mut text = format!(
        "Keep a copy of the root key, {}, apart from the data: without it nothing ever opens, and no backup contains it.",
        settings.root_key_file.display()
    );
    if let Database::Sqlite(file) = &settings.database
        && file.parent() == settings.root_key_file.parent()
    {
        text += "\nIt lies beside the database it protects: for encryption against a stolen disk, move it to another disk \
                 and name it with --root-key-file.";
    }
    text
}
