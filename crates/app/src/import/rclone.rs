//! Remotes of rclone (rclone.org: "s3", "azureblob", "googlecloudstorage").

use super::fields::Fields;
use super::ini::{Section, sections};
use super::{Entry, Flaw};
use serde_json::Value;
use std::path::Path;
use vault_core::credential::CredentialType;

pub(super) fn entries(path: &Path, text: &str) -> Result<Vec<Entry>, Flaw> {
    if let Some(line) =
        text.lines().position(|line| line.contains("RCLONE_ENCRYPT_V0") || line.contains("Encrypted rclone"))
    {
        return Err(Flaw::new(line + 1, "the configuration is encrypted: import what `rclone config show` prints"));
    }
    let entry = |section: &Section| Entry { name: section.name.clone(), content: remote(path, section) };
    Ok(sections(text)?.iter().map(entry).collect())
}

fn remote(path: &Path, section: &Section) -> Result<Fields, Flaw> {
    let Some(kind) = section.get("type") else {
        return Err(Flaw::of(section.line, "type", "the remote has none"));
    };
    match &*kind.value {
        "s3" => s3(section),
        "azureblob" => azure(section),
        "google cloud storage" => gcs(path, section),
        other => {
            let reason = format!("{other} cannot be kept in a vault; s3, azureblob and google cloud storage can");
            Err(Flaw::of(kind.number, "type", reason))
        }
    }
}

fn s3(section: &Section) -> Result<Fields, Flaw> {
    if let Some(line) =
        section.get("env_auth").filter(|line| line.value == "true" && section.get("access_key_id").is_none())
    {
        return Err(Flaw::of(line.number, "env_auth", "the remote takes its key from its surroundings, not from here"));
    }
    let mut fields = Fields::new(CredentialType::S3, section.line);
    for line in &section.lines {
        fields.set_called(&line.name, Value::from(&*line.value), line.number);
    }
    // Left out, it means yes for all stores but Amazon's.
    if fields.get("endpoint").is_some() && fields.get("path_style_access").is_none() {
        fields.set("path_style_access", true, section.line, "force_path_style");
    }
    Ok(fields)
}

fn azure(section: &Section) -> Result<Fields, Flaw> {
    let mut fields = Fields::new(CredentialType::AzureIdentity, section.line);
    for line in &section.lines {
        fields.set_called(&line.name, Value::from(&*line.value), line.number);
    }
    let account = section.text("account");
    let of_account = format!("DefaultEndpointsProtocol=https;AccountName={account};EndpointSuffix=core.windows.net");
    let own = ["key", "sas_url", "account"].iter().find_map(|name| section.get(name));
    if let Some(line) = own {
        let connection = match &*line.name {
            "key" => format!("{of_account};AccountKey={}", line.value),
            "sas_url" => match line.value.split_once('?') {
                Some((address, signature)) => {
                    // The container stands behind the account's address.
                    let endpoint = address.split('/').take(3).collect::<Vec<_>>().join("/");
                    format!("BlobEndpoint={endpoint};SharedAccessSignature={signature}")
                }
                None => return Err(Flaw::of(line.number, "sas_url", "it has no signature")),
            },
            _ => of_account,
        };
        fields.set("connection_string", connection, line.number, &line.name);
    }
    Ok(fields)
}

fn gcs(path: &Path, section: &Section) -> Result<Fields, Flaw> {
    let mut fields = Fields::new(CredentialType::Gcs, section.line);
    if let Some(line) = section.get("service_account_credentials") {
        fields.set("service_account_key", &*line.value, line.number, &line.name);
    } else if let Some(line) = section.get("service_account_file").filter(|line| !line.value.is_empty()) {
        // As rclone finds it: a relative name is beside the configuration.
        let file = path.parent().unwrap_or(Path::new("")).join(&line.value);
        let key = std::fs::read_to_string(&file)
            .map_err(|error| Flaw::of(line.number, &line.name, format!("cannot read {}: {error}", file.display())))?;
        fields.set("service_account_key", key, line.number, &line.name);
    } else {
        return Err(Flaw::of(
            section.line,
            "service_account_credentials",
            "the remote has no key of a service account",
        ));
    }
    Ok(fields)
}
