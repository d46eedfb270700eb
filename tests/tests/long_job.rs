//! A job that runs longer than its credentials are valid: common clients continue to read while short-lived keys
//! expire.
//!
//! The tests take four minutes, because the minimum lifetime of an activation is one minute. `tests/long-job` installs
//! the clients and runs the tests.

use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::sleep;
use std::time::{Duration, Instant};
use vault_testkit::stores::{Moto, Scripted, find_tool};
use vault_tests::{ActivationListener, Database, Integration};

const NAMESPACE: &str = "imports/nightly";
const BUCKET: &str = "nightly-exports";
const ALL: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;
/// The clients, and whether each uses a key until it is rejected as expired.
const TOOLS: [(&str, bool); 6] =
    [("aws", false), ("boto3", false), ("s3fs", false), ("obstore", false), ("duckdb", true), ("rclone", false)];
/// Lifetime of keys at the storage server. Longer than an activation of one minute, after which `exec` has a new key.
const LIFETIME: Duration = Duration::from_secs(65);
/// Number of keys that expire during the job.
const EXPIRIES: u32 = 3;

/// Observations of the storage server that expires keys.
#[derive(Default)]
struct Seen {
    /// First use of each key.
    started: HashMap<String, Instant>,
    /// Keys by client.
    used: BTreeMap<String, BTreeSet<String>>,
    /// Number of uses of expired keys by client.
    refused: BTreeMap<String, usize>,
}

/// Starts a proxy in front of the emulator, which does not expire keys itself.
fn front(moto: &Moto, seen: &Arc<Mutex<Seen>>) -> Scripted {
    let (behind, seen) = (moto.endpoint().trim_start_matches("http://").to_owned(), Arc::clone(seen));
    Scripted::start(move |asked| {
        let authorization = asked.fields.get("authorization").cloned().unwrap_or_default();
        let key = authorization.split("Credential=").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let tool = asked.path.split("in/").nth(1).and_then(|name| name.split('.').next()).unwrap_or("other").to_owned();
        {
            let mut seen = seen.lock().unwrap();
            let started = *seen.started.entry(key.to_owned()).or_insert_with(Instant::now);
            if started.elapsed() > LIFETIME {
                *seen.refused.entry(tool).or_default() += 1;
                let error = "<?xml version=\"1.0\"?><Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>";
                return (400, vec![("Content-Type", "application/xml".to_owned())], error.to_owned());
            }
            seen.used.entry(tool).or_default().insert(key.to_owned());
        }
        forward(&behind, &asked.method, &asked.path, &asked.fields, &asked.body)
    })
}

fn forward(
    to: &str,
    method: &str,
    path: &str,
    fields: &HashMap<String, String>,
    body: &str,
) -> (u16, Vec<(&'static str, String)>, String) {
    let mut stream = TcpStream::connect(to).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    for (name, value) in fields.iter().filter(|(name, _)| *name != "connection") {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let passed = ["Content-Type", "ETag", "Last-Modified", "Content-Range", "Accept-Ranges", "Content-Length"];
    let field = |name: &&'static str| {
        let found = head.lines().find_map(|line| {
            line.split_once(": ")
                .filter(|(found, _)| found.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.to_owned())
        });
        found.filter(|_| method == "HEAD" || *name != "Content-Length").map(|value| (*name, value))
    };
    (status, passed.iter().filter_map(field).collect(), body.to_owned())
}

#[test]
#[ignore = "takes four minutes and more clients than other tests; run by tests/long-job"]
fn clients_continue_when_their_keys_expire() {
    let moto = Moto::start();
    moto.create_bucket(BUCKET);
    for (tool, _) in TOOLS {
        moto.put(BUCKET, &format!("in/{tool}.csv"), b"id,amount\n1,42\n");
    }
    let seen = Arc::new(Mutex::new(Seen::default()));
    let front = front(&moto, &seen);
    let user = moto.create_user("owner", ALL);
    let data = json!({
        "access_key_id": user.id, "secret_access_key": user.secret, "bucket": BUCKET, "region": "us-east-1",
        "endpoint": front.endpoint(), "sts_endpoint": moto.endpoint(), "path_style_access": true,
        "role_arn": moto.create_role("exporter", ALL),
    });
    let (vault, listener) = ActivationListener::open_with(Database::Sqlite, &["--allow-egress=127.0.0.0/8"]);
    vault.admin_session().save(&json!({"type": "s3", "namespace": NAMESPACE, "data": data}));
    let integration = Integration::make(&vault, "nightly", &[NAMESPACE]);
    let job = vault.scratch("job");
    fs::create_dir(&job).unwrap();
    let tools = find_tool("aws").parent().unwrap().to_owned();
    let pythons = tools.parent().unwrap().parent().unwrap();
    let script: String = TOOLS
        .iter()
        .map(|(tool, _)| {
            let venv = pythons.join(if *tool == "s3fs" { "venv-s3fs" } else { "venv-long-job" });
            let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/long_job.py");
            format!("{} {} {tool} & jobs=\"$jobs $!\"; ", venv.join("bin/python3").display(), here.display())
        })
        .collect();
    let mut command =
        integration.command(listener, &["exec", "--namespace", NAMESPACE, "--ttl", "60s", "--vend", "short", "--"]);
    command.args([
        "sh",
        "-uc",
        &format!("jobs=; {script} failed=0; for job in $jobs; do wait $job || failed=1; done; exit $failed"),
    ]);
    command.current_dir(&job).env("HOME", &job).env("AWS_EC2_METADATA_DISABLED", "true");
    let path = std::env::join_paths(
        [tools.clone()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut running = command.env("PATH", path.unwrap()).stdout(Stdio::inherit()).spawn().unwrap();

    for _ in 0..EXPIRIES {
        sleep(LIFETIME);
        assert!(running.try_wait().unwrap().is_none(), "all clients have ended");
    }
    fs::write(job.join("stop"), "").unwrap();
    assert!(running.wait().unwrap().success());
    let seen = seen.lock().unwrap();
    for (tool, is_reported) in TOOLS {
        let (used, refused) = (seen.used[tool].len(), seen.refused.get(tool).copied().unwrap_or_default());
        let found = format!("{tool}: {used} keys, {refused} times one had expired\n");
        std::io::stderr().write_all(found.as_bytes()).unwrap();
        assert!(used > 3, "{tool}: {used}");
        assert!(is_reported || refused == 0, "{tool}: {refused}");
    }
}

/// Uses one boto3 client until the file `stop` exists. Prints the key of each read, or the failure, if it has changed.
const READER: &str = r#"
import boto3, botocore.config, os, time
s3 = boto3.client("s3", config=botocore.config.Config(retries={"total_max_attempts": 1}))
before = None
while not os.path.exists("stop"):
    try:
        s3.get_object(Bucket=os.environ["ORGVAULT_BUCKET"], Key="in/a.csv")
        now = s3._request_signer._credentials.get_frozen_credentials().access_key
    except Exception as error:
        now = f"none: {error}"
    if now != before:
        print(now, flush=True)
    before = now
    time.sleep(0.1)
"#;

/// Returns the output lines of a process.
fn lines(of: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(of).lines().map_while(Result::ok) {
            std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Waits for a line that contains `part`.
#[track_caller]
fn await_line(lines: &mpsc::Receiver<String>, part: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).unwrap_or_else(|_| panic!("no output contained: {part}"));
        if line.contains(part) {
            return line;
        }
    }
}

fn check_job_after_faults_of_vault(database: Database) {
    let moto = Moto::start();
    moto.create_bucket(BUCKET);
    moto.put(BUCKET, "in/a.csv", b"id,amount\n1,42\n");
    let (first, second) = (moto.create_user("first", ALL), moto.create_user("second", ALL));
    moto.evaluate();
    let mut data = json!({
        "access_key_id": first.id, "secret_access_key": first.secret, "bucket": BUCKET, "region": "us-east-1",
        "endpoint": moto.endpoint(), "path_style_access": true,
    });
    let (mut vault, listener) = ActivationListener::open_with(database, &[]);
    let session = vault.admin_session();
    session.save(&json!({"type": "s3", "namespace": NAMESPACE, "data": data}));
    let integration = Integration::make(&vault, "nightly", &[NAMESPACE]);
    let job = vault.scratch("job");
    fs::create_dir(&job).unwrap();
    let python = find_tool("aws").with_file_name("python3");
    let mut command = integration.command(listener, &["exec", "--namespace", NAMESPACE, "--ttl", "60s", "--"]);
    command.arg(python).args(["-c", READER]).current_dir(&job).env("HOME", &job);
    command.env("AWS_EC2_METADATA_DISABLED", "true").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let used = lines(running.stdout.take().unwrap());
    let warned = lines(running.stderr.take().unwrap());
    assert_eq!(used.recv().unwrap(), first.id);

    // The namespace is frozen when a renewal is due. The job keeps its credential until it expires, and continues after
    // the thaw.
    vault.run(&["namespace", "freeze", NAMESPACE, "--org", "Acme"]).done();
    await_line(&warned, "frozen");
    vault.run(&["namespace", "thaw", NAMESPACE, "--org", "Acme"]).done();
    await_line(&warned, "was renewed after all");

    // The key is replaced, and the next renewal returns it.
    (data["access_key_id"], data["secret_access_key"]) = (second.id.clone().into(), second.secret.into());
    let id = session.list()[0]["id"].as_str().unwrap().to_owned();
    session.replace(&id, &json!({ "data": data }), false).expect(201);
    await_line(&used, &second.id);

    // The vault is killed and unavailable until the job's credential has expired. The job's requests then fail, and
    // continue with a new activation as soon as the vault is available.
    vault.take_server().kill();
    await_line(&warned, "cannot renew activation");
    await_line(&used, "none: ");
    vault.serve();
    await_line(&warned, "was renewed after all");
    await_line(&used, &second.id);
    fs::write(job.join("stop"), "").unwrap();
    assert!(running.wait().unwrap().success());
    assert_eq!(integration.live(&listener.client()).len(), 0, "the activation has ended");
}

#[test]
#[ignore = "takes three minutes; run by tests/long-job"]
fn job_survives_faults_of_embedded_vault() {
    check_job_after_faults_of_vault(Database::Sqlite);
}

#[test]
#[ignore = "takes three minutes; run by tests/long-job"]
fn job_survives_faults_of_postgresql_vault() {
    check_job_after_faults_of_vault(Database::Postgres);
}
