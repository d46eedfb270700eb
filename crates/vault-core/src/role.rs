//! Roles and what each permits.

use std::fmt;

/// What an account may do in its organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Everything.
    Admin,
    /// Save, list and delete credentials.
    Editor,
    /// List credentials.
    Viewer,
}

/// Something an account may want to do with its organization's vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Save a credential.
    Save,
    /// List credentials or show one.
    List,
    /// Delete a credential.
    Delete,
    /// Let a credential be handed out as it is that so far was handed out as something short-lived only.
    LiftVendRule,
    /// List, invite, change and delete accounts.
    ManageAccounts,
    /// List, make, change and delete integrations; freeze and thaw namespaces.
    ManageIntegrations,
    /// List, add, change and remove receivers of events.
    ManageReceivers,
    /// Read the audit.
    ReadAudit,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Admin, Self::Editor, Self::Viewer];

    /// The role of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// The role's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Editor => "editor",
            Self::Viewer => "viewer",
        }
    }

    const fn is_admin(self) -> bool {
        matches!(self, Self::Admin)
    }

    /// Whether the role permits the action.
    pub const fn permits(self, action: Action) -> bool {
        match (self, action) {
            (
                role,
                Action::LiftVendRule
                | Action::ManageAccounts
                | Action::ManageIntegrations
                | Action::ManageReceivers
                | Action::ReadAudit,
            ) => role.is_admin(),
            (Self::Admin | Self::Editor, Action::Save | Action::List | Action::Delete) => true,
            (Self::Viewer, Action::List) => true,
            (Self::Viewer, Action::Save | Action::Delete) => false,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
