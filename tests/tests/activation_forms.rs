//! Values with special characters, as the tools themselves parse them.

use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use vault_testkit::stores::find_tool;
use vault_tests::binary::Run;
use vault_tests::{ActivationListener, Database, Integration, Vault};

const ODD: [&str; 24] = [
    "a'b\"c$HOME`id`\\ \\n !*?#;&|~%\u{e4}\u{2603}\u{1f600}=e;touch pwned;'",
    "'; touch pwned; 'x",
    "'a",
    "\"a",
    "`a",
    "\"\"\"ab",
    "```ab",
    "\"ab\"x",
    "a\"",
    "%(bucket)s",
    "%%ab",
    "=ab",
    ": x",
    ";ab",
    "#ab",
    "a ;b",
    "a #b",
    "a#b",
    "[ab]",
    "\\ab",
    "ab\\",
    "-n ab",
    "@ab",
    "a  b",
];

struct Stage {
    vault: Vault,
    listener: ActivationListener,
    integration: Integration,
}

impl Stage {
    /// Creates a vault with each special value as the secret of a credential in `odd/<number>`.
    fn set() -> Self {
        let (vault, listener) = ActivationListener::open_with(Database::Sqlite, &["--activation-rate=0"]);
        let session = vault.admin_session();
        for (number, secret) in ODD.into_iter().enumerate() {
            let data = json!({
                "access_key_id": "AKIAQ3EGRIYLK0000001", "secret_access_key": secret, "bucket": "exports", "region": "us-east-1",
            });
            session.save(&json!({"type": "s3", "namespace": format!("odd/{number}"), "data": data}));
        }
        let integration = Integration::make(&vault, "odd", &["odd/*"]);
        fs::create_dir(vault.scratch("work")).unwrap();
        Self { vault, listener, integration }
    }

    /// Returns the output for a value in this format, or `None` if the format cannot represent it.
    fn form(&self, number: usize, form: &str) -> Option<String> {
        let run = self
            .integration
            .run(self.listener, &["activate", "--namespace", &format!("odd/{number}"), "--format", form]);
        if run.status == Some(0) {
            return Some(run.stdout);
        }
        assert!(!run.stderr.contains(ODD[number]), "{}", run.stderr);
        run.refused();
        None
    }

    /// Runs a tool that reads `content` from the file in its last argument. Returns its output.
    fn read(&self, content: &str, mut tool: Command) -> String {
        let file = self.vault.scratch("work/file");
        fs::write(&file, content).unwrap();
        tool.current_dir(self.vault.scratch("work")).env("AWS_SHARED_CREDENTIALS_FILE", &file);
        Run::of(tool.env("HOME", self.vault.scratch("work")).env("AWS_EC2_METADATA_DISABLED", "true")).done().stdout
    }
}

fn tool(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(find_tool(name));
    command.args(arguments);
    command
}

#[test]
fn tools_accept_saved_credentials() {
    let stage = Stage::set();
    let mut carried = [0; 2];
    for (number, secret) in ODD.into_iter().enumerate() {
        let script = r#"eval "$(cat file)"; printf %s "$AWS_SECRET_ACCESS_KEY""#;
        let env = stage.form(number, "env").expect("a shell can hold everything");
        assert_eq!(stage.read(&env, tool("sh", &["-euc", script])), secret);

        let json: Value = serde_json::from_str(&stage.form(number, "aws-credential-process").unwrap()).unwrap();
        assert_eq!(json["SecretAccessKey"], secret);

        if let Some(ini) = stage.form(number, "aws-ini") {
            carried[0] += 1;
            let asked = tool("aws", &["configure", "get", "aws_secret_access_key"]);
            assert_eq!(stage.read(&ini, asked).trim_end_matches('\n'), secret);
            let script = "import configparser, sys; c = configparser.RawConfigParser(); c.read('file', 'utf-8'); \
                          sys.stdout.buffer.write(c['default']['aws_secret_access_key'].encode())";
            assert_eq!(stage.read(&ini, tool("python3", &["-c", script])), secret);
        }
        if let Some(rclone) = stage.form(number, "rclone") {
            carried[1] += 1;
            let dump = stage.read(&rclone, tool("rclone", &["--config", "file", "config", "dump"]));
            let dump: Value = serde_json::from_str(&dump).unwrap();
            assert_eq!(dump["orgvault"]["secret_access_key"], secret);
        }
    }
    assert!(carried.iter().all(|carried| *carried > ODD.len() / 3), "{carried:?}");
    assert!(!stage.vault.scratch("work/pwned").exists(), "nothing of it was carried out");
}

#[test]
fn command_reads_saved_credentials() {
    let stage = Stage::set();
    for (number, secret) in ODD.into_iter().enumerate() {
        let namespace = format!("odd/{number}");
        let script = r#"printf %s "$AWS_SECRET_ACCESS_KEY""#;
        let arguments = ["exec", "--namespace", &namespace, "--static", "--", "sh", "-c", script];
        let mut command = stage.integration.command(stage.listener, &arguments);
        assert_eq!(Run::of(command.current_dir(stage.vault.scratch("work"))).done().stdout, secret);
    }
    // Standard input and output pass through unchanged, and so do arguments with shell characters.
    let script = r#"printf '%s\n' "$@" >&2; cat; exit 9"#;
    let mut command =
        stage.integration.command(stage.listener, &["exec", "--namespace", "odd/0", "--", "sh", "-c", script, "sh"]);
    command.args(["--help", "", "a b", "$HOME", "*", "--"]);
    let input = stage.vault.scratch("input");
    fs::write(&input, "0123456789abcde\n".repeat(1 << 18)).unwrap();
    command.stdin(fs::File::open(&input).unwrap());
    let run = Run::of(&mut command);
    assert_eq!((run.status, &*run.stderr), (Some(9), "--help\n\na b\n$HOME\n*\n--\n"));
    assert_eq!(run.stdout.len(), 1 << 22, "all of it");
    assert!(!stage.vault.scratch("work/pwned").exists());
}

/// One key for two buckets is saved once. Jobs get both, or the one that they choose.
#[test]
fn one_key_for_several_buckets_is_one_credential() {
    let (vault, listener) = ActivationListener::open_with(Database::Sqlite, &["--activation-rate=0"]);
    let session = vault.admin_session();
    let data = json!({
        "access_key_id": "AKIAQ3EGRIYLK0000001", "secret_access_key": "a-secret-of-both", "bucket": ["daily", "hourly"],
        "region": "us-east-1",
    });
    let id = session.save(&json!({"type": "s3", "namespace": "a", "data": data}));
    let saved = session.get(&format!("/organization-vault/{id}")).expect(200).json();
    assert_eq!(saved["information"]["bucket"], json!(["daily", "hourly"]));
    let integration = Integration::make(&vault, "both", &["a"]);

    let activate = |more: &[&str]| integration.run(listener, &[&["activate", "--namespace", "a"][..], more].concat());
    let json: Value = serde_json::from_str(&activate(&[]).done().stdout).unwrap();
    assert_eq!(json["credentials"][0]["data"]["bucket"], json!(["daily", "hourly"]));
    let chosen: Value = serde_json::from_str(&activate(&["--bucket", "hourly"]).done().stdout).unwrap();
    assert_eq!(chosen["credentials"][0]["data"]["bucket"], "hourly");
    activate(&["--bucket", "weekly"]).refused().says("a has no credential for --bucket weekly");

    let show = r#"echo "$ORGVAULT_BUCKETS|${ORGVAULT_BUCKET-none}""#;
    let exec = |more: &[&str]| {
        let command = [&["exec", "--namespace", "a"][..], more, &["--", "sh", "-c", show]].concat();
        integration.run(listener, &command).done().stdout
    };
    assert_eq!(exec(&[]), "daily hourly|none\n");
    assert_eq!(exec(&["--bucket", "daily"]), "|daily\n");
}
