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
use vault_core::federation::{
    CheckedKey, FederationIssuer, FederationKey, FederationKeyState, PublicationFailure, SETTLED_SECONDS,
};
use vault_core::usecase::federation::{FederationStatus, PublicationReport};
use vault_embed::OpenVault;

/// Maximum size of a file with a private key, in bytes. A key of 4,096 bits has 3,272.
const MAX_KEY_FILE: usize = 16 * 1024;
/// Command that creates a key.
const CREATE: &str = "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -out signing.pem";

#[derive(Serialize)]
struct ShownStatus {
    issuer: String,
    keys: Vec<ShownKey>,
    /// Findings of the publication check.
    findings: Vec<ShownFinding>,
    /// IDs of damaged documents.
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
    checked_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<&'static str>,
    /// Column of the table.
    #[serde(skip)]
    published: String,
}

#[derive(Serialize)]
struct ShownFinding {
    finding: &'static str,
    key: Option<String>,
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
        FederationCommand::Status => status(settings, vault, issuer, output).await,
        FederationCommand::Key(FederationKeyCommand::Add { file }) => add(vault, issuer, &file, output).await,
        FederationCommand::Key(FederationKeyCommand::Promote { now }) => {
            let (promoted, retired) = vault.federation().promote_key(issuer, now).await?;
            let mut text = format!("Promoted signing key {promoted}.");
            for kid in &retired {
                text += &format!(
                    "\nSigning key {kid} no longer signs. It stays published until the next `orgvault federation key add`. If \
                     it has leaked, run `orgvault federation key remove {kid}`."
                );
            }
            if now {
                text += "\nExchanges fail until the providers have read the new key set.";
            }
            output.print(&serde_json::json!({"current": promoted, "retired": retired}), &text)
        }
        FederationCommand::Key(FederationKeyCommand::Remove { kid }) => {
            vault.federation().remove_key(issuer, &kid).await?;
            let text = format!(
                "Removed signing key {kid}. This server no longer publishes it within a second. If {issuer} is another server, \
                 publish the files of `orgvault federation documents DIR`."
            );
            output.print(&serde_json::json!({"key": kid}), &text)
        }
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
        "Added signing key {kid}. Publish it at {issuer}: it signs 24 hours after a publication check found it, or immediately if \
         no key signs. Delete its file, which the vault does not need."
    );
    output.print(&serde_json::json!({"key": kid}), &text)
}

/// Checks the publication, and shows the keys.
async fn status(
    settings: &Settings,
    vault: &OpenVault,
    issuer: &FederationIssuer,
    output: Output,
) -> Result<(), Failure> {
    let federation = vault.federation();
    let report = federation.check(issuer, &publication(settings)?).await?;
    let status = federation.status(issuer).await?;
    let findings =
        report.findings.iter().map(|(failure, kid)| ShownFinding { finding: failure.as_str(), key: kid.clone() });
    let shown = ShownStatus {
        issuer: issuer.to_string(),
        keys: status.keys.iter().map(|key| shown(key, status.checks.of(key.kid()))).collect(),
        findings: findings.collect(),
        damaged: status.damaged.clone(),
        keys_of_other_issuers: status.others,
        next_step: next_step(issuer, &status, &report),
    };
    let row = |key: &ShownKey| {
        let ShownKey { key, state, since, published, .. } = key;
        vec![issuer.to_string(), key.clone(), (*state).to_owned(), since.clone(), published.clone()]
    };
    let rows: Vec<_> = shown.keys.iter().map(row).collect();
    let mut text = table(&["ISSUER", "KEY", "STATE", "SINCE", "PUBLISHED"], &rows);
    for id in &status.damaged {
        text += &format!(
            "\nDocument {id} in table entities is damaged, or was put back outside the service. Its signing keys are neither \
             published nor used. The next `orgvault federation key add` replaces it.\n"
        );
    }
    if status.others > 0 {
        text += &format!("\nNot used: {} of other issuers.\n", counted(status.others as u64, "key"));
    }
    output.print(&shown, &format!("{text}\n{}", shown.next_step))?;
    match report.findings.first() {
        None => Ok(()),
        Some((failure, _)) => Err(Failure::new(format!("the publication check failed: {failure}"))),
    }
}

fn shown(key: &FederationKey, checked: Option<&CheckedKey>) -> ShownKey {
    let checked = checked.filter(|_| key.is_published);
    let published = match checked {
        _ if !key.is_published => "no".to_owned(),
        None => "not checked yet".to_owned(),
        Some(checked) => {
            let result = checked.failure.map_or("yes", PublicationFailure::as_str);
            format!("{result}, checked {}", rfc3339(checked.checked_at))
        }
    };
    ShownKey {
        key: key.kid().to_owned(),
        state: key.state.as_str(),
        since: rfc3339(key.since()),
        created_at: rfc3339(key.created_at),
        published_at: checked.and_then(|checked| checked.published_at).map(rfc3339),
        checked_at: checked.map(|checked| rfc3339(checked.checked_at)),
        finding: checked.and_then(|checked| checked.failure).map(PublicationFailure::as_str),
        published,
    }
}

/// Returns what the operator should do next.
fn next_step(issuer: &FederationIssuer, status: &FederationStatus, report: &PublicationReport) -> String {
    if !report.findings.is_empty() {
        let explained = report.findings.iter().map(|(failure, kid)| failure.explain(issuer, kid.as_deref()));
        return format!("Next: {}.", explained.collect::<Vec<_>>().join(".\nNext: "));
    }
    let of = |state| status.keys.iter().find(|key| key.state == state);
    match (of(FederationKeyState::Current), of(FederationKeyState::Next)) {
        (None, None) => format!("Next: `{CREATE}`, then `orgvault federation key add --file signing.pem`."),
        (None, Some(_)) => "The server promotes the next key within a minute.".to_owned(),
        (Some(_), Some(next)) => {
            let published_at = status.checks.of(next.kid()).and_then(|checked| checked.published_at);
            let at = published_at.unwrap_or(next.created_at).plus_seconds(SETTLED_SECONDS);
            format!("The server promotes the next key at {}.", rfc3339(at))
        }
        (Some(_), None) => "No action is required.".to_owned(),
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
