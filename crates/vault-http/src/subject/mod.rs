//! The subjects of the API: routes, handlers and conversions of each in one file.
//!
//! A handler converts the request, runs one use case, and converts the result. Its parameters are the caller, the state of
//! the listener, what the path, the query and the headers contain, and last the body. Use cases validate values; a handler
//! validates only what the domain type cannot express.

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod console;
mod credential_json;
pub(crate) mod credentials;
pub(crate) mod enrolment;
pub(crate) mod federation;
pub(crate) mod integrations;
pub(crate) mod namespaces;
pub(crate) mod own_account;
pub(crate) mod probes;
pub(crate) mod read;
pub(crate) mod receivers;
pub(crate) mod versions;
