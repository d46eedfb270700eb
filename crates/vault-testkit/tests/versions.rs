//! The versions of a credential, compared with a model of the rules in a few lines.

use proptest::collection::vec;
use proptest::prelude::*;
use vault_core::credential::{CredentialData, CredentialType, VersionLimits, VersionState};
use vault_core::id::{AccountId, CredentialId};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::usecase::{CredentialRef, CredentialReplacement, IdempotencyKey, NewCredential, Vault};
use vault_core::{Error, Refusal};
use vault_testkit::fake::FakeVault;

const PREVIOUS_SECONDS: i64 = 100;

#[derive(Clone, Copy, Debug)]
enum Step {
    Replace,
    Stage,
    /// Promotes the version with this number, counted back from the highest.
    Promote(i64),
    Destroy(i64),
    /// Advances the clock by this number of seconds.
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Replace),
        2 => Just(Step::Stage),
        3 => (0_i64..5).prop_map(Step::Promote),
        1 => (0_i64..5).prop_map(Step::Destroy),
        1 => (1_i64..60).prop_map(Step::Wait),
    ];
    vec(step, 1..20)
}

/// The numbers of a credential's versions. Previous versions also have the second in which they were superseded, oldest
/// first.
#[derive(Debug)]
struct Rule {
    kept: usize,
    current: i64,
    staged: Option<i64>,
    previous: Vec<(i64, i64)>,
    highest: i64,
}

impl Rule {
    /// Removes expired versions, then the oldest of the others until the limit allows one more.
    fn maintain(&mut self, now: i64, always_staged: bool) {
        self.expire(now);
        let others = 1 + usize::from(always_staged || self.staged.is_some());
        let room = self.kept.max(2).saturating_sub(others);
        self.previous.sort_by_key(|(number, at)| (*at, *number));
        let gone = self.previous.len().saturating_sub(room);
        self.previous.drain(..gone);
    }

    fn expire(&mut self, now: i64) {
        self.previous.retain(|(_, at)| now < at + PREVIOUS_SECONDS);
    }

    fn has(&self, number: i64) -> bool {
        self.staged == Some(number) || self.previous.iter().any(|(previous, _)| *previous == number)
    }

    fn remove(&mut self, number: i64) {
        self.staged = self.staged.filter(|staged| *staged != number);
        self.previous.retain(|(previous, _)| *previous != number);
    }

    /// Executes the step. Returns `None` if it is rejected.
    fn take(&mut self, step: Step, now: i64) -> Option<()> {
        self.expire(now);
        match step {
            Step::Replace => {
                self.highest += 1;
                self.previous.push((self.current, now));
                self.current = self.highest;
                self.maintain(now, false);
            }
            Step::Stage => {
                self.highest += 1;
                self.maintain(now, true);
                self.staged = Some(self.highest);
            }
            Step::Promote(back) if self.highest - back == self.current => {}
            Step::Promote(back) => {
                let number = Some(self.highest - back).filter(|number| self.has(*number))?;
                self.remove(number);
                self.previous.push((self.current, now));
                self.current = number;
                self.maintain(now, false);
            }
            Step::Destroy(back) => {
                let number = Some(self.highest - back).filter(|number| self.has(*number))?;
                self.remove(number);
            }
            Step::Wait(_) => {}
        }
        Some(())
    }

    /// Returns number and state of each version, as in a list.
    fn listed(&self) -> Vec<(i64, VersionState)> {
        let staged = self.staged.iter().map(|number| (*number, VersionState::Staged));
        let previous = self.previous.iter().map(|(number, _)| (*number, VersionState::Previous));
        let mut others: Vec<_> = staged.chain(previous).collect();
        others.sort_by_key(|(number, _)| -number);
        [(self.current, VersionState::Current)].into_iter().chain(others).collect()
    }
}

struct Setting {
    fake: FakeVault,
    vault: Vault,
    editor: Principal,
    credential: CredentialId,
}

fn link(number: i64) -> CredentialData {
    let json = format!(r#"{{"url":"https://files.example/{number}"}}"#);
    CredentialData::from_canonical_json(CredentialType::DirectLink, json.as_bytes()).unwrap()
}

impl Setting {
    async fn new(limits: VersionLimits) -> Self {
        Self::on(FakeVault::new(), limits).await
    }

    async fn on(fake: FakeVault, limits: VersionLimits) -> Self {
        let organization = fake.operator().ensure_organization("Acme").await.unwrap().id;
        let editor = Principal::embedder(organization, AccountId::from_bytes([7; 16]), Role::Editor);
        let vault = fake.vault().version_limits(limits);
        let request = NewCredential::new("imports".parse().unwrap(), link(1));
        let credential = vault.save(&editor, request).await.unwrap();
        Self { fake, vault, editor, credential }
    }

    async fn replace(&self, revision: Option<i64>, stage: bool, key: Option<&str>, data: i64) -> Result<i64, Error> {
        let request = CredentialReplacement {
            credential: CredentialRef { id: self.credential, revision },
            data: link(data),
            expires_at: None,
            stage,
            idempotency: key.map(|key| IdempotencyKey::parse(key).unwrap()),
            verify: false,
        };
        Ok(self.vault.replace(&self.editor, request).await?.version)
    }

    async fn revision(&self) -> i64 {
        self.vault.show(&self.editor, self.credential).await.unwrap().revision
    }

    async fn listed(&self) -> Vec<(i64, VersionState)> {
        let versions = self.vault.versions(&self.editor, self.credential).await.unwrap();
        versions.into_iter().map(|version| (version.number, version.state)).collect()
    }
}

proptest! {
    #[test]
    fn versions_are_kept_by_retention_rule(steps in steps(), kept in 0_usize..5) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let setting = Setting::new(VersionLimits { versions: kept, previous_seconds: PREVIOUS_SECONDS }).await;
            let mut rule = Rule { kept, current: 1, staged: None, previous: Vec::new(), highest: 1 };
            let mut now = 0;
            for step in steps {
                let revision = setting.revision().await;
                let credential = CredentialRef { id: setting.credential, revision: Some(revision) };
                let before = CredentialRef { revision: Some(revision - 1), ..credential };
                let (vault, editor) = (&setting.vault, &setting.editor);
                let number = |back| rule.highest - back;
                // A change based on an earlier revision has no effect.
                let stale = match step {
                    Step::Replace | Step::Stage => setting.replace(Some(revision - 1), false, None, 1).await.map(drop),
                    Step::Promote(back) => vault.promote(editor, before, number(back)).await.map(drop),
                    Step::Destroy(back) => vault.destroy_version(editor, before, number(back)).await,
                    Step::Wait(_) => Err(Refusal::Changed.into()),
                };
                assert!(matches!(stale, Err(Error::Refused(Refusal::Changed))), "{stale:?}");
                let done = match step {
                    Step::Replace => setting.replace(Some(revision), false, None, 2).await.map(drop),
                    Step::Stage => setting.replace(Some(revision), true, None, 3).await.map(drop),
                    Step::Promote(back) => vault.promote(editor, credential, number(back)).await.map(drop),
                    Step::Destroy(back) => vault.destroy_version(editor, credential, number(back)).await,
                    Step::Wait(seconds) => {
                        setting.fake.clock.advance_seconds(seconds);
                        now += seconds;
                        Ok(())
                    }
                };
                let is_current = matches!(step, Step::Destroy(back) if number(back) == rule.current);
                match rule.take(step, now) {
                    Some(()) => assert!(done.is_ok(), "{step:?}: {done:?}"),
                    None if is_current => {
                        assert!(matches!(done, Err(Error::Refused(Refusal::CurrentVersion))), "{done:?}");
                    }
                    None => assert!(matches!(done, Err(Error::Refused(Refusal::NoSuchVersion))), "{done:?}"),
                }
                assert_eq!(setting.listed().await, rule.listed(), "after {step:?}: {rule:?}");
            }
        });
    }
}

#[tokio::test]
async fn repeated_replacement_takes_effect_once() {
    let setting = Setting::new(VersionLimits::default()).await;
    assert_eq!(setting.replace(None, false, Some("first"), 2).await.unwrap(), 2);
    assert_eq!(setting.replace(None, false, None, 3).await.unwrap(), 3);
    assert_eq!(setting.replace(None, false, Some("first"), 2).await.unwrap(), 2, "the first answer");
    assert_eq!(setting.listed().await[0], (3, VersionState::Current));
    // A repeated request returns the first response even if its revision is outdated.
    let revision = Some(setting.revision().await);
    for _ in 0..2 {
        assert_eq!(setting.replace(revision, false, Some("second"), 4).await.unwrap(), 4);
    }
    for (data, stage) in [(4, false), (2, true)] {
        let other = setting.replace(None, stage, Some("first"), data).await;
        assert!(matches!(other, Err(Error::Refused(Refusal::IdempotencyMismatch))), "{other:?}");
    }
}
