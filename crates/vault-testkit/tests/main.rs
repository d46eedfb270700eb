//! Tests of use cases with the store in memory, and of the tools for tests. All files are modules of one program, so
//! that dependencies are linked only once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod activation;
mod audit;
mod audit_reader;
mod fakes;
mod machine;
mod maintenance;
mod memory_contract;
mod models;
mod receivers;
mod rereading;
mod rotation;
mod simulation;
mod simulation_of_a_day;
#[cfg(feature = "servers")]
mod throwaway_postgres;
mod usecases;
mod vault;
mod versions;
mod wrong_stores;
