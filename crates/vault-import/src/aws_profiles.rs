//! AWS profiles (AWS SDKs and Tools Reference Guide, "Shared config and credentials files").

use crate::ini::{Section, find, merged, value};
use crate::reading::{Fields, Pair, interpret};
use crate::table::{Table, normal};
use crate::{Entry, Violation, unquoted};
use std::collections::HashMap;
use vault_core::credential::CredentialType;

const KEYS: [&str; 3] = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];

/// Sections that are not profiles.
const OTHERS: [&str; 3] = ["plugins", "preview", "toplevel"];

/// Maximum number of lines of a section to which others refer: each of them would copy the lines.
const MAX_SHARED: usize = 100;

/// Sections by name, in the order of the text.
#[derive(Default)]
struct Sections {
    all: Vec<Section>,
    /// Lines that precede those of a section, the last ones first.
    before: Vec<Vec<Vec<Pair>>>,
    places: HashMap<String, usize>,
}

impl Sections {
    fn find(&self, name: &str) -> Option<&Section> {
        self.places.get(name).map(|place| &self.all[*place])
    }

    /// Adds the lines of a section, after or before those of the same name.
    fn add(&mut self, name: &str, section: Section, is_before: bool) {
        let place = *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.all.push(Section { name: name.to_owned(), line: section.line, lines: Vec::new() });
            self.before.push(Vec::new());
            self.all.len() - 1
        });
        match is_before {
            true => self.before[place].push(section.lines),
            false => self.all[place].lines.extend(section.lines),
        }
    }

    fn merged(mut self) -> Self {
        for (section, before) in self.all.iter_mut().zip(&mut self.before) {
            let own = std::mem::take(&mut section.lines);
            section.lines = merged(std::mem::take(before).into_iter().rev().flatten().chain(own));
        }
        self
    }
}

/// Returns the profiles in the sections of one or several files.
pub(crate) fn entries(sections: Vec<Section>) -> Vec<Entry> {
    let (mut profiles, mut services) = (Sections::default(), Sections::default());
    for section in sections {
        let (kind, name) = match section.name.split_once(char::is_whitespace) {
            Some((kind @ ("profile" | "services" | "sso-session"), name)) => (kind, unquoted(name.trim())),
            _ => ("", &*section.name),
        };
        if kind == "sso-session" || OTHERS.contains(&name) {
            continue;
        }
        let (name, is_profile) = (name.to_owned(), kind == "profile");
        let all = if kind == "services" { &mut services } else { &mut profiles };
        // The credentials file, whose headers contain only the name, takes precedence over the config file.
        all.add(&name, section, is_profile);
    }
    let (profiles, services) = (profiles.merged(), services.merged());
    let entry =
        |section: &Section| Entry { name: section.name.clone(), content: profile(section, &profiles, &services) };
    profiles.all.iter().map(entry).collect()
}

fn profile(section: &Section, profiles: &Sections, services: &Sections) -> Result<Fields, Violation> {
    let mut pairs = section.lines.clone();
    let violation = |field, kind| {
        Err(Violation::of(find(&section.lines, field).map_or(section.line, |line| line.line), field, kind))
    };
    // An assumed role uses the key of another profile.
    let source = value(&section.lines, "source_profile");
    if !source.is_empty() && source != section.name {
        let Some(from) = profiles.find(source) else {
            return violation("source_profile", "no-source");
        };
        few(from)?;
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
        let Some(settings) = services.find(service) else {
            return violation("services", "no-services");
        };
        few(settings)?;
        pairs = merged(pairs.into_iter().chain(settings.lines.iter().filter(|line| is_of_bucket(&line.name)).cloned()));
    }
    pairs.retain(|line| {
        !["source_profile", "services"].contains(&&*line.name) && (!line.name.contains('.') || is_of_bucket(&line.name))
    });
    interpret(&pairs, Some(CredentialType::S3), section.line)
        .unwrap_or_else(|| Err(Violation::of(section.line, "", "unknown")))
}

/// Refuses a section with too many lines to be copied.
fn few(section: &Section) -> Result<(), Violation> {
    let reason = || format!("[{}] has more than {MAX_SHARED} settings, which other sections use", section.name);
    if section.lines.len() > MAX_SHARED { Err(Violation::new(section.line, reason())) } else { Ok(()) }
}

/// Returns whether a nested setting applies to a bucket, rather than to another AWS service.
fn is_of_bucket(name: &str) -> bool {
    name.starts_with("s3.") || name.starts_with("sts.")
}
