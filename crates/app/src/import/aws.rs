//! Profiles of the AWS tools (AWS SDKs and Tools Reference Guide, "Shared config and credentials files").

use super::fields::Fields;
use super::ini::{Section, sections};
use super::{Entry, Flaw};
use serde_json::Value;
use vault_core::credential::CredentialType;

pub(super) fn entries(text: &str) -> Result<Vec<Entry>, Flaw> {
    let sections = sections(text)?;
    Ok(sections
        .iter()
        .map(|section| Entry { name: name(section).to_owned(), content: profile(section, &sections) })
        .collect())
}

/// The configuration file says `[profile name]`, the credentials file `[name]`.
fn name(section: &Section) -> &str {
    section.name.strip_prefix("profile ").unwrap_or(&section.name).trim()
}

fn profile(section: &Section, all: &[Section]) -> Result<Fields, Flaw> {
    for (field, reason) in [
        ("sso_session", "it signs in with a browser, which a job cannot"),
        ("sso_start_url", "it signs in with a browser, which a job cannot"),
        ("credential_process", "its key is made by a program"),
        ("credential_source", "it takes its key from its surroundings, not from here"),
        ("web_identity_token_file", "it takes its key from its surroundings, not from here"),
    ] {
        if let Some(line) = section.get(field) {
            return Err(Flaw::of(line.number, field, reason));
        }
    }
    let mut fields = Fields::new(CredentialType::S3, section.line);
    // A role is assumed with the key of another profile.
    let source = section.get("source_profile").map(|line| {
        let found = all.iter().find(|other| name(other) == line.value);
        found.ok_or_else(|| Flaw::of(line.number, "source_profile", "the file has no profile of this name"))
    });
    for from in source.transpose()?.into_iter().chain([section]) {
        for line in &from.lines {
            fields.set_called(&line.name, Value::from(&*line.value), line.number);
        }
    }
    if let Some(line) = section.get("s3.addressing_style").filter(|line| line.value == "path") {
        fields.set("path_style_access", true, line.number, &line.name);
    }
    Ok(fields)
}
