//! The anchor against rollback of the database, and against restores by an operator. Models `vault-embed/src/anchor.rs`
//! and `vault-crypto/src/anchor.rs`: a server opens a database only if it contains the checkpoint in the anchor, and
//! `restore` updates the anchor.

use super::{assert_verified, broken};
use stateright::{Model, Property};

const CHECKPOINTS: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// Compares only the number of the checkpoint, not its hash.
    IgnoresTheHash,
    /// Writes the anchor before the checkpoint is in the database.
    AnchorsFirst,
}

struct Anchored(Mistake);

/// The checkpoints of a database, each by the value that it is chained to: two with the same number differ if their
/// history differs.
type Database = Vec<u8>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    database: Database,
    /// Number and hash of the newest checkpoint in the anchor. The hash represents the whole history.
    anchor: Database,
    copies: Vec<Database>,
    is_open: bool,
    /// The checkpoints that were acknowledged as sealed.
    sealed: Database,
    created: u8,
    restores: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// The server seals entries. The content distinguishes histories.
    Seal,
    /// The anchor is updated.
    Follow,
    Stop,
    Open,
    Copy,
    /// An attacker replaces the database with an earlier copy.
    RollBack(usize),
    /// The operator restores a copy, which updates the anchor.
    Restore(usize),
}

impl Anchored {
    fn accepts(&self, state: &State) -> bool {
        match self.0 {
            Mistake::IgnoresTheHash => state.database.len() >= state.anchor.len(),
            _ => state.database.starts_with(&state.anchor),
        }
    }
}

impl Model for Anchored {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let none = Vec::new;
        vec![State {
            database: none(),
            anchor: none(),
            copies: Vec::new(),
            is_open: true,
            sealed: none(),
            created: 0,
            restores: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.is_open {
            actions.extend([Action::Follow, Action::Stop]);
            if state.created < CHECKPOINTS {
                actions.push(Action::Seal);
            }
        } else {
            actions.push(Action::Open);
            for copy in 0..state.copies.len() {
                actions.push(Action::RollBack(copy));
                if state.restores == 0 {
                    actions.push(Action::Restore(copy));
                }
            }
        }
        if state.copies.len() < 2 {
            actions.push(Action::Copy);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Seal => {
                state.created += 1;
                state.database.push(state.created);
                state.sealed = state.database.clone();
                if self.0 == Mistake::AnchorsFirst {
                    // The host fails between the two writes.
                    state.anchor = state.database.clone();
                    state.database.pop();
                    state.sealed = state.database.clone();
                    state.is_open = false;
                }
            }
            Action::Follow => state.anchor = state.database.clone(),
            Action::Stop => (state.anchor, state.is_open) = (state.database.clone(), false),
            Action::Open => {
                if !self.accepts(&state) {
                    return None;
                }
                // It continues with its current content.
                (state.is_open, state.sealed) = (true, state.database.clone());
            }
            Action::Copy => state.copies.push(state.database.clone()),
            Action::RollBack(copy) => state.database = state.copies[copy].clone(),
            Action::Restore(copy) => {
                state.restores += 1;
                state.database = state.copies[copy].clone();
                (state.anchor, state.sealed) = (state.database.clone(), state.database.clone());
            }
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("an open database contains the anchored state", |_: &Self, state: &State| {
                !state.is_open || state.database.starts_with(&state.anchor)
            }),
            Property::always(
                "after a stop nothing that was sealed is missing unseen",
                |model: &Self, state: &State| {
                    let is_stopped = !state.is_open && state.anchor == state.sealed;
                    !is_stopped || !model.accepts(state) || state.database.starts_with(&state.sealed)
                },
            ),
            Property::always("a server's own database is not refused", |model: &Self, state: &State| {
                state.is_open || state.database != state.sealed || model.accepts(state)
            }),
        ]
    }
}

#[test]
fn rolled_back_database_is_refused_but_restored_is_not() {
    assert_verified(Anchored(Mistake::None));
}

#[test]
fn incorrect_anchor_use_is_detected() {
    for mistake in [Mistake::IgnoresTheHash, Mistake::AnchorsFirst] {
        assert!(!broken(Anchored(mistake)).0.is_empty());
    }
}
