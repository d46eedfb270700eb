//! A job that takes longer than its credentials: the clients that people use go on reading while keys are exchanged under them.
//!
//! It takes four minutes, since an activation lasts one at least; `tests/long-job` installs the clients and runs it.

use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};
use vault_testkit::stores::{Moto, Scripted, find_tool};
use vault_tests::{Database, Door, Integration, Vault};

const NAMESPACE: &str = "imports/nightly";
const BUCKET: &str = "nightly-exports";
const ALL: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;
/// The clients, and whether each uses a key until it is told that it has ended.
const TOOLS: [(&str, bool); 6] =
    [("aws", false), ("boto3", false), ("s3fs", false), ("obstore", false), ("duckdb", true), ("rclone", false)];
/// How long a replaced key goes on working: longer than an activation of a minute.
const GRACE: Duration = Duration::from_secs(65);

/// What a store that ends keys has seen.
#[derive(Default)]
struct Seen {
    /// When keys end.
    ends: HashMap<String, Option<Instant>>,
    /// Keys by the client that used them.
    used: BTreeMap<String, BTreeSet<String>>,
    /// How often a client used a key that had ended.
    refused: BTreeMap<String, usize>,
}

/// The emulator, behind a front that ends keys: by itself it ends none.
fn front(moto: &Moto, seen: &Arc<Mutex<Seen>>) -> Scripted {
    let (behind, seen) = (moto.endpoint().trim_start_matches("http://").to_owned(), Arc::clone(seen));
    Scripted::start(move |asked| {
        let authorization = asked.fields.get("authorization").cloned().unwrap_or_default();
        let key = authorization.split("Credential=").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let tool = asked.path.split("in/").nth(1).and_then(|name| name.split('.').next()).unwrap_or("other").to_owned();
        let mut seen = seen.lock().unwrap();
        match seen.ends.get(key) {
            Some(end) if end.is_none_or(|end| Instant::now() < end) => {
                seen.used.entry(tool).or_default().insert(key.to_owned());
            }
            _ => {
                *seen.refused.entry(tool).or_default() += 1;
                let body = "<?xml version=\"1.0\"?><Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>";
                return (400, vec![("Content-Type", "application/xml".to_owned())], body.to_owned());
            }
        }
        drop(seen);
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
fn clients_go_on_while_their_keys_are_exchanged() {
    let moto = Moto::start();
    moto.create_bucket(BUCKET);
    for (tool, _) in TOOLS {
        moto.put(BUCKET, &format!("in/{tool}.csv"), b"id,amount\n1,42\n");
    }
    let seen = Arc::new(Mutex::new(Seen::default()));
    let front = front(&moto, &seen);
    let data = |name: &str| {
        let user = moto.create_user(name, ALL);
        seen.lock().unwrap().ends.insert(user.id.clone(), None);
        let data = json!({
            "access_key_id": user.id, "secret_access_key": user.secret, "bucket": BUCKET, "region": "us-east-1",
            "endpoint": front.endpoint(), "path_style_access": true,
        });
        (user.id, data)
    };
    let (vault, door) = Door::open_with(Database::Sqlite, &[]);
    let session = vault.admin_session();
    let (mut current, first) = data("first");
    session.save(&json!({"type": "s3", "namespace": NAMESPACE, "data": first}));
    let id = session.list()[0]["id"].as_str().unwrap().to_owned();
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
    let mut command = integration.command(door, &["exec", "--namespace", NAMESPACE, "--ttl", "60s", "--"]);
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

    for name in ["second", "third", "fourth"] {
        sleep(Duration::from_secs(5));
        let (next, data) = data(name);
        session.replace(&id, &json!({ "data": data }), false).expect(201);
        seen.lock().unwrap().ends.insert(current, Some(Instant::now() + GRACE));
        current = next;
        sleep(GRACE);
        assert!(running.try_wait().unwrap().is_none(), "a client has ended");
    }
    sleep(Duration::from_secs(5));
    fs::write(job.join("stop"), "").unwrap();
    assert!(running.wait().unwrap().success());
    let seen = seen.lock().unwrap();
    for (tool, is_told) in TOOLS {
        let (used, refused) = (seen.used[tool].len(), seen.refused.get(tool).copied().unwrap_or_default());
        println!("{tool}: {used} keys, told {refused} times that one had ended");
        assert_eq!(used, 4, "{tool}");
        assert!(is_told || refused == 0, "{tool}: {refused}");
    }
}
