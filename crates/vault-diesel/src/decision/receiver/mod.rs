//! Receivers of events, and what is on its way to them.

mod delivery_row;
mod events;
mod receivers;
pub(super) mod row;

use vault_core::id::OrganizationId;
use vault_core::port::ReceiverOwner;
use vault_core::principal::Principal;

/// The organization in the rows of an owner: nil for the instance.
pub(super) fn organization_of(owner: ReceiverOwner) -> OrganizationId {
    owner.unwrap_or(OrganizationId::from_bytes([0; 16]))
}

/// Whose rows have this organization.
fn owner_of(organization: OrganizationId) -> ReceiverOwner {
    Some(organization).filter(|organization| *organization != organization_of(None))
}

/// Whether the principal may see the receivers of an owner: its organization's; an operator, all.
fn reaches(principal: &Principal, owner: ReceiverOwner) -> bool {
    principal.organization().is_none_or(|own| owner == Some(own))
}
