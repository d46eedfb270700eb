//! The activation listener on a socket in the file system.

use crate::support::{Wire, World, assert_problem, assert_standard_headers, request};
use rustix::fs::inotify;
use std::fs;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;
use vault_core::role::Role;

fn wire(path: &Path) -> Wire {
    let stream = UnixStream::connect(path).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    Wire::over(stream)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("a socket").permissions().mode() & 0o7777
}

#[test]
fn unix_socket_serves_requests_and_is_removed_at_exit() {
    let world = World::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("activation.sock");
    let admin = world.token(Role::Admin);
    let id = world.save(&admin, "imports", "b");
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    let activation_listener = world.socket_listener(&path, 0o660).unwrap();
    assert_eq!(activation_listener.address, None);
    let mut wire = wire(&path);
    let headers = [&*token, "Content-Type: application/json", "X-Forwarded-For: 203.0.113.7"];
    let response = wire.exchange(request("POST /v1/activations", &headers, "{\"namespace\":\"imports\"}"));
    assert_standard_headers(&response, "an activation");
    assert_eq!(response.header("strict-transport-security"), None);
    assert_eq!((response.status, &response.json()["credentials"][0]["id"]), (201, &serde_json::json!(id)));
    assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200, "the connection stays open");
    assert_problem(&wire.exchange(request("GET /v1/activations", &[], "")), 401, "invalid-token", "no token");
    drop(wire);
    activation_listener.stop(&world);
    assert!(!path.exists(), "removed when the listener stopped");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing else is left");
}

#[test]
fn unix_socket_has_configured_mode() {
    let world = World::start();
    let directory = tempfile::tempdir().unwrap();
    for wanted in [0o600, 0o660, 0o666, 0o777, 0o000] {
        let path = directory.path().join(format!("{wanted:o}"));
        let activation_listener = world.socket_listener(&path, wanted).unwrap();
        assert_eq!(mode(&path), wanted, "{wanted:o}");
        activation_listener.stop(&world);
    }
}

/// At no time can a user connect against the mode, or a link redirect clients to another file.
#[test]
fn unix_socket_is_named_only_after_its_mode_is_set() {
    let world = World::start();
    let directory = tempfile::tempdir().unwrap();
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    let changes = inotify::WatchFlags::CREATE | inotify::WatchFlags::ATTRIB | inotify::WatchFlags::MOVED_TO;
    inotify::add_watch(&watch, directory.path(), changes).unwrap();
    let activation_listener = world.socket_listener(directory.path().join("s"), 0o666).unwrap();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    let mut found = Vec::new();
    while let Ok(event) = events.next() {
        if event.file_name().is_some_and(|name| name == c"s") {
            found.push(event.events());
        }
    }
    assert_eq!(found, [inotify::ReadFlags::MOVED_TO]);
    activation_listener.stop(&world);
}

#[test]
fn stale_socket_is_replaced_and_served_socket_is_not() {
    let world = World::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a stale socket");
    let activation_listener = world.socket_listener(&path, 0o600).unwrap();
    assert_eq!(wire(&path).exchange(request("GET /livez", &[], "")).status, 200);
    assert_eq!(mode(&path), 0o600);

    let refused = world.socket_listener(&path, 0o666).err().expect("a refusal");
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
    activation_listener.stop(&world);
    assert!(path.exists());
    drop(other);
}

#[test]
fn only_sockets_are_replaced() {
    let world = World::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "kept").unwrap();
    let link = directory.path().join("link");
    let stale = directory.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    std::os::unix::fs::symlink(&stale, &link).unwrap();
    for path in [&file, &link, &directory.path().to_owned()] {
        let refused = world.socket_listener(path, 0o600).err().expect("a refusal");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    assert!(link.is_symlink());
    let missing = world.socket_listener(directory.path().join("no/where"), 0o600).err().expect("a refusal");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let parent = directory.path().join("no");
    assert!(missing.to_string().contains(&format!("the directory {} does not exist", parent.display())), "{missing}");
    let long = world.socket_listener(directory.path().join("l".repeat(120)), 0o600).err().expect("a refusal");
    assert_eq!(long.kind(), ErrorKind::InvalidInput);
}

#[test]
fn connections_per_user_are_limited() {
    let world = World::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let activation_listener = world.socket_listener_with(&path, |settings| settings.listener.connections_per_host = 2);
    let mut open = [wire(&path), wire(&path)];
    for wire in &mut open {
        assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
    }
    assert!(wire(&path).is_closed(), "one too many");
    for wire in &mut open {
        assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
    }
    drop(open);
    activation_listener.stop(&world);
}
