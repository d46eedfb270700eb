//! The use cases of integrations, activation and dry runs, on the store in memory and the crypto of the fakes.

mod activate;
mod bounds;
mod check;
mod integrations;
mod life;
mod revocation;
mod setting;
