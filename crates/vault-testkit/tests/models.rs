//! Small models of subtle algorithms, checked in all their states. Each names the code that it models, and finds the
//! error in a second variant of it.

mod anchor;
mod key_terms;
mod passcodes;

use stateright::{Checker as _, Model};
use std::fmt::Debug;
use std::hash::Hash;

/// Visits all states. Returns the names of the violated properties, and the number of states.
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

/// Asserts that a model has many states and no violated property.
#[track_caller]
fn assert_verified<M>(model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let (broken, states) = broken(model);
    assert!(broken.is_empty(), "{broken:?} of {states} states");
    assert!(states > 500, "only {states} states");
}
