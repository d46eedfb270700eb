use super::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A text and its entries, which `tests/paste_vectors.mjs` compares with the console's.
#[derive(Deserialize)]
struct Vector {
    about: String,
    text: String,
    entries: Vec<Value>,
}

const NO_FILES: Files<'_> = Files { variable: &|_| None, read: &|_| Err("there is none".to_owned()) };

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("vectors.json")).expect("the vectors are JSON")
}

fn read_all(text: &str) -> Result<Vec<Entry>, Failure> {
    read(Source::detect(text), &[(Path::new("-"), text)], &NO_FILES)
}

/// The kind of a reason in the table.
fn kind(flaw: &Flaw) -> String {
    let reasons = table::table().reasons();
    let found = reasons.iter().find(|(_, reason)| flaw.reason.starts_with(&***reason));
    found.map_or_else(|| flaw.reason.clone(), |(kind, _)| (*kind).clone())
}

/// An entry as the vectors write it.
fn described(entry: &Entry) -> Value {
    let refusal = |flaw: &Flaw| json!([flaw.field.clone().unwrap_or_default(), kind(flaw)]);
    match &entry.content {
        Err(flaw) => json!({"name": entry.name, "refused": refusal(flaw)}),
        Ok(fields) => {
            let data: Map<String, Value> = serde_json::from_str(&fields.to_json().expect("JSON")).expect("JSON");
            let mut members = json!({"name": entry.name, "type": fields.kind.as_str(), "values": data});
            if !fields.left_out.is_empty() {
                members["left_out"] = json!(fields.left_out);
            }
            if let Some(flaw) = &fields.needs {
                members["needs"] = refusal(flaw);
            }
            if let Some(time) = &fields.expires_at {
                members["expires_at"] = json!(time);
            }
            members
        }
    }
}

/// Key files are compared as objects, and flags as texts: both are what a form contains.
fn comparable(mut entry: Value) -> Value {
    for (name, value) in entry["values"].as_object_mut().into_iter().flatten() {
        let parsed =
            value.as_str().filter(|_| name == "service_account_key").and_then(|text| serde_json::from_str(text).ok());
        *value = match parsed {
            Some(object) => object,
            None if value.is_boolean() => json!(value.to_string()),
            None => value.take(),
        };
    }
    if let Some(names) = entry["left_out"].as_array_mut() {
        names.sort_by_key(Value::to_string);
    } else if let Some(members) = entry.as_object_mut() {
        members.remove("left_out");
    }
    if let Some(time) = entry.get_mut("expires_at").filter(|time| time.is_string()) {
        *time = json!(time.as_str().unwrap_or_default().replace("+00:00", "Z"));
    }
    if let Some(members) = entry.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    entry
}

fn by_name(entries: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut entries: Vec<Value> = entries.into_iter().map(comparable).collect();
    entries.sort_by_key(|entry| entry["name"].to_string());
    entries
}

#[test]
fn texts_are_read_as_the_vectors_say() {
    let mut wrong = Vec::new();
    for Vector { about, text, entries } in vectors() {
        let text = decode(text.as_bytes()).expect("text");
        let found = by_name(read_all(&text).unwrap_or_default().iter().map(described));
        let expected = by_name(entries);
        if found != expected {
            wrong.push(format!("{about}\n found    {}\n expected {}", json!(found), json!(expected)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
