//! `orgvault exec`, against a fake listener. Commands print a line when they run, so no test depends on timing.

use crate::support::{
    self, ACTIVATION, ActivationListener, GCS_ID, S3_ID, SECRET, activation, ending, gcs, problem, s3,
};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};
use vault_testkit::stores::find_tool;

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().unwrap()).unwrap()
}

/// Asserts that the activation was started and ended, and that no file remains.
#[track_caller]
fn nothing_is_left(fake: &ActivationListener) {
    let requests = fake.requests();
    assert_eq!(requests.last(), Some(&format!("DELETE /v1/activations/{ACTIVATION}")), "{requests:?}");
    assert_eq!(requests.len() % 2, 0, "{requests:?}");
    assert_eq!(fake.left_behind(), 0);
}

#[test]
fn command_environment_excludes_activation_token() {
    let fake = ActivationListener::new(201, activation(&[s3()]));
    let mut command = fake.command(&["exec", "--namespace", "a/b", "--purpose", "p", "--static", "--", "env", "-0"]);
    let displaced = ["AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL", "RCLONE_S3_ENDPOINT"];
    command.envs(displaced.map(|name| (name, "of another user"))).env("KEPT", "as it is");
    let ran = support::Ran::of(command.output().unwrap()).done();
    let value = |name: &str| ran.split('\0').find_map(|set| set.strip_prefix(name)?.strip_prefix('='));
    assert_eq!(value("AWS_SECRET_ACCESS_KEY"), Some(SECRET));
    assert_eq!(value("RCLONE_CONFIG_ORGVAULT_SECRET_ACCESS_KEY"), Some(SECRET));
    assert_eq!((value("ORGVAULT_BUCKET"), value("KEPT")), (Some("b"), Some("as it is")));
    for name in displaced.into_iter().chain(["ORGVAULT_ACTIVATION_URL", "ORGVAULT_INTEGRATION_TOKEN_FILE"]) {
        assert_eq!(value(name), None, "{name}");
    }
    assert!(!ran.contains(&support::token()));
    assert_eq!(fake.requests()[0], r#"POST /v1/activations {"namespace":"a/b","purpose":"p"}"#);
    nothing_is_left(&fake);
    assert_eq!(fs::read_dir(fake.path("work")).unwrap().count(), 0, "no vault was made");
}

/// Requests the endpoint like the AWS tools until the response contains `$1`, and prints the response.
const ASK_UNTIL: &str = r#"
until curl -sS -H "Authorization: $AWS_CONTAINER_AUTHORIZATION_TOKEN" "$AWS_CONTAINER_CREDENTIALS_FULL_URI" >answer &&
    grep -q "$1" answer; do sleep 0.05; done; cat answer"#;

#[test]
fn s3_credential_is_served_by_endpoint_of_this_run() {
    let fake = ActivationListener::new(201, activation(&[s3()]));
    let script = r#"env; cat "$AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"; echo
        test "$(cat "$AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")" = "$AWS_CONTAINER_AUTHORIZATION_TOKEN"
        curl -sS "$AWS_CONTAINER_CREDENTIALS_FULL_URI"; echo
        curl -sS -H "Authorization: $AWS_CONTAINER_AUTHORIZATION_TOKEN" "$AWS_CONTAINER_CREDENTIALS_FULL_URI""#;
    let mut command = fake.command(&["exec", "--namespace", "a/b", "--", "sh", "-euc", script]);
    command.env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/of/another").env("AWS_ACCESS_KEY_ID", "of another");
    let ran = support::Ran::of(command.output().unwrap()).done();
    let (before, document) = ran.rsplit_once('\n').unwrap();
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    assert_eq!((&document["AccessKeyId"], &document["SecretAccessKey"]), (&"AKIA".into(), &SECRET.into()));
    assert_eq!(
        (&document["Token"], &document["Expiration"]),
        (&serde_json::Value::Null, &"2999-11-20T12:00:00Z".into())
    );
    assert!(
        before.ends_with(r#"{"code":"Unauthorized","message":"the token is not that of this endpoint"}"#),
        "{before}"
    );
    assert!(!before.contains(SECRET) && !before.contains("AKIA") && !before.contains("of another"), "{before}");
    for set in ["ORGVAULT_BUCKET=b", "AWS_REGION=eu-west-1", "RCLONE_CONFIG_ORGVAULT_ENV_AUTH=true"] {
        assert!(before.lines().any(|line| line == set), "{set}: {before}");
    }
    nothing_is_left(&fake);
    let url = before.lines().find_map(|line| line.strip_prefix("AWS_CONTAINER_CREDENTIALS_FULL_URI=http://")).unwrap();
    let address = url.split_once('/').unwrap().0;
    assert!(std::net::TcpStream::connect(address).is_err(), "it ends with its run");
}

/// Seen from a host whose clock is ahead, the activation has expired when it starts.
#[test]
fn wrong_clock_is_reported_and_credential_served() {
    let ahead = Duration::from_secs(12 * 60);
    let server = OffsetDateTime::now_utc() - ahead;
    let ttl = Duration::from_secs(600);
    let expires_at = (server + ttl).format(&Rfc3339).unwrap();
    let fake = ActivationListener::new(201, support::ending(&expires_at, &[s3()]));
    fake.date_with(server.format(&Rfc2822).unwrap().replace("+0000", "GMT"));
    let script =
        r#"curl -sSf -H "Authorization: $AWS_CONTAINER_AUTHORIZATION_TOKEN" "$AWS_CONTAINER_CREDENTIALS_FULL_URI""#;
    let ran = fake.exec(&[], script);
    assert_eq!(ran.stderr.matches("the clock of this host is 12m").count(), 1, "{ran:?}");
    let document: serde_json::Value = serde_json::from_str(&ran.done()).unwrap();
    let end = OffsetDateTime::parse(document["Expiration"].as_str().unwrap(), &Rfc3339).unwrap();
    assert!(end > OffsetDateTime::now_utc(), "{document}");
    let printed = fake.run(&["activate", "--namespace", "a/b"]).done();
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let printed = OffsetDateTime::parse(document["expires_at"].as_str().unwrap(), &Rfc3339).unwrap();
    assert!(printed < end - ahead / 2, "the response as it is: {printed}");
}

/// Prints the key that botocore uses under `exec`, its source, and settings.
const BOTOCORE_JOB: &str = r#"
import botocore.session
session = botocore.session.get_session()
credentials = session.get_credentials()
client = session.create_client("s3")
print(credentials.method, credentials.access_key, client.meta.region_name, client.meta.endpoint_url)
for name in ("request_checksum_calculation", "ca_bundle", "retry_mode", "max_attempts"):
    print(name, session.get_config_variable(name))
print(client.meta.config.s3)
"#;

/// Settings of the user apply to the command's tools. Identities and addresses of the user do not, although each of these
/// files and variables has priority over the endpoint in botocore.
#[test]
fn user_settings_reach_command_without_identities() {
    let fake = ActivationListener::new(201, activation(&[s3()]));
    let home = fake.path("home");
    fs::create_dir_all(home.join(".aws")).unwrap();
    let keys = "aws_access_key_id = AKIAOFUSER\naws_secret_access_key = of-user\n";
    let settings = "region = ap-south-1\nrequest_checksum_calculation = when_required\nca_bundle = /etc/house.pem\n\
        retry_mode = adaptive\nmax_attempts = 7\nendpoint_url = https://elsewhere.example\nservices = house\n\
        s3 =\n    max_concurrent_requests = 3\n    addressing_style = virtual\n    use_accelerate_endpoint = true\n";
    let identities = "credential_process = /bin/false\nlogin_session = x\nsso_start_url = https://sso.example\n";
    let services = "[services house]\ns3 =\n    endpoint_url = https://elsewhere.example\n";
    let boto = format!("[Credentials]\n{keys}");
    for (file, content) in [
        (
            ".aws/config",
            format!("[default]\n{keys}{identities}{settings}[profile work]\n{identities}{settings}{services}"),
        ),
        (".aws/credentials", format!("[default]\n{keys}[work]\n{keys}")),
        (".boto", boto.clone()),
        ("boto", boto),
        ("ec2", "AWSAccessKeyId=AKIAOFUSER\nAWSSecretKey=of-user\n".to_owned()),
    ] {
        fs::write(home.join(file), content).unwrap();
    }
    let python = find_tool("python3");
    for (profile, flags) in [(None, &[][..]), (Some("work"), &[]), (None, &["--static"])] {
        let words = [&["exec", "--namespace", "a/b"], flags, &["--", python.to_str().unwrap(), "-c", BOTOCORE_JOB]];
        let mut command = fake.command(&words.concat());
        command.env("HOME", &home).env_remove("AWS_CONFIG_FILE").env_remove("AWS_SHARED_CREDENTIALS_FILE");
        command
            .env_remove("AWS_CA_BUNDLE")
            .env("BOTO_CONFIG", home.join("boto"))
            .env("AWS_CREDENTIAL_FILE", home.join("ec2"));
        command.envs(profile.map(|name| ("AWS_PROFILE", name))).env("AWS_ROLE_ARN", "arn:aws:iam::1:role/of-user");
        let printed = support::Ran::of(command.output().unwrap()).done();
        let method = if flags.is_empty() { "container-role" } else { "env" };
        assert_eq!(
            printed,
            format!(
                "{method} AKIA eu-west-1 https://s3.eu-west-1.amazonaws.com\nrequest_checksum_calculation when_required\n\
                 ca_bundle /etc/house.pem\nretry_mode adaptive\nmax_attempts 7\n{{'addressing_style': 'path', 'max_concurrent_requests': '3'}}\n"
            )
        );
    }
}

/// Clients read different variables. No process listens at the proxy's address, so requests through it fail.
#[test]
fn endpoint_is_requested_without_a_proxy() {
    let fake = ActivationListener::new(201, activation(&[s3()]));
    let proxy = "http://127.0.0.1:9";
    let script = r#"curl -sSf -o /dev/null -H "Authorization: $AWS_CONTAINER_AUTHORIZATION_TOKEN" "$AWS_CONTAINER_CREDENTIALS_FULL_URI"
        echo "$no_proxy $NO_PROXY $http_proxy $HTTP_PROXY""#;
    for (name, value, expected) in [
        ("NO_PROXY", "a.example", "a.example,127.0.0.1"),
        ("no_proxy", "b.example", "b.example,127.0.0.1"),
        ("no_proxy", "*", "*"),
    ] {
        let mut command = fake.command(&["exec", "--namespace", "a/b", "--", "sh", "-euc", script]);
        command.env_remove("NO_PROXY").env_remove("no_proxy").env(name, value);
        let ran = support::Ran::of(command.env("http_proxy", proxy).env("HTTP_PROXY", proxy).output().unwrap());
        assert_eq!(ran.done(), format!("{expected} {expected} {proxy} {proxy}\n"));
    }
}

/// Starts a server of direct links. The channel returns each requested path with its header field `X-Key`.
fn links(target: &'static str) -> (String, mpsc::Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (requests, asks) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let lines: Vec<String> =
                stream.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
            let path = lines[0].split(' ').nth(1).unwrap().to_owned();
            let response = if path.starts_with("/moved") {
                format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n")
            } else {
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n".to_owned()
            };
            let key = lines.iter().find_map(|line| line.strip_prefix("X-Key: ")).unwrap_or_default();
            requests.send(format!("{path} {key}")).unwrap_or_default();
            std::io::Write::write_all(stream.get_mut(), format!("{response}Connection: close\r\n\r\na,b").as_bytes())
                .unwrap();
        }
    });
    (address, asks)
}

/// The documented command downloads the link's target, or fails. It never prints the link, and sends header fields only
/// to the link's host.
#[test]
fn curl_fetches_links_with_generated_configuration() {
    let link = |url: &str, headers: &str| {
        let data = format!(r#"{{{headers}"url":"{url}"}}"#);
        format!(r#"{{"id":"{S3_ID}","type":"direct-link","version":1,"form":"raw","data":{data}}}"#)
    };
    let fetch = |address: &str, path: &str, headers: &str| {
        let fake = ActivationListener::new(
            201,
            activation(&[link(&format!("http://{address}{path}?Signature=madeup"), headers)]),
        );
        let ran = fake.exec(&[], r#"curl --config "$ORGVAULT_CURL_CONFIG" --output in.csv"#);
        let fetched = fs::read_to_string(fake.path("work/in.csv")).unwrap_or_default();
        assert!(!ran.stdout.contains("madeup") && !ran.stderr.contains("madeup"), "{ran:?}");
        (ran.status, fetched)
    };
    let header = r#""headers":{"X-Key":"a \"quoted\" \\ key"},"#;
    let (address, asks) = links("/in.csv");
    for (path, headers, status, fetched, requests) in [
        ("/report[2026]{a,b}.csv", "", 0, "a,b", vec!["/report[2026]{a,b}.csv?Signature=madeup "]),
        ("/report[1-9].csv", header, 0, "a,b", vec![r#"/report[1-9].csv?Signature=madeup a "quoted" \ key"#]),
        ("/moved", "", 0, "a,b", vec!["/moved?Signature=madeup ", "/in.csv "]),
        ("/moved", header, 47, "", vec![r#"/moved?Signature=madeup a "quoted" \ key"#]),
    ] {
        assert_eq!(fetch(&address, path, headers), (Some(status), fetched.to_owned()), "{path} {headers}");
        assert_eq!(asks.try_iter().collect::<Vec<_>>(), requests, "{path} {headers}");
    }
    let (address, _asks) = links("ftp://127.0.0.1/in.csv");
    assert_eq!(fetch(&address, "/moved", "").0, Some(1), "another protocol");
}

/// Returns the body of an activation that must be renewed immediately.
fn short_lived(credentials: &[String]) -> String {
    ending("2026-01-01T00:00:00Z", credentials)
}

#[test]
fn renewed_credentials_reach_command() {
    let fake = ActivationListener::new(201, short_lived(&[s3()]));
    let replaced = s3().replace("AKIA", "AKIAREPLACED").replace(r#""version":1"#, r#""version":2"#);
    // A failed renewal is retried.
    fake.renew_with(vec![(503, problem(503, "unavailable")), (200, activation(&[replaced]))]);
    let script = format!(r#"{ASK_UNTIL}; grep -o '"version":2' "$ORGVAULT_CREDENTIAL_FILE""#);
    let run = ["exec", "--namespace", "a/b", "--ttl", "15m", "--", "sh", "-euc", &script, "sh", "AKIAREPLACED"];
    let ran = fake.run(&run);
    assert!(ran.stderr.contains(&format!("cannot renew activation {ACTIVATION}: ")), "{ran:?}");
    assert!(ran.stderr.contains("was renewed after all, until 2999-11-20"), "{ran:?}");
    let printed = ran.done();
    assert!(printed.contains("AKIAREPLACED") && printed.contains("2999-11-20") && printed.ends_with("\"version\":2\n"));
    let requests = fake.requests();
    let renewal = format!(r#"POST /v1/activations/{ACTIVATION}/renew {{"ttl":900}}"#);
    assert_eq!(
        requests[1..],
        [&renewal, &renewal, &format!("DELETE /v1/activations/{ACTIVATION}")].map(String::as_str)
    );
    assert_eq!(fake.left_behind(), 0);
}

/// Google's library finds the endpoint of `exec` and requests tokens until it gets a valid one.
const GOOGLE_JOB: &str = r#"
import google.auth, google.auth.exceptions, time
from google.auth.transport.requests import Request
credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/devstorage.read_write"])
print(type(credentials).__module__)
while not credentials.valid:
    try:
        credentials.refresh(Request())
    except google.auth.exceptions.GoogleAuthError as refused:
        time.sleep(0.05)
print(credentials.token)
"#;

#[test]
fn google_library_accepts_short_lived_tokens() {
    let short = |token: &str, end: &str| {
        let data = format!(r#"{{"access_token":"{token}","bucket":"b"}}"#);
        format!(r#"{{"id":"{GCS_ID}","type":"gcs","version":1,"form":"short","data":{data},"expires_at":"{end}"}}"#)
    };
    let fake = ActivationListener::new(201, short_lived(&[short("ya29.first", "2026-01-01T00:00:00Z")]));
    fake.renew_with(vec![(200, activation(&[short("ya29.second", "2999-11-20T12:00:00Z")]))]);
    let python = find_tool("python3");
    let run = ["exec", "--namespace", "a/b", "--", python.to_str().unwrap(), "-c", GOOGLE_JOB];
    let mut command = fake.command(&run);
    command.env("HTTP_PROXY", "http://127.0.0.1:9").env_remove("NO_PROXY").env_remove("no_proxy");
    assert_eq!(support::Ran::of(command.output().unwrap()).done(), "google.auth.identity_pool\nya29.second\n");
    assert_eq!((fake.requests().len(), fake.left_behind()), (3, 0), "begun, renewed, ended");
}

#[test]
fn exec_reactivates_when_renewal_is_refused() {
    // The activation has expired, or cannot be renewed.
    for (status, code) in [(404, "not-found"), (409, "conflict")] {
        let (reported, receiver) = mpsc::channel();
        let hook = move |line: &str| reported.send(line.to_owned()).unwrap_or_default();
        let fake = ActivationListener::with_hook(201, short_lived(&[s3()]), Box::new(hook));
        fake.renew_with(vec![(status, problem(status, code))]);
        let (child, ..) = start(&fake, "echo ready; exec sleep 600 >/dev/null");
        let lines: Vec<String> = receiver.iter().take(4).collect();
        let (begin, end) = ("POST /v1/activations", format!("DELETE /v1/activations/{ACTIVATION}"));
        assert_eq!(lines, [begin, &format!("{begin}/{ACTIVATION}/renew"), begin, &end], "{code}");
        kill_process(pid(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
    }

    // The command keeps the credential that it can use. `exec` prints one warning for each reason.
    let fake = ActivationListener::new(201, short_lived(&[s3()]));
    let moved = s3().replace("eu-west-1", "us-east-1").replace("AKIA", "AKIAMOVED");
    let replaced = s3().replace("AKIA", "AKIAREPLACED");
    fake.renew_with(vec![
        (200, short_lived(std::slice::from_ref(&moved))),
        (200, short_lived(&[moved])),
        (200, short_lived(&[gcs()])),
        (200, activation(&[replaced])),
    ]);
    let ran = fake.run(&["exec", "--namespace", "a/b", "--", "sh", "-euc", ASK_UNTIL, "sh", "AKIAREPLACED"]);
    for expected in ["now has another endpoint, region, bucket, prefix or role", "is no longer in the namespace"] {
        assert_eq!(ran.stderr.matches(expected).count(), 1, "{ran:?}");
    }
    ran.done();
    assert_eq!(fake.requests().len(), 6);
}

#[test]
fn without_refresh_nothing_is_renewed() {
    let fake = ActivationListener::new(201, short_lived(&[s3()]));
    let script =
        r#"curl -sS -H "Authorization: $AWS_CONTAINER_AUTHORIZATION_TOKEN" "$AWS_CONTAINER_CREDENTIALS_FULL_URI""#;
    let printed = fake.exec(&["--no-refresh"], script).done();
    assert!(printed.contains("the credential has expired"), "{printed}");
    nothing_is_left(&fake);
}

#[test]
fn failed_end_is_reported_and_keeps_status() {
    let fake = ActivationListener::new(201, activation(&[gcs()]));
    // An activation that expired before the command exited causes no warning.
    fake.end_with(404, problem(404, "not-found"));
    let ran = fake.exec(&[], "exit 3");
    assert_eq!((ran.status, &*ran.stderr), (Some(3), ""));
    fake.end_with(503, problem(503, "unavailable"));
    let ran = fake.exec(&[], "exit 3");
    assert_eq!(ran.status, Some(3));
    assert!(ran.stderr.contains(&format!("cannot end activation {ACTIVATION}: ")), "{ran:?}");
    nothing_is_left(&fake);
}

/// Starts `orgvault exec` with `script`, and waits for the first line of its output.
fn start(fake: &ActivationListener, script: &str) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut command = fake.command(&["exec", "--namespace", "a/b", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    (child, stdout, line.trim_end().to_owned())
}

#[test]
fn signals_reach_the_command() {
    let fake = ActivationListener::new(201, activation(&[gcs()]));
    let signals = [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ];
    for (signal, name) in signals {
        // Some shells miss a signal that arrives just before a long wait, so the script waits for short times.
        let script = format!("trap 'exit 40' {name}; echo ready; while :; do sleep 0.05; done");
        let (mut child, _stdout, line) = start(&fake, &script);
        assert_eq!((&*line, fake.left_behind()), ("ready", 1));
        kill_process(pid(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(40), "{name}");
        nothing_is_left(&fake);
    }
    // A command without a handler is terminated by the signal.
    let (mut child, _stdout, _) = start(&fake, "echo ready; exec sleep 600 >/dev/null");
    kill_process(pid(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    nothing_is_left(&fake);
}

#[test]
fn signals_that_were_ignored_before_stay_ignored() {
    let fake = ActivationListener::new(201, activation(&[s3()]));
    let script = r#"trap "" HUP USR1; exec "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_orgvault"), "exec", "--namespace", "a/b"]);
    fake.set_up(command.args(["--", "grep", "SigIgn", "/proc/self/status"]));
    let printed = support::Ran::of(command.output().unwrap()).done();
    let set = u64::from_str_radix(printed.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    let ignored = |signal: Signal| set & (1 << (signal.as_raw() - 1)) != 0;
    assert!(ignored(Signal::HUP) && ignored(Signal::USR1) && !ignored(Signal::TERM) && !ignored(Signal::USR2));
}

#[test]
fn stop_before_start_prevents_command() {
    let (tell, reported) = mpsc::channel();
    let stop = move |line: &str| {
        if line.starts_with("POST ") {
            kill_process(reported.recv().unwrap(), Signal::TERM).unwrap();
        }
    };
    let fake = ActivationListener::with_hook(201, activation(&[gcs()]), Box::new(stop));
    let mut command = fake.command(&["exec", "--namespace", "a/b", "--", "echo", "started"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    tell.send(pid(&child)).unwrap();
    let message = support::Ran::of(child.wait_with_output().unwrap()).refused(143);
    assert!(message.contains("stopped before echo was started"), "{message}");
    assert_eq!(fake.left_behind(), 0);
}

/// Starts a listener that never responds to requests of this method. The channel returns a value for each of them.
fn silent(method: &'static str) -> (ActivationListener, mpsc::Receiver<()>) {
    let (requests, asks) = mpsc::channel();
    let hook = move |line: &str| {
        if line.starts_with(method) {
            requests.send(()).unwrap();
            loop {
                std::thread::park();
            }
        }
    };
    (ActivationListener::with_hook(201, activation(&[gcs()]), Box::new(hook)), asks)
}

#[test]
fn unresponsive_listener_does_not_block_exit() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let (fake, asks) = silent("POST ");
        let mut command = fake.command(&["exec", "--namespace", "a/b", "--", "echo", "started"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        asks.recv().unwrap();
        kill_process(pid(&child), signal).unwrap();
        let message = support::Ran::of(child.wait_with_output().unwrap()).refused(status);
        assert!(message.contains("stopped before echo was started"), "{message}");
    }
    // If the request that ends the activation gets no response, the exit status is still the command's.
    for signal in [Signal::TERM, Signal::INT] {
        let (fake, asks) = silent("DELETE ");
        let mut command = fake.command(&["exec", "--namespace", "a/b", "--", "sh", "-c", "exit 7"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        asks.recv().unwrap();
        kill_process(pid(&child), signal).unwrap();
        let ran = support::Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.status, Some(7), "{ran:?}");
        assert!(ran.stderr.contains(&format!("before activation {ACTIVATION} was ended")), "{ran:?}");
        assert_eq!(fake.left_behind(), 0);
    }
}

#[test]
fn command_gets_term_when_exec_is_killed() {
    let fake = ActivationListener::new(201, activation(&[gcs()]));
    let script = "trap 'echo stopped; exit' TERM; echo ready; while :; do sleep 0.05; done";
    let (mut killed, mut stdout, _) = start(&fake, script);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut message = String::new();
    stdout.read_to_string(&mut message).unwrap();
    assert_eq!(message, "stopped\n");
}

#[test]
fn command_has_its_own_name_and_dies_with_exec() {
    let fake = ActivationListener::new(201, activation(&[gcs()]));
    let printed = fake.exec(&[], "tr '\\0' ' ' </proc/$$/cmdline; grep PPid /proc/$$/status").done();
    assert!(printed.starts_with("sh -c tr ") && !printed.contains("orgvault"), "{printed}");
    // If `exec` exited before the command requested a signal at its death, the command is not started.
    let mut late = Command::new(env!("CARGO_BIN_EXE_orgvault"));
    let late = late.arg0("orgvault-exec-command").args(["1", "echo", "started"]).output().unwrap();
    let message = support::Ran::of(late).refused(126);
    assert!(message.contains("echo was not started, because orgvault exec has exited"), "{message}");
}

/// Starts `exec` and kills it. Returns its remaining directory, and output and id of the command, which still runs.
fn killed(fake: &ActivationListener, script: &str) -> (PathBuf, BufReader<std::process::ChildStdout>, Pid) {
    let (mut killed, stdout, command) = start(fake, script);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = fs::read_dir(fake.runtime()).unwrap().next().unwrap().unwrap().path();
    (left, stdout, Pid::from_raw(command.parse().unwrap()).unwrap())
}

#[test]
fn next_run_removes_files_of_killed_run() {
    let fake = ActivationListener::new(201, activation(&[gcs()]));
    let (left, mut stdout, command) = killed(&fake, "trap '' TERM; echo $$; exec sleep 600");
    // The command ignores the signal, so its files are kept.
    fake.exec(&[], "true").done();
    assert!(left.join("0-gcp-key.json").is_file());
    kill_process(command, Signal::KILL).unwrap();
    stdout.read_to_end(&mut Vec::new()).unwrap();
    flock(File::open(&left).unwrap(), FlockOperation::LockExclusive).unwrap(); // until the last process has closed it
    wait_for_the_end_of(command);
    fake.exec(&[], "true").done();
    assert_eq!(fake.left_behind(), 0);
}

/// Commands that start other programs often close inherited descriptors, including the one with the directory's lock.
#[test]
fn command_that_closed_inherited_descriptors_keeps_files() {
    const SCRIPT: &str = r#"exec python3 -c '
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.closerange(3, 4096)
record = os.path.join(os.path.dirname(os.environ["GOOGLE_APPLICATION_CREDENTIALS"]), "command")
while not os.path.exists(record): pass
print(os.getpid(), flush=True)
sys.stdin.read()
'"#;
    let fake = ActivationListener::new(201, activation(&[gcs()]));
    let mut command = fake.command(&["exec", "--namespace", "a/b", "--", "sh", "-c", SCRIPT]);
    let mut exec = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (stdin, mut stdout) = (exec.stdin.take().unwrap(), BufReader::new(exec.stdout.take().unwrap()));
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    exec.kill().unwrap();
    exec.wait().unwrap();
    let left = fs::read_dir(fake.runtime()).unwrap().next().unwrap().unwrap().path();
    flock(File::open(&left).unwrap(), FlockOperation::NonBlockingLockExclusive).unwrap(); // no process has locked it
    fake.exec(&[], "true").done();
    assert!(left.join("0-gcp-key.json").is_file(), "the command still runs");
    drop(stdin);
    stdout.read_to_end(&mut Vec::new()).unwrap();
    wait_for_the_end_of(Pid::from_raw(line.trim().parse().unwrap()).unwrap());
    fake.exec(&[], "true").done();
    assert_eq!(fake.left_behind(), 0);
}

/// Waits until the process has exited, which is not a child of this process. Its descriptors are closed before that.
fn wait_for_the_end_of(process: Pid) {
    let ended = |status: String| status.lines().any(|line| line.starts_with("State:\tZ"));
    let path = format!("/proc/{}/status", process.as_raw_nonzero());
    while fs::read_to_string(&path).is_ok_and(|status| !ended(status)) {
        std::thread::yield_now();
    }
}

#[test]
fn credential_of_an_unknown_type_needs_a_newer_program() {
    let fake = ActivationListener::new(201, activation(&[s3().replace("\"s3\"", "\"tape\"")]));
    let message = fake.run(&["activate", "--namespace", "a/b"]).refused(1);
    assert!(message.contains("older than the server"), "{message}");
}
