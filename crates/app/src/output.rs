//! What commands print on standard output: text for people, or one JSON document for scripts.

use crate::failure::Failure;
use serde::Serialize;
use std::io::{self, BufRead, IsTerminal, Write};

/// Where and how to print.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    /// JSON for scripts, or text for people.
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether it is for scripts.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints `document` for scripts or `text` for people.
    pub(crate) fn print(self, document: &impl Serialize, text: &str) -> Result<(), Failure> {
        let mut bytes = if self.json { serde_json::to_vec(document)? } else { text.as_bytes().to_vec() };
        if !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(&bytes).and_then(|()| stdout.flush()) {
            // Whoever reads has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => Ok(result?),
        }
    }

    /// Asks on the terminal for `expected` to be typed. Without a terminal it refuses and names the flag for scripts.
    pub(crate) fn confirm(self, question: &str, expected: &str) -> Result<(), Failure> {
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

/// Writes a warning to standard error.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "orgvault: warning: {text}"); // standard error may be closed
}

/// Rows as aligned columns under a heading.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([heading[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = line(heading.to_vec());
    for row in rows {
        text += &line(row.iter().map(String::as_str).collect());
    }
    text
}
