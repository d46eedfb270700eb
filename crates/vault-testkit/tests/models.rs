//! Small models of what is subtle, checked through all their states. Each names the code that it models, and finds the mistake
//! that a second form of it makes.

mod anchor;
mod key_terms;
mod passcodes;

use stateright::{Checker as _, Model};
use std::fmt::Debug;
use std::hash::Hash;

/// Goes through all states. The names of the properties that do not hold, and how many states there are.
fn broken<M>(model: M) -> (Vec<&'static str>, usize)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let checker = model.checker().spawn_bfs().join();
    let broken = checker.discoveries().into_keys().collect();
    (broken, checker.unique_state_count())
}

/// Asserts that a model holds in all of its states, of which there are many.
#[track_caller]
fn holds<M>(model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let (broken, states) = broken(model);
    assert!(broken.is_empty(), "{broken:?} of {states} states");
    assert!(states > 500, "only {states} states");
}
