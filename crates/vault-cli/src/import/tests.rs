use super::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A text and its expected entries. `tests/paste_vectors.mjs` runs the console's parser on the same vectors.
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

/// Returns the kind of a reason in the table.
fn kind(violation: &Violation) -> String {
    let reasons = table::table().reasons();
    let found = reasons.iter().find(|(_, reason)| violation.reason.starts_with(&***reason));
    found.map_or_else(|| violation.reason.clone(), |(kind, _)| (*kind).clone())
}

/// Returns an entry in the format of the vectors.
fn described(entry: &Entry) -> Value {
    let refusal = |violation: &Violation| json!([violation.field.clone().unwrap_or_default(), kind(violation)]);
    match &entry.content {
        Err(violation) => json!({"name": entry.name, "refused": refusal(violation)}),
        Ok(fields) => {
            let data: Map<String, Value> = serde_json::from_str(&fields.to_json().expect("JSON")).expect("JSON");
            let mut members = json!({"name": entry.name, "type": fields.kind.as_str(), "values": data});
            if !fields.left_out.is_empty() {
                members["left_out"] = json!(fields.left_out);
            }
            if let Some(violation) = &fields.needs {
                members["needs"] = refusal(violation);
            }
            if let Some(time) = &fields.expires_at {
                members["expires_at"] = json!(time);
            }
            members
        }
    }
}

/// Normalizes key files to objects and flags to strings, because a form contains either.
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
fn texts_are_parsed_as_in_vectors() {
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

fn read_one(source: Source, texts: &[(&Path, &str)], files: &Files<'_>) -> Vec<(String, Value)> {
    let entries = read(source, texts, files).unwrap_or_else(|failure| panic!("{failure}"));
    entries.iter().map(|entry| (entry.name.clone(), described(entry))).collect()
}

#[test]
fn key_files_are_read_from_paths_of_rclone() {
    let section =
        |name: &str, file: &str| format!("[{name}]\ntype = google cloud storage\nservice_account_file = {file}\n");
    let names =
        ["${RCLONE_CONFIG_DIR}/key.json", "~/key.json", "keys/key.json", "$KEYS/key.json", "/etc/key.json", "a~/k"];
    let text: String = names.iter().enumerate().map(|(at, file)| section(&at.to_string(), file)).collect();
    let files = Files {
        variable: &|name| match name {
            "HOME" => Some("/home/user".to_owned()),
            "KEYS" => Some("/keys".to_owned()),
            _ => None,
        },
        read: &|path| Ok(json!({"private_key": path}).to_string()),
    };
    let found = read_one(Source::Rclone, &[(Path::new("/conf/rclone.conf"), &text)], &files);
    let keys: Vec<Value> = found
        .into_iter()
        .map(|(_, entry)| comparable(entry)["values"]["service_account_key"]["private_key"].clone())
        .collect();
    let expected =
        ["/conf/key.json", "/home/user/key.json", "keys/key.json", "/keys/key.json", "/etc/key.json", "a~/k"];
    assert_eq!(keys, expected);
}

#[test]
fn aws_profiles_merge_across_files_in_any_order() {
    let config = "[profile daily]\nregion = eu-north-1\n[profile reader]\nrole_arn = r\nsource_profile = daily\n";
    let credentials = "[daily]\naws_access_key_id = k\naws_secret_access_key = s\n";
    let (config, credentials) = ((Path::new("config"), config), (Path::new("credentials"), credentials));
    for texts in [[config, credentials], [credentials, config]] {
        let found = read_one(Source::Aws, &texts, &NO_FILES);
        assert_eq!(found.len(), 2);
        for (name, entry) in found {
            let region = if name == "daily" { json!("eu-north-1") } else { Value::Null };
            assert_eq!((&entry["values"]["access_key_id"], &entry["values"]["region"]), (&json!("k"), &region));
        }
    }
}

#[test]
fn regions_of_a_credentials_file_are_read_from_config_beside_it() {
    let credentials = "[daily]\naws_access_key_id = k\naws_secret_access_key = s\n";
    let config = "[profile daily]\nregion = eu-north-1\n[profile sso]\nsso_session = corp\n";
    let read = |path: &Path| if path == Path::new("/a/config") { Ok(config.to_owned()) } else { Err(String::new()) };
    let files = Files { variable: &|_| None, read: &read };
    for (path, region) in [("/a/credentials", json!("eu-north-1")), ("/b/credentials", Value::Null)] {
        let found = read_one(Source::Aws, &[(Path::new(path), credentials)], &files);
        let [(_, entry)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(entry["values"]["region"], region);
    }
}

#[test]
fn utf_16_is_decoded_and_other_encodings_are_named() {
    let bytes = |unit: fn(u16) -> [u8; 2]| "\u{feff}{\"a\": \"ü\"}".encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    for bytes in [bytes(u16::to_le_bytes), bytes(u16::to_be_bytes)] {
        assert_eq!(decode(&bytes).as_ref().map(|text| text.as_str()), Ok("{\"a\": \"ü\"}"));
    }
    assert!(decode(b"\xff\xfea\0b").is_err_and(|error| error.contains("incomplete")));
    assert!(decode(b"{\0\"\0").is_err_and(|error| error.contains("UTF-16")));
    assert!(decode(b"a\xff").is_err_and(|error| error.contains("byte 1")));
}

#[test]
fn files_with_errors_are_refused_with_their_line() {
    for (source, text, reason) in [
        (Source::Rclone, "# Encrypted rclone configuration File\nRCLONE_ENCRYPT_V0:\nabc", "rclone config show"),
        (Source::Rclone, "[a]\nhunter2\n", "line 2: expected `name = value`"),
        (Source::Aws, "hunter2 = a\n", "line 1: expected a section"),
        (Source::Airflow, "{\n\"a\": hunter2}", "line 2: expected a JSON object (column 6)"),
        (Source::Text, "hunter2", "no credential found"),
    ] {
        let Err(failure) = read(source, &[(Path::new("file"), text)], &NO_FILES) else { panic!("{text} was read") };
        let failure = failure.to_string();
        assert!(failure.contains(reason) && !failure.contains("hunter2"), "{failure}");
    }
}

proptest::proptest! {
    /// No input makes a reader panic, and no reason contains a value.
    #[test]
    fn no_text_panics_or_shows_a_value(
        text in "(\\[[a-z ]{0,4}\\]\n|(export |\\$env:)?(type|endpoint|AWS_ACCESS_KEY_ID|secret_key|[a-z_.]{0,6}) ?[=:] ?.{0,4}HUNTER2.{0,4}\n|\\{\"[a-z_]{0,6}\": ?\"HUNTER2\"\\}|\\PC{0,10}\n){0,8}"
    ) {
        for source in Source::ALL {
            let entries = match read(source, &[(Path::new("file"), &text)], &NO_FILES) {
                Ok(entries) => entries,
                Err(failure) => {
                    proptest::prop_assert!(!failure.to_string().contains("HUNTER2"));
                    continue;
                }
            };
            for entry in entries {
                let violation = match &entry.content {
                    Ok(fields) => check(fields).err().or_else(|| fields.needs.clone()),
                    Err(violation) => Some(violation.clone()),
                };
                proptest::prop_assert!(!violation.is_some_and(|violation| violation.reason.contains("HUNTER2")));
            }
        }
    }
}
