//! JSON: OpenBao and Vault secrets (one, or several by path), Airflow connections, and output of cloud tools.

use crate::airflow;
use crate::reading::{Fields, Pair, interpret, key_file};
use crate::table::table;
use crate::{Entry, Violation};
use serde_json::{Map, Value};
use std::collections::HashMap;
use vault_core::credential::CredentialType;

pub(crate) fn entries(text: &str) -> Result<Vec<Entry>, Violation> {
    let document: Value = serde_json::from_str(text).map_err(|error| syntax(&error))?;
    let lines = Lines::of(text);
    let secret = |name: &str, value: &Value, line: usize| secret(name, value, &lines, line);
    let all = |members: &Map<String, Value>| {
        members.iter().filter_map(|(name, value)| secret(name, value, lines.first(name))).collect()
    };
    let members = match &document {
        Value::Array(items) => {
            let name = |(index, item): (usize, &Value)| {
                let named = ["conn_id", "name", "alias"].into_iter().find_map(|name| item.get(name)?.as_str());
                secret(&named.map_or_else(|| (index + 1).to_string(), str::to_owned), item, 1)
            };
            return Ok(items.iter().enumerate().filter_map(name).collect());
        }
        Value::Object(members) => members,
        _ => return Err(Violation::new(1, table().reason("json"))),
    };
    // sops adds its own member to the file that it encrypts.
    if members.get("sops").is_some_and(|sops| sops.get("mac").is_some()) {
        return Ok(vec![Entry {
            name: String::new(),
            content: Err(Violation::of(lines.first("sops"), "sops", "encrypted")),
        }]);
    }
    let one = |value: &Value, line: usize| Ok(secret("", value, line).into_iter().collect());
    // The tools print the secret in `data`. Version 2 of the key-value engine nests it in another `data`.
    if let (Some(outer @ Value::Object(data)), true) = (members.get("data"), members.contains_key("request_id")) {
        let inner = data.get("data").filter(|inner| inner.is_object() && data.get("metadata").is_some());
        return one(inner.unwrap_or(outer), lines.first("data"));
    }
    let wrapped = ["Credentials", "AccessKey", "accessKey"]
        .into_iter()
        .find_map(|name| members.get(name).filter(|value| value.is_object()).map(|value| (value, lines.first(name))));
    if let Some((value, line)) = wrapped {
        return one(value, line);
    }
    let aliases = members.get("aliases").or_else(|| members.get("hosts")).and_then(Value::as_object);
    if let Some(aliases) = aliases.filter(|_| members.contains_key("version")) {
        return Ok(all(aliases));
    }
    let is_connection = is_airflow(&document);
    let is_by_path = !members.is_empty() && members.values().all(|value| value.is_object() && printed(value).is_none());
    let single = if is_connection || is_by_path { None } else { secret("", &document, 1) };
    let has_objects = is_connection || members.values().any(Value::is_object);
    Ok(if single.is_some() || !has_objects { single.into_iter().collect() } else { all(members) })
}

/// Returns whether an object contains Airflow connections.
pub(crate) fn is_airflow(document: &Value) -> bool {
    let is_connection = |value: &Value| match value {
        Value::String(text) => airflow::kind(text).is_some(),
        _ => value.get("conn_type").is_some_and(Value::is_string),
    };
    match document {
        Value::Object(members) => members.values().any(is_connection),
        Value::Array(items) => items.iter().any(is_connection),
        _ => false,
    }
}

/// Returns the value of a Terraform output.
fn printed(value: &Value) -> Option<&Value> {
    value.get("value").filter(|_| value.get("type").is_some() || value.get("sensitive").is_some())
}

/// Flattens an object. Fields of nested objects get both names, separated by a dot.
pub(crate) fn flattened(members: &Map<String, Value>, prefix: &str, lines: &dyn Fn(&str) -> usize) -> Vec<Pair> {
    // Each name would contain a long prefix, and no known name is long.
    let prefix = if prefix.len() > 256 { "" } else { prefix };
    let mut pairs = Vec::new();
    for (name, value) in members {
        let value = printed(value).unwrap_or(value);
        match value {
            Value::Object(inner) if key_file(value).is_none() && name != "headers" => {
                pairs.extend(flattened(inner, &format!("{prefix}{name}."), lines));
            }
            _ => pairs.push(Pair::new(format!("{prefix}{name}"), value.clone(), lines(name))),
        }
    }
    pairs
}

/// Returns the credential in a value, or `None` if it has no name and no recognizable type.
pub(crate) fn secret(name: &str, value: &Value, lines: &Lines<'_>, line: usize) -> Option<Entry> {
    let entry = |content| Some(Entry { name: name.to_owned(), content });
    let read = |content: Option<Result<Fields, Violation>>| match content {
        Some(content) => entry(content),
        None if name.is_empty() => None,
        None => entry(Err(Violation::new(line, table().reason("unknown")))),
    };
    let members = match value {
        Value::Object(members) => members,
        Value::String(address) if airflow::kind(address).is_some() => return entry(airflow::of_address(address, line)),
        _ => return entry(Err(Violation::of(line, name, "object"))),
    };
    if members.get("conn_type").is_some_and(Value::is_string) {
        return entry(airflow::of_object(members, line));
    }
    let is = |field: &str, wanted: &str| members.get(field).and_then(Value::as_str) == Some(wanted);
    if is("type", "service_account") {
        let pair = Pair::new("service_account_key", value.clone(), line);
        return read(interpret(&[pair], Some(CredentialType::Gcs), line));
    }
    if is("kind", "Secret") && members.contains_key("data") {
        return entry(Err(Violation::of(lines.after(line, "data"), "data", "encoded")));
    }
    let mut pairs = flattened(members, "", &|name| lines.after(line, name));
    for pair in &mut pairs {
        // In aliases of the MinIO client, `path` is the addressing style.
        if pair.name == "path" && pair.value.as_str().is_some_and(|style| table().is_flag(style)) {
            pair.counts_as = Some("path_style".into());
        }
    }
    read(interpret(&pairs, None, line))
}

/// Converts a syntax error. The parser's message may contain part of the text, so only the position is reported.
pub(crate) fn syntax(error: &serde_json::Error) -> Violation {
    Violation::new(error.line(), format!("{} (column {})", table().reason("json"), error.column()))
}

/// Line numbers of the members in a text, by their quoted names.
pub(crate) struct Lines<'a>(HashMap<&'a str, Vec<usize>>);

impl<'a> Lines<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let mut lines: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let mut rest = line;
            while let Some(start) = rest.find('"') {
                let inner = &rest[start + 1..];
                let mut is_escaped = false;
                let end = inner.find(|c| {
                    let ends = c == '"' && !is_escaped;
                    is_escaped = c == '\\' && !is_escaped;
                    ends
                });
                let Some(end) = end else { break };
                let (name, after) = rest[start..].split_at(end + 2);
                if after.trim_start().starts_with(':') {
                    lines.entry(name).or_default().push(index + 1);
                }
                rest = after;
            }
        }
        Self(lines)
    }

    /// Returns the line of the first member with this name.
    fn first(&self, name: &str) -> usize {
        self.after(1, name)
    }

    /// Returns the line of the first member with this name from the line `first`, or `first` if there is none.
    fn after(&self, first: usize, name: &str) -> usize {
        let lines = self.0.get(&*Value::from(name).to_string()).map(Vec::as_slice).unwrap_or_default();
        lines.get(lines.partition_point(|line| *line < first)).copied().unwrap_or(first)
    }
}
