//! What the domain needs from outside, one trait per file. Adapters implement these; use cases hold them as
//! `Arc<dyn Port>`.
//!
//! Every method of a store port is **one decision, made atomically**: it carries everything the decision
//! needs, its audit record included, and returns what was decided. `Ok(None)` means "not there"; an error is
//! a failure. No transaction handle crosses a port.

mod account;
mod ambient;
mod audit;
mod credential;
mod error;
mod hashing;
mod housekeeping;
mod invitation;
mod key;
mod login;
mod organization;
mod own_account;
mod sealing;
mod session;
mod token;

pub use account::*;
pub use ambient::*;
pub use audit::*;
pub use credential::*;
pub use error::*;
pub use hashing::*;
pub use housekeeping::*;
pub use invitation::*;
pub use key::*;
pub use login::*;
pub use organization::*;
pub use own_account::*;
pub use sealing::*;
pub use session::*;
pub use token::*;
