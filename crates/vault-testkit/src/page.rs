//! Tables of the documentation that are generated from definitions.

use std::path::Path;

/// Compares the rows of a page's table, which follow its head `head`, with `rows`. With `ORGVAULT_UPDATE=1` in the
/// environment, writes them instead. Returns the text after the table.
///
/// # Panics
/// The table differs, or the page cannot be read.
pub fn hold_table(page: &Path, head: &str, rows: &str) -> String {
    let text = std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let (start, rest) = text.split_once(head).unwrap_or_else(|| panic!("{} has no table {head}", page.display()));
    let end = rest.lines().take_while(|line| line.starts_with("| ")).map(|line| line.len() + 1).sum();
    let (table, rest) = rest.split_at(end);
    if std::env::var_os("ORGVAULT_UPDATE").is_some() {
        std::fs::write(page, format!("{start}{head}{rows}{rest}")).unwrap();
    } else {
        assert_eq!(table, rows, "run this test with ORGVAULT_UPDATE=1 to rewrite {}", page.display());
    }
    rest.to_owned()
}
