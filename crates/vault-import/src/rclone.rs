//! rclone remotes (rclone.org: "s3", "azureblob", "googlecloudstorage").

use crate::ini::{Dialect, Section, find, merged, sections, value};
use crate::reading::{Fields, Pair, interpret};
use crate::table::table;
use crate::{Entry, Files, Violation};
use std::collections::HashMap;
use std::path::Path;
use vault_core::credential::CredentialType;

pub(crate) fn entries(text: &str, folder: &Path, files: &Files<'_>) -> Result<Vec<Entry>, Violation> {
    if let Some(line) =
        text.lines().position(|line| line.contains("RCLONE_ENCRYPT_V0") || line.contains("Encrypted rclone"))
    {
        return Err(Violation::new(
            line + 1,
            "the configuration is encrypted: import the output of `rclone config show`",
        ));
    }
    let mut remotes: Vec<Section> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for section in sections(text, Dialect::Rclone)? {
        match places.get(&section.name) {
            Some(&place) => remotes[place].lines.extend(section.lines),
            None => {
                places.insert(section.name.clone(), remotes.len());
                remotes.push(section);
            }
        }
    }
    let entry = |section: Section| {
        let lines = merged(section.lines);
        Entry { content: remote(section.line, lines, folder, files), name: section.name }
    };
    Ok(remotes.into_iter().map(entry).collect())
}

fn remote(start: usize, mut lines: Vec<Pair>, folder: &Path, files: &Files<'_>) -> Result<Fields, Violation> {
    let number = |field| find(&lines, field).map_or(start, |line| line.line);
    let violation = |field, kind| Err(Violation::of(number(field), field, kind));
    let is_set = |field: &&&str| !value(&lines, field).is_empty();
    let is_true = |field: &&&str| value(&lines, field) == "true";
    let named = value(&lines, "type");
    let Some(kind) = table().rclone.kind(named) else {
        return violation("type", if named.is_empty() { "no-type" } else { "type" });
    };
    let mut more = Vec::new();
    let mut without = vec!["type", "provider"];
    match kind {
        CredentialType::S3 => {
            if value(&lines, "env_auth") == "true" && value(&lines, "access_key_id").is_empty() {
                return violation("env_auth", "elsewhere");
            }
            let (provider, endpoint) = (value(&lines, "provider"), value(&lines, "endpoint"));
            if endpoint.is_empty() && !["", "AWS"].contains(&provider) {
                return violation("provider", "endpoint-needed");
            }
            // Same as `setQuirks` in rclone's s3.go: for some providers, it never uses path-style addresses.
            let is_virtual = table().rclone.virtual_hosted.iter().any(|name| name == provider);
            if is_virtual {
                without.push("force_path_style");
            }
            if !endpoint.is_empty() && (is_virtual || value(&lines, "force_path_style").is_empty()) {
                let style = Pair::new("provider", !is_virtual, number("provider"));
                more.push(style.counting_as("force_path_style"));
            }
        }
        CredentialType::AzureIdentity => {
            let switches = ["env_auth", "use_msi", "use_az", "use_emulator"];
            let others = ["client_certificate_path", "service_principal_file", "username"];
            let elsewhere = switches.iter().find(is_true).or_else(|| others.iter().find(is_set));
            if let Some(field) =
                elsewhere.filter(|_| value(&lines, "key").is_empty() && value(&lines, "sas_url").is_empty())
            {
                return violation(field, "elsewhere");
            }
        }
        _ => {
            without.extend(["service_account_file", "client_id", "client_secret", "token"]);
            if value(&lines, "service_account_credentials").is_empty() {
                let Some(line) = find(&lines, "service_account_file").filter(|_| is_set(&&"service_account_file"))
                else {
                    return violation("service_account_credentials", "no-key");
                };
                let name = value(&lines, "service_account_file");
                let key = (files.read)(&files.expanded(folder, name))
                    .map_err(|error| Violation::of(line.line, &line.name, "key-file").because(&error))?;
                more.push(Pair::new(&*line.name, key, line.line).counting_as("service_account_credentials"));
            }
        }
    }
    lines.retain(|line| !without.contains(&&*line.name));
    lines.extend(more);
    interpret(&lines, Some(kind), start).unwrap_or_else(|| Err(Violation::of(start, "", "unknown")))
}
