//! Reads of one credential and of its versions, without their data.

use super::Card;
use crate::error::Refusal;
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::{SealError, StoredCredential, StoredVersions};

/// A credential with its card, or why that does not open.
#[derive(Debug)]
pub struct OpenedCredential {
    /// The row.
    pub row: StoredCredential,
    /// The card.
    pub card: Result<Card, SealError>,
}

/// Reads a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowCredential(pub OrganizationId, pub CredentialId);

impl Operation for ShowCredential {
    type Outcome = OpenedCredential;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0));
    const IS_ONE_EXCHANGE: fn(&Self) -> bool = |_| true;

    async fn run(&self, unit: &Unit<'_>) -> Result<OpenedCredential, Failure> {
        let row = unit.authorized(unit.rows().credential(self.0, self.1)).await?.ok_or(Refusal::NotFound)?;
        let card = unit.card_or_report(&*unit.owner(self.0).await?, &row)?;
        Ok(OpenedCredential { row, card })
    }
}

/// Reads a credential with its other versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListVersions(pub OrganizationId, pub CredentialId);

/// A credential with its other versions, and its card or why that does not open.
#[derive(Debug)]
pub struct OpenedVersions {
    /// The rows.
    pub rows: StoredVersions,
    /// The card.
    pub card: Result<Card, SealError>,
}

impl Operation for ListVersions {
    type Outcome = OpenedVersions;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0));
    const IS_ONE_EXCHANGE: fn(&Self) -> bool = |_| true;

    async fn run(&self, unit: &Unit<'_>) -> Result<OpenedVersions, Failure> {
        let rows = unit.authorized(unit.rows().credential_versions(self.0, self.1)).await?.ok_or(Refusal::NotFound)?;
        let card = unit.card_or_report(&*unit.owner(self.0).await?, &rows.current)?;
        Ok(OpenedVersions { rows, card })
    }
}
