//! `orgvault key rotate --root`

use crate::cli::RotateArgs;
use crate::settings::{RootKeySource, Settings};
use crate::{compose, root_key};
use serde::Serialize;
use std::path::{Path, PathBuf};
use vault_cli::failure::{Doing as _, Failure};
use vault_cli::output::Output;
use vault_cli::text::quoted;
use vault_embed::{Error, RootRotation, RootState, RootStep};

#[derive(Serialize)]
struct Replaced {
    /// Root key that this run replaced. `None` if an earlier run did.
    old_root_key: Option<String>,
    root_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_key_file: Option<String>,
    result: &'static str,
}

pub(crate) async fn rotate(settings: &Settings, args: &RotateArgs, output: Output) -> Result<(), Failure> {
    let source = args.new_root_key.as_ref().ok_or_else(|| Failure::usage("--root needs --new-root-key"))?;
    let current = root_key::load(settings).await?;
    let next = root_key::load_from(settings, "--new-root-key", source).await?;
    let rotation = RootRotation::begin(current, next, settings.database.clone()).await;
    let mut rotation =
        rotation.map_err(|error| compose::failure(settings, error)).doing(|| "replace the root key".to_owned())?;
    let done = take_steps(&mut rotation).await.map_err(|error| {
        let failure = compose::failure(settings, error);
        failure.noting("the old or the new root key decrypts the vault. Run the command again: it continues")
    });
    let (old, new, state) = (rotation.current(), rotation.next(), rotation.state());
    let closed = rotation.close().await;
    done.doing(|| format!("replace root key {old} by {new}"))?;
    closed?;
    let replaced = Replaced {
        old_root_key: (old != new).then(|| old.to_string()),
        root_key: new.to_string(),
        root_key_file: source.file().map(|path| path.display().to_string()),
        result: match state {
            RootState::New => "replaced",
            RootState::Interrupted => "completed",
            RootState::Complete => "unchanged",
        },
    };
    let text = text(settings, source, &replaced);
    output.print(&replaced, &text)
}

async fn take_steps(rotation: &mut RootRotation) -> Result<(), Error> {
    let next = rotation.next();
    while let Some(step) = rotation.step().await? {
        match step {
            RootStep::WrapDatabaseKey => tracing::info!("wrapped the database key under root key {next} too"),
            RootStep::MoveInstanceKey => tracing::info!("root key {next} now decrypts the vault"),
            RootStep::DropOldWrap => tracing::info!("the database key is wrapped only under root key {next}"),
        }
    }
    Ok(())
}

fn text(settings: &Settings, source: &RootKeySource, replaced: &Replaced) -> String {
    let Replaced { old_root_key, root_key, result, .. } = replaced;
    let done = match (*result, old_root_key) {
        ("unchanged", _) => return format!("The vault uses root key {root_key} already. Nothing was changed."),
        (_, Some(old)) => format!("Replaced root key {old} by {root_key}."),
        (_, None) => format!("Completed the replacement of the root key, which an earlier run started: {root_key}."),
    };
    let mut text = format!("{done} Only the new one decrypts the vault.\n\nNow:\n1. ");
    if settings.root_key != *source {
        text += &format!(
            "Set {} for servers and commands, or its environment variable.",
            quoted(&format!("--root-key={source}"))
        );
        if let (RootKeySource::File(old), RootKeySource::File(new)) = (&settings.root_key, source) {
            text += &format!(" Or keep the path:\n   {}", in_place(old, new));
        }
        text += "\n   ";
    }
    text += "Running servers continue. They need the new root key at their next start, and for --backup-every.\n\
             2. Keep a copy of the new root key apart from the data, and create a backup.\n\
             3. Earlier backups need the old root key. Keep it as long as you keep them, then destroy it and its copies.";
    text
}

/// Returns a command that moves the new root key to the old one's path. At every moment, the path contains a complete
/// key.
fn in_place(old: &Path, new: &Path) -> String {
    let with = |suffix: &str| {
        let mut path = old.to_owned().into_os_string();
        path.push(suffix);
        shown(&PathBuf::from(path))
    };
    let (kept, staged) = (with(".old"), with(".next"));
    let (old_path, new_path) = (shown(old), shown(new));
    if old.parent() == new.parent() {
        format!("ln {old_path} {kept} && mv {new_path} {old_path}")
    } else {
        // Between file systems, `mv` copies. A server that starts in the meantime would read an incomplete key.
        format!("ln {old_path} {kept} && cp -p {new_path} {staged} && mv {staged} {old_path}")
    }
}

fn shown(path: &Path) -> String {
    quoted(&path.display().to_string())
}
