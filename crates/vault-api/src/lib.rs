//! What travels over the HTTP interface: requests, answers and problem documents, as server and client share
//! them. No behaviour, no I/O.

mod credential;
mod login;
mod problem;
mod secret;

pub use credential::{CredentialItem, SaveRequest, SavedCredential};
pub use login::{LoginRequest, LoginResponse, TOKEN_TYPE};
pub use problem::{FieldProblem, Problem, ProblemCode};
pub use secret::{WireJson, WireSecret};
