//! Single use of a passcode, by two servers and over a restore. Models `transaction/login/conclude.rs` of the stores (the
//! conditional update of `last_step`) and `Restore` (`maintenance/restore.rs`), which lets no code of an earlier step work.

use super::{assert_verified, broken};
use stateright::{Model, Property};

const STEPS: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// Compares the step when it is read, and then writes it unconditionally.
    WritesWhatever,
    /// A restore restores the step of the backup.
    RestoresTheStep,
}

struct Codes(Mistake);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The time in passcode steps.
    now: u8,
    last: u8,
    backup: Option<u8>,
    restored: bool,
    /// For each server, the code that it verifies and the step that it has read.
    servers: [Option<(u8, u8)>; 2],
    /// How often a code of each step was accepted.
    accepted: [u8; STEPS as usize + 1],
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Pass,
    Begin(usize, u8),
    Conclude(usize),
    BackUp,
    Restore,
}

impl Model for Codes {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 1,
            last: 0,
            backup: None,
            restored: false,
            servers: [None; 2],
            accepted: [0; STEPS as usize + 1],
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.now < STEPS {
            actions.push(Action::Pass);
        }
        for server in 0..2 {
            match state.servers[server] {
                // Codes of the current and the previous step are accepted.
                None => actions.extend([state.now, state.now - 1].map(|step| Action::Begin(server, step))),
                Some(_) => actions.push(Action::Conclude(server)),
            }
        }
        if state.backup.is_none() {
            actions.push(Action::BackUp);
        } else if !state.restored {
            actions.push(Action::Restore);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Pass => state.now += 1,
            Action::Begin(server, step) => {
                if step <= state.last {
                    return None;
                }
                state.servers[server] = Some((step, state.last));
            }
            Action::Conclude(server) => {
                let (step, read) = state.servers[server].take()?;
                let last = if self.0 == Mistake::WritesWhatever { read } else { state.last };
                if last < step {
                    state.last = step;
                    state.accepted[usize::from(step)] += 1;
                }
            }
            Action::BackUp => state.backup = Some(state.last),
            Action::Restore => {
                // Servers are stopped.
                state.servers = [None; 2];
                state.restored = true;
                let kept = if self.0 == Mistake::RestoresTheStep { 0 } else { state.now };
                state.last = state.backup?.max(kept);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("a code is accepted once", |_: &Self, state: &State| {
            state.accepted.iter().all(|times| *times <= 1)
        })]
    }
}

#[test]
fn passcode_works_once() {
    assert_verified(Codes(Mistake::None));
}

#[test]
fn incorrect_passcode_use_is_detected() {
    for mistake in [Mistake::WritesWhatever, Mistake::RestoresTheStep] {
        assert!(!broken(Codes(mistake)).0.is_empty());
    }
}
