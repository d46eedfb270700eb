//! Ports of the domain, one trait per file. Adapters implement them, and use cases contain them as `Arc<dyn Port>`.
//!
//! A store has two: [`RowStore`] runs an [operation](crate::operation) in one transaction, with its [`Rows`], and
//! [`KeyRepository`] reads and creates the row of the instance, before there are keys with which operations run.

mod audit;
mod credential;
mod environment;
mod error;
mod federation;
mod federation_key;
mod hashing;
mod inspection;
mod instance;
mod issuer;
mod probe;
mod receiver;
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
pub use instance::*;
pub use issuer::*;
pub use probe::*;
pub use receiver::*;
pub use rotation::*;
pub use rows::*;
pub use sealing::*;
pub use token::*;
pub use vending::*;
