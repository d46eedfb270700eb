//! The commands of clients of `orgvault`: login, credentials, activations, `exec`, imports and configuration documents.
//!
//! They connect to a server and open no vault. The package `app` makes one program of them, the server and the commands
//! of operators, and uses the modules that all commands share: failures, output, text and secret files.

pub mod activation;
pub mod client;
pub mod command;
pub mod completion;
pub mod failure;
pub mod form;
pub mod hardening;
mod manifest;
pub mod output;
pub mod secret_file;
pub mod text;
