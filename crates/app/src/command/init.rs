//! `orgvault init`: creates the data directory, the root key and the schema.

use crate::compose;
use crate::settings::Settings;
use serde::Serialize;
use std::fmt::Write as _;
use vault_cli::failure::Failure;
use vault_cli::output::Output;
use vault_cli::text::quoted;

#[derive(Serialize)]
struct Made {
    data_dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_key_file: Option<String>,
    database: String,
    instance: String,
}

pub(crate) async fn run(settings: &Settings, output: Output) -> Result<(), Failure> {
    compose::make_data_dir(settings)?;
    // Also create the anchor: another command may create the first checkpoint before a server starts and requires it.
    let vault = compose::create(settings)
        .await?
        .anchor(compose::anchor(settings), false)
        .await
        .map_err(|error| compose::failure(settings, error))?;
    vault.close().await?;
    let made = Made {
        data_dir: settings.data_dir.display().to_string(),
        root_key_file: settings.root_key.file().map(|path| path.display().to_string()),
        database: settings.database.to_string(),
        instance: vault.instance().to_string(),
    };
    let hidden = settings.database.file().is_none() && settings.database.url_without_password().is_none();
    let database = match hidden {
        true => {
            "\nThe database's URL contains a password, so it is not shown below. Set ORGVAULT_DATABASE_URL to it first."
        }
        false => "",
    };
    let text = format!(
        "Created a vault in {}.\n{}{database}\n\nNext, create an organization and its first admin, and serve:\n\n{} Example\n{} \
         --org Example --email admin@example.com --role admin\n{}\n",
        made.data_dir,
        root_key_warning(settings),
        settings.command_line("org create"),
        settings.command_line("account create"),
        settings.command_line("serve"),
    );
    output.print(&made, &text)
}

/// Returns the instructions for the owner of a new root key.
pub(crate) fn root_key_warning(settings: &Settings) -> String {
    let Some(path) = settings.root_key.file() else {
        return format!(
            "The root key is the output of {}. Without it, the vault cannot be decrypted, and no backup contains it. \
             Protect it from deletion, and keep a copy apart from the data.",
            settings.root_key
        );
    };
    let mut text = format!(
        "Keep a copy of the root key ({}) apart from the data. Without it, the vault cannot be decrypted, and no \
         backup contains it.",
        path.display()
    );
    if let Some(file) = settings.database.file()
        && file.parent() == path.parent()
    {
        let _ = write!(
            text,
            "\nThe key is in the same directory as the database, so a stolen disk exposes both. To keep it apart: mv {0} \
             OTHER-DISK/ && export ORGVAULT_ROOT_KEY=file:OTHER-DISK/root.key (or pass --root-key).",
            quoted(&path.display().to_string())
        );
    }
    text
}
