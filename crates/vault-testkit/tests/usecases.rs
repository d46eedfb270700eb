//! Tests of the account use cases, with the store in memory and the crypto of the fakes.

mod accounts;
mod forged_rows;
mod logins;
mod service;
mod work;
