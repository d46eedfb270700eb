//! Contract tests: cases that every implementation of the store ports must pass.
//!
//! There is one module per subject and one function per case; its documentation states the guarantee. Each case creates
//! its own organizations and accounts under its own ids, so cases can share a database and run in any order and in
//! parallel, also in several processes. All cases set the time themselves and never wait for it.
//!
//! A store implements [`ContractStore`], and a file under `tests/` contains at its top level:
//!
//! ```
//! use std::sync::Arc;
//! use vault_testkit::memory::MemoryStore;
//!
//! async fn store() -> Arc<MemoryStore> {
//!     Arc::new(MemoryStore::new())
//! }
//!
//! vault_testkit::store_contract!(store());
//! # fn main() {}
//! ```
//!
//! Each case becomes a test named after it, for example `lockout::parallel_attempts_gain_nothing`.

pub mod account;
pub mod account_change;
pub mod activation;
mod activators;
pub mod admin;
pub mod audit;
pub mod authority;
pub mod check;
mod commands;
pub mod credential;
pub mod entity;
pub mod federation;
pub mod freeze;
pub mod health;
pub mod idempotency;
pub mod inspection;
pub mod instance_rotation;
pub mod integration;
pub mod invitation;
pub mod issue_credentials;
pub mod issuer;
pub mod key;
pub mod life;
pub mod lockout;
pub mod log;
pub mod login;
pub mod lookups;
pub mod machine;
pub mod maintenance;
pub mod member;
mod members;
pub mod model;
mod model_activators;
pub mod organization;
pub mod own_account;
pub mod re_enrolment;
pub mod receiver;
pub mod restore;
pub mod rotation;
pub(crate) mod saving;
pub mod session;
pub mod standing;
pub mod tenant;
mod tools;
pub mod version;
pub mod whole;
mod world;

pub use world::opening;

use crate::memory::MemoryStore;
use async_trait::async_trait;
use std::future::Future;
use std::sync::Arc;
use vault_core::id::OrganizationId;
use vault_core::port::{KeyRepository, RowStore};

/// All store ports.
pub trait Store: KeyRepository + RowStore + 'static {}

impl<T> Store for T where T: KeyRepository + RowStore + 'static {}

/// Store under test, with access that the suite needs and no port provides.
#[async_trait]
pub trait ContractStore: Send + Sync + 'static {
    /// Returns the ports.
    fn ports(&self) -> Arc<dyn Store>;

    /// Returns the actions in the audit records of an organization, by their stored names, in any order.
    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String>;

    /// Returns the names of the tables, or their equivalents, that contain rows of an organization, except the audit
    /// log.
    async fn rows(&self, organization: OrganizationId) -> Vec<String>;
}

#[async_trait]
impl ContractStore for Arc<MemoryStore> {
    fn ports(&self) -> Arc<dyn Store> {
        Arc::clone(self) as Arc<dyn Store>
    }

    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        let ours = self.audit().into_iter().filter(|record| record.organization == Some(organization));
        ours.map(|record| record.action.as_str().to_owned()).collect()
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        MemoryStore::rows(self, organization)
    }
}

/// Runs one case on the subject that `make` returns, on a separate runtime with several threads.
pub fn run<S>(make: impl Future<Output = S>, case: impl AsyncFnOnce(&S)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let subject = make.await;
        case(&subject).await;
    });
}

/// Generates a test for every case.
///
/// Accepts an expression for a future that returns a [`ContractStore`](crate::contract::ContractStore). It is evaluated
/// once per case.
#[macro_export]
macro_rules! store_contract {
    ($make:expr) => {
        $crate::all_contract_cases! { $make }
    };
}

// The build script lists the cases.
include!(concat!(env!("OUT_DIR"), "/contract_cases.rs"));

#[doc(hidden)]
#[macro_export]
macro_rules! contract_cases {
    ($make:expr; $($subject:ident { $($case:ident)* })*) => {
        $($crate::contract_cases! { @one $make; $subject { $($case)* } })*
    };
    (@one $make:expr; $subject:ident { $($case:ident)* }) => {
        mod $subject {
            #[allow(unused_imports, reason = "the constructor of the store is defined where the contract is invoked")]
            use super::*;

            $(
                #[test]
                fn $case() {
                    $crate::contract::run($make, async |store: &_| $crate::contract::$subject::$case(store).await);
                }
            )*
        }
    };
}
