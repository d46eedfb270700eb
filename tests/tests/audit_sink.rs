//! Delivery of audit entries to a sink, also if the sink fails.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::{Database, Vault, on_both_databases};

/// Longer than any operation here takes on any host.
const PATIENCE: Duration = Duration::from_secs(120);

/// Polls until there is a result.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns whether the lines contain the entry about saving this credential.
fn saved(lines: &[Value], credential: &str) -> bool {
    let subject = format!("credential:{credential}");
    lines.iter().any(|line| line["action"] == "credential.saved" && line["subject"] == subject.as_str())
}

/// The file contains every entry of every checkpoint in order, across restarts and crashes.
fn file_gets_every_entry_in_order(database: Database) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.jsonl");
    let sink = format!("file:{}", file.display());
    let mut vault = Vault::start_with(database, &["--audit-sink", &sink, "--keep-audit", "1d"]);
    let mut session = vault.admin_session();
    for number in 0..3 {
        let id = session.save(&small("imports", number));
        until("the entry is delivered", || {
            // A line may be incomplete while it is being written.
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.rfind('\n').is_some_and(|end| saved(&lines(&text[..end]), &id)).then_some(())
        });
        // Another replica would take over after a minute, so use a graceful restart on PostgreSQL.
        match database {
            Database::Sqlite => vault.kill_and_restart(),
            Database::Postgres => vault.restart(),
        }
        session = session.on(&vault.client());
    }
    vault.stop();
    let delivered = lines(&fs::read_to_string(&file).unwrap());
    let checkpoints: Vec<_> = delivered.iter().map(|line| line["checkpoint"].as_i64().unwrap()).collect();
    assert!(checkpoints.is_sorted(), "{checkpoints:?}");
    let (first, last) = (checkpoints[0], *checkpoints.last().unwrap());
    let exported = lines(&vault.run(&["audit", "list", "--json-lines"]).done().stdout);
    let within = exported.iter().filter(|line| (first..=last).contains(&line["checkpoint"].as_i64().unwrap_or(-1)));
    let ids =
        |lines: &mut dyn Iterator<Item = &Value>| lines.map(|line| line["id"].to_string()).collect::<BTreeSet<_>>();
    assert_eq!(ids(&mut delivered.iter()), ids(&mut within.into_iter()));
    assert!(exported.iter().all(|line| line["action"] != "audit.truncated"), "nothing is a day old");
}

on_both_databases!(file_gets_every_entry_in_order);

/// Reads one request. Returns its head and body.
fn request(stream: &mut BufReader<std::net::TcpStream>) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "the request ends early: {head}");
    }
    let length =
        head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

/// Lines that a log service rejects are sent again in the same order. Saves continue in the meantime.
#[test]
fn failing_http_server_gets_the_same_entries_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sink = format!("http://{}/ingest", listener.local_addr().unwrap());
    let (reported, requests) = mpsc::channel();
    let accepts = Arc::new(AtomicBool::new(false));
    let accepting = Arc::clone(&accepts);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let _ = reported.send(request(&mut stream)); // the test may have ended
            let accepted = accepting.load(Ordering::Acquire);
            let status = if accepted { "204 No Content" } else { "500 Out Of Order" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.toml");
    vault_tests::integration::write_private(&config, "audit-sink-token = \"s3cret-of-the-log-service\"\n");
    let flags = ["--audit-sink", &sink, "--config", config.to_str().unwrap()];
    let mut vault = Vault::start_with(Database::Sqlite, &flags);
    let session = vault.admin_session();
    let next = || requests.recv_timeout(PATIENCE).unwrap();
    let (head, first) = next();
    assert!(head.starts_with("POST /ingest HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(head.contains("authorization: bearer s3cret-of-the-log-service\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-ndjson\r\n"), "{head}");
    let id = session.save(&small("imports", 1));
    assert_eq!(next().1, first, "the same entries again");
    let metric = |name: &str| {
        let metrics = vault.server().admin_client().get("/metrics").send().expect(200).text();
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        value.unwrap_or_default()
    };
    until("what waits is shown", || (metric("orgvault_audit_waiting_checkpoints") >= 2.0).then_some(()));
    assert_eq!(metric("orgvault_audit_delivered_total"), 0.0, "nothing was accepted");
    accepts.store(true, Ordering::Release);
    assert_eq!(next().1, first, "and again");
    let mut rest = Vec::new();
    while !saved(&rest, &id) {
        rest.extend(lines(&next().1));
    }
    until("the entries are counted", || (metric("orgvault_audit_delivered_total") > 0.0).then_some(()));
    until("nothing waits", || (metric("orgvault_audit_waiting_checkpoints") == 0.0).then_some(()));
    let log = vault.server().log_text();
    assert!(log.contains("were not accepted") && log.contains("status 500"), "{log}");
    assert!(!log.contains("s3cret-of-the-log-service"));
    vault.stop();
}

#[test]
fn local_syslog_gets_message_for_each_entry() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let vault = Vault::start_with(Database::Sqlite, &["--audit-sink", &format!("syslog:{}", path.display())]);
    let id = vault.admin_session().save(&small("imports", 1));
    let mut buffer = [0; 8_192];
    loop {
        let length = socket.recv(&mut buffer).unwrap();
        let message = std::str::from_utf8(&buffer[..length]).unwrap();
        // authpriv.notice: 10 * 8 + 5 (RFC 3164)
        let (_, line) = message.strip_prefix("<85>").unwrap().split_once("]: ").unwrap();
        if saved(&lines(line), &id) {
            break;
        }
    }
}

#[test]
fn invalid_sink_is_refused_at_start() {
    let vault = Vault::init(Database::Sqlite);
    let config = vault.scratch("config.toml");
    vault_tests::integration::write_private(&config, "audit-sink-token = \"token\"\n");
    let config = config.to_str().unwrap();
    for (flags, expected) in [
        (&["--audit-sink", "audit.jsonl"][..], "--audit-sink"),
        (&["--config", config], "audit-sink-token needs an --audit-sink that is a URL"),
        (&["--keep-audit", "1h"], "--keep-audit"),
    ] {
        let mut command = vault.serve_command();
        command.args(flags);
        let run = Server::fail(command);
        assert_ne!(run.status, Some(0));
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}
