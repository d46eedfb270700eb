//! The temporary server starts, accepts connections, crashes, restarts and leaves no files.

#![cfg(unix)]

use std::path::PathBuf;
use vault_testkit::postgres::{Cluster, Options};

fn directory_of(cluster: &Cluster) -> PathBuf {
    PathBuf::from(cluster.execute("postgres", "SHOW unix_socket_directories"))
}

#[test]
fn server_lives_as_long_as_its_value() {
    let settings = vec!["lock_timeout=1234".to_owned()];
    let cluster = Cluster::start(Options { fsync: false, max_connections: 17, settings, ..Options::default() });
    let directory = directory_of(&cluster);
    assert!(directory.is_dir());
    let database = cluster.create_database();
    let other = cluster.create_database();
    assert!(database.starts_with("postgres://postgres@%2F") && database != other);
    let show = |setting: &str| cluster.execute(&database, &format!("SHOW {setting}"));
    assert_eq!((show("fsync"), show("max_connections")), ("off".to_owned(), "17".to_owned()));
    assert_eq!((show("listen_addresses"), show("lock_timeout")), (String::new(), "1234ms".to_owned()));

    cluster.execute(&database, "CREATE TABLE kept (id int); INSERT INTO kept VALUES (1), (2)");
    cluster.crash();
    cluster.resume();
    assert_eq!(cluster.execute(&database, "SELECT id FROM kept ORDER BY id"), "1\n2");

    let attached = Cluster::running(&cluster.base_url());
    assert_eq!(attached.execute(&database, "SELECT count(*) FROM kept"), "2");
    drop(attached);
    assert_eq!(cluster.execute(&database, "SELECT 1"), "1", "who only attached stops nothing");

    drop(cluster);
    assert!(!directory.exists());
}

#[test]
fn shared_server_is_one_per_process() {
    assert_eq!(Cluster::shared().base_url(), Cluster::shared().base_url());
    let database = Cluster::shared().create_database();
    assert_eq!(Cluster::shared().execute(&database, "SELECT current_database()"), database.rsplit('/').next().unwrap());
}
