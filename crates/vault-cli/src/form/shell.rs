//! Quoting for POSIX shells.

/// Writes `text` as one word. Between single quotes, only the quote itself is special (POSIX, Shell Command Language,
/// 2.2.2).
pub(super) fn write_quoted(text: &str, sink: &mut dyn FnMut(&str)) {
    sink("'");
    for (index, piece) in text.split('\'').enumerate() {
        if index > 0 {
            sink("'\\''");
        }
        sink(piece);
    }
    sink("'");
}
