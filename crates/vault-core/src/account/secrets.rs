//! The secrets of an account.

use super::AccountPlace;
use crate::audit::{Affected, Subject};
use crate::entity::{DocumentSecret, Entity, Kind, Lookup};
use crate::id::{AccountId, SecretsId};
use crate::operation::{Failure, Unit};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Password and TOTP secret of an account. They are valid only while its [`Account`](super::Account) names their ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSecrets {
    /// Their ID.
    pub id: SecretsId,
    /// Verifier of the password.
    pub password: DocumentSecret,
    /// TOTP secret, with the key of the recovery codes.
    pub seed: DocumentSecret,
}

impl Entity for AccountSecrets {
    const KIND: Kind = Kind::AccountSecrets;

    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        Vec::new()
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::Account(AccountId::from_uuid(id)).into()
    }
}

/// Stores a document under the ID of an account, in place of one that need not open.
///
/// # Errors
/// Those of [`Unit::insert`].
pub(crate) async fn put<E: Entity>(
    unit: &Unit<'_>,
    (organization, account): AccountPlace,
    document: &E,
) -> Result<(), Failure> {
    unit.remove::<E>(organization, *account.as_uuid()).await?;
    unit.insert(organization, *account.as_uuid(), document).await
}
