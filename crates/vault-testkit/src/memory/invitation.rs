//! The rows of invitations.

use super::account::page;
use super::row::InvitationRow;
use super::rows::{MemoryRows, done};
use vault_core::digest::{Digest, LookupDigests};
use vault_core::id::OrganizationId;
use vault_core::invitation::{EnrolmentDraft, StoredInvitation};
use vault_core::port::{AccountPlace, InvitationRows, Reply};
use vault_core::time::Timestamp;

impl MemoryRows<'_> {
    /// Reads or changes the row of an invitation, if it exists.
    fn with_invitation<T>(
        &self,
        (organization, account): AccountPlace,
        act: impl FnOnce(&mut InvitationRow) -> T,
    ) -> Option<T> {
        let mut state = self.state();
        let row = state.invitations.get_mut(&account);
        row.filter(|row| row.stored.invitation.grant.organization == organization).map(act)
    }
}

impl InvitationRows for MemoryRows<'_> {
    fn invitation(&self, place: AccountPlace) -> Reply<'_, Option<StoredInvitation>> {
        done(self.with_invitation(place, |row| row.stored.clone()))
    }

    fn invitation_of(
        &self,
        address: &LookupDigests,
        organization: OrganizationId,
    ) -> Reply<'_, Option<StoredInvitation>> {
        let state = self.state();
        done(state.invitation_by_address(address, organization).map(|row| row.stored.clone()))
    }

    fn invitations_of(&self, address: &LookupDigests) -> Reply<'_, Vec<AccountPlace>> {
        let state = self.state();
        let is_found = |account| state.invited_addresses.get(account).is_some_and(|own| super::leads(address, own));
        let found = state.invitations.iter().filter(|(account, _)| is_found(*account));
        let grants = found.map(|(_, row)| &row.stored.invitation.grant);
        done(grants.map(|grant| (grant.organization, grant.account)).collect())
    }

    fn invitation_by_code(&self, code: &Digest) -> Reply<'_, Option<StoredInvitation>> {
        let state = self.state();
        let mut rows = state.invitations.values().map(|row| &row.stored);
        done(rows.find(|stored| stored.invitation.code == *code).cloned())
    }

    fn listed_invitations(
        &self,
        of: Option<OrganizationId>,
        after: Option<AccountPlace>,
        limit: usize,
        now: Timestamp,
    ) -> Reply<'_, Vec<StoredInvitation>> {
        let state = self.state();
        let rows = state.invitations.values().map(|row| row.stored.clone());
        let open = rows.filter(|stored| !stored.invitation.re_enrols() && stored.invitation.is_open(now));
        done(page(open, |stored| &stored.invitation.grant, of, after, limit))
    }

    fn enter_invited(&self, address: &LookupDigests, place: AccountPlace) -> Reply<'_, bool> {
        let mut state = self.state();
        let is_free = state.invitation_by_address(address, place.0).is_none();
        if is_free {
            state.invited_addresses.insert(place.1, address.entered().to_vec());
        }
        done(is_free)
    }

    fn insert_invitation(&self, stored: &StoredInvitation) -> Reply<'_, ()> {
        let mut state = self.state();
        let row = InvitationRow { stored: stored.clone(), draft: None };
        state.invitations.insert(stored.invitation.grant.account, row);
        done(())
    }

    fn update_invitation(&self, stored: &StoredInvitation) -> Reply<'_, ()> {
        let grant = &stored.invitation.grant;
        self.with_invitation((grant.organization, grant.account), |row| row.stored = stored.clone());
        done(())
    }

    fn remove_invitation(&self, stored: &StoredInvitation) -> Reply<'_, ()> {
        let (mut state, account) = (self.state(), stored.invitation.grant.account);
        state.invitations.remove(&account);
        state.invited_addresses.remove(&account);
        done(())
    }

    fn draft(&self, place: AccountPlace) -> Reply<'_, Option<EnrolmentDraft>> {
        done(self.with_invitation(place, |row| row.draft.clone()).flatten())
    }

    fn put_draft(&self, place: AccountPlace, draft: &EnrolmentDraft) -> Reply<'_, ()> {
        self.with_invitation(place, |row| row.draft = Some(draft.clone()));
        done(())
    }
}
