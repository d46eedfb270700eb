//! Receivers of events, and the deliveries to them.

mod delivery_row;
pub(crate) mod events;
pub(crate) mod receivers;
pub(crate) mod row;

use vault_core::id::OrganizationId;
use vault_core::port::ReceiverOwner;
use vault_core::principal::Principal;

/// The organization in the rows of an owner: nil for the instance.
pub(crate) fn organization_of(owner: ReceiverOwner) -> OrganizationId {
    owner.unwrap_or(OrganizationId::from_bytes([0; 16]))
}

/// The owner of rows that have this organization.
fn owner_of(organization: OrganizationId) -> ReceiverOwner {
    Some(organization).filter(|organization| *organization != organization_of(None))
}

/// Returns whether the principal may see the receivers of an owner: those of its organization; an operator, all.
fn reaches(principal: &Principal, owner: ReceiverOwner) -> bool {
    principal.organization().is_none_or(|own| owner == Some(own))
}
