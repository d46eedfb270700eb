//! Roles and their rights.

use serde::{Deserialize, Serialize};
use std::fmt;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Role of an account in its organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Role {
    /// May do everything.
    Admin,
    /// May save, list and delete credentials.
    Editor,
    /// May list credentials.
    Viewer,
}

named!(Role);

/// An action that a role may permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Save a credential.
    Save,
    /// List or show credentials, and list namespaces.
    List,
    /// Delete a credential.
    Delete,
    /// Permit that a credential is issued in saved form, if it was limited to short-lived form.
    LiftVendRule,
    /// List, invite, change and delete accounts.
    ManageAccounts,
    /// List, create, change and delete integrations, and freeze and thaw namespaces.
    ManageIntegrations,
    /// List, add, change and remove receivers of events.
    ManageReceivers,
    /// Read the audit log.
    ReadAudit,
}

impl Role {
    const fn is_admin(self) -> bool {
        matches!(self, Self::Admin)
    }

    /// Returns whether the role permits the action.
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
