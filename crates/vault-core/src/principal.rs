//! Who acts, and what each may see.

use crate::id::{AccountId, OrganizationId, SessionId};
use crate::integration::IntegrationRefusal;
use crate::role::{Action, Role};

/// The caller of an operation. The store checks it again, in the transaction of the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// Somebody with access to the machine. Administers every organization, has no vault of its own, and may remove
    /// an organization's last admin.
    Operator,
    /// The holder of an access token.
    Session(SessionPrincipal),
    /// A user of a service that embeds this crate and has authenticated the user itself.
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
    /// The user, as the embedding service names it. The audit records it.
    pub account: AccountId,
    /// The role the embedding service gives it.
    pub role: Role,
}

/// Why a principal may not act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The role does not permit the action.
    #[error("the role does not permit this")]
    InsufficientRole,
    /// The session was ended, has expired or never existed: log in again.
    #[error("the session has ended")]
    SessionEnded,
    /// The account was deleted or disabled, or its role changed: log in again.
    #[error("the account was deleted or disabled, or its role changed")]
    AccountChanged,
    /// The organization was deleted or disabled.
    #[error("the organization was deleted or disabled")]
    OrganizationClosed,
    /// The integration may not act. The response never contains the reason.
    #[error("the integration token is invalid")]
    Integration(IntegrationRefusal),
}

impl From<IntegrationRefusal> for Denial {
    fn from(refusal: IntegrationRefusal) -> Self {
        Self::Integration(refusal)
    }
}

/// Whose rows a decision may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of one organization.
    One(OrganizationId),
    /// Those of every organization. Only [`Principal::Operator`] may ask for it.
    All,
}

impl Scope {
    /// Whether rows of `organization` are in it.
    pub fn covers(self, organization: OrganizationId) -> bool {
        match self {
            Self::One(own) => own == organization,
            Self::All => true,
        }
    }
}

impl Principal {
    /// A user of an embedding service.
    pub const fn embedder(organization: OrganizationId, account: AccountId, role: Role) -> Self {
        Self::Embedder(EmbedderPrincipal { organization, account, role })
    }

    /// The organization that it belongs to. An operator belongs to none.
    pub const fn organization(&self) -> Option<OrganizationId> {
        match self {
            Self::Operator => None,
            Self::Session(principal) => Some(principal.organization),
            Self::Embedder(principal) => Some(principal.organization),
        }
    }

    /// The account. An operator has none.
    pub const fn account(&self) -> Option<AccountId> {
        match self {
            Self::Operator => None,
            Self::Session(principal) => Some(principal.account),
            Self::Embedder(principal) => Some(principal.account),
        }
    }

    /// The widest scope that it may ask for.
    pub const fn scope(&self) -> Scope {
        match self.organization() {
            Some(organization) => Scope::One(organization),
            None => Scope::All,
        }
    }

    /// Whether it may ask for `scope`.
    pub fn may_see(&self, scope: Scope) -> bool {
        match scope {
            Scope::One(organization) => self.reaches(organization),
            Scope::All => self.organization().is_none(),
        }
    }

    /// Whether it may see rows of `organization`.
    pub fn reaches(&self, organization: OrganizationId) -> bool {
        self.organization().is_none_or(|own| own == organization)
    }

    /// Its organization, where its role permits `action` there.
    ///
    /// # Errors
    /// [`Denial::InsufficientRole`]; also for an operator, who belongs to no organization.
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

    /// Whether it may carry out the administrative `action`: an operator everywhere, others by their role.
    ///
    /// # Errors
    /// [`Denial::InsufficientRole`].
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

/// What the store read of a session principal's rows, for [`judge_session`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// Whether the session's row exists, names the account and has not expired.
    pub session_live: bool,
    /// The account's role, if the account exists and is active.
    pub active_role: Option<Role>,
    /// Whether the organization exists and is active.
    pub organization_active: bool,
}

/// Decides whether a session principal may still act, on the facts read in the same transaction.
///
/// # Errors
/// Why it may not.
pub fn judge_session(principal: &SessionPrincipal, facts: SessionFacts) -> Result<(), Denial> {
    if !facts.organization_active {
        return Err(Denial::OrganizationClosed);
    }
    if facts.active_role != Some(principal.role) {
        return Err(Denial::AccountChanged);
    }
    if facts.session_live { Ok(()) } else { Err(Denial::SessionEnded) }
}
