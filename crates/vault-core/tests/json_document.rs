//! The strict JSON parser: it never panics, never guesses, and enforces its limits.

use proptest::prelude::*;
use serde_json::Value;
use vault_core::field::{FieldCode, FieldError};
use vault_core::json::{Limits, Node, SyntaxError, parse};

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn to_value(node: &Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(value) => Value::Bool(*value),
        Node::Number(number) => Value::Number(number.clone()),
        Node::String(text) => Value::from(text.expose()),
        Node::Array(elements) => elements.iter().map(to_value).collect(),
        Node::Object(members) => members.iter().map(|member| (member.name.clone(), to_value(&member.value))).collect(),
    }
}

fn refusal(text: &str) -> SyntaxError {
    parse(text.as_bytes(), Limits::REQUEST).unwrap_err()
}

proptest! {
    #[test]
    fn near_json_is_parsed_as_by_serde_json(text in r#"[\[\]{}:,"\\/0-9eE.+\-truefalsn \n]{0,24}"#) {
        let ours = parse(text.as_bytes(), Limits::REQUEST).is_ok();
        prop_assert_eq!(ours, serde_json::from_str::<Value>(&text).is_ok());
    }

    #[test]
    fn written_values_are_parsed(value in values(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let document = parse(text.unwrap().as_bytes(), Limits::REQUEST).unwrap();
        prop_assert!(document.duplicates.is_empty());
        prop_assert_eq!(to_value(&document.root), value);
    }

    #[test]
    fn duplicate_is_found_at_any_position(
        outside in prop::collection::vec(prop_oneof!["[a-z]{1,8}".prop_map(Some), Just(None)], 0..12),
        mut names in prop::collection::btree_set("[a-z]{1,6}", 1..40).prop_map(Vec::from_iter).prop_shuffle(),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        times in 1..4_usize,
    ) {
        let twice = names[from.index(names.len())].clone();
        let at = to.index(names.len() + 1);
        names.splice(at..at, std::iter::repeat_n(twice.clone(), times));
        let members: Vec<_> = names.iter().enumerate().map(|(index, name)| format!("\"{name}\":{index}")).collect();
        let mut text = format!("{{{}}}", members.join(","));
        let mut pointer = format!("/{twice}");
        for step in outside {
            (text, pointer) = match step {
                Some(name) => (format!("{{\"{name}\":{text}}}"), format!("/{name}{pointer}")),
                None => (format!("[0,{text}]"), format!("/1{pointer}")),
            };
        }
        let document = parse(text.as_bytes(), Limits::REQUEST).unwrap();
        prop_assert_eq!(document.duplicates, [FieldError::new(pointer, FieldCode::Duplicate, "must not be repeated")]);
    }

    #[test]
    fn depth_limit_is_exact(depth in 1..40_usize, limit in 1..40_usize, in_objects in any::<bool>()) {
        let (open, close) = if in_objects { ("{\"a\":", "}") } else { ("[", "]") };
        let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        let result = parse(text.as_bytes(), Limits { depth: limit, members: 100 });
        prop_assert_eq!(result.err(), (depth > limit).then_some(SyntaxError::TooDeep));
    }

    #[test]
    fn field_limit_is_exact(counts in prop::collection::vec(0..20_usize, 1..8), limit in 0..100_usize) {
        let arrays: Vec<_> = counts.iter().map(|count| format!("[{}]", vec!["0"; *count].join(","))).collect();
        let text = format!("[{}]", arrays.join(","));
        let total = counts.len() + counts.iter().sum::<usize>();
        let result = parse(text.as_bytes(), Limits { depth: 16, members: limit });
        prop_assert_eq!(result.err(), (total > limit).then_some(SyntaxError::TooManyMembers));
    }
}

#[test]
fn first_duplicate_is_kept() {
    let document = parse(br#"{"a":1,"b":{"c":1,"c":2},"a":{"d":1,"d":2},"a":3}"#, Limits::REQUEST).unwrap();
    let pointers: Vec<_> = document.duplicates.iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/b/c", "/a/d", "/a"]);
    assert_eq!(to_value(&document.root), serde_json::json!({"a": 1, "b": {"c": 1}}));
}

#[test]
fn only_plain_names_appear_in_errors() {
    for (text, pointer) in [
        (r#"{"a b":1,"a b":2}"#, ""),
        (r#"{"o":{"<script>":1,"<script>":2,"?":1,"?":2}}"#, "/o"),
        (r#"{"o":{"not plain":{"a":1,"a":2}}}"#, "/o"),
        (r#"{"a":[{"b":1,"b":2}]}"#, "/a/0/b"),
    ] {
        let duplicates = parse(text.as_bytes(), Limits::REQUEST).unwrap().duplicates;
        let pointers: Vec<_> = duplicates.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, [pointer], "{text}");
    }
    let long = "a".repeat(65);
    let text = format!(r#"{{"{long}":1,"{long}":2}}"#);
    assert_eq!(parse(text.as_bytes(), Limits::REQUEST).unwrap().duplicates[0].pointer, "");
}

#[test]
fn non_json_is_refused() {
    let digits = format!("1{}", "0".repeat(400));
    for text in [
        "",
        " ",
        "\u{feff}{}",
        "{} {}",
        "{}x",
        "[1,]",
        "{\"a\":1,}",
        "{'a':1}",
        "01",
        "+1",
        "1.",
        "NaN",
        "Infinity",
        "1e400",
        &digits,
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\n\"",
        "\"\\x41\"",
        "// c\n1",
        "{\"a\"}",
        "\"",
        "tru",
    ] {
        assert_eq!(refusal(text), SyntaxError::NotJson, "{text:?}");
    }
    for bytes in [&b"\"\xff\""[..], b"\xff\xfe{\0}\0", b"\"\xc0\x80\"", b"\"\xed\xa0\x80\""] {
        assert_eq!(parse(bytes, Limits::REQUEST).unwrap_err(), SyntaxError::NotUtf8);
    }
}

#[test]
fn depth_cannot_exhaust_the_stack() {
    for open in ["[", "{\"a\":"] {
        assert_eq!(refusal(&open.repeat(100_000)), SyntaxError::TooDeep);
    }
}

#[test]
fn too_many_fields_are_refused_and_the_maximum_is_cheap() {
    let object = |count: usize| {
        let members: Vec<_> = (0..count).map(|number| format!("\"name-that-is-long-{number:06}\":0")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert_eq!(refusal(&object(1_001)), SyntaxError::TooManyMembers);
    let Node::Object(members) = parse(object(1_000).as_bytes(), Limits::REQUEST).unwrap().root else {
        panic!("not an object");
    };
    assert_eq!(members.len(), 1_000);
}

#[test]
fn errors_and_debug_output_contain_no_content() {
    let document = parse(br#"{"canary": ["canary", {"x": "canary"}]}"#, Limits::REQUEST).unwrap();
    assert!(!format!("{document:?}").contains("canary"));
    if let Node::Object(members) = &document.root {
        assert!(!format!("{members:?}").contains("canary"));
    }
    let error = refusal(r#"{"canary": canary}"#);
    assert!(!format!("{error} {error:?}").contains("canary"));
}
