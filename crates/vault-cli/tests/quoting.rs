//! Readers get exactly the value, whatever its characters, or it is refused.

use super::samples::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use vault_cli::form::{EnvironmentVariables, Form, FormError};
use vault_core::activation::Vended;

/// Values that readers find hard.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ -~]{1,24}",
        2 => "[$`'\"\\\\#;=%(){}\\[\\] \t\n\r\0a-c]{1,12}",
        2 => "\\PC{1,12}",
        1 => ".{1,12}",
        1 => "[\u{85}\u{a0}\u{2028}\u{2029}\u{feff}a]{1,4}",
        1 => "(a|%)\\([a-z]{1,3}\\)s",
    ]
}

/// Reads lines like a shell with `unset`, `export`, single quotes and the backslash.
fn read_shell(text: &str) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let mut rest = text;
    if let Some((names, after)) = text.strip_prefix("unset ").and_then(|text| text.split_once('\n')) {
        assert!(names.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"_ ".contains(&byte)));
        rest = after;
    }
    while !rest.is_empty() {
        let (name, after) = rest.strip_prefix("export ").unwrap().split_once('=').unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'));
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next().unwrap() {
                (_, '\'') => value.extend(characters.by_ref().map(|(_, c)| c).take_while(|c| *c != '\'')),
                (_, '\\') => value.push(characters.next().unwrap().1),
                (end, '\n') => break end,
                (_, other) => panic!("{other:?} stands bare"),
            }
        };
        variables.insert(name.to_owned(), value);
        rest = &after[end + 1..];
    }
    variables
}

/// Reads a section as Python's `RawConfigParser` does, by which the AWS command line reads its files.
fn read_python(text: &str) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in text.split(['\n', '\r']) {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';', '[']) {
            continue;
        }
        if line.starts_with(char::is_whitespace) && !last.is_empty() {
            let value = values.get_mut(&last).unwrap();
            value.push('\n');
            value.push_str(bare);
            continue;
        }
        let place = bare.find(['=', ':']).unwrap();
        last = bare[..place].trim().to_lowercase();
        values.insert(last.clone(), bare[place + 1..].trim().to_owned());
    }
    values
}

/// Reads a section as the other AWS SDKs do: what follows white space and a `#` or `;` is a comment.
fn read_sdk(text: &str) -> BTreeMap<String, String> {
    let cut = |value: &str| {
        let mut before = ' ';
        let end = value.char_indices().find_map(|(place, c)| {
            let comment = matches!(c, '#' | ';') && before.is_whitespace();
            before = c;
            comment.then_some(place)
        });
        value[..end.unwrap_or(value.len())].trim().to_owned()
    };
    read_python(text).into_iter().map(|(name, value)| (name, cut(&value))).collect()
}

/// Reads a section as rclone does: also with quotes around a value, and references to others.
fn read_rclone(text: &str) -> BTreeMap<String, String> {
    let unquoted = |value: &str| {
        let quote =
            ["\"\"\"", "`"].into_iter().find(|quote| value.starts_with(quote) && value.len() >= 2 * quote.len());
        let inner = quote.map(|quote| &value[quote.len()..value.rfind(quote).unwrap().max(quote.len())]);
        let inner = inner.unwrap_or(value);
        assert!(!inner.contains("%("), "a reference");
        inner.to_owned()
    };
    read_python(text).into_iter().map(|(name, value)| (name, unquoted(&value))).collect()
}

/// Reads the parts of a statement as SQL does: what stands between single quotes, of which two are one.
fn read_sql(text: &str) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    let mut rest = text.split_once(", PROVIDER config").unwrap().1;
    while let Some((name, after)) = rest.trim_start_matches(", ").split_once(" '") {
        assert!(name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{name}");
        let (mut value, mut characters) = (String::new(), after.char_indices().peekable());
        let end = loop {
            match characters.next().unwrap() {
                (end, '\'') if characters.next_if(|(_, c)| *c == '\'').is_none() => break end + 1,
                (_, c) => value.push(c),
            }
        };
        parts.insert(name.to_owned(), value);
        rest = &after[end..];
    }
    assert_eq!(rest, ");\n");
    parts
}

/// Reads properties as `java.util.Properties` does, and cuts values as Spark does.
fn read_java(text: &str) -> BTreeMap<String, String> {
    let mut properties = BTreeMap::new();
    for line in text.lines() {
        let (mut parts, mut units) = ([String::new(), String::new()], Vec::new());
        let (mut part, mut characters) = (0, line.chars());
        while let Some(c) = characters.next() {
            match c {
                '=' | ':' | ' ' if part == 0 => part = 1,
                '\\' => match characters.next().unwrap() {
                    'u' => {
                        let digits: String = characters.by_ref().take(4).collect();
                        units.push(u16::from_str_radix(&digits, 16).unwrap());
                        continue;
                    }
                    meant => {
                        parts[part].push_str(&String::from_utf16(&std::mem::take(&mut units)).unwrap());
                        parts[part].push(meant);
                    }
                },
                c => {
                    parts[part].push_str(&String::from_utf16(&std::mem::take(&mut units)).unwrap());
                    parts[part].push(c);
                }
            }
        }
        parts[part].push_str(&String::from_utf16(&units).unwrap());
        let [name, value] = parts;
        properties.insert(name, value.trim_matches(|c| c <= ' ').to_owned());
    }
    properties
}

fn is_refusal(result: &Result<String, FormError>) -> bool {
    matches!(result, Err(FormError::Unrepresentable { .. }))
}

/// Lines that keep the user's values.
const CHECKSUMS: &str = "export AWS_REQUEST_CHECKSUM_CALCULATION=\"${AWS_REQUEST_CHECKSUM_CALCULATION:-when_required}\"\n\
    export AWS_RESPONSE_CHECKSUM_VALIDATION=\"${AWS_RESPONSE_CHECKSUM_VALIDATION:-when_required}\"\n";

proptest! {
    #[test]
    fn shell_reads_values_unchanged(id in values(), secret in values(), token in values()) {
        let rendered = render(Form::Env, &s3(&id, &secret, &token));
        if [&id, &secret, &token].iter().any(|value| value.contains('\0')) {
            prop_assert!(is_refusal(&rendered), "no variable can contain a NUL");
            return Ok(());
        }
        let rendered = rendered.unwrap();
        let read = read_shell(rendered.strip_suffix(CHECKSUMS).expect("settings for another store than Amazon's"));
        prop_assert_eq!(&read["AWS_ACCESS_KEY_ID"], &id);
        prop_assert_eq!(&read["AWS_SECRET_ACCESS_KEY"], &secret);
        prop_assert_eq!(&read["AWS_SESSION_TOKEN"], &token);
        prop_assert_eq!(read.len(), 11);
    }

    #[test]
    fn duckdb_reads_values_unchanged(id in values(), secret in values(), token in values()) {
        let rendered = render(Form::Duckdb, &s3(&id, &secret, &token));
        if [&id, &secret, &token].iter().any(|value| value.contains('\0')) {
            prop_assert!(is_refusal(&rendered), "no statement can contain a NUL");
            return Ok(());
        }
        let read = read_sql(&rendered.unwrap());
        prop_assert_eq!((&read["KEY_ID"], &read["SECRET"], &read["SESSION_TOKEN"]), (&id, &secret, &token));
        prop_assert_eq!(read.len(), 8);
    }

    #[test]
    fn spark_reads_values_unchanged(id in values(), secret in values(), token in values()) {
        let rendered = render(Form::Hadoop, &s3(&id, &secret, &token));
        if [&id, &secret, &token].iter().any(|value| value.trim_matches(|c| c <= ' ') != **value) {
            prop_assert!(is_refusal(&rendered), "Spark cuts it off");
            return Ok(());
        }
        let read = read_java(&rendered.unwrap());
        let value = |name: &str| read[&format!("spark.hadoop.fs.s3a.bucket.nightly.{name}")].clone();
        prop_assert_eq!((value("access.key"), value("secret.key"), value("session.token")), (id, secret, token));
        prop_assert_eq!(read.len(), 7);
    }

    #[test]
    fn shell_reads_links_and_connection_strings_unchanged(url in values(), header in values()) {
        let rendered = render(Form::Env, &link(&url, &header));
        let azure_rendered = render(Form::Env, &azure(&url));
        if url.contains('\0') {
            prop_assert!(is_refusal(&rendered) && is_refusal(&azure_rendered));
            return Ok(());
        }
        prop_assert_eq!(&read_shell(&azure_rendered.unwrap())["AZURE_STORAGE_CONNECTION_STRING"], &url);
        if !header.contains('\0') {
            let read = read_shell(&rendered.unwrap());
            prop_assert_eq!(&read["ORGVAULT_URL"], &url);
            prop_assert_eq!(&read["ORGVAULT_HEADERS"], &format!("Authorization: {header}\n"));
        }
    }

    #[test]
    fn ini_readers_read_values_unchanged_or_section_is_refused(id in values(), secret in values()) {
        let vended = s3(&id, &secret, "token");
        let ini = render(Form::AwsIni, &vended);
        match &ini {
            Ok(text) => for read in [read_python(text), read_sdk(text)] {
                prop_assert_eq!(&read["aws_access_key_id"], &id);
                prop_assert_eq!(&read["aws_secret_access_key"], &secret);
                prop_assert_eq!(read["s3"].trim(), "addressing_style = path");
                prop_assert_eq!(read.len(), 8);
            },
            Err(_) => prop_assert!(is_refusal(&ini)),
        }
        let rclone = render(Form::Rclone, &vended);
        match &rclone {
            Ok(text) => {
                let read = read_rclone(text);
                prop_assert_eq!(&read["access_key_id"], &id);
                prop_assert_eq!(&read["secret_access_key"], &secret);
                prop_assert_eq!(read.len(), 10);
                prop_assert!(ini.is_ok(), "rclone's reader accepts the same");
            }
            Err(_) => prop_assert!(is_refusal(&rclone)),
        }
    }

    #[test]
    fn no_usual_value_is_refused(secret in "[A-Za-z0-9+/=_.~@!$^&*,:?|<>-]{1,40}") {
        for form in [Form::Env, Form::AwsIni, Form::Rclone, Form::AwsCredentialProcess, Form::Json] {
            prop_assert!(render(form, &keys_of_s3("AKIA", &secret, &secret)).is_ok(), "{form}");
        }
    }

    #[test]
    fn json_readers_read_values_unchanged(id in values(), secret in values(), token in values()) {
        let vended = s3(&id, &secret, &token);
        let read = |form| serde_json::from_str::<serde_json::Value>(&render(form, &vended).unwrap()).unwrap();
        let process = render(Form::AwsCredentialProcess, &keys_of_s3(&id, &secret, &token)).unwrap();
        let process: serde_json::Value = serde_json::from_str(&process).unwrap();
        prop_assert_eq!(&process["AccessKeyId"], &id);
        prop_assert_eq!(&process["SecretAccessKey"], &secret);
        prop_assert_eq!(&process["SessionToken"], &token);
        prop_assert_eq!(&read(Form::Json)["data"]["secret_access_key"], &secret);
    }

    #[test]
    fn issued_credentials_are_read_back(id in values(), secret in values(), token in values()) {
        let raw = s3(&id, &secret, &token);
        let json = [id, secret, token].map(|text| quoted(&text));
        let [id, secret, token] = json;
        let short_json = format!(
            r#"{{"access_key_id":{id},"bucket":"b","path_style_access":true,"secret_access_key":{secret},"session_token":{token}}}"#
        );
        let short_one = short(vault_core::credential::CredentialType::S3, &short_json);
        for vended in [raw, short_one].iter().chain(&all()) {
            let bytes = vended.to_json();
            let again = Vended::from_json(vended.kind(), vended.form(), vended.expires_at(), bytes.expose()).unwrap();
            let written = again.to_json();
            prop_assert_eq!(written.expose(), bytes.expose());
            prop_assert_eq!((again.kind(), again.form()), (vended.kind(), vended.form()));
            prop_assert!(!format!("{vended:?}").contains("BEGIN PRIVATE"), "nothing secret is printed");
        }
    }

    #[test]
    fn command_gets_values_unchanged(secret in values()) {
        let vended = s3("AKIA", &secret, "t");
        match EnvironmentVariables::for_command(&subject(&vended, None)) {
            Ok(environment) => {
                let holding = environment.variables.iter().filter(|set| set.value.expose() == secret);
                prop_assert!(holding.count() >= 2, "for the AWS tools and for rclone");
            }
            Err(_) => prop_assert!(secret.contains('\0')),
        }
    }
}

/// The shell of this machine agrees with the one above.
#[cfg(unix)]
#[test]
fn real_shell_reads_values_unchanged() {
    let secret = "a'b\"c$HOME`id`\\ #;\t*?[x] {y} !z \u{e4}\n$(exit 3)'";
    let lines = render(Form::Env, &s3("AKIA", secret, "t")).unwrap();
    let script = format!("{lines}printf %s \"$AWS_SECRET_ACCESS_KEY\"");
    let output = std::process::Command::new("sh").args(["-euc", &script]).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), secret);
}
