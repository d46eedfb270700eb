//! Concurrent clients: many sequences, each on a separate store in memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

use vault_testkit::contract::machine::{Act::*, check, play};
use vault_testkit::memory::{Defect, MemoryStore};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

#[test]
fn two_thousand_sequences_are_explained() {
    let runtime = runtime();
    check(2_000, |batches| runtime.block_on(play(&Arc::new(MemoryStore::new()), batches)));
}

/// A failed sequence is printed in a form that can be pasted here.
#[test]
fn sequence_is_played() {
    let sequence = [
        vec![(Save(0, Some(1), 0), None), (Save(0, Some(1), 0), Some(2)), (List, None)],
        vec![(SetOpen(false), None)],
        vec![(Delete(0, None), None), (Rotate, None)],
    ];
    assert_eq!(runtime().block_on(play(&Arc::new(MemoryStore::new()), &sequence)), Ok(()));
}

#[test]
fn failing_sequence_is_printed_as_code() {
    let runtime = Builder::new_current_thread().build().unwrap(); // the same sequence always fails
    let wrong =
        |batches: &[Vec<_>]| runtime.block_on(play(&Arc::new(MemoryStore::flawed(Defect::CountsLess)), batches));
    let failed = catch_unwind(AssertUnwindSafe(|| check(2_000, wrong))).unwrap_err();
    let message = failed.downcast_ref::<String>().unwrap();
    assert!(message.contains("play(&subject, &[vec![("), "{message}");
    let saves = message.lines().nth(1).unwrap().matches("Save(").count();
    assert!(saves > 4, "the room of four was filled: {message}");
}
