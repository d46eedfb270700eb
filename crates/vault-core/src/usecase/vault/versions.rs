//! Lists of a credential's versions.

use super::Vault;
use crate::audit::AuditAction;
use crate::credential::{Information, LastCheck, ListVersions, OpenedVersions, VersionState};
use crate::error::Error;
use crate::id::CredentialId;
use crate::port::StoredCredential;
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;

/// A version as a list shows it, without its data.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedVersion {
    /// Version number.
    pub number: i64,
    /// State of the version.
    pub state: VersionState,
    /// The displayable part of the data. `None` if it is damaged and an operator must act.
    pub information: Option<Information>,
    /// Result of the last check.
    pub check: Option<LastCheck>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time at which it stopped being the current version.
    pub superseded_at: Option<Timestamp>,
    /// Time of its destruction.
    pub destroy_at: Option<Timestamp>,
}

impl ListedVersion {
    /// Returns the current version of a credential whose card does not open.
    fn damaged(row: &StoredCredential) -> Self {
        Self {
            number: row.version,
            state: VersionState::Current,
            information: None,
            check: row.check,
            created_at: row.created_at,
            superseded_at: None,
            destroy_at: None,
        }
    }
}

impl Vault {
    /// Reads the versions of a credential: the current one first, then the others by descending number.
    ///
    /// # Errors
    /// [`Refusal::NotFound`](crate::Refusal::NotFound), also for a credential of another organization.
    pub async fn versions(&self, principal: &Principal, id: CredentialId) -> Result<Vec<ListedVersion>, Error> {
        let organization = principal.member(Action::List)?;
        let now = self.environment.now();
        let listed = ListVersions(organization, id);
        let OpenedVersions { rows: stored, card } = self.operations.run(&self.environment, principal, listed).await?;
        self.count(principal, organization, AuditAction::CredentialShown);
        let Ok(card) = card else { return Ok(vec![ListedVersion::damaged(&stored.current)]) };
        let check_of = |number| match stored.others.iter().find(|other| other.number == number) {
            Some(other) => other.check,
            None => stored.current.check,
        };
        let mut others: Vec<_> = card.others.iter().filter(|version| version.is_kept(now)).collect();
        others.reverse();
        let listed = std::iter::once(&card.current).chain(others).map(|version| ListedVersion {
            number: version.number,
            state: match version.superseded {
                _ if version.number == card.current.number => VersionState::Current,
                Some(_) => VersionState::Previous,
                None => VersionState::Staged,
            },
            information: Some(version.information.clone()),
            check: check_of(version.number),
            created_at: version.created_at,
            superseded_at: version.superseded.map(|superseded| superseded.at),
            destroy_at: version.destroy_at(),
        });
        Ok(listed.collect())
    }
}
