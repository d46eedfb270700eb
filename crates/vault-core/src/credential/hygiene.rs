//! Checks of values in all fields: they must not be blank, quoted, masked or placeholders.

use super::spec::FieldClass;
use super::violation::Violation;
use super::{mask, placeholder};
use crate::field::FieldCode;

/// Maximum length of a text, in bytes.
pub(super) const MAX_LENGTH: usize = 16 * 1024;

/// Applies all checks.
pub(super) fn check(text: &str, class: FieldClass) -> Result<(), Violation> {
    length(text)?;
    blank(text)?;
    surrounding_space(text)?;
    quotes(text)?;
    if text.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Err(Violation::new(FieldCode::ControlCharacter, "must not contain control or invisible characters"));
    }
    unfilled(text, class)
}

/// Applies the checks that are also valid for texts with their own format, such as the parts of a key file.
pub(super) fn check_content(text: &str, class: FieldClass) -> Result<(), Violation> {
    length(text)?;
    blank(text)?;
    quotes(text)?;
    unfilled(text, class)
}

/// Checks that a text is the value itself, and not a mask, a placeholder, a reference or ciphertext of another tool.
pub(super) fn unfilled(text: &str, class: FieldClass) -> Result<(), Violation> {
    if placeholder::is_ciphertext(text) {
        return Err(Violation::new(FieldCode::Placeholder, "was encrypted by another tool: decrypt it first"));
    }
    if placeholder::is_reference(text) {
        let detail = "is a reference to another secret store: enter the value itself";
        return Err(Violation::new(FieldCode::Placeholder, detail));
    }
    if mask::is_mask(text, class) {
        return Err(Violation::new(FieldCode::Masked, "is a mask such as ****: enter the value itself"));
    }
    if placeholder::is_placeholder(text, class) {
        return Err(Violation::new(FieldCode::Placeholder, "is a placeholder: enter the value itself"));
    }
    Ok(())
}

pub(super) fn length(text: &str) -> Result<(), Violation> {
    if text.len() > MAX_LENGTH {
        return Err(Violation::new(FieldCode::TooLong, "must be at most 16,384 bytes"));
    }
    Ok(())
}

pub(super) fn blank(text: &str) -> Result<(), Violation> {
    if text.chars().all(is_space) {
        return Err(Violation::new(
            FieldCode::Blank,
            "must not be empty or blank; leave out an optional field instead",
        ));
    }
    Ok(())
}

pub(super) fn surrounding_space(text: &str) -> Result<(), Violation> {
    if text.starts_with(is_space) || text.ends_with(is_space) {
        return Err(Violation::new(FieldCode::Surrounded, "must not begin or end with white space"));
    }
    Ok(())
}

pub(super) fn quotes(text: &str) -> Result<(), Violation> {
    // Require both ends, because a secret chosen by a user may well end with a quotation mark.
    const PAIRS: [(&str, &str); 8] = [
        ("\"", "\""),
        ("'", "'"),
        ("`", "`"),
        ("\u{201c}", "\u{201d}"),
        ("\u{201e}", "\u{201c}"),
        ("\u{2018}", "\u{2019}"),
        ("\u{ab}", "\u{bb}"),
        ("\\\"", "\\\""),
    ];
    if PAIRS.iter().any(|(open, close)| text.strip_prefix(open).is_some_and(|rest| rest.ends_with(close))) {
        return Err(Violation::new(FieldCode::Surrounded, "must not be enclosed in quotation marks"));
    }
    Ok(())
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || is_invisible(c)
}

/// Returns whether a character has zero width or changes the direction of text.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<FieldCode> {
        check(text, FieldClass::Secret).err().map(|violation| violation.code)
    }

    #[test]
    fn reports_the_kind_of_violation() {
        for text in ["", " ", "\t\r\n", "\u{a0}", "\u{feff}\u{200b}"] {
            assert_eq!(code(text), Some(FieldCode::Blank), "{text:?}");
        }
        for text in
            [" a", "a\n", "\u{feff}abc", "\"abc\"", "'abc'", "`abc`", "\u{201c}abc\u{201d}", "\\\"abc\\\"", "''"]
        {
            assert_eq!(code(text), Some(FieldCode::Surrounded), "{text:?}");
        }
        for text in ["a\0b", "a\nb", "a\u{7f}b", "a\u{85}b", "a\u{202e}b", "a\u{2028}b"] {
            assert_eq!(code(text), Some(FieldCode::ControlCharacter), "{text:?}");
        }
        assert_eq!(code(&"ab".repeat(MAX_LENGTH / 2)), None);
        assert_eq!(code(&"a".repeat(MAX_LENGTH + 1)), Some(FieldCode::TooLong));
    }

    #[test]
    fn real_values_are_accepted() {
        for text in ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYTESTSECRET", "a'b\"c", "it's'", "~8Q.x-_y", "pass phrase", "Zażółć"]
        {
            assert_eq!(code(text), None, "{text:?}");
        }
    }
}
