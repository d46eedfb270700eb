//! Words of a POSIX shell.

/// Writes `text` as one word: between single quotes nothing has a meaning but the quote itself (POSIX, Shell Command
/// Language, 2.2.2).
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
