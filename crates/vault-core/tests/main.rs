//! Tests of the rules. Each file is a module of one program, which is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod accounts;
mod activations;
mod audit_entries;
mod card;
mod checks;
mod credential_data;
mod credential_information;
mod credential_refusals;
mod cursors;
mod entities;
mod federation;
mod federation_keys;
mod hash_slots;
mod identity;
mod integrations;
mod json_document;
mod json_object;
mod keyring;
mod life;
mod passwords;
mod proofs;
mod receivers;
mod rules;
mod support;
mod values;
