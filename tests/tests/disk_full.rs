//! A full disk: writes fail and the server reports the reason, reads continue, and writes resume when there is space.

use rustix::process::getuid;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::disk::{fill, mount};
use vault_tests::samples::small;
use vault_tests::skip;
use vault_tests::{Answer, Database, Session, Vault};

/// Set in the process with a separate mount namespace.
const WITHIN: &str = "ORGVAULT_TEST_WITHIN_MOUNTS";
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the test with this name again in a separate mount namespace. Returns whether this is that process.
fn has_own_mounts(test: &str) -> bool {
    if !getuid().is_root() {
        skip!("only root can mount a file system to fill", false);
    }
    if std::env::var_os(WITHIN).is_some() {
        return true;
    }
    let may_mount = Command::new("unshare").args(["--mount", "--propagation", "private", "true"]).status();
    if !may_mount.is_ok_and(|status| status.success()) {
        skip!("this machine allows root no mount namespace", false);
    }
    // Mounts of a namespace are removed with its last process.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("disk_full::{test}"), "--nocapture"]).env(WITHIN, "1");
    let output = command.output().unwrap();
    let shown = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
    false
}

/// Saves until one save is rejected. Later ones may still fit. Returns the rejection, and the IDs of successful saves.
fn save_until_refused(session: &Session) -> (Answer, Vec<String>) {
    let mut saved = Vec::new();
    for number in 1..10_000 {
        let answer = session.try_save(&small("imports", number));
        if answer.status != 201 {
            return (answer.problem("unavailable"), saved);
        }
        saved.push(answer.json()["id"].as_str().unwrap().to_owned());
    }
    panic!("nothing is refused");
}

#[test]
fn server_recovers_without_restart_after_disk_full() {
    if !has_own_mounts("server_recovers_without_restart_after_disk_full") {
        return;
    }
    let mut vault = Vault::absent(Database::Sqlite);
    fs::create_dir(vault.data_dir()).unwrap();
    mount(&vault.data_dir(), "size=24m,mode=0700");
    vault.run(&["init"]).done();
    vault.serve();
    let admin = vault.admin();
    let session = admin.log_in(&vault.client());
    let mut saved = vec![session.save(&small("imports", 0))];

    let filler = vault.data_dir().join("filler");
    fill(&filler);
    let (refused, more) = save_until_refused(&session);
    saved.extend(more);
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert!(!refused.text().contains("space"), "the cause is not disclosed to clients: {}", refused.text());
    let not_ready = ready(&vault, 503);
    assert!(not_ready.text().contains("no space left on device: free space"), "{}", not_ready.text());
    assert!(!vault.client().get("/readyz").send().text().contains("space"), "nor on the public listener");
    let log = vault.log();
    assert!(log.lines().any(|line| line.contains("\"ERROR\"") && line.contains("no space left on device")), "{log}");
    assert_eq!(session.ids().len(), saved.len(), "reads continue, and acknowledged writes exist");

    fs::remove_file(filler).unwrap();
    ready(&vault, 200);
    assert!(vault.log().contains("has space again"));
    saved.push(session.save(&small("imports", 10_000)));
    admin.log_in(&vault.client());
    assert_eq!(session.ids().len(), saved.len());
    vault.stop();
}

/// A separate disk for a table of PostgreSQL, so that the log has space.
#[test]
fn server_recovers_without_restart_after_postgresql_disk_full() {
    if !has_own_mounts("server_recovers_without_restart_after_postgresql_disk_full") {
        return;
    }
    // Started here, so that it uses this mount namespace.
    let cluster = Cluster::start(Options::default());
    let disk = tempfile::tempdir().unwrap();
    fs::set_permissions(disk.path(), Permissions::from_mode(0o755)).unwrap();
    mount(disk.path(), "size=4m,mode=1777");
    let mut vault = Vault::start_on(&cluster, &[]);
    let space = disk.path().join("space");
    let space = space.to_str().unwrap();
    for sql in [
        // A tablespace must belong to the server's user.
        &*format!("COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; mkdir {space}'"),
        &format!("CREATE TABLESPACE filling LOCATION '{space}'"),
        "ALTER TABLE credential_secrets SET TABLESPACE filling",
    ] {
        cluster.execute(vault.url(), sql);
    }
    let session = vault.admin_session();
    let mut saved = vec![session.save(&small("imports", 0))];

    let filler = disk.path().join("filler");
    fill(&filler);
    let (refused, more) = save_until_refused(&session);
    saved.extend(more);
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert!(!refused.text().contains("space"), "the cause is not disclosed to clients: {}", refused.text());
    let log = vault.log();
    assert!(log.lines().any(|line| line.contains("\"ERROR\"") && line.contains("no space left on device")), "{log}");
    assert_eq!(session.ids().len(), saved.len(), "reads continue, and acknowledged writes exist");
    assert_eq!(vault.admin_session().ids().len(), saved.len(), "so do writes to other disks");

    fs::remove_file(filler).unwrap();
    saved.push(session.save(&small("imports", 10_000)));
    assert_eq!(session.ids().len(), saved.len());
    vault.stop();
}

/// Neither leaves an incomplete state, and both succeed when there is space.
#[test]
fn backup_and_restore_on_full_disk_change_nothing() {
    if !has_own_mounts("backup_and_restore_on_full_disk_change_nothing") {
        return;
    }
    let mut vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    for number in 0..50 {
        session.save(&small("imports", number));
    }
    let disk = vault.scratch("disk");
    fs::create_dir(&disk).unwrap();
    mount(&disk, "size=24m,mode=0700");
    let (filler, backup, elsewhere) = (disk.join("filler"), disk.join("one.backup"), disk.join("vault"));
    let files = |directory: &Path| fs::read_dir(directory).map_or(0, Iterator::count);

    fill(&filler);
    let output = vault.run(&["backup", backup.to_str().unwrap()]).refused().stderr;
    assert!(output.contains("no space left on device") && output.contains(disk.to_str().unwrap()), "{output}");
    assert_eq!(files(&disk), 1, "only what filled it");
    let not_ready = vault.server().admin_client().get("/readyz").send();
    assert_eq!(not_ready.status, 200, "the vault's own disk has space: {}", not_ready.text());
    fs::remove_file(&filler).unwrap();
    vault.run(&["backup", backup.to_str().unwrap()]).done();

    vault.stop();
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o700)).unwrap();
    fs::copy(vault.data_dir().join("root.key"), elsewhere.join("root.key")).unwrap();
    let restore = ["restore", backup.to_str().unwrap(), "--data-dir", elsewhere.to_str().unwrap()];
    fill(&filler);
    // Space for the lock, and for less than the database.
    let full = File::options().write(true).open(&filler).unwrap();
    full.set_len(full.metadata().unwrap().len() - 96 * 1024).unwrap();
    drop(full);
    vault.run(&restore).refused().says("no space left on device").says("Nothing was changed");
    assert!(!elsewhere.join("orgvault.db").exists() && !elsewhere.join("orgvault.db.restore-unfinished").exists());
    fs::remove_file(&filler).unwrap();
    vault.run(&restore).done();
    let listed = vault.json(&["org", "list", "--data-dir", elsewhere.to_str().unwrap()]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
}

/// Polls the admin `/readyz` until it has this status. A result is reused for a second.
fn ready(vault: &Vault, status: u16) -> Answer {
    let began = Instant::now();
    loop {
        let answer = vault.server().admin_client().get("/readyz").send();
        if answer.status == status {
            return answer;
        }
        assert!(began.elapsed() < LIMIT, "{answer:?}: {}", vault.log());
        std::thread::sleep(Duration::from_millis(10));
    }
}
