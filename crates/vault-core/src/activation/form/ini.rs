//! What the readers of INI files have in common. None of them has a way to quote that all of them know.

/// Why a value that is not [`holds`] cannot be written.
pub(super) const UNQUOTABLE: &str =
    "it contains a character that INI files cannot hold (a line break, a comment sign or surrounding space)";

/// Whether every reader takes `value` as it is: one line, no space around it that would be cut off, and nothing that
/// could be taken for a comment.
pub(super) fn holds(value: &str) -> bool {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut before = ' ';
    let comments = value.chars().any(|c| {
        let begins = matches!(c, '#' | ';') && before.is_whitespace();
        before = c;
        begins
    });
    !value.is_empty() && value.trim() == value && !value.contains(breaks) && !comments
}

/// Writes `name = value`.
pub(super) fn write_line(name: &str, value: &str, sink: &mut dyn FnMut(&str)) {
    sink(name);
    sink(" = ");
    sink(value);
    sink("\n");
}
