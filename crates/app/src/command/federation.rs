//! `orgvault federation …`: signing keys of keyless storage access.

use crate::cli::{FederationCommand, FederationKeyCommand};
use crate::federation::publication;
use crate::settings::Settings;
use secrecy::SecretString;
use serde::Serialize;
use std::fs;
use std::path::Path;
use vault_cli::failure::{Doing, Failure};
use vault_cli::output::{Output, table};
use vault_cli::secret_file;
use vault_cli::text::{counted, rfc3339};
use vault_core::federation::{FederationIssuer, StoredFederationKey};
use vault_core::time::Timestamp;
use vault_core::usecase::federation::FederationStatus;
use vault_embed::OpenVault;

/// Maximum size of a file with a private key, in bytes. A key of 4,096 bits has 3,272.
const MAX_KEY_FILE: usize = 16 * 1024;
/// Command that creates a key.
const CREATE: &str = "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -out signing.pem";

#[derive(Serialize)]
struct ShownStatus {
    issuer: String,
    keys: Vec<ShownKey>,
    /// IDs of damaged rows.
    damaged: Vec<String>,
    /// Number of keys of other issuers.
    keys_of_other_issuers: usize,
    next_step: String,
}

#[derive(Serialize)]
struct ShownKey {
    key: String,
    state: &'static str,
    since: String,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checked_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<&'static str>,
}

pub(crate) async fn run(
    settings: &Settings,
    vault: &OpenVault,
    command: FederationCommand,
    output: Output,
) -> Result<(), Failure> {
    let issuer = settings.server.federation_issuer.as_ref().ok_or_else(|| {
        Failure::usage("no federation issuer is set. Set --federation-issuer, such as https://vault.example.com")
    })?;
    match command {
        FederationCommand::Status => status(vault, issuer, output).await,
        FederationCommand::Key(FederationKeyCommand::Add { file }) => add(vault, issuer, &file, output).await,
        FederationCommand::Key(FederationKeyCommand::Confirm { kid }) => {
            vault.federation().confirm_key(issuer, &kid).await?;
            let document = serde_json::json!({"key": kid});
            output.print(&document, &format!("Confirmed the upload of signing key {kid}. It is not checked any more."))
        }
        FederationCommand::Key(FederationKeyCommand::Remove { kid }) => {
            vault.federation().remove_key(issuer, &kid).await?;
            let text = format!("Removed signing key {kid}. {issuer} no longer publishes it within a second.");
            output.print(&serde_json::json!({"key": kid}), &text)
        }
        FederationCommand::Rotate { now: _ } => {
            let (promoted, retired) = vault.federation().rotate_now(issuer).await?;
            let text = format!(
                "Promoted signing key {promoted}, and retired {}. Exchanges fail until the providers have read the new key set. \
                 If {issuer} is not this server, publish the files of `orgvault federation documents DIR`.",
                if retired.is_empty() { "none".to_owned() } else { retired.join(", ") }
            );
            output.print(&serde_json::json!({"current": promoted, "retired": retired}), &text)
        }
        FederationCommand::Check => check(settings, vault, issuer, output).await,
        FederationCommand::Documents { directory } => documents(vault, issuer, &directory, output).await,
    }
}

async fn add(vault: &OpenVault, issuer: &FederationIssuer, file: &Path, output: Output) -> Result<(), Failure> {
    let refused = || {
        Failure::new(format!(
            "--file: {} is not an unencrypted RSA private key of 2,048 to 4,096 bits. Create one with `{CREATE}`",
            file.display()
        ))
    };
    let bytes = secret_file::read_or_stdin("--file", file, MAX_KEY_FILE)?;
    let pem = SecretString::from(std::str::from_utf8(&bytes).map_err(|_| refused())?);
    let kid = vault.federation().add_key(issuer, &pem).await?.ok_or_else(refused)?;
    let text = format!(
        "Added signing key {kid}. It becomes current when {issuer} publishes it. Delete its file, which the vault does not need."
    );
    output.print(&serde_json::json!({"key": kid}), &text)
}

async fn status(vault: &OpenVault, issuer: &FederationIssuer, output: Output) -> Result<(), Failure> {
    let status = vault.federation().status(issuer).await?;
    let now = vault.ports().environment.now();
    let shown = ShownStatus {
        issuer: issuer.to_string(),
        next_step: next_step(issuer, &status, now),
        damaged: status.damaged.clone(),
        keys_of_other_issuers: status.others,
        keys: status.keys.iter().map(shown).collect(),
    };
    let row = |row: &StoredFederationKey| {
        let state = row.key.state.as_str();
        vec![
            issuer.to_string(),
            row.key.jwk.kid().to_owned(),
            state.to_owned(),
            rfc3339(row.key.since()),
            published(row),
        ]
    };
    let rows: Vec<_> = status.keys.iter().map(row).collect();
    let mut text = table(&["ISSUER", "KEY", "STATE", "SINCE", "PUBLISHED"], &rows);
    for id in &status.damaged {
        text += &format!(
            "\nRow {id} of table federation_keys is damaged or was added outside the service. It is not used.\n"
        );
    }
    if status.others > 0 {
        text += &format!("\nNot used: {} of other issuers.\n", counted(status.others as u64, "key"));
    }
    output.print(&shown, &format!("{text}\n{}", shown.next_step))
}

fn shown(row: &StoredFederationKey) -> ShownKey {
    let time = |time: Option<Timestamp>| time.map(rfc3339);
    ShownKey {
        key: row.key.jwk.kid().to_owned(),
        state: row.key.state.as_str(),
        since: rfc3339(row.key.since()),
        created_at: rfc3339(row.key.created_at),
        published_at: time(row.key.published_at),
        confirmed_at: time(row.key.confirmed_at),
        checked_at: time(row.checked_at),
        finding: row.failure.map(|failure| failure.as_str()),
    }
}

/// Returns the result of the last publication check of a key.
fn published(row: &StoredFederationKey) -> String {
    match (row.key.confirmed_at, row.checked_at, row.failure) {
        _ if !row.key.is_published() => "no".to_owned(),
        (Some(at), ..) => format!("confirmed {}", rfc3339(at)),
        (None, None, _) => "not checked yet".to_owned(),
        (None, Some(at), None) => format!("yes, checked {}", rfc3339(at)),
        (None, Some(at), Some(failure)) => format!("{failure}, checked {}", rfc3339(at)),
    }
}

/// Returns what the operator should do next.
fn next_step(issuer: &FederationIssuer, status: &FederationStatus, now: Timestamp) -> String {
    let unpublished = status.keys.iter().find_map(|row| {
        let failure = row.failure.filter(|_| row.key.is_published() && row.key.confirmed_at.is_none())?;
        Some(failure.explain(issuer, Some(row.key.jwk.kid())))
    });
    if let Some(finding) = unpublished {
        return format!("Next: {finding}.");
    }
    match (status.signing(), status.next()) {
        (None, None) => format!("Next: `{CREATE}`, then `orgvault federation key add --file signing.pem`."),
        (_, Some(next)) if next.checked_at.is_none() && next.key.confirmed_at.is_none() => format!(
            "Next: publish the documents at {issuer}. The server checks them within a minute, or run `orgvault federation check`."
        ),
        (None, Some(_)) => "The server promotes the next key within a minute.".to_owned(),
        (Some(_), Some(next)) => {
            let since = next.key.confirmed_at.or(next.key.published_at).unwrap_or(now);
            format!("The server promotes the next key at {}.", rfc3339(since.plus_seconds(24 * 60 * 60)))
        }
        (Some(_), None) => "No action is required.".to_owned(),
    }
}

async fn check(
    settings: &Settings,
    vault: &OpenVault,
    issuer: &FederationIssuer,
    output: Output,
) -> Result<(), Failure> {
    let report = vault.federation().check(issuer, &publication(settings)?).await?;
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|(failure, kid)| serde_json::json!({"finding": failure.as_str(), "key": kid}))
        .collect();
    let document = serde_json::json!({"issuer": issuer.as_str(), "keys": report.keys, "findings": findings});
    let text = match (report.keys, report.findings.is_empty()) {
        (0, _) => "No published key requires a check.".to_owned(),
        (1, true) => format!("{issuer} publishes the signing key."),
        (count, true) => format!("{issuer} publishes all {count} signing keys."),
        (_, false) => {
            let explained = report.findings.iter().map(|(failure, kid)| failure.explain(issuer, kid.as_deref()));
            explained.collect::<Vec<_>>().join("\n")
        }
    };
    output.print(&document, &text)?;
    match report.findings.first() {
        None => Ok(()),
        Some((failure, _)) => Err(Failure::new(format!("the publication check failed: {failure}"))),
    }
}

/// Writes both documents below `directory`, at their paths below the issuer.
async fn documents(
    vault: &OpenVault,
    issuer: &FederationIssuer,
    directory: &Path,
    output: Output,
) -> Result<(), Failure> {
    let documents = vault.federation().documents(issuer).await?;
    let paths = [FederationIssuer::DISCOVERY_PATH, FederationIssuer::KEY_SET_PATH]
        .map(|path| directory.join(path.trim_start_matches('/')));
    for (path, document) in paths.iter().zip(&documents) {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, document));
        written.doing(|| format!("write {}", path.display()))?;
    }
    let shown = paths.each_ref().map(|path| path.display().to_string());
    let text = format!(
        "Wrote {} and {}. Publish them at {} and {} with content type application/json.",
        shown[0],
        shown[1],
        issuer.discovery_url(),
        issuer.key_set_url()
    );
    output.print(&serde_json::json!({"files": shown}), &text)
}
