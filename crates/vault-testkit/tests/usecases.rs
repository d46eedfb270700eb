//! Tests of the account use cases, with the store in memory and the crypto of the fakes.

mod accounts;
mod logins;
mod service;
mod work;
