//! The drafts of enrolments.

use super::rows::{MemoryRows, done};
use vault_core::invitation::EnrolmentDraft;
use vault_core::port::{AccountPlace, DraftRows, Reply};

impl DraftRows for MemoryRows<'_> {
    fn draft(&self, place: AccountPlace) -> Reply<'_, Option<EnrolmentDraft>> {
        done(self.state().drafts.get(&place).cloned())
    }

    fn put_draft(&self, place: AccountPlace, draft: &EnrolmentDraft) -> Reply<'_, ()> {
        self.state().drafts.insert(place, draft.clone());
        done(())
    }

    fn remove_draft(&self, place: AccountPlace) -> Reply<'_, ()> {
        self.state().drafts.remove(&place);
        done(())
    }
}
