//! The HTTP API from the view of its clients, with one file for each resource. The server runs in this process, over the
//! store in memory.

mod accounts;
mod activations;
mod admin;
mod app;
mod bodies;
mod closing;
mod console;
mod credentials;
mod enrolment;
mod failures;
mod federation;
mod headers;
mod heads;
mod integrations;
mod keyless;
mod limits;
mod log;
mod login;
mod metadata;
mod methods;
mod namespaces;
mod own_account;
mod refusals;
mod slowness;
mod tls;
mod tokens;
mod unix;
mod verify;
mod versions;
