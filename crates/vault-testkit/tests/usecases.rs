//! Tests of the account use cases, with the store in memory and the crypto of the fakes.

mod administration;
mod edges;
mod enrolment;
mod logins;
mod own_account;
mod re_enrolment;
mod service;
mod work;
