//! Damaged values, and a digester.

use vault_core::field::FieldCode;
use vault_testkit::crypto::FakeDigester;

/// Distinguishes inputs with different parts, which suffices for the properties.
pub(crate) const HASHES: FakeDigester = FakeDigester::keyed(0);

/// Returns `text` as screens, shells and templates often damage it.
pub(crate) fn corrupted(text: &str) -> Vec<(String, FieldCode)> {
    let tail: String = text.chars().skip(text.chars().count().saturating_sub(4)).collect();
    vec![
        (String::new(), FieldCode::Blank),
        (" \t ".into(), FieldCode::Blank),
        (format!("\"{text}\""), FieldCode::Surrounded),
        (format!("'{text}'"), FieldCode::Surrounded),
        (format!("\u{201c}{text}\u{201d}"), FieldCode::Surrounded),
        ("***".into(), FieldCode::Masked),
        ("\u{2022}\u{2022}\u{2022}\u{2022}".into(), FieldCode::Masked),
        ("<redacted>".into(), FieldCode::Masked),
        ("[REDACTED]".into(), FieldCode::Masked),
        (format!("****************{tail}"), FieldCode::Masked),
        (format!("\u{2026}{tail}"), FieldCode::Masked),
        ("${SECRET}".into(), FieldCode::Placeholder),
        ("{{ secret }}".into(), FieldCode::Placeholder),
        ("$(cat secret)".into(), FieldCode::Placeholder),
        ("%SECRET%".into(), FieldCode::Placeholder),
        ("<your-secret>".into(), FieldCode::Placeholder),
        ("a".repeat(16 * 1024 + 1), FieldCode::TooLong),
    ]
}

/// Returns damaged values as [`corrupted`] does, for values that contain no white space or control characters.
pub(crate) fn corrupted_by_space(text: &str) -> Vec<(String, FieldCode)> {
    vec![
        (format!(" {text}"), FieldCode::Surrounded),
        (format!("{text}\n"), FieldCode::Surrounded),
        (format!("\u{feff}{text}"), FieldCode::Surrounded),
        (format!("{text}\u{a0}"), FieldCode::Surrounded),
        (format!("a\0{text}"), FieldCode::ControlCharacter),
        (format!("{text}\u{1b}[0m"), FieldCode::ControlCharacter),
    ]
}
