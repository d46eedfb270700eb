//! The HTTP API from the view of a client: the real server on a real port, with the memory store.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test fails by panicking")]

mod accounts;
mod activation;
mod activation_edge;
mod admin;
mod authorization;
mod bodies;
mod closing;
mod colleagues;
mod console;
mod enrolment;
mod failures;
mod federation;
mod headers;
mod integrations;
mod keyless;
mod limits;
mod login;
mod metadata;
mod methods;
mod own_account;
mod slowness;
mod support;
mod tls;
mod unix;
mod vault;
mod verify;
mod versions;
