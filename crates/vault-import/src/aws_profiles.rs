//! AWS profiles (AWS SDKs and Tools Reference Guide, "Shared config and credentials files").

use crate::ini::{Section, find, merged, value};
use crate::reading::{Fields, Pair, interpret};
use crate::table::{Table, normal};
use crate::{Entry, Violation, unquoted};
use vault_core::credential::CredentialType;

const KEYS: [&str; 3] = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];

/// Sections that are not profiles.
const OTHERS: [&str; 3] = ["plugins", "preview", "toplevel"];

/// Returns the profiles in the sections of one or several files.
pub(crate) fn entries(sections: Vec<Section>) -> Vec<Entry> {
    let (mut profiles, mut services) = (Vec::new(), Vec::new());
    for section in sections {
        let (kind, name) = match section.name.split_once(char::is_whitespace) {
            Some((kind @ ("profile" | "services" | "sso-session"), name)) => (kind, unquoted(name.trim())),
            _ => ("", &*section.name),
        };
        if kind == "sso-session" || OTHERS.contains(&name) {
            continue;
        }
        let name = name.to_owned();
        let all: &mut Vec<Section> = if kind == "services" { &mut services } else { &mut profiles };
        match all.iter_mut().find(|other| other.name == name) {
            None => all.push(Section { name, line: section.line, lines: merged(section.lines) }),
            Some(other) => {
                let before = std::mem::take(&mut other.lines);
                // The credentials file, whose headers contain only the name, takes precedence over the config file.
                let (first, then) = if kind == "profile" { (section.lines, before) } else { (before, section.lines) };
                other.lines = merged(first.into_iter().chain(then));
            }
        }
    }
    let entry =
        |section: &Section| Entry { name: section.name.clone(), content: profile(section, &profiles, &services) };
    profiles.iter().map(entry).collect()
}

fn profile(section: &Section, profiles: &[Section], services: &[Section]) -> Result<Fields, Violation> {
    let mut pairs = section.lines.clone();
    let violation = |field, kind| {
        Err(Violation::of(find(&section.lines, field).map_or(section.line, |line| line.line), field, kind))
    };
    // An assumed role uses the key of another profile.
    let source = value(&section.lines, "source_profile");
    if !source.is_empty() && source != section.name {
        let Some(from) = profiles.iter().find(|other| other.name == source) else {
            return violation("source_profile", "no-source");
        };
        if !value(&from.lines, "role_arn").is_empty() {
            return violation("source_profile", "chain");
        }
        let refused = from.lines.iter().find_map(|line| Table::refused_name(&normal(&line.name)));
        if let Some(kind) = refused.filter(|kind| *kind != "not-supported") {
            return violation("source_profile", kind);
        }
        let is_key = |line: &Pair| KEYS.contains(&&*line.name);
        pairs.retain(|line| !is_key(line));
        pairs.splice(0..0, from.lines.iter().filter(|line| is_key(line)).cloned());
    }
    let service = value(&section.lines, "services");
    if !service.is_empty() {
        let Some(settings) = services.iter().find(|other| other.name == service) else {
            return violation("services", "no-services");
        };
        pairs = merged(pairs.into_iter().chain(settings.lines.iter().filter(|line| is_of_bucket(&line.name)).cloned()));
    }
    pairs.retain(|line| {
        !["source_profile", "services"].contains(&&*line.name) && (!line.name.contains('.') || is_of_bucket(&line.name))
    });
    interpret(&pairs, Some(CredentialType::S3), section.line)
        .unwrap_or_else(|| Err(Violation::of(section.line, "", "unknown")))
}

/// Returns whether a nested setting applies to a bucket, rather than to another AWS service.
fn is_of_bucket(name: &str) -> bool {
    name.starts_with("s3.") || name.starts_with("sts.")
}
