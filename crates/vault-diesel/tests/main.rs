//! Tests of the two databases, in one program so that they are linked only once. Each file is a module.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod activations;
mod audit;
mod contract_postgres;
mod contract_sqlite;
mod federation;
mod instance_rotation;
mod login_statements;
mod migrations;
mod postgres;
mod postgres_accounts;
mod postgres_activations;
mod postgres_statements;
mod postgres_together;
mod restores;
mod sqlite;
mod support;
mod transfer;
