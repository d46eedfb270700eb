//! Detection of masks that were copied from a screen or a log instead of the value.

use super::spec::FieldClass;

/// Returns whether `text` is a mask instead of a value.
pub(super) fn is_mask(text: &str, class: FieldClass) -> bool {
    is_drawn(text) || is_worded(text, class)
}

/// Returns whether a character is used in masks, and unlikely to be repeated in values.
fn is_solid(c: char) -> bool {
    matches!(
        c,
        '*' | '\u{2022}' // bullet
            | '\u{25cf}' // black circle
            | '\u{2219}' // bullet operator
            | '\u{b7}' // middle dot
            | '\u{2026}' // ellipsis
            | '\u{2588}' // full block
            | '\u{25aa}' // small square
            | '\u{25e6}' // white bullet
            | '\u{204e}' // low asterisk
            | '\u{ff0a}' // full-width asterisk
    )
}

fn is_drawn(text: &str) -> bool {
    /// Number of characters that tools show outside the mask: `AKIA`, asterisks and the last few.
    const READABLE: usize = 12;
    let length = text.chars().count();
    let excess = |drawn: fn(char) -> bool| length - text.chars().filter(|c| drawn(*c)).count();
    let is_cross = |c: char| matches!(c, 'x' | 'X');
    let is_line = |c: char| matches!(c, '.' | '-' | '_' | '#' | '?');
    if text.is_empty() {
        return false;
    }
    text.chars().all(is_solid)
        || (length >= 3 && text.chars().all(is_line))
        || (length >= 4 && text.chars().all(is_cross))
        // The mask of OrgVault, and other spellings of it.
        || text.starts_with('\u{2026}')
        || (text.starts_with("...") && length <= 3 + 8)
        || (text.contains('\u{2026}') && excess(is_solid) <= READABLE)
        || match longest_run(text, is_solid) {
            0..=2 => false,
            3..=7 => excess(is_solid) <= READABLE,
            _ => true,
        }
        || (longest_run(text, is_cross) >= 8 && excess(is_cross) <= 4)
}

fn longest_run(text: &str, wanted: fn(char) -> bool) -> usize {
    let runs = text.chars().scan(0, |run, c| {
        *run = if wanted(c) { *run + 1 } else { 0 };
        Some(*run)
    });
    runs.max().unwrap_or(0)
}

fn is_worded(text: &str, class: FieldClass) -> bool {
    /// As the whole text, these can be the name of a location, but are unlikely to be a secret.
    const ALONE: [&str; 5] = ["redacted", "masked", "hidden", "censored", "unchanged"];
    const WRAPPED: [&str; 9] = [
        "removed",
        "omitted",
        "filtered",
        "protected",
        "encrypted",
        "secret",
        "sensitive",
        "sensitive value",
        "not shown",
    ];
    const BRACKETS: [(&str, &str); 5] = [("<", ">"), ("[", "]"), ("(", ")"), ("{", "}"), ("__", "__")];
    if text.len() > 64 {
        return false;
    }
    let text = text.to_lowercase();
    let drawn = text.trim_matches(is_solid);
    let inner = BRACKETS
        .iter()
        .find_map(|(open, close)| drawn.strip_prefix(open)?.strip_suffix(close))
        .map(|inner| inner.trim_matches(|c: char| c == ' ' || is_solid(c)));
    match inner {
        Some(inner) => ALONE.contains(&inner) || WRAPPED.contains(&inner),
        None if drawn.len() < text.len() => ALONE.contains(&drawn) || WRAPPED.contains(&drawn),
        None => class != FieldClass::Location && ALONE.contains(&drawn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_masks() {
        for text in [
            "*",
            "***",
            "••••",
            "●●●●●●",
            "<redacted>",
            "[REDACTED]",
            "(hidden)",
            "{masked}",
            "***REDACTED***",
            "__secret__",
            "REDACTED",
            "****************abcd",
            "…4f2a",
            "...4f2a",
            "AKIA************MPLE",
            "AKIA…MPLE",
            "sk-****",
            "xxxxxxxx",
            "XXXXXXXXXXXX1234",
            "........",
            "(sensitive value)",
            "--------",
            "█████",
            "ab••••••••••cdefghijklmnop",
        ] {
            assert!(is_mask(text, FieldClass::Secret), "{text}");
        }
    }

    #[test]
    fn leaves_values_alone() {
        for text in [
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYTESTSECRET",
            "AKIA2TESTONLY7SAMPLE",
            "a*b*c",
            "xxx",
            "Pa**word",
            "hidden-gem",
            "x1x2x3x4",
            "c2VjcmV0PT0=",
            "p···",
            "...and a long pass phrase follows",
        ] {
            let expected = text == "p···";
            assert_eq!(is_mask(text, FieldClass::Secret), expected, "{text}");
        }
        for text in ["redacted", "hidden", "masked", "a.b", "data/x/", "_", "xx"] {
            assert!(!is_mask(text, FieldClass::Location), "{text}");
        }
    }
}
