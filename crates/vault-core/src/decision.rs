//! Decisions of a store as pure functions, from facts to outcomes and effects.
//!
//! A store reads the facts under its locks, authorizes each command, calls the function, writes the effects, records
//! the commands that are [`Outcome::Done`], and returns the results. It contains no rules of its own. A function
//! accepts any number of commands of one organization, in order. Each command sees the effects of the previous ones.

mod change;
mod earlier;
mod save;

pub use change::{ChangeEffects, ChangeFacts, CredentialFacts, VersionEffect, decide_changes};
pub use earlier::{EarlierRequest, EarlierRequests};
pub use save::{SaveFacts, decide_saves};

use crate::command::Command;
use crate::error::Refusal;

/// A command whose principal is authorized.
#[derive(Clone, Copy, Debug)]
pub struct Authorized<'a, A> {
    /// The command.
    pub command: &'a Command<A>,
    /// Whether the organization key of its new parts is active. `true` if it has none.
    pub key_active: bool,
}

/// Outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T, E = ()> {
    /// Accepted: the store writes the effects and records [`Command::audit`].
    Done {
        /// Result for the caller.
        answer: T,
        /// Effects to write, in addition to those in the command.
        effects: E,
    },
    /// Refused, or repeated with the original result. The store writes and records nothing.
    Unchanged(Result<T, Refusal>),
}

impl<T, E> Outcome<T, E> {
    const fn refused(refusal: Refusal) -> Self {
        Self::Unchanged(Err(refusal))
    }

    /// Returns the effects, or `None` if nothing is written.
    pub const fn effects(&self) -> Option<&E> {
        match self {
            Self::Done { effects, .. } => Some(effects),
            Self::Unchanged(_) => None,
        }
    }

    /// Returns the result for the caller.
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
