//! Integrity check of lookup rows: addresses and codes are looked up in separate rows. Damage in these rows
//! locks out a user although the row itself is valid.

use super::{Inspector, Seen, Violation};
use crate::digest::DigestPurpose;
use crate::error::Error;
use crate::port::{InstanceRow, Lookup};

impl Inspector {
    /// Checks that all lookups lead to the row.
    pub(super) async fn look_for(&self, row: &InstanceRow, seen: &mut Seen) -> Result<(), Error> {
        let address =
            |email: &str| Lookup::Address(self.crypto.digester.lookup(DigestPurpose::Address, &[email.as_bytes()]));
        let expected = match row {
            InstanceRow::Account { signed, .. } => vec![address(signed.grant.email.as_str())],
            InstanceRow::Invitation(stored) => {
                let invitation = &stored.invitation;
                // The address of a re-enrolment invitation leads to the account, not to the invitation.
                let address = (!invitation.re_enrols()).then(|| address(invitation.grant.email.as_str()));
                address.into_iter().chain([Lookup::EnrolmentCode(invitation.code)]).collect()
            }
            InstanceRow::PendingSeed { .. } | InstanceRow::Draft { .. } => vec![Lookup::Owner],
            InstanceRow::Organization { .. } | InstanceRow::OrganizationKey { .. } => return Ok(()),
        };
        for table in self.store.missing_lookups(row.part(), row.place(), expected).await? {
            seen.find(row.part().table(), row.place().1, Violation::Lookup { table });
        }
        Ok(())
    }
}
