//! Tests of integrations, activations and dry runs, with the store in memory and the crypto of the fakes.

mod activate;
mod check;
mod integrations;
mod keyless;
mod life;
mod revocation;
mod setting;
mod workload;
