//! Integrations: identities of batch jobs that may activate namespaces of their organization, each with its own token.

mod change;
mod create;
mod find;
mod grant;
mod managed;
mod name;
mod pattern;
mod principal;
mod token;
mod usage;

pub use change::{ChangeIntegration, DeleteIntegration, IntegrationChange};
pub use create::CreateIntegration;
pub use find::{
    ExpiringIntegrations, FindByToken, FindIntegration, IntegrationNames, IntegrationRef, ListIntegrations,
};
pub use grant::{
    FoundIntegration, Integration, IntegrationRefusal, IntegrationState, MAX_OVERLAP_SECONDS, Overlap, PreviousToken,
    StoredIntegration, TokenSlot,
};
pub use managed::ManagedBy;
pub use name::IntegrationName;
pub(crate) use name::is_printable;
pub use pattern::{NamespacePattern, NamespacePatterns};
pub use principal::{IntegrationFacts, IntegrationPrincipal, check_integration};
pub use token::IntegrationToken;
pub use usage::{CountActions, CountHours, CountedPeriod, HourlyActions, IntegrationActions};
