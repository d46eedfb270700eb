//! The use cases around accounts, on the store in memory and the crypto of the fakes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "usecase/administration.rs"]
mod administration;
#[path = "usecase/enrolment.rs"]
mod enrolment;
#[path = "usecase/logins.rs"]
mod logins;
#[path = "usecase/own_account.rs"]
mod own_account;
#[path = "usecase/re_enrolment.rs"]
mod re_enrolment;
#[path = "usecase/service.rs"]
mod service;
#[path = "usecase/work.rs"]
mod work;
