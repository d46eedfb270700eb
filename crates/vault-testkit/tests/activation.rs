//! The use cases of integrations, activation and dry runs, on the store in memory and the crypto of the fakes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "activation/activate.rs"]
mod activate;
#[path = "activation/check.rs"]
mod check;
#[path = "activation/integrations.rs"]
mod integrations;
#[path = "activation/life.rs"]
mod life;
#[path = "activation/revocation.rs"]
mod revocation;
#[path = "activation/setting.rs"]
mod setting;
