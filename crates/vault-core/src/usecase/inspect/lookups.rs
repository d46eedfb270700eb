//! Integrity check of lookup rows: addresses are looked up in separate rows. Damage in these rows
//! locks out a user although the row itself is valid.

use super::{Inspector, Seen, Violation};
use crate::error::Error;
use crate::port::{InstanceRow, Lookup};

impl Inspector {
    /// Checks that all lookups lead to the row.
    pub(super) async fn look_for(&self, row: &InstanceRow, seen: &mut Seen) -> Result<(), Error> {
        let expected = match row {
            InstanceRow::Account { signed, .. } => vec![Lookup::Address(signed.grant.email.clone())],
            InstanceRow::PendingSeed { .. } | InstanceRow::Draft { .. } => vec![Lookup::Owner],
            InstanceRow::Organization { .. } | InstanceRow::OrganizationKey { .. } => return Ok(()),
        };
        for table in self.store.missing_lookups(row.part(), row.place(), expected).await? {
            seen.find(row.part().table(), row.place().1, Violation::Lookup { table });
        }
        Ok(())
    }
}
