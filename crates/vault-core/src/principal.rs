//! Principals: who makes a request, and which rows each may see.

use crate::account::ValidSessions;
use crate::id::{AccountId, OrganizationId, SessionId};
use crate::integration::IntegrationRefusal;
use crate::role::{Action, Role};

/// The principal of an operation. The store authorizes it in the transaction of the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// A person with access to the command line of the host. Administers every organization, has no vault, and may
    /// remove the last admin of an organization.
    Operator,
    /// An account, authenticated by an access token.
    Session(SessionPrincipal),
    /// A user of a service that embeds this crate and has authenticated the user itself.
    Embedder(EmbedderPrincipal),
}

/// Session, account and role in an access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPrincipal {
    /// ID of the organization.
    pub organization: OrganizationId,
    /// ID of the account.
    pub account: AccountId,
    /// ID of the session.
    pub session: SessionId,
    /// Role in the token.
    pub role: Role,
    /// Version of the account in the token.
    pub version: i64,
}

/// A user of an embedding service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedderPrincipal {
    /// ID of the organization.
    pub organization: OrganizationId,
    /// ID of the user, as the embedding service assigns it. The audit log records it.
    pub account: AccountId,
    /// Role that the embedding service assigns.
    pub role: Role,
}

/// Reason why a principal is not authorized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The role does not permit the action.
    #[error("the role does not permit this")]
    InsufficientRole,
    /// The session was ended, has expired or never existed. Log in again.
    #[error("the session has ended")]
    SessionEnded,
    /// The account was deleted or disabled, or its role changed. Log in again.
    #[error("the account was deleted or disabled, or its role changed")]
    AccountChanged,
    /// The organization was deleted or disabled.
    #[error("the organization was deleted or disabled")]
    OrganizationDisabled,
    /// The integration is not authorized. No response contains the reason.
    #[error("the integration token is invalid")]
    Integration(IntegrationRefusal),
}

impl From<IntegrationRefusal> for Denial {
    fn from(refusal: IntegrationRefusal) -> Self {
        Self::Integration(refusal)
    }
}

/// Organizations whose rows a query may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One organization.
    One(OrganizationId),
    /// All organizations. Only [`Principal::Operator`] may request it.
    All,
}

impl Scope {
    /// Returns the organization, if it is one.
    pub const fn one(self) -> Option<OrganizationId> {
        match self {
            Self::One(organization) => Some(organization),
            Self::All => None,
        }
    }

    /// Returns whether rows of `organization` are in the scope.
    pub fn covers(self, organization: OrganizationId) -> bool {
        match self {
            Self::One(own) => own == organization,
            Self::All => true,
        }
    }
}

impl Principal {
    /// Creates the principal of a user of an embedding service.
    pub const fn embedder(organization: OrganizationId, account: AccountId, role: Role) -> Self {
        Self::Embedder(EmbedderPrincipal { organization, account, role })
    }

    /// Returns its organization. An operator has none.
    pub const fn organization(&self) -> Option<OrganizationId> {
        match self {
            Self::Operator => None,
            Self::Session(principal) => Some(principal.organization),
            Self::Embedder(principal) => Some(principal.organization),
        }
    }

    /// Returns its account. An operator has none.
    pub const fn account(&self) -> Option<AccountId> {
        match self {
            Self::Operator => None,
            Self::Session(principal) => Some(principal.account),
            Self::Embedder(principal) => Some(principal.account),
        }
    }

    /// Returns the widest scope that it may request.
    pub const fn scope(&self) -> Scope {
        match self.organization() {
            Some(organization) => Scope::One(organization),
            None => Scope::All,
        }
    }

    /// Returns whether it may request `scope`.
    pub fn may_see(&self, scope: Scope) -> bool {
        match scope {
            Scope::One(organization) => self.reaches(organization),
            Scope::All => self.organization().is_none(),
        }
    }

    /// Returns whether it may see rows of `organization`.
    pub fn reaches(&self, organization: OrganizationId) -> bool {
        self.organization().is_none_or(|own| own == organization)
    }

    /// Returns its organization if its role permits `action`.
    ///
    /// # Errors
    /// [`Denial::InsufficientRole`], also for an operator, which belongs to no organization.
    pub fn member(&self, action: Action) -> Result<OrganizationId, Denial> {
        match self {
            Self::Session(SessionPrincipal { organization, role, .. })
            | Self::Embedder(EmbedderPrincipal { organization, role, .. })
                if role.permits(action) =>
            {
                Ok(*organization)
            }
            _ => Err(Denial::InsufficientRole),
        }
    }

    /// Authorizes the administrative `action`: for operators always, for others by their role.
    ///
    /// # Errors
    /// [`Denial::InsufficientRole`] if the role does not permit the action.
    pub fn administers(&self, action: Action) -> Result<(), Denial> {
        match self {
            Self::Operator => Ok(()),
            Self::Session(_) | Self::Embedder(_) => self.member(action).map(drop),
        }
    }
}

impl From<SessionPrincipal> for Principal {
    fn from(principal: SessionPrincipal) -> Self {
        Self::Session(principal)
    }
}

/// State of a session principal's rows, for [`check_session`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// Whether the row of the session exists, names the account and has not expired.
    pub session_live: bool,
    /// Role and valid sessions of the account, if it exists and is active.
    pub active: Option<(Role, ValidSessions)>,
}

/// Authorizes a session principal, based on its organization (if it exists and is active) and the rows read in the same
/// transaction.
///
/// # Errors
/// The reason for the refusal.
pub fn check_session(
    principal: &SessionPrincipal,
    organization_is_active: bool,
    facts: SessionFacts,
) -> Result<(), Denial> {
    if !organization_is_active {
        return Err(Denial::OrganizationDisabled);
    }
    let Some((_, sessions)) = facts.active.filter(|(role, _)| *role == principal.role) else {
        return Err(Denial::AccountChanged);
    };
    let is_valid = facts.session_live && sessions.include(principal.session, principal.version);
    if is_valid { Ok(()) } else { Err(Denial::SessionEnded) }
}
