//! Sections of names and values, as rclone and the AWS tools write them.

use super::Flaw;

/// `[name]` and the lines below it.
pub(super) struct Section {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) lines: Vec<Line>,
}

/// `name = value`. A name of an indented line stands behind that of the line above: `s3.addressing_style`.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) number: usize,
}

impl Section {
    /// The value of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Line> {
        self.lines.iter().rev().find(|line| line.name == name)
    }

    /// The text of this name; empty if it has none.
    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).map_or("", |line| &line.value)
    }
}

/// The sections of a file.
pub(super) fn sections(text: &str) -> Result<Vec<Section>, Flaw> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (number, bare) = (index + 1, line.trim());
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let name = name.trim().to_owned();
            if sections.iter().any(|section| section.name == name) {
                return Err(Flaw::new(number, format!("the section {name} is there twice")));
            }
            sections.push(Section { name, line: number, lines: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(Flaw::new(number, "expected a section such as [name]"));
        };
        let Some((name, value)) = bare.split_once('=') else {
            return Err(Flaw::new(number, "expected `name = value` or a section such as [name]"));
        };
        let name = name.trim().to_ascii_lowercase();
        let above = section.lines.iter().rev().find(|above| !above.name.contains('.')).map(|above| &above.name);
        let name = match above.filter(|_| line.starts_with([' ', '\t'])) {
            Some(above) => format!("{above}.{name}"),
            None => name,
        };
        section.lines.push(Line { name, value: value.trim().to_owned(), number });
    }
    Ok(sections)
}
