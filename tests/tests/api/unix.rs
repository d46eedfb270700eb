//! The activation listener on a socket in the file system.

use super::app::{App, JSON, s3};
use rustix::fs::inotify;
use std::fs;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;
use vault_tests::wire::{Wire, request};

fn wire(path: &Path) -> Wire<UnixStream> {
    let stream = UnixStream::connect(path).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    Wire::over(stream)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("a socket").permissions().mode() & 0o7777
}

#[test]
fn unix_socket_serves_requests_and_is_removed_at_exit() {
    let app = App::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("activation.sock");
    let admin = app.admin();
    let id = admin.save(&s3("imports", "b"));
    let job = app.listener().job(&admin, "nightly", &["imports"]);
    let listener = app.socket(&path, 0o660, |_, _| {}).unwrap();
    assert_eq!(listener.address, None);
    let mut wire = wire(&path);
    let headers = [&*job.header(), JSON, "X-Forwarded-For: 203.0.113.7"];
    let answer = wire.exchange(request("POST /v1/activations", &headers, "{\"namespace\":\"imports\"}")).expect(201);
    answer.check_common();
    assert_eq!(answer.header("strict-transport-security"), None);
    assert_eq!(answer.json()["credentials"][0]["id"], id);
    wire.exchange(request("GET /livez", &[], "")).expect(200); // the connection stays open
    wire.exchange(request("GET /v1/activations", &[], "")).problem("invalid-token");
    drop(wire);
    listener.stop(&app);
    assert!(!path.exists(), "removed when the listener stopped");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing else is left");
}

#[test]
fn unix_socket_has_configured_mode() {
    let app = App::start();
    let directory = tempfile::tempdir().unwrap();
    for wanted in [0o600, 0o660, 0o666, 0o777, 0o000] {
        let path = directory.path().join(format!("{wanted:o}"));
        let listener = app.socket(&path, wanted, |_, _| {}).unwrap();
        assert_eq!(mode(&path), wanted, "{wanted:o}");
        listener.stop(&app);
    }
}

/// At no time can a user connect against the mode, or a link redirect clients to another file.
#[test]
fn unix_socket_is_named_only_after_its_mode_is_set() {
    let app = App::start();
    let directory = tempfile::tempdir().unwrap();
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    let changes = inotify::WatchFlags::CREATE | inotify::WatchFlags::ATTRIB | inotify::WatchFlags::MOVED_TO;
    inotify::add_watch(&watch, directory.path(), changes).unwrap();
    let listener = app.socket(directory.path().join("s"), 0o666, |_, _| {}).unwrap();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    let mut found = Vec::new();
    while let Ok(event) = events.next() {
        if event.file_name().is_some_and(|name| name == c"s") {
            found.push(event.events());
        }
    }
    assert_eq!(found, [inotify::ReadFlags::MOVED_TO]);
    listener.stop(&app);
}

#[test]
fn stale_socket_is_replaced_and_served_socket_is_not() {
    let app = App::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a stale socket");
    let listener = app.socket(&path, 0o600, |_, _| {}).unwrap();
    assert_eq!(wire(&path).exchange(request("GET /livez", &[], "")).status, 200);
    assert_eq!(mode(&path), 0o600);

    let refused = app.socket(&path, 0o666, |_, _| {}).err().expect("a refusal");
    assert_eq!(refused.kind(), ErrorKind::AddrInUse);
    let reported = refused.to_string();
    assert!(
        reported.contains("another process listens on it") && reported.contains(path.to_str().unwrap()),
        "{reported}"
    );
    assert_eq!(mode(&path), 0o600, "the one that is served is left alone");
    assert_eq!(wire(&path).exchange(request("GET /livez", &[], "")).status, 200);

    // Another process replaced the socket, so this server must not remove it.
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    listener.stop(&app);
    assert!(path.exists());
    drop(other);
}

#[test]
fn only_sockets_are_replaced() {
    let app = App::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "kept").unwrap();
    let link = directory.path().join("link");
    let stale = directory.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    std::os::unix::fs::symlink(&stale, &link).unwrap();
    for path in [&file, &link, &directory.path().to_owned()] {
        let refused = app.socket(path, 0o600, |_, _| {}).err().expect("a refusal");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    assert!(link.is_symlink());
    let missing = app.socket(directory.path().join("no/where"), 0o600, |_, _| {}).err().expect("a refusal");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let parent = directory.path().join("no");
    assert!(missing.to_string().contains(&format!("the directory {} does not exist", parent.display())), "{missing}");
    let long = app.socket(directory.path().join("l".repeat(120)), 0o600, |_, _| {}).err().expect("a refusal");
    assert_eq!(long.kind(), ErrorKind::InvalidInput);
}

#[test]
fn connections_per_user_are_limited() {
    let app = App::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = app.socket(&path, 0o600, |settings, _| settings.listener.connections_per_host = 2).unwrap();
    let mut open = [wire(&path), wire(&path)];
    for wire in &mut open {
        assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
    }
    assert!(wire(&path).is_closed(), "one too many");
    for wire in &mut open {
        assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
    }
    drop(open);
    listener.stop(&app);
}
