//! Token keys that are replaced and destroyed while two servers issue and verify tokens. The rules are those of
//! [`KeyringEntry`](vault_core::keyring::KeyringEntry) itself. The rest models `vault-crypto/src/purpose_keys.rs` (the signing
//! key and the loaded keys) and `Keys::destroy_replaced` in `vault-core` with `count_under` of the stores (the values
//! that still need a key).

use super::{assert_verified, broken};
use stateright::{Model, Property};
use vault_core::id::KeyId;
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::sealed::KeyState;
use vault_core::time::Timestamp;

/// A step of time in milliseconds. A server reads the keys at least once per step, which is slower than the one second
/// of a real server.
const STEP: i64 = 2_500;
/// Lifetime of a session in steps, and number of steps.
const LIFETIME: u8 = 28;
const STEPS: u8 = 60;
const REPLACEMENTS: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// A new key signs immediately.
    SignsUnsettled,
    /// A key is destroyed as soon as it is replaced and no session exists.
    DestroysUndrained,
    /// Destroys a key by the time since its replacement, regardless of sessions.
    ForgetsSessions,
}

struct Keys(Mistake);

/// A key: its number, whether it is active, and the step since when it is active or retiring.
type Term = (u8, bool, u8);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    now: u8,
    stored: Vec<Term>,
    /// The keys that each server has loaded, and whether it has loaded them since the last step of time.
    servers: [(Vec<Term>, bool); 2],
    /// Active sessions: their start, and the key of their token.
    tokens: Vec<(u8, u8)>,
    created: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Step,
    Read(usize),
    Issue(usize),
    Replace,
    Destroy(u8),
}

fn at(step: u8) -> Timestamp {
    Timestamp::from_millis(i64::from(step) * STEP)
}

fn term((number, is_active, since): Term) -> KeyringEntry {
    let state = if is_active { KeyState::Active } else { KeyState::Retiring };
    KeyringEntry { purpose: KeyPurpose::Token, id: KeyId::from_bytes([number; 16]), state, since: at(since) }
}

impl Keys {
    /// Returns the key that a server signs with.
    fn signing(&self, known: &[Term], now: u8) -> u8 {
        let active = known.iter().copied().find(|(_, is_active, _)| *is_active).unwrap();
        let before = known.iter().filter(|(_, is_active, _)| !is_active).max_by_key(|(_, _, since)| *since);
        match before {
            Some(before) if self.0 != Mistake::SignsUnsettled && !term(active).is_settled(at(now)) => before.0,
            _ => active.0,
        }
    }

    /// Returns `true` if nothing needs the key.
    fn is_free(&self, state: &State, key: Term) -> bool {
        let until = at(key.2).plus_seconds(KeyringEntry::DRAINED_SECONDS);
        let is_needed = self.0 != Mistake::ForgetsSessions && state.tokens.iter().any(|(began, _)| at(*began) <= until);
        let is_drained = self.0 == Mistake::DestroysUndrained || term(key).is_drained(at(state.now));
        !key.1 && is_drained && !is_needed
    }
}

impl Model for Keys {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let first = vec![(1, true, 0)];
        let servers = [(first.clone(), true), (first.clone(), true)];
        vec![State { now: 0, stored: first, servers, tokens: Vec::new(), created: 1 }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.now < STEPS && state.servers.iter().all(|(_, has_read)| *has_read) {
            actions.push(Action::Step);
        }
        for server in 0..2 {
            let (known, has_read) = &state.servers[server];
            if !has_read || *known != state.stored {
                actions.push(Action::Read(server));
            }
            if state.tokens.is_empty() {
                actions.push(Action::Issue(server));
            }
        }
        if state.created <= REPLACEMENTS && state.stored.len() == 1 {
            actions.push(Action::Replace);
        }
        let free = state.stored.iter().filter(|key| self.is_free(state, **key));
        actions.extend(free.map(|(number, ..)| Action::Destroy(*number)));
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Step => {
                state.now += 1;
                state.tokens.retain(|(began, _)| state.now < began + LIFETIME);
                state.servers.iter_mut().for_each(|(_, has_read)| *has_read = false);
            }
            Action::Read(server) => state.servers[server] = (state.stored.clone(), true),
            Action::Issue(server) => {
                let key = self.signing(&state.servers[server].0, state.now);
                state.tokens.push((state.now, key));
            }
            Action::Replace => {
                state.stored.iter_mut().for_each(|key| (key.1, key.2) = (false, state.now));
                state.created += 1;
                state.stored.push((state.created, true, state.now));
            }
            Action::Destroy(number) => state.stored.retain(|key| key.0 != number),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("every server takes a token that lives", |_: &Self, state: &State| {
                let has_loaded = |known: &[Term], token: u8| known.iter().any(|(number, ..)| *number == token);
                state.tokens.iter().all(|(_, key)| state.servers.iter().all(|(known, _)| has_loaded(known, *key)))
            }),
            Property::always("a key that a token is under is stored", |_: &Self, state: &State| {
                state.tokens.iter().all(|(_, key)| state.stored.iter().any(|(number, ..)| number == key))
            }),
        ]
    }
}

#[test]
fn tokens_outlive_the_replacement_of_their_key() {
    assert_verified(Keys(Mistake::None));
}

#[test]
fn incorrect_key_lifecycle_is_detected() {
    for mistake in [Mistake::SignsUnsettled, Mistake::DestroysUndrained, Mistake::ForgetsSessions] {
        assert!(!broken(Keys(mistake)).0.is_empty());
    }
}
