//! `orgvault import`: files of other programs, also with errors.

use serde_json::{Value, json};
use vault_tests::binary::{self, Run};
use vault_tests::{ActivationListener, Database, Desk, Integration, Session, Vault};

const RCLONE: &str = "\
[nightly]
type = s3
provider = Minio
access_key_id = AKIAIMPORTED00000001
secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYSECRET0001
endpoint = minio.internal.example:9000
region = us-east-1

[photos]
type = drive
token = {\"access_token\":\"ya29.SECRET0002\"}

[typo]
type = s3
provider = AWS
access_key_id = AKIA IMPORTED
secret_access_key = SECRET0003
region = eu-west-1
";
const AWS: &str = "\
[default]
aws_access_key_id = AKIAIMPORTED00000004
aws_secret_access_key = SECRET0004

[exporter]
role_arn = arn:aws:iam::123456789012:role/exporter
source_profile = default
region = eu-west-1
";

/// A vault, and a user with a login.
struct Stage {
    desk: Desk,
    vault: Vault,
    listener: ActivationListener,
    session: Session,
}

impl Stage {
    fn open() -> Self {
        let (vault, listener) = ActivationListener::open(Database::Sqlite);
        let admin = vault.admin();
        let session = admin.log_in(&vault.client());
        Self { desk: Desk::with_login(&vault, &admin), session, vault, listener }
    }

    fn file(&self, name: &str, content: &str) -> String {
        self.desk.file(name, content)
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.desk.run(arguments)
    }

    /// Returns the result of each entry by name.
    fn import(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let run = self.run(&[&["import"], arguments, &["--json"]].concat());
        assert!(!run.stdout.contains("SECRET") && !run.stderr.contains("SECRET"), "{run:?}");
        let entries: Vec<Value> = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
        (
            run.status,
            entries
                .into_iter()
                .map(|entry| (entry["name"].as_str().unwrap().to_owned(), entry))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        )
    }
}

#[test]
fn import_saves_valid_credentials_and_explains_others() {
    let desk = Stage::open();
    let file = desk.file("rclone.conf", RCLONE);
    let from = ["--from", "rclone", &file, "--namespace", "imports/{name}"];

    // Without a bucket, nothing is saved.
    let (status, found) = desk.import(&[&from[..], &["--yes"]].concat());
    assert_eq!((status, desk.session.list().len()), (Some(1), 0));
    assert_eq!((&found["nightly"]["state"], &found["nightly"]["field"]), (&json!("refused"), &json!("bucket")));

    let from = [&from[..], &["--bucket", "nightly=nightly-exports", "--bucket", "other"]].concat();
    let (status, found) = desk.import(&[&from[..], &["--dry-run"]].concat());
    assert_eq!((status, &found["nightly"]["state"]), (Some(1), &json!("ready")));
    assert_eq!(desk.session.list().len(), 0, "a dry run saves nothing");
    let unconfirmed = desk.run(&[&["import"], &from[..]].concat());
    assert_eq!(unconfirmed.status, Some(2), "{unconfirmed:?}");
    assert_eq!(desk.session.list().len(), 0);

    let (status, found) = desk.import(&[&from[..], &["--yes"]].concat());
    assert_eq!(status, Some(1), "one of them was not saved");
    assert_eq!(found["nightly"]["state"], "saved");
    assert_eq!((&found["photos"]["line"], &found["photos"]["field"]), (&json!(10), &json!("type")));
    assert_eq!((&found["typo"]["line"], &found["typo"]["field"]), (&json!(16), &json!("access_key_id")));
    let saved = desk.session.list();
    assert_eq!(
        (saved.len(), &saved[0]["namespace"], &saved[0]["labels"]["name"]),
        (1, &json!("imports/nightly"), &json!("nightly"))
    );

    // After the correction, a second run keeps existing credentials unchanged.
    desk.file("rclone.conf", &RCLONE.replace("AKIA IMPORTED", "AKIAIMPORTED00000003"));
    let (_, found) = desk.import(&[&from[..], &["--yes"]].concat());
    assert_eq!((&found["nightly"]["state"], &found["typo"]["state"]), (&json!("present"), &json!("saved")));
    assert_eq!(found["nightly"]["id"], saved[0]["id"]);
    assert_eq!(desk.session.list().len(), 2);

    // A job gets the credential of the file.
    let integration = Integration::make(&desk.vault, "nightly", &["imports/*"]);
    let activated = integration.activate(&desk.listener.client(), "imports/nightly").expect(201).json();
    let data = &activated["credentials"][0]["data"];
    assert_eq!(data["secret_access_key"], "wJalrXUtnFEMI/K7MDENG/bPxRfiCYSECRET0001");
    assert_eq!(
        (&data["endpoint"], &data["path_style_access"]),
        (&json!("https://minio.internal.example:9000"), &json!(true))
    );
}

#[test]
fn one_profile_is_imported_with_its_role() {
    let desk = Stage::open();
    let file = desk.file("credentials", AWS);
    let only =
        ["--from", "aws", &file, "--only", "exporter", "--namespace", "exports/{name}", "--bucket", "b", "--yes"];
    let (status, found) = desk.import(&only);
    assert_eq!((status, found.as_object().unwrap().len()), (Some(0), 1));
    let saved = desk.session.list();
    assert_eq!(saved[0]["information"]["role_arn"], "arn:aws:iam::123456789012:role/exporter");
    // Usage errors are reported before anything is done.
    let run = |arguments: &[&str]| desk.run(&[&["import", "--from", "aws", &file][..], arguments].concat());
    run(&["--namespace", "a", "--only", "gone", "--yes"]).misused();
    run(&["--namespace", "a", "--bucket", "gone=b", "--yes"]).misused();
    run(&["--yes"]).misused();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    assert!(run(&["--namespace", "a", "--yes"]).refused().stderr.contains("expected 0600"));
}

/// Secret paths become namespaces. Labels may not contain slashes.
#[test]
fn secrets_by_path_are_imported_into_namespaces() {
    let desk = Stage::open();
    let secret = json!({"access_key": "AKIAIMPORTED00000001", "secret_key": "SECRET0005", "bucket": "b"});
    let file = desk.file(
        "kv.json",
        &json!({"etl/nightly": secret, "etl/db": {"user": "u", "password": "SECRET0006"}}).to_string(),
    );
    let import = ["--from", "kv", &file, "--namespace", "{name}", "--yes"];
    for state in ["saved", "present"] {
        let (status, found) = desk.import(&import);
        assert_eq!(
            (status, &found["etl/nightly"]["state"], &found["etl/db"]["state"]),
            (Some(1), &json!(state), &json!("refused"))
        );
    }
    let saved = desk.session.list();
    assert_eq!(
        (saved.len(), &saved[0]["namespace"], &saved[0]["labels"]["name"]),
        (1, &json!("etl/nightly"), &json!("etl-nightly"))
    );
}

/// The server disconnects during an import. Saved credentials are complete, and a second run continues.
#[test]
fn interrupted_import_continues() {
    let mut desk = Stage::open();
    let sections: String = (0..40)
        .map(|n| {
            format!(
                "[e{n}]\naws_access_key_id = AKIAIMPORTED000000{n:02}\naws_secret_access_key = SECRET{n}\nbucket = b\n"
            )
        })
        .collect();
    let file = desk.file("credentials", &sections);
    let import = ["import", "--from", "aws", &file, "--namespace", "imports/{name}", "--yes"];
    let mut command = binary::command();
    command.env("HOME", desk.vault.scratch("desk")).env_remove("XDG_STATE_HOME").args(import);
    let mut running = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    while desk.session.list().is_empty() && running.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    running.kill().unwrap();
    running.wait().unwrap();
    let before = desk.session.list().len();
    assert!(before > 0);
    let (status, _) = desk.import(&import[1..]);
    assert_eq!((status, desk.session.list().len()), (Some(0), 40), "{before} before");
    desk.vault.stop();
    let stopped = desk.run(&import);
    assert_eq!(stopped.status, Some(1), "{stopped:?}");
}

/// A profile with its settings in the config file and its key in the credentials file.
#[test]
fn both_aws_files_are_merged() {
    let desk = Stage::open();
    let config = desk.file(
        "config",
        "[profile daily]\nregion = eu-north-1\noutput = json\n\n[profile \"late shift\"]\nrole_arn = arn:aws:iam::123456789012:role/x\nsource_profile = daily\n\n[services house]\ns3 =\n  endpoint_url = https://store.example:9000\n",
    );
    let credentials = desk.file(
        "credentials",
        "[daily]\naws_access_key_id = AKIAIMPORTED00000007\naws_secret_access_key = SECRET0007\nservices = house\n",
    );
    let import = [&*config, &*credentials, "--namespace", "imports/{name}", "--bucket", "b", "--yes"];
    let (status, found) = desk.import(&import);
    assert_eq!((status, found.as_object().unwrap().len()), (Some(0), 2), "{found}");
    assert_eq!(found["daily"]["left_out"], json!(["output"]));
    assert_eq!((&found["daily"]["state"], &found["late shift"]["state"]), (&json!("saved"), &json!("saved")));
    let saved = desk.session.list();
    let daily = saved.iter().find(|item| item["namespace"] == "imports/daily").unwrap();
    assert_eq!(
        (&daily["information"]["endpoint"], &daily["information"]["region"]),
        (&json!("https://store.example:9000"), &json!("eu-north-1"))
    );
}

/// A credential with an unrecognized address is not saved as an Amazon S3 key.
#[test]
fn address_that_is_not_recognized_is_refused_by_name() {
    let desk = Stage::open();
    let key = |name: &str, value: &str| json!({"access_key": "AKIAIMPORTED00000008", "secret_key": "SECRET0008", "bucket": "b", name: value});
    let file = desk.file(
        "kv.json",
        &json!({"a": key("server", "https://a.example"), "b": key("gateway_lookup_url", "https://b.example"), "c": key("owner", "data")}).to_string(),
    );
    let (status, found) = desk.import(&[&file, "--namespace", "{name}", "--yes"]);
    assert_eq!(status, Some(1));
    assert_eq!((&found["b"]["state"], &found["b"]["field"]), (&json!("refused"), &json!("gateway_lookup_url")));
    assert_eq!((&found["c"]["state"], &found["c"]["left_out"]), (&json!("saved"), &json!(["owner"])));
    let saved = desk.session.list();
    let endpoint = |name: &str| {
        saved.iter().find(|item| item["namespace"] == name).map(|item| item["information"]["endpoint"].clone())
    };
    assert_eq!((endpoint("a"), endpoint("b")), (Some(json!("https://a.example")), None));
}

/// Standard input has no name. A name with other data is not reported as "already saved".
#[test]
fn standard_input_needs_a_name_and_other_data_is_reported() {
    let desk = Stage::open();
    let piped = |number: u8, arguments: &[&str]| {
        let secret = json!({"access_key": format!("AKIAIMPORTED0000000{number}"), "secret_key": format!("SECRET{number}"), "bucket": "b"});
        let printed = json!({"request_id": "1", "data": {"data": secret, "metadata": {"version": 1}}}).to_string();
        let file = desk.file("piped.json", &printed);
        let mut command = binary::command();
        command.env("HOME", desk.vault.scratch("desk")).env_remove("XDG_STATE_HOME");
        command.args(["import", "-", "--namespace", "imports/{name}", "--yes"]).args(arguments);
        Run::of(command.stdin(std::fs::File::open(file).unwrap()))
    };
    assert!(piped(1, &[]).misused().stderr.contains("--name required"));
    piped(1, &["--name", "one"]).done();
    assert!(piped(1, &["--name", "one"]).done().stdout.contains("already saved"));
    let other = piped(2, &["--name", "one"]);
    assert_eq!(other.status, Some(1), "{other:?}");
    assert!(other.stdout.contains("other data") && other.stdout.contains("orgvault credential replace"), "{other:?}");
    piped(2, &["--name", "two"]).done();
    assert_eq!(desk.session.list().len(), 2);
}

#[test]
fn entries_of_one_namespace_need_consent() {
    let desk = Stage::open();
    let key = |id: &str| json!({"access_key_id": format!("AKIAIMPORTED{id}"), "secret_access_key": format!("SECRET{id}x"), "bucket": "b", "region": "eu-west-1"});
    let two = desk.file("two.json", &json!({"prod data": key("00000011"), "other": key("00000012")}).to_string());
    let merged =
        desk.file("merged.json", &json!({"prod data": key("00000011"), "prod-data": key("00000012")}).to_string());

    let (status, found) = desk.import(&[&merged, "--namespace", "imports/{name}", "--yes"]);
    assert_eq!((status, desk.session.list().len()), (Some(1), 0), "{found}");
    for name in ["prod data", "prod-data"] {
        assert!(found[name]["reason"].as_str().unwrap().contains("--only"), "{found}");
    }

    // Only integrations that can use the namespace matter.
    Integration::make(&desk.vault, "nightly", &["imports/*"]);
    let same = ["import", &two, "--namespace", "imports/same", "--yes"];
    let refused = desk.run(&same);
    assert_eq!((refused.status, desk.session.list().len()), (Some(1), 0), "{refused:?}");
    assert!(refused.stderr.contains("imports/same gets 2 credentials"), "{refused:?}");
    desk.run(&[&same[..], &["--allow-several"]].concat()).done();
    assert_eq!(desk.session.list().len(), 2);
}
