//! Scheduled and other backups in one directory, remains of killed runs, and restores over another vault.

use rustix::fs::{CWD, Mode, mkfifoat};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use vault_embed::{
    BackupTarget, Database, Error, OpenVault, RootKey, backup, create, keep_newest, newest_scheduled, open, restore,
};

/// A vault in `NAME.db` under the root key `NAME.key`, with an anchor.
struct Vault<'a> {
    directory: &'a TempDir,
    name: &'a str,
    open: OpenVault,
}

impl<'a> Vault<'a> {
    async fn create(directory: &'a TempDir, name: &'a str) -> Self {
        let at = |suffix: &str| directory.path().join(format!("{name}.{suffix}"));
        let opening = create(RootKey::file(at("key")), Database::sqlite(at("db")));
        let open = opening.anchor(at("anchor"), false).without_maintenance().await.unwrap();
        Self { directory, name, open }
    }

    fn path(&self, suffix: &str) -> PathBuf {
        self.directory.path().join(format!("{}.{suffix}", self.name))
    }

    fn root_key(&self) -> RootKey {
        RootKey::file(self.path("key"))
    }

    async fn back_up(&self, target: BackupTarget<'_>) -> Result<PathBuf, Error> {
        Ok(backup(&self.open, self.root_key(), target, &mut |_| {}).await?.path)
    }

    /// Creates a scheduled backup with the date of this day in its name.
    async fn scheduled(&self, directory: &Path, day: u32) -> PathBuf {
        let created = self.back_up(BackupTarget::Scheduled(directory)).await.unwrap();
        let dated = directory.join(format!("orgvault-202601{day:02}T000000Z.backup"));
        fs::rename(created, &dated).unwrap();
        dated
    }

    async fn restore(&self, from: &Path, over: &Self, replace: bool) -> Result<(), Error> {
        let (database, anchor) = (Database::sqlite(over.path("db")), over.path("anchor"));
        restore(from, self.root_key(), &database, &anchor, replace, &mut |_| {}).await.map(|_| ())
    }
}

fn names(directory: &Path) -> BTreeSet<String> {
    directory.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn schedule_removes_only_its_own_backups() {
    let place = tempfile::tempdir().unwrap();
    let backups = place.path().join("backups");
    fs::create_dir(&backups).unwrap();
    let (ours, other) = (Vault::create(&place, "ours").await, Vault::create(&place, "other").await);
    let by_hand = ours.back_up(BackupTarget::Named(&backups)).await.unwrap();
    let by_hand_dated = backups.join("orgvault-20260101T000000Z.backup");
    fs::rename(by_hand, &by_hand_dated).unwrap();
    let foreign = other.scheduled(&backups, 2).await;
    let mut scheduled = Vec::new();
    for day in 3..6 {
        scheduled.push(ours.scheduled(&backups, day).await);
    }
    let strange = backups.join("orgvault-20260106T000000Z.backup");
    fs::write(&strange, "not a backup").unwrap();

    assert_eq!(newest_scheduled(&backups, ours.open.instance()).unwrap().as_ref(), scheduled.last());
    let removed = keep_newest(&backups, ours.open.instance(), 1).unwrap();
    assert_eq!(removed, scheduled[..2]);
    for kept in [&by_hand_dated, &foreign, &scheduled[2], &strange] {
        assert!(kept.exists(), "{} was removed", kept.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vanished_backup_directory_is_not_replaced_by_file() {
    let place = tempfile::tempdir().unwrap();
    let vault = Vault::create(&place, "ours").await;
    let vanished = place.path().join("backups");
    let refused = vault.back_up(BackupTarget::Scheduled(&vanished)).await.unwrap_err();
    assert!(matches!(&refused, Error::NoDirectory(path) if *path == vanished), "{refused:?}");
    assert!(!vanished.exists());
    fs::create_dir(&vanished).unwrap();
    vault.back_up(BackupTarget::Scheduled(&vanished)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn next_backup_removes_files_of_killed_backups() {
    let place = tempfile::tempdir().unwrap();
    let backups = place.path().join("backups");
    fs::create_dir(&backups).unwrap();
    let vault = Vault::create(&place, "ours").await;
    let killed = ".orgvault-20260101T000000Z.backup.unfinished";
    let published = ".orgvault-20260102T000000Z.backup.unfinished.db";
    let running = ".orgvault-20260103T000000Z.backup.unfinished";
    let left = [killed, &format!("{killed}.db"), &format!("{killed}.db-journal"), published, running];
    for name in left.iter().copied().chain([".notes.unfinished"]) {
        fs::write(backups.join(name), "").unwrap();
    }
    let held = fs::File::open(backups.join(running)).unwrap();
    held.lock().unwrap();
    let created = vault.back_up(BackupTarget::Named(&backups)).await.unwrap();
    let created = created.file_name().unwrap().to_str().unwrap();
    assert_eq!(names(&backups), [".notes.unfinished", running, created].map(str::to_owned).into());
}

#[tokio::test(flavor = "multi_thread")]
async fn pipe_is_refused_as_backup() {
    let place = tempfile::tempdir().unwrap();
    let vault = Vault::create(&place, "ours").await;
    let pipe = place.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let restored = tokio::time::timeout(Duration::from_secs(60), vault.restore(&pipe, &vault, true)).await.unwrap();
    assert!(matches!(restored, Err(Error::Archive { .. })), "{restored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_vault_is_never_replaced() {
    let place = tempfile::tempdir().unwrap();
    let (ours, other) = (Vault::create(&place, "ours").await, Vault::create(&place, "other").await);
    let file = place.path().join("one.backup");
    ours.back_up(BackupTarget::Named(&file)).await.unwrap();
    ours.open.close().await.unwrap();
    other.open.close().await.unwrap();
    let before = fs::read(other.path("db")).unwrap();

    // The other database needs another root key, so it cannot be opened.
    let refused = ours.restore(&file, &other, true).await.unwrap_err();
    assert!(matches!(refused, Error::Foreign { .. }), "{refused:?}");
    fs::remove_file(other.path("anchor")).unwrap();
    let refused = ours.restore(&file, &other, true).await.unwrap_err();
    assert!(matches!(refused, Error::Unknown { .. }), "{refused:?}");
    assert_eq!(fs::read(other.path("db")).unwrap(), before);
    assert!(!names(place.path()).iter().any(|name| name.contains("unfinished") || name.contains("restored")));

    // A damaged database of the same vault is replaced, because its anchor identifies the vault.
    fs::write(ours.path("db"), vec![7; 8192]).unwrap();
    ours.restore(&file, &ours, true).await.unwrap();
    let again = open(ours.root_key(), Database::sqlite(ours.path("db"))).without_maintenance().await.unwrap();
    again.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn next_server_removes_files_of_killed_restore() {
    let place = tempfile::tempdir().unwrap();
    let vault = Vault::create(&place, "ours").await;
    vault.open.close().await.unwrap();
    let (left, anchor) = (vault.path("db.restore-unfinished"), vault.path("anchor.restored"));
    fs::create_dir(&left).unwrap();
    fs::write(left.join("ours.db"), "half of a database").unwrap();
    symlink(vault.path("anchor"), left.join("anchor")).unwrap();
    fs::write(&anchor, "").unwrap();

    let command = open(vault.root_key(), Database::sqlite(vault.path("db"))).without_maintenance().await.unwrap();
    command.close().await.unwrap();
    assert!(left.exists(), "a restore may be running next to a command");
    let server = open(vault.root_key(), Database::sqlite(vault.path("db"))).without_maintenance().server("serve");
    server.await.unwrap().close().await.unwrap();
    assert!(!left.exists() && !anchor.exists());
}
