//! Replacement of the root key of an embedded vault. After an interruption at any step, exactly one root key opens the
//! vault, and the same command completes the replacement.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use vault_core::id::KeyId;
use vault_crypto::{DatabaseKeyFile, LoadedRootKey, OsEntropy};
use vault_embed::{Database, Error, RootKey, RootRotation, RootState, RootStep, create, open};

const STEPS: [RootStep; 3] = [RootStep::WrapDatabaseKey, RootStep::MoveInstanceKey, RootStep::DropOldWrap];

/// A vault whose root key is in `old.key`.
struct Place(TempDir);

impl Place {
    async fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let vault = create(RootKey::file(place.path("old.key")), place.database()).without_maintenance().await.unwrap();
        vault.operator().create_organization("Acme").await.unwrap();
        vault.close().await.unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn database(&self) -> Database {
        Database::sqlite(self.path("vault.db"))
    }

    fn id(&self, name: &str) -> KeyId {
        LoadedRootKey::load(&self.path(name), Arc::new(OsEntropy)).unwrap().id()
    }

    fn wraps(&self) -> Vec<KeyId> {
        DatabaseKeyFile::next_to(&self.path("vault.db")).root_keys().unwrap()
    }

    async fn begin(&self, current: &str, next: &str) -> Result<RootRotation, Error> {
        let (current, next) = (RootKey::file(self.path(current)), RootKey::provisioned_file(self.path(next)));
        RootRotation::begin(current, next, self.database()).await
    }

    /// Starts a rotation and drops it after `steps` steps, like a killed process.
    async fn killed_after(&self, current: &str, next: &str, steps: usize) {
        let mut rotation = self.begin(current, next).await.unwrap();
        for step in &STEPS[..steps] {
            assert_eq!(rotation.step().await.unwrap(), Some(*step));
        }
        drop(rotation);
    }

    async fn complete(&self, current: &str, next: &str) -> RootState {
        let mut rotation = self.begin(current, next).await.unwrap();
        while rotation.step().await.unwrap().is_some() {}
        let state = rotation.state();
        rotation.close().await.unwrap();
        state
    }

    async fn open(&self, name: &str) -> Result<(), Error> {
        let vault = open(RootKey::file(self.path(name)), self.database()).without_maintenance().await?;
        assert_eq!(vault.operator().organizations().await.unwrap().len(), 1);
        assert_eq!(vault.root_key(), self.id(name));
        vault.close().await.unwrap();
        Ok(())
    }

    /// Asserts that `right` opens the vault, and that the error for `wrong` names the right key.
    async fn opens_with(&self, right: &str, wrong: &str) {
        self.open(right).await.unwrap();
        let refused = self.open(wrong).await.unwrap_err();
        assert!(refused.is_wrong_root_key(), "{refused:?}");
        let text = refused.to_string();
        assert!(text.contains(&format!("needs root key {}", self.id(right))), "{text}");
        assert!(text.contains(&self.id(wrong).to_string()), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_root_rotation_is_completed_by_next_run() {
    for steps in 0..=STEPS.len() {
        // The next run has the flags of the first one, or the new root key in both flags, or the old key was removed.
        for (current, gone) in [("old.key", false), ("new.key", false), ("old.key", true)] {
            let place = Place::new().await;
            place.killed_after("old.key", "new.key", steps).await;
            let moved = steps >= 2;
            match moved {
                false => place.opens_with("old.key", "new.key").await,
                true => place.opens_with("new.key", "old.key").await,
            }
            let (old, new) = (place.id("old.key"), place.id("new.key"));
            let wraps = [vec![old], vec![old, new], vec![old, new], vec![new]];
            assert_eq!(place.wraps(), wraps[steps], "after {steps} steps");
            let uses_old = current == "old.key" && !gone;
            if !moved && !uses_old {
                let refused = match gone {
                    false => place.begin(current, "new.key").await.err().unwrap().to_string(),
                    true => {
                        fs::rename(place.path("old.key"), place.path("away.key")).unwrap();
                        let refused = place.begin(current, "new.key").await.err().unwrap().to_string();
                        fs::rename(place.path("away.key"), place.path("old.key")).unwrap();
                        refused
                    }
                };
                assert!(refused.contains(&format!("needs root key {old}")), "{steps}, {current}, {gone}: {refused}");
            } else {
                if gone {
                    fs::rename(place.path("old.key"), place.path("away.key")).unwrap();
                }
                let state = place.complete(current, "new.key").await;
                if gone {
                    fs::rename(place.path("away.key"), place.path("old.key")).unwrap();
                }
                let expected = [RootState::New, RootState::Interrupted, RootState::Interrupted, RootState::Complete];
                assert_eq!(state, expected[steps], "{current}, {gone}");
                assert_eq!(place.wraps(), [new]);
                place.opens_with("new.key", "old.key").await;
                assert_eq!(place.complete("new.key", "new.key").await, RootState::Complete);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_to_lost_key_restarts_with_another() {
    let place = Place::new().await;
    place.killed_after("old.key", "lost.key", 1).await;
    fs::remove_file(place.path("lost.key")).unwrap();
    assert_eq!(place.complete("old.key", "new.key").await, RootState::New);
    assert_eq!(place.wraps(), [place.id("new.key")]);
    place.opens_with("new.key", "old.key").await;
    // A second rotation, back to the first root key.
    assert_eq!(place.complete("new.key", "old.key").await, RootState::New);
    place.opens_with("old.key", "new.key").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_before_old_root_key_is_verified() {
    let place = Place::new().await;
    LoadedRootKey::generate(&place.path("stranger.key"), Arc::new(OsEntropy)).unwrap();
    for current in ["stranger.key", "missing.key"] {
        assert!(place.begin(current, "new.key").await.is_err());
        assert!(!place.path("new.key").exists());
    }
    fs::write(place.path("weak.key"), [0; 32]).unwrap();
    fs::set_permissions(place.path("weak.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let refused = place.begin("old.key", "weak.key").await.err().unwrap().to_string();
    assert!(refused.contains("does not contain a random key"), "{refused}");
    // A foreign key as both the current and the new key is rejected too.
    assert!(place.begin("stranger.key", "stranger.key").await.is_err());
    assert_eq!(place.wraps(), [place.id("old.key")]);
    place.opens_with("old.key", "stranger.key").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rotations_exclude_each_other_but_not_a_server() {
    let place = Place::new().await;
    let server = open(RootKey::file(place.path("old.key")), place.database()).server("serve").await.unwrap();
    let mut rotation = place.begin("old.key", "new.key").await.unwrap();
    let refused = place.begin("old.key", "other.key").await.err().unwrap();
    assert!(matches!(refused, Error::Busy { .. }), "{refused:?}");
    assert!(!place.path("other.key").exists());
    // The rotation does not wait for the lock of the directory, which writers of an anchor use.
    let directory = fs::File::open(place.0.path()).unwrap();
    directory.try_lock().unwrap();
    while rotation.step().await.unwrap().is_some() {}
    rotation.close().await.unwrap();
    let mut again = place.begin("old.key", "new.key").await.unwrap();
    assert_eq!(again.step().await.unwrap(), None);
    again.close().await.unwrap();
    drop(directory);
    server.operator().create_organization("Later").await.unwrap();
    server.close().await.unwrap();
    drop(server);

    let restore = open(RootKey::file(place.path("new.key")), place.database()).server("restore").await.unwrap();
    let refused = place.begin("new.key", "other.key").await.err().unwrap();
    assert!(matches!(&refused, Error::Busy { holder, .. } if holder.contains("restore")), "{refused:?}");
    restore.close().await.unwrap();
}
