//! Output of commands: text, or one JSON document for scripts.

use crate::failure::Failure;
use crate::text::{legible, legible_line};
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use std::io::{self, BufRead, IsTerminal, Write};

/// The format of standard output.
#[derive(Clone, Copy)]
pub struct Output {
    json: bool,
}

impl Output {
    /// Selects JSON or text.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns whether the output is JSON.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints `document` as JSON, or `text`.
    pub fn print(self, document: &impl Serialize, text: &str) -> Result<(), Failure> {
        let mut bytes = if self.json { serde_json::to_vec(document)? } else { legible(text).as_bytes().to_vec() };
        if !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(&bytes).and_then(|()| stdout.flush()) {
            // The reader closed the pipe, for example `head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => Ok(result?),
        }
    }

    /// Prompts on the terminal until the user types `expected`. Without a terminal, fails and names the flag for
    /// scripts.
    pub fn confirm(self, question: &str, expected: &str) -> Result<(), Failure> {
        if !io::stdin().is_terminal() {
            return Err(Failure::usage("confirmation required, but standard input is not a terminal. Pass --yes"));
        }
        let mut stderr = io::stderr().lock();
        write!(stderr, "{question} Type {expected} to continue: ")?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if answer.trim_end_matches(['\r', '\n']) == expected {
            Ok(())
        } else {
            Err(Failure::new("not confirmed. Nothing was changed"))
        }
    }
}

/// Prints a warning to standard error.
pub fn warn(text: &str) {
    note(&format!("warning: {text}"));
}

/// Prints a note about the command to standard error.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "orgvault: {}", legible(text)); // standard error may be closed
}

/// Minimum column width in characters.
const NARROWEST: usize = 8;

/// Formats rows as aligned columns with a heading. If standard output is a terminal, limits them to its width.
pub fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let legible = |row: &Vec<String>| row.iter().map(|cell| legible_line(cell).into_owned()).collect();
    let rows: &[Vec<String>] = &rows.iter().map(legible).collect::<Vec<_>>();
    let stdout = io::stdout();
    let width = tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
    match width {
        Some(width) if stdout.is_terminal() => fitted(heading, rows, width),
        _ => columns(heading, rows, &natural_widths(heading, rows)),
    }
}

/// Fits the table into `width` characters if possible: drops empty columns and truncates the widest ones. The first
/// column stays complete, because other commands accept its values.
fn fitted(heading: &[&str], rows: &[Vec<String>], width: usize) -> String {
    let mut widths = natural_widths(heading, rows);
    let total = |widths: &[usize]| widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>();
    if total(&widths) > width + 2 {
        for (column, width) in widths.iter_mut().enumerate() {
            if !rows.is_empty() && rows.iter().all(|row| row.get(column).is_none_or(String::is_empty)) {
                *width = 0;
            }
        }
    }
    while total(&widths) > width + 2 {
        let widest = widths.iter_mut().skip(1).max();
        match widest.filter(|width| **width > NARROWEST) {
            Some(widest) => *widest -= 1,
            None => break, // a terminal this narrow wraps the line
        }
    }
    columns(heading, rows, &widths)
}

fn natural_widths(heading: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([heading[column].chars().count()]).max().unwrap_or(0)
    };
    (0..heading.len()).map(width).collect()
}

/// Formats columns with these widths. A column of width zero is omitted.
fn columns(heading: &[&str], rows: &[Vec<String>], widths: &[usize]) -> String {
    let cell = |cell: &str, width: usize| {
        if cell.chars().count() <= width {
            return format!("{cell:<width$}");
        }
        cell.chars().take(width.saturating_sub(1)).chain(['\u{2026}']).collect()
    };
    let line = |cells: Vec<&str>| {
        let shown = cells.iter().zip(widths).filter(|(_, width)| **width > 0);
        let padded: Vec<String> = shown.map(|(text, width)| cell(text, *width)).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = line(heading.to_vec());
    for row in rows {
        text += &line(row.iter().map(String::as_str).collect());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![row(["0193a", "imports/nightly/of-the-whole-company", "", "healthy"]), row(["0193b", "a", "", "failing"])]
    }

    #[test]
    fn table_is_truncated_to_terminal_except_ids() {
        let heading = ["ID", "NAMESPACE", "STAGED", "HEALTH"];
        let whole = fitted(&heading, &rows(), 100);
        assert_eq!(whole, columns(&heading, &rows(), &natural_widths(&heading, &rows())));
        assert!(whole.contains("STAGED") && whole.contains("of-the-whole-company"), "{whole}");
        let narrow = fitted(&heading, &rows(), 40);
        let expected = "ID     NAMESPACE                 HEALTH\n\
                        0193a  imports/nightly/of-the-\u{2026}  healthy\n\
                        0193b  a                         failing\n";
        assert_eq!(narrow, expected);
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        let narrowest = fitted(&heading, &rows(), 5);
        assert!(narrowest.contains("0193a") && narrowest.contains("HEALTH"), "{narrowest}");
    }
}
