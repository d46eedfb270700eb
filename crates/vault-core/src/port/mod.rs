//! Ports of the domain, one trait per file. Adapters implement them, and use cases contain them as `Arc<dyn Port>`.
//!
//! Every method of a store port is **one atomic transaction**: its arguments contain everything that the transaction
//! requires, including its audit record, and it returns the result. `Ok(None)` means that the object does not exist. An
//! error is a failure. No transaction handle is passed through a port, except the [`Rows`] of an
//! [operation](crate::operation), which the store opens and ends.

mod audit;
mod credential;
mod environment;
mod error;
mod federation;
mod federation_key;
mod hashing;
mod inspection;
mod instance_rotation;
mod issuer;
mod key;
mod maintenance;
mod organization;
mod probe;
mod receiver;
mod restore;
mod rotation;
mod rows;
mod sealing;
mod token;
mod vending;

pub use audit::*;
pub use credential::*;
pub use environment::*;
pub use error::*;
pub use federation::*;
pub use federation_key::*;
pub use hashing::*;
pub use inspection::*;
pub use instance_rotation::*;
pub use issuer::*;
pub use key::*;
pub use maintenance::*;
pub use organization::*;
pub use probe::*;
pub use receiver::*;
pub use restore::*;
pub use rotation::*;
pub use rows::*;
pub use sealing::*;
pub use token::*;
pub use vending::*;
