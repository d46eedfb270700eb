//! Signing keys of keyless access while two processes advance them and an operator changes them. The rules are those of
//! [`FederationKeySet`] itself. The rest models `vault-core/src/usecase/federation`: reading, deciding and writing by row
//! version (`Federation::change`), documents and signer of a process (`FederationPublisher::refresh`), and a provider that
//! caches the key set for an hour.

use super::{assert_verified, broken};
use stateright::{Model, Property};
use vault_core::federation::{FederationIssuer, FederationKey, FederationKeySet, FederationKeyState, Jwk};
use vault_core::id::KeyId;
use vault_core::time::Timestamp;

/// Unit of time in seconds.
const UNIT: i64 = 30 * 60;
/// The steps of time, in units: while the second key is added and published, and while it replaces the first one. Between
/// them, nothing is due. A process reads the keys at least once per step, which is slower than the one second of a real
/// process.
const STEPS: [u8; 10] = [0, 1, 46, 47, 48, 49, 50, 51, 52, 53];
/// Time for which a key must have been published before it signs, in units.
const SETTLED: u8 = 48;
/// Time for which a provider uses its copy of the key set, in units.
const CACHED: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// The next key becomes current as soon as a check found it.
    PromotesEarly,
    /// The replaced key is retired immediately.
    RetiresEarly,
    /// Changes overwrite concurrent ones.
    IgnoresVersions,
}

struct Keys {
    mistake: Mistake,
    /// Whether the operator rotates immediately. Providers may then refuse tokens for an hour.
    rotates: bool,
}

/// A key, with times in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    number: u8,
    state: FederationKeyState,
    published: Option<u8>,
    active: Option<u8>,
    retired: Option<u8>,
    version: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    /// The keys that it publishes and signs with, and whether it has read them since the last step of time.
    loaded: (Vec<Key>, bool),
    /// Changes that it has decided and not written yet.
    decided: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    step: usize,
    keys: Vec<Key>,
    processes: [Process; 2],
    /// The provider's copy of the key set, and the time at which it was read.
    copy: (Vec<u8>, u8),
    /// The key that an immediate rotation replaced.
    leaked: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Step,
    Read(usize),
    Decide(usize),
    Write(usize),
    Fetch(usize),
    Add,
    Rotate,
}

fn at(time: u8) -> Timestamp {
    Timestamp::from_millis(i64::from(time) * UNIT * 1_000)
}

fn units(time: Timestamp) -> u8 {
    u8::try_from(time.as_seconds() / UNIT).unwrap()
}

fn issuer() -> FederationIssuer {
    FederationIssuer::parse("https://vault.example.com").unwrap()
}

const fn number(key: &FederationKey) -> u8 {
    key.id.as_bytes()[0]
}

impl Key {
    fn of(key: &FederationKey) -> Self {
        Self {
            number: number(key),
            state: key.state,
            published: key.published_at.map(units),
            active: key.active_at.map(units),
            retired: key.retired_at.map(units),
            version: key.version,
        }
    }

    fn row(self) -> FederationKey {
        let jwk = Jwk::new(format!("{:043}", self.number), "n".repeat(342)).unwrap();
        FederationKey {
            state: self.state,
            published_at: self.published.map(at),
            active_at: self.active.map(at),
            retired_at: self.retired.map(at),
            version: self.version,
            ..FederationKey::new(KeyId::from_bytes([self.number; 16]), issuer(), jwk, at(0))
        }
    }
}

fn set(keys: &[Key]) -> FederationKeySet {
    FederationKeySet::new(&issuer(), keys.iter().map(|key| key.row()), true)
}

fn published(keys: &[Key]) -> Vec<u8> {
    set(keys).published().map(number).collect()
}

impl State {
    const fn now(&self) -> u8 {
        STEPS[self.step]
    }

    /// Returns the keys with which the processes sign.
    fn signing(&self) -> impl Iterator<Item = u8> {
        self.processes.iter().filter_map(|process| set(&process.loaded.0).signing().map(number))
    }

    /// Writes `changed` unless another change was written first.
    fn write(&mut self, changed: &[Key], mistake: Mistake) {
        let is_current =
            |after: &Key| self.keys.iter().any(|key| key.number == after.number && key.version + 1 == after.version);
        if mistake == Mistake::IgnoresVersions || changed.iter().all(is_current) {
            for after in changed {
                self.keys.iter_mut().filter(|key| key.number == after.number).for_each(|key| *key = *after);
            }
        }
    }
}

impl Keys {
    /// Returns the changes that a process decides. The key set is published, so that every check finds it.
    fn due(&self, keys: &[Key], now: u8) -> Vec<Key> {
        let set = set(keys);
        let mut changed: Vec<_> = set.published().filter_map(|key| key.first_found(at(now))).collect();
        if changed.is_empty() {
            // A process that does not wait decides as if the time had passed.
            let time = if self.mistake == Mistake::PromotesEarly { now + SETTLED } else { now };
            changed = set.due(|key| key.published_at.is_some(), at(time));
        }
        let mut changed: Vec<_> = changed.iter().map(Key::of).collect();
        if self.mistake == Mistake::RetiresEarly {
            let previous = changed.iter_mut().filter(|key| key.state == FederationKeyState::Previous);
            previous.for_each(|key| key.state = FederationKeyState::Retired);
        }
        changed
    }
}

impl Model for Keys {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let first = Key {
            number: 1,
            state: FederationKeyState::Current,
            published: Some(0),
            active: Some(0),
            retired: None,
            version: 1,
        };
        let process = Process { loaded: (vec![first], true), decided: Vec::new() };
        let processes = [process.clone(), process];
        vec![State { step: 0, keys: vec![first], processes, copy: (vec![1], 0), leaked: None }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.step + 1 < STEPS.len() && state.processes.iter().all(|process| process.loaded.1) {
            actions.push(Action::Step);
        }
        for (index, process) in state.processes.iter().enumerate() {
            if !process.loaded.1 || process.loaded.0 != state.keys {
                actions.push(Action::Read(index));
            }
            match process.decided.is_empty() {
                true if !self.due(&state.keys, state.now()).is_empty() => actions.push(Action::Decide(index)),
                true => {}
                false => actions.push(Action::Write(index)),
            }
            if state.now() >= state.copy.1 + CACHED {
                actions.push(Action::Fetch(index));
            }
        }
        if state.keys.len() == 1 && state.step < 2 {
            actions.push(Action::Add);
        }
        if self.rotates && set(&state.keys).next().is_some() {
            actions.push(Action::Rotate);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Step => {
                state.step += 1;
                state.processes.iter_mut().for_each(|process| process.loaded.1 = false);
            }
            Action::Read(index) => state.processes[index].loaded = (state.keys.clone(), true),
            Action::Decide(index) => state.processes[index].decided = self.due(&state.keys, state.now()),
            Action::Write(index) => {
                let decided = std::mem::take(&mut state.processes[index].decided);
                state.write(&decided, self.mistake);
            }
            Action::Fetch(index) => state.copy = (published(&state.processes[index].loaded.0), state.now()),
            Action::Add => {
                let added =
                    Key { number: 2, state: FederationKeyState::Next, published: None, active: None, ..before.keys[0] };
                state.keys.push(Key { version: 1, ..added });
            }
            Action::Rotate => {
                let rotated = set(&state.keys).rotate(at(state.now())).unwrap();
                state.leaked = set(&state.keys).signing().map(number);
                state.write(&rotated.iter().map(Key::of).collect::<Vec<_>>(), Mistake::None);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most one key is current", |_: &Self, state: &State| {
                state.keys.iter().filter(|key| key.state == FederationKeyState::Current).count() <= 1
            }),
            Property::always("every process publishes the keys that sign", |model: &Self, state: &State| {
                let publishes = |key| state.processes.iter().all(|process| published(&process.loaded.0).contains(&key));
                model.rotates || state.signing().all(publishes)
            }),
            Property::always("a provider has the keys that sign", |model: &Self, state: &State| {
                let (copy, read) = &state.copy;
                model.rotates || state.now() >= read + CACHED || state.signing().all(|key| copy.contains(&key))
            }),
            Property::always("a key signs a day after its publication", |model: &Self, state: &State| {
                let settled = |key: &Key| match (key.published, key.active) {
                    (Some(published), Some(active)) => key.number == 1 || active >= published + SETTLED,
                    (None, Some(_)) => false,
                    (_, None) => true,
                };
                model.rotates || state.keys.iter().all(settled)
            }),
            Property::always("a key that leaked stays retired", |_: &Self, state: &State| {
                let is_retired = |key: &Key| key.state == FederationKeyState::Retired;
                state.keys.iter().filter(|key| Some(key.number) == state.leaked).all(is_retired)
            }),
        ]
    }
}

#[test]
fn every_exchange_succeeds_while_signing_keys_are_replaced() {
    assert_verified(Keys { mistake: Mistake::None, rotates: false });
}

#[test]
fn immediate_rotation_wins_against_concurrent_promotion() {
    assert_verified(Keys { mistake: Mistake::None, rotates: true });
}

#[test]
fn mistakes_with_signing_keys_are_found() {
    for (mistake, rotates) in
        [(Mistake::PromotesEarly, false), (Mistake::RetiresEarly, false), (Mistake::IgnoresVersions, true)]
    {
        assert!(!broken(Keys { mistake, rotates }).0.is_empty(), "{mistake:?}");
    }
}
