//! For whom a vault operation acts.

use crate::id::{AccountId, OrganizationId, SessionId};
use crate::role::{Action, Role};

/// Whoever an operation acts for. The store refuses the operation, in the transaction that carries it out,
/// if the principal may no longer act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// The holder of an access token.
    Session(SessionPrincipal),
    /// A service that embeds this crate and has authenticated its user itself.
    Embedder(EmbedderPrincipal),
}

/// The holder of an access token: session, account and role as the token names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPrincipal {
    /// The organization.
    pub organization: OrganizationId,
    /// The account.
    pub account: AccountId,
    /// The session.
    pub session: SessionId,
    /// The role the token carries.
    pub role: Role,
}

/// A user of an embedding service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedderPrincipal {
    /// The organization.
    pub organization: OrganizationId,
    /// The user, as the embedding service names it; stands in the audit.
    pub account: AccountId,
    /// The role the embedding service gives it.
    pub role: Role,
}

/// Why the store refuses a principal. Each means that the token no longer works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalRefusal {
    /// The session has ended, expired or was never there.
    SessionEnded,
    /// The account is gone, disabled, or no longer has the role.
    AccountChanged,
    /// The organization is gone or disabled.
    OrganizationClosed,
}

impl Principal {
    /// The organization.
    pub const fn organization(&self) -> OrganizationId {
        match self {
            Self::Session(principal) => principal.organization,
            Self::Embedder(principal) => principal.organization,
        }
    }

    /// The account.
    pub const fn account(&self) -> AccountId {
        match self {
            Self::Session(principal) => principal.account,
            Self::Embedder(principal) => principal.account,
        }
    }

    /// The role.
    pub const fn role(&self) -> Role {
        match self {
            Self::Session(principal) => principal.role,
            Self::Embedder(principal) => principal.role,
        }
    }
}

/// By whose order accounts and integrations are administered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authority {
    /// Somebody with access to the machine: any organization, no last admin kept.
    Operator,
    /// An admin through a session: the session's own organization, judged in the decision itself.
    Session(SessionPrincipal),
}

impl Authority {
    /// Whether it reaches accounts of `organization`.
    pub fn reaches(&self, organization: OrganizationId) -> bool {
        match self {
            Self::Operator => true,
            Self::Session(principal) => principal.organization == organization,
        }
    }

    /// Whether its role permits administering accounts.
    pub const fn manages_accounts(&self) -> bool {
        match self {
            Self::Operator => true,
            Self::Session(principal) => principal.role.permits(Action::ManageAccounts),
        }
    }

    /// Whether its role permits administering integrations and frozen namespaces.
    pub const fn manages_integrations(&self) -> bool {
        match self {
            Self::Operator => true,
            Self::Session(principal) => principal.role.permits(Action::ManageIntegrations),
        }
    }
}

/// What the store read of a session principal's rows, for [`judge_session`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// Whether the session's row is there, names the account and has not expired.
    pub session_live: bool,
    /// The account's role, if the account is there and active.
    pub active_role: Option<Role>,
    /// Whether the organization is there and active.
    pub organization_active: bool,
}

/// Decides whether a session principal may still act, on the facts read in the same transaction.
///
/// # Errors
/// Why it may not.
pub fn judge_session(principal: &SessionPrincipal, facts: SessionFacts) -> Result<(), PrincipalRefusal> {
    if !facts.organization_active {
        return Err(PrincipalRefusal::OrganizationClosed);
    }
    if facts.active_role != Some(principal.role) {
        return Err(PrincipalRefusal::AccountChanged);
    }
    if facts.session_live { Ok(()) } else { Err(PrincipalRefusal::SessionEnded) }
}
