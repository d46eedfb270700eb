//! `orgvault database …`

use crate::cli::DatabaseCommand;
use crate::settings::Settings;
use secrecy::ExposeSecret;
use serde::Serialize;
use vault_cli::failure::Failure;
use vault_cli::output::Output;
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_embed::OpenVault;
use zeroize::Zeroizing;

#[derive(Serialize)]
struct Shown<'a> {
    database: String,
    key: &'a str,
}

pub(crate) async fn run(
    settings: &Settings,
    vault: &OpenVault,
    command: DatabaseCommand,
    output: Output,
) -> Result<(), Failure> {
    let DatabaseCommand::Key { yes } = command;
    let Some(file) = settings.database.file() else {
        return Err(Failure::new("PostgreSQL has no database key. Only the embedded database has one"));
    };
    let Some(key) = vault.database_key() else {
        return Err(Failure::new("the embedded database has no key file"));
    };
    if !yes {
        output.confirm("This key decrypts the whole database file.", "yes")?;
    }
    let (actor, action) = (Actor::Operator, AuditAction::DatabaseKeyRead);
    let record =
        vault.ports().environment.record(vault.ports().environment.now(), None, actor, action, Subject::Instance);
    vault.ports().store.audit.append(vec![record]).await?;
    let key = key.expose_hex();
    // The operator requested it, and the request is in the audit log.
    let literal = Zeroizing::new(format!("x'{}'", key.expose_secret()));
    output.print(&Shown { database: file.display().to_string(), key: &literal }, &literal)
}
