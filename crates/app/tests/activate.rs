//! `orgvault activate`, against a fake listener.

use crate::support::{
    ACTIVATION, ActivationListener, GCS_ID, Ran, S3_ID, SECRET, activation, gcs, problem, s3, write_private,
};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const ACTIVATE: [&str; 3] = ["activate", "--namespace", "a/b"];

fn ended() -> String {
    format!("DELETE /v1/activations/{ACTIVATION}")
}

#[test]
fn credential_is_printed_in_format_of_its_tool() {
    let fake = ActivationListener::new(201, activation(&[s3()]));
    let lines = fake.run(&[&ACTIVATE[..], &["--format", "env"]].concat()).done();
    let script = format!("{lines}printf %s \"$AWS_SECRET_ACCESS_KEY\"");
    assert_eq!(Command::new("sh").args(["-euc", &script]).output().unwrap().stdout, SECRET.as_bytes());
    let wishes = ["--format", "aws-credential-process", "--purpose", "nightly", "--ttl", "60", "--vend", "raw"];
    let printed: Value = serde_json::from_str(&fake.run(&[&ACTIVATE[..], &wishes].concat()).done()).unwrap();
    assert_eq!((&printed["Version"], &printed["SecretAccessKey"]), (&json!(1), &json!(SECRET)));
    let section = fake.run(&[&ACTIVATE[..], &["--format", "aws-ini", "--name", "night"]].concat()).done();
    assert!(section.starts_with("[night]\n"), "{section}");
    assert_eq!(
        fake.requests()[..2],
        [
            r#"POST /v1/activations {"namespace":"a/b"}"#.to_owned(),
            r#"POST /v1/activations {"namespace":"a/b","purpose":"nightly","ttl":60,"vend":"raw"}"#.to_owned(),
        ],
        "printed credentials stay activated"
    );
    assert_eq!(fs::read_dir(fake.path("work")).unwrap().count(), 0, "no vault was made");
}

#[test]
fn json_contains_whole_activation() {
    let fake = ActivationListener::new(201, activation(&[s3(), gcs()]));
    for flags in [&[][..], &["--json"], &["--format", "json"]] {
        let printed: Value = serde_json::from_str(&fake.run(&[&ACTIVATE[..], flags].concat()).done()).unwrap();
        let expected: Value = serde_json::from_str(&activation(&[s3(), gcs()])).unwrap();
        assert_eq!(printed, expected, "{flags:?}");
    }
    let mut one = fake.command(&[&ACTIVATE[..], &["--type", "gcs"]].concat());
    let one = Ran::of(one.env("ORGVAULT_BASE_PATH", "/v2").output().unwrap()).done();
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!((one["credentials"].as_array().unwrap().len(), &one["credentials"][0]["id"]), (1, &json!(GCS_ID)));
    assert!(fake.requests().last().unwrap().starts_with("POST /v2/activations "));
}

#[test]
fn ambiguous_or_unsupported_format_is_refused_and_activation_ended() {
    let fake = ActivationListener::new(201, activation(&[s3(), gcs()]));
    let refused = |flags: &[&str], status| fake.run(&[&ACTIVATE[..], flags].concat()).refused(status);
    let message = refused(&["--format", "env"], 1);
    assert!(message.contains(S3_ID) && message.contains(GCS_ID) && message.contains("--type"), "{message}");
    let message = refused(&["--format", "aws-ini", "--type", "gcs"], 1);
    assert!(message.contains(&format!("credential {GCS_ID}: format aws-ini is not available for")), "{message}");
    refused(&["--format", "env", "--type", "direct-link"], 1);
    refused(&["--format", "gcp-key-file", "--name", "a=s3", "--name", "b=gcs"], 2);
    assert!(refused(&["--format", "azure-env"], 2).contains("use env"), "it was removed");
    let requests = fake.requests();
    assert_eq!(requests.len(), 8);
    assert!(requests.iter().skip(1).step_by(2).all(|line| *line == ended()), "{requests:?}");
    let both = ["--format", "env", "--name", "from=s3", "--name", &format!("to={GCS_ID}")];
    let lines = fake.run(&[&ACTIVATE[..], &both].concat()).done();
    assert!(
        lines.contains("export FROM_AWS_ACCESS_KEY_ID=") && lines.contains("export TO_ORGVAULT_BUCKET="),
        "{lines}"
    );
}

#[test]
fn server_refusals_are_reported() {
    let fake = ActivationListener::new(403, problem(403, "frozen"));
    let message = fake.run(&ACTIVATE).refused(1);
    assert_eq!(message, "orgvault: cannot activate a/b: T: D\n  request r\n");
    assert_eq!(fake.requests().len(), 1);
    let unknown = ActivationListener::new(401, problem(401, "invalid-token"));
    let (socket, token) = (unknown.path("socket"), unknown.path("token"));
    assert_eq!(
        unknown.run(&ACTIVATE).refused(1),
        format!(
            "orgvault: cannot activate a/b: unix:{} does not accept the token in {}. It was replaced, has expired or was \
             deleted, or its integration or organization is disabled. Ask an admin for a new token\n  request r\n",
            socket.display(),
            token.display()
        )
    );
    let empty = ActivationListener::new(404, problem(404, "not-found"));
    let message = empty.run(&ACTIVATE).refused(1);
    assert!(
        message.starts_with(&format!("orgvault: cannot activate a/b at unix:{}: T: D", empty.path("socket").display()))
    );
    let message = empty.run(&[&ACTIVATE[..], &["--check"]].concat()).refused(1);
    assert!(message.starts_with("orgvault: cannot check a/b at unix:"), "{message}");
    fs::remove_file(empty.path("socket")).unwrap();
    let message = empty.run(&[&ACTIVATE[..], &["--wait", "0"]].concat()).refused(1);
    assert_eq!(
        message,
        format!(
            "orgvault: cannot activate a/b: cannot reach unix:{}: No such file or directory (os error 2). Is the server \
             running with --activation-listen?\n",
            empty.path("socket").display()
        )
    );
    let younger = ActivationListener::new(201, activation(&[s3().replace("\"s3\"", "\"tape\"")]));
    let message = younger.run(&ACTIVATE).refused(1);
    assert!(message.contains("older than the server"), "{message}");
}

#[test]
fn wrong_usage_is_refused_before_anything_is_sent() {
    let fake = ActivationListener::new(201, activation(&[s3()]));
    for flags in [
        &["--namespace", ".."][..],
        &["--namespace", "a", "--ttl", "59"],
        &["--namespace", "a", "--ttl", "43201"],
        &["--namespace", "a", "--ttl", "an hour"],
        &["--namespace", "a", "--purpose", " "],
        &["--namespace", "a", "--vend", "long"],
        &["--namespace", "a", "--format", "yaml"],
        &["--namespace", "a", "--format", "env", "--json"],
        &["--namespace", "a", "--id", "x"],
        &["--namespace", "a", "--type", "S3"],
        &["--namespace", "a", "--name", "1"],
        &["--namespace", "a", "--operation", "read"],
        &["--namespace", "a", "--check", "--format", "env"],
        &["--namespace", "a", "--check", "--operation", "delete"],
        &["--namespace", "a", "--check", "--until", "tomorrow"],
        &["--namespace", "a", "--activation-url", "http://vault.example/v1"],
        &[],
    ] {
        fake.run(&[&["activate"], flags].concat()).refused(2);
    }
    assert!(fake.requests().is_empty());
}

#[test]
fn token_that_others_can_read_is_not_used() {
    let fake = ActivationListener::new(201, activation(&[s3()]));
    fs::set_permissions(fake.path("token"), fs::Permissions::from_mode(0o644)).unwrap();
    let message = fake.run(&ACTIVATE).refused(1);
    assert!(message.contains("token has mode 0644") && message.contains("expected 0600"), "{message}");
    write_private(&fake.path("token"), "ovi_something");
    let message = fake.run(&ACTIVATE).refused(1);
    assert!(message.contains("not copied whole") && !message.contains("something"), "{message}");
    assert!(fake.requests().is_empty());
}

#[test]
fn check_prints_remedy_and_exits_by_severity() {
    let check = ["--check", "--operation", "read", "--operation", "list", "--until", "2026-11-21T06:00:00+01:00"];
    for (usable, status) in [(true, 0), (false, 1)] {
        let report = json!({"namespace": "a/b", "usable": usable, "credentials": [{
            "id": S3_ID, "type": "s3", "usable": usable, "checks": [
                {"check": "settings", "result": "passed"},
                {"check": "read", "result": if usable { "warning" } else { "failed" }, "reason": "denied", "remedy": "Ask."},
            ],
        }]});
        let fake = ActivationListener::new(200, report.to_string());
        let ran = fake.run(&[&ACTIVATE[..], &check].concat());
        assert_eq!(ran.status, Some(status), "{ran:?}");
        assert!(ran.stdout.contains(": denied  Ask.\n") && ran.stderr.is_empty(), "{ran:?}");
        let ran = fake.run(&[&ACTIVATE[..], &check, &["--json"]].concat());
        assert_eq!((ran.status, serde_json::from_str::<Value>(&ran.stdout).unwrap()), (Some(status), report));
        let sent = r#"{"namespace":"a/b","operations":["read","list"],"until":"2026-11-21T05:00:00Z"}"#;
        assert_eq!(fake.requests()[0], format!("POST /v1/activations/check {sent}"));
        assert_eq!(fake.requests().len(), 2, "nothing is activated");
    }
}
