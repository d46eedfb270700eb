//! The decisions of a store, each as one pure function: facts in, outcomes and effects out.
//!
//! A store reads the facts under its locks, authorizes each command, calls the function, writes the effects, records the
//! commands that are [`Outcome::Done`], and answers. It decides nothing. A function takes any number of commands of one
//! organization, in their order; each finds what those before it left.

mod change;
mod delete;
mod earlier;
mod save;

pub use change::{ChangeEffects, ChangeFacts, CredentialFacts, VersionEffect, judge_changes};
pub use delete::judge_deletes;
pub use earlier::{EarlierRequest, EarlierRequests};
pub use save::{SaveFacts, judge_saves};

use crate::command::Command;
use crate::error::Refusal;

/// A command whose principal may act.
#[derive(Clone, Copy, Debug)]
pub struct Authorized<'a, A> {
    /// The command.
    pub command: &'a Command<A>,
    /// Whether the organization key that its new parts are sealed under is active; `true` where it has none.
    pub key_active: bool,
}

/// What a command comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T, E = ()> {
    /// Carried out: the store writes the effects and records [`Command::audit`].
    Done {
        /// The answer.
        answer: T,
        /// What the store writes, beside what the command says.
        effects: E,
    },
    /// Refused, or answered as before: the store writes and records nothing.
    Unchanged(Result<T, Refusal>),
}

impl<T, E> Outcome<T, E> {
    const fn refused(refusal: Refusal) -> Self {
        Self::Unchanged(Err(refusal))
    }

    /// The effects; `None`: nothing is written.
    pub const fn effects(&self) -> Option<&E> {
        match self {
            Self::Done { effects, .. } => Some(effects),
            Self::Unchanged(_) => None,
        }
    }

    /// The answer to the caller.
    ///
    /// # Errors
    /// The refusal.
    pub fn into_answer(self) -> Result<T, Refusal> {
        match self {
            Self::Done { answer, .. } => Ok(answer),
            Self::Unchanged(answer) => answer,
        }
    }
}
