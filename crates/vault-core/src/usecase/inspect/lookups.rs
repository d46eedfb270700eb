//! Integrity check of lookup rows: addresses, codes and tokens are looked up in separate rows. Damage in these rows
//! locks out a user although the row itself is valid.

use super::{Inspector, Seen, Violation};
use crate::digest::DigestPurpose;
use crate::error::Error;
use crate::identity::audience_look_up;
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
            InstanceRow::Integration(stored) => {
                let integration = &stored.integration;
                let tokens = [Some(integration.token), integration.previous.as_ref().map(|previous| previous.digest)];
                let name = Lookup::Name(integration.name.uniqueness_key());
                let audience = audience_look_up(integration.id);
                tokens.into_iter().flatten().chain([audience]).map(Lookup::Token).chain([name]).collect()
            }
            InstanceRow::Organization { .. } => vec![Lookup::OwnName],
            InstanceRow::PendingSeed { .. } | InstanceRow::Draft { .. } => vec![Lookup::Owner],
            InstanceRow::OrganizationKey { .. } | InstanceRow::FederationKey(_) | InstanceRow::Receiver(_) => {
                return Ok(());
            }
        };
        for table in self.store.missing_lookups(row.part(), row.place(), expected).await? {
            seen.find(row.part().table(), row.place().1, Violation::Lookup { table });
        }
        Ok(())
    }
}
