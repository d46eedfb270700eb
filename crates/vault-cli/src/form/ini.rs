//! Common rules of INI parsers. They have no common quoting syntax.

/// Reason why a value cannot be written if [`can_store`] returns `false`.
pub(super) const UNQUOTABLE: &str =
    "it contains a character that INI files cannot contain (a line break, a comment sign or surrounding space)";

/// Returns whether every parser reads `value` unchanged: one line, without leading or trailing space that would be
/// trimmed, and without anything that could be read as a comment.
pub(super) fn can_store(value: &str) -> bool {
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
