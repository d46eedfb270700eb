//! The possible states of a key after its acknowledged writes.

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Deleted, or never saved.
    Absent,
    /// The value with this number.
    Stored(usize),
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Acknowledged with a status from 200 to 299.
    Done,
    /// Rejected without effect.
    Refused,
    /// Unknown: no response, or a status from 500.
    Indeterminate,
}

/// The possible states of one key: the last acknowledged state, or that of a later write with unknown outcome. A key
/// has one client, which makes one write at a time.
#[derive(Clone, Debug)]
pub(crate) struct Possible {
    /// The first state is acknowledged or was observed.
    states: Vec<State>,
}

impl Possible {
    /// A key that was never written.
    pub(crate) fn new() -> Self {
        Self { states: vec![State::Absent] }
    }

    /// Records the outcome of a write to `state`.
    pub(crate) fn attempted(&mut self, state: State, outcome: Outcome) {
        match outcome {
            Outcome::Done => self.states = vec![state],
            Outcome::Refused => {}
            Outcome::Indeterminate => self.states.push(state),
        }
    }

    /// Records that the key was observed in state `found`. Earlier states are no longer possible, and a loss is
    /// reported once.
    ///
    /// # Errors
    /// If the state is impossible: an acknowledged write is lost, or an undone write is back.
    pub(crate) fn seen(&mut self, found: State) -> Result<(), String> {
        match self.states.iter().rposition(|state| *state == found) {
            Some(place) => {
                self.states.drain(..place);
                Ok(())
            }
            None => {
                let expected = std::mem::replace(&mut self.states, vec![found]);
                Err(format!("contains {found:?}, expected one of {expected:?}"))
            }
        }
    }

    /// Returns `true` if the key may be in `state`.
    pub(crate) fn may_be(&self, state: State) -> bool {
        self.states.contains(&state)
    }

    /// Returns the state if only one is possible.
    pub(crate) fn sure(&self) -> Option<State> {
        match *self.states {
            [state] => Some(state),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(writes: &[(State, Outcome)]) -> Possible {
        let mut key = Possible::new();
        for (state, outcome) in writes {
            key.attempted(*state, *outcome);
        }
        key
    }

    #[test]
    fn acknowledged_writes_must_exist() {
        use Outcome::Done;
        use State::{Absent, Stored};
        assert!(key(&[(Stored(1), Done)]).seen(Absent).is_err(), "a lost save");
        assert!(key(&[(Stored(1), Done), (Stored(2), Done)]).seen(Stored(1)).is_err(), "a lost replacement");
        assert!(key(&[(Stored(1), Done), (Absent, Done)]).seen(Stored(1)).is_err(), "a deletion undone");
        assert!(key(&[(Stored(1), Done), (Absent, Done)]).seen(Absent).is_ok());
    }

    #[test]
    fn refused_writes_must_not_exist() {
        use Outcome::{Done, Refused};
        use State::Stored;
        let mut key = key(&[(Stored(1), Done), (Stored(2), Refused)]);
        assert!(key.clone().seen(Stored(2)).is_err());
        assert!(key.seen(Stored(1)).is_ok());
    }

    #[test]
    fn indeterminate_write_is_stable_once_read() {
        use Outcome::{Done, Indeterminate};
        use State::Stored;
        let writes = [(Stored(1), Done), (Stored(2), Indeterminate)];
        assert_eq!(key(&writes).sure(), None);
        let mut late = key(&writes);
        assert!(late.seen(Stored(1)).is_ok());
        assert!(late.seen(Stored(2)).is_ok(), "it may still be in flight");
        assert_eq!(late.sure(), Some(Stored(2)));
        assert!(late.seen(Stored(1)).is_err(), "a value that was read is lost");
        assert!(late.seen(Stored(1)).is_ok(), "and the loss was reported");
    }
}
