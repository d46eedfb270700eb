//! Parsing the fields of an object. All violations are reported together.

use proptest::prelude::*;
use vault_core::field::{FieldCode, FieldError};
use vault_core::json::{Limits, Node, ObjectReader, parse};

fn reader(text: &str) -> ObjectReader {
    parse(text.as_bytes(), Limits::REQUEST).unwrap().into_reader().unwrap()
}

fn node(text: &str) -> Node {
    parse(text.as_bytes(), Limits::REQUEST).unwrap().root
}

fn violations(errors: &[FieldError]) -> Vec<(&str, FieldCode)> {
    errors.iter().map(|error| (error.pointer.as_str(), error.code)).collect()
}

proptest! {
    #[test]
    fn integers_are_exact_or_saturate(number in any::<i128>()) {
        let expected = i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX });
        prop_assert_eq!(node(&number.to_string()).as_integer(), Some(expected));
    }

    #[test]
    fn fractions_are_not_integers(number in -1_000_000_i32..1_000_000) {
        for text in [format!("{number}.5"), format!("{number}.0")] {
            prop_assert_eq!(node(&text).as_integer(), None);
        }
    }

    #[test]
    fn every_field_is_read_or_reported(
        names in prop::collection::btree_set("[a-z]{1,4}", 0..20),
        asked in prop::collection::btree_set("[a-z]{1,4}", 0..20),
    ) {
        let members: Vec<_> = names.iter().map(|name| format!("\"{name}\":\"x\"")).collect();
        let mut reader = reader(&format!("{{{}}}", members.join(",")));
        for name in &asked {
            prop_assert_eq!(reader.string(name).is_some(), names.contains(name));
        }
        let errors = reader.finish();
        let of = |code| errors.iter().filter(move |error| error.code == code).map(|error| error.pointer[1..].to_owned());
        prop_assert!(of(FieldCode::Unknown).eq(names.difference(&asked).cloned()));
        prop_assert!(of(FieldCode::Required).eq(asked.difference(&names).cloned()));
    }
}

#[test]
fn reads_each_kind() {
    let mut reader = reader(r#"{"s":"text","b":true,"n":[1]}"#);
    assert_eq!(reader.string("s").unwrap().expose(), "text");
    assert_eq!(reader.optional_bool("b"), Some(true));
    assert!(reader.node("n").is_some());
    assert!(reader.optional_string("absent").is_none());
    assert!(reader.optional_bool("absent").is_none());
    assert!(reader.optional_node("absent").is_none());
    assert!(reader.finish().is_empty());
}

#[test]
fn null_is_a_wrong_type() {
    let mut reader = reader(r#"{"a":null,"b":null,"c":null,"e":null,"f":null}"#);
    assert!(reader.string("a").is_none());
    assert!(reader.optional_string("b").is_none());
    assert!(reader.optional_bool("c").is_none());
    assert!(reader.node("e").is_none());
    assert!(reader.optional_node("f").is_none());
    let errors = reader.finish();
    assert_eq!(errors.len(), 5);
    assert!(errors.iter().all(|error| error.code == FieldCode::WrongType));
}

#[test]
fn all_violations_are_returned_together() {
    let mut reader = reader(r#"{"a":1,"a":2,"b":"x","surplus":0,"<b>":0}"#);
    assert!(reader.string("a").is_none());
    assert!(reader.string("email").is_none());
    assert!(reader.optional_bool("b").is_none());
    let errors = reader.finish();
    let expected = [
        ("/a", FieldCode::Duplicate),
        ("/a", FieldCode::WrongType),
        ("/email", FieldCode::Required),
        ("/b", FieldCode::WrongType),
        ("/surplus", FieldCode::Unknown),
        ("", FieldCode::Unknown),
    ];
    assert_eq!(violations(&errors), expected);
}

#[test]
fn non_object_document_is_refused() {
    let errors = parse(br#"[{"a":1,"a":2}]"#, Limits::REQUEST).unwrap().into_reader().err().unwrap();
    assert_eq!(violations(&errors), [("/0/a", FieldCode::Duplicate), ("", FieldCode::WrongType)]);
}
