//! INI files of rclone and the AWS tools: sections of names and values.

use crate::reading::Pair;
use crate::{Violation, unquoted};
use serde_json::Value;
use std::collections::HashMap;

/// Maximum length of a name in bytes. Names of nested lines contain that of the line above.
const MAX_NAME: usize = 256;

/// A `[name]` header and the lines below it.
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: Vec<Pair>,
}

/// The INI rules of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// An indented line belongs to the line above (`s3.addressing_style`), and a comment may follow a value.
    Aws,
    /// Indentation has no meaning, and a value extends to the end of the line.
    Rclone,
}

/// Returns the value of `name`, or an empty string.
pub(crate) fn value<'a>(lines: &'a [Pair], name: &str) -> &'a str {
    find(lines, name).and_then(|line| line.value.as_str()).unwrap_or_default()
}

pub(crate) fn find<'a>(lines: &'a [Pair], name: &str) -> Option<&'a Pair> {
    lines.iter().find(|line| line.name == name)
}

/// Merges the lines of several sections. The last value of a name takes precedence.
pub(crate) fn merged(lines: impl IntoIterator<Item = Pair>) -> Vec<Pair> {
    let mut merged: Vec<Pair> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for line in lines {
        match places.get(&*line.name) {
            Some(&place) => merged[place] = line,
            None => {
                places.insert(line.name.to_string(), merged.len());
                merged.push(line);
            }
        }
    }
    merged
}

/// Returns the section name if the line is a section header.
pub(crate) fn header(line: &str, dialect: Dialect) -> Option<&str> {
    let end = match dialect {
        Dialect::Aws => line.rfind(']')?,
        Dialect::Rclone => line.strip_suffix(']')?.len(),
    };
    line.get(1..end).filter(|name| line.starts_with('[') && !name.is_empty()).map(str::trim)
}

/// Parses the sections of a file.
pub(crate) fn sections(text: &str, dialect: Dialect) -> Result<Vec<Section>, Violation> {
    let mut sections: Vec<Section> = Vec::new();
    let mut above: Option<(String, usize)> = None;
    for (index, line) in text.lines().enumerate() {
        let (number, bare) = (index + 1, line.trim());
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        let level = line.len() - line.trim_start().len();
        let assignment = bare
            .find(['=', ':'])
            .filter(|at| (1..=MAX_NAME).contains(at))
            .map(|at| (bare[..at].trim(), bare[at + 1..].trim()));
        let expected = || Violation::new(number, "expected `name = value` or a section such as [name]");
        if let (Dialect::Aws, Some(section), Some((name, _))) =
            (dialect, sections.last_mut(), above.as_ref().filter(|(_, outer)| level > *outer))
        {
            let (inner, value) = assignment.ok_or_else(expected)?;
            section.lines.push(Pair::new(format!("{name}.{inner}"), unquoted(value), number));
            continue;
        }
        if let Some(name) = header(bare, dialect) {
            sections.push(Section { name: name.to_owned(), line: number, lines: Vec::new() });
            above = None;
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(Violation::new(number, "expected a section such as [name]"));
        };
        let (name, value) = assignment.ok_or_else(expected)?;
        let name = name.to_lowercase();
        let value = if dialect == Dialect::Aws { without_comment(value) } else { value };
        section.lines.push(Pair::new(name.clone(), Value::from(unquoted(value)), number));
        above = Some((name, level));
    }
    Ok(sections)
}

/// Returns the value without a trailing comment (` #` or ` ;`).
fn without_comment(value: &str) -> &str {
    let mut before = ' ';
    for (at, c) in value.char_indices() {
        if (c == '#' || c == ';') && at > 0 && before.is_whitespace() {
            return value[..at].trim_end();
        }
        before = c;
    }
    value
}
