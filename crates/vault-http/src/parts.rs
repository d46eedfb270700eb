//! What the public listener is made of.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::port::IdGenerator;
use vault_core::usecase::{
    Authenticate, DeleteCredentialUseCase, ListCredentialsUseCase, LogIn, LogOut, SaveCredentialUseCase,
    ShowCredentialUseCase,
};

/// Tells whether everything that requests need is there.
pub type Readiness = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// The use cases behind the public listener. None of them can open a credential.
#[derive(Clone)]
pub struct ServerParts {
    /// The runtime on which use cases run: one that goes on when a client goes away.
    pub runtime: Handle,
    /// Tells whose token a request carries.
    pub authenticate: Arc<Authenticate>,
    /// Logs in.
    pub log_in: Arc<LogIn>,
    /// Logs out.
    pub log_out: Arc<LogOut>,
    /// Saves a credential.
    pub save: Arc<SaveCredentialUseCase>,
    /// Lists credentials.
    pub list: Arc<ListCredentialsUseCase>,
    /// Shows a credential.
    pub show: Arc<ShowCredentialUseCase>,
    /// Deletes a credential.
    pub delete: Arc<DeleteCredentialUseCase>,
    /// Request ids.
    pub ids: Arc<dyn IdGenerator>,
    /// For `/readyz`.
    pub readiness: Readiness,
}
