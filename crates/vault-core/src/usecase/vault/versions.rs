//! Lists of a credential's versions.

use super::Vault;
use super::reading::Reading;
use crate::audit::AuditAction;
use crate::credential::{Information, LastCheck, ListVersions, VersionState};
use crate::error::Error;
use crate::id::CredentialId;
use crate::port::SealedInformation;
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

impl Vault {
    /// Reads the versions of a credential: the current one first, then the others by descending number.
    ///
    /// # Errors
    /// [`Refusal::NotFound`](crate::Refusal::NotFound), also for a credential of another organization.
    pub async fn versions(&self, principal: &Principal, id: CredentialId) -> Result<Vec<ListedVersion>, Error> {
        Reading::run(|reading| self.versions_once(principal, id, reading)).await
    }

    async fn versions_once(
        &self,
        principal: &Principal,
        id: CredentialId,
        reading: Reading,
    ) -> Result<Vec<ListedVersion>, Error> {
        let organization = principal.member(Action::List)?;
        let now = self.environment.now();
        let stored = self.operations.run(&self.environment, principal, ListVersions(organization, id)).await?;
        let mut others = stored.others;
        others.retain(|version| stored.current.listed.is_kept(version.number, now));
        others.sort_by_key(|version| std::cmp::Reverse(version.number));
        let current = &stored.current;
        let sealed: Vec<_> = [(current.version, current.key, &current.information)]
            .into_iter()
            .chain(others.iter().map(|version| (version.number, version.key, &version.information)))
            .map(|(number, key, blob)| SealedInformation { context: current.context(organization, number), key, blob })
            .collect();
        let opened = reading.check(self.opener.open_information(organization, &sealed).await?)?;
        let shown = [(current.version, VersionState::Current, stored.created_at, None, current.check)]
            .into_iter()
            .chain(others.iter().map(|version| {
                let state = if version.superseded.is_some() { VersionState::Previous } else { VersionState::Staged };
                (version.number, state, version.created_at, version.superseded, version.check)
            }));
        let listed =
            shown.zip(opened).map(|((number, state, created_at, superseded, check), information)| ListedVersion {
                number,
                state,
                information: information.map_err(|error| self.environment.report(&error)).ok(),
                check,
                created_at,
                superseded_at: superseded.map(|superseded| superseded.at),
                destroy_at: superseded.map(|superseded| superseded.destroy_at),
            });
        let listed = listed.collect();
        self.count(principal, organization, AuditAction::CredentialShown);
        Ok(listed)
    }
}
