use super::*;
use serde_json::{Map, Value, json};

/// Texts with their expected entries: after `== ` a title, then the text, `--`, and one line per entry.
const CASES: &str = include_str!("cases.txt");

fn described(entry: &Entry) -> Value {
    let Entry { name, content } = entry;
    match content {
        Err(violation) => json!({"name": name, "refused": violation.to_string()}),
        Ok(fields) => {
            let data: Map<String, Value> = serde_json::from_str(&fields.to_json().expect("JSON")).expect("JSON");
            let mut described = json!({"name": name, "type": fields.kind.as_str(), "data": data});
            let needs = fields.needs.as_ref().map(|violation| json!(violation.to_string()));
            let left_out = Some(json!(fields.left_out)).filter(|_| !fields.left_out.is_empty());
            let expires_at = fields.expires_at.as_ref().map(|time| json!(time));
            for (name, value) in [("needs", needs), ("left_out", left_out), ("expires_at", expires_at)] {
                value.into_iter().for_each(|value| described[name] = value);
            }
            described
        }
    }
}

#[test]
fn texts_are_read_as_in_cases() {
    let mut wrong = String::new();
    for case in format!("\n{CASES}").split("\n== ").skip(1) {
        let case = format!("{case}\n");
        let (text, expected) = case.split_once("\n--\n").expect("a text and its entries");
        let (title, text) = text.split_once('\n').expect("a title and a text");
        let text = text.replace("<BOM>", "\u{feff}").replace("<CR>", "\r").replace("<TAB>", "\t");
        let text = decode(text.as_bytes()).expect("text");
        let found: String = match read(Source::detect(&text), &[(Path::new("-"), &text)], &Files::NONE) {
            Ok(entries) => entries.iter().map(|entry| format!("{}\n", described(entry))).collect(),
            Err(error) => format!("{error}\n"),
        };
        if found.trim() != expected.trim() {
            wrong += &format!("== {title}\n{}\n--\n{found}", &*text);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn read_one(source: Source, texts: &[(&Path, &str)], files: &Files<'_>) -> Vec<(String, Value)> {
    let entries = read(source, texts, files).unwrap_or_else(|error| panic!("{error}"));
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
        .map(|(_, entry)| serde_json::from_str(entry["data"]["service_account_key"].as_str().unwrap()).unwrap())
        .map(|key: Value| key["private_key"].clone())
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
        let found = read_one(Source::Aws, &texts, &Files::NONE);
        assert_eq!(found.len(), 2);
        for (name, entry) in found {
            let region = if name == "daily" { json!("eu-north-1") } else { Value::Null };
            assert_eq!((&entry["data"]["access_key_id"], &entry["data"]["region"]), (&json!("k"), &region));
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
        assert_eq!(entry["data"]["region"], region);
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
    ] {
        let Err(failure) = read(source, &[(Path::new("file"), text)], &Files::NONE) else { panic!("{text} was read") };
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
            let entries = match read(source, &[(Path::new("file"), &text)], &Files::NONE) {
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

/// Each reference to a section copies its lines, so that a short text could become very long.
#[test]
fn sections_with_many_lines_are_not_shared() {
    let lines = |count: usize| (0..count).map(|at| format!("  a{at} = x\n")).collect::<String>();
    let text =
        |count| format!("[profile one]\nservices = own\nregion = eu-west-1\n[services own]\ns3 =\n{}", lines(count));
    for (count, is_read) in [(99, true), (100, false)] {
        let entries = read(Source::Aws, &[(Path::new("config"), &text(count))], &Files::NONE).expect("entries");
        let refused = entries[0].content.as_ref().err().map(ToString::to_string);
        let reason = "line 4: [own] has more than 100 settings, which other sections use";
        assert_eq!(refused.as_deref(), (!is_read).then_some(reason), "{count}");
    }
}
