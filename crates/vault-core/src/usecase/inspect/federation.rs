//! Integrity check of signing keys.

use super::{Inspector, Seen, Violation};
use crate::error::Error;
use crate::federation::{FederationKeyState, StoredFederationKey};
use crate::port::InstanceRow;

impl Inspector {
    pub(super) async fn look_at_federation_key(
        &self,
        row: &InstanceRow,
        stored: &StoredFederationKey,
        seen: &mut Seen,
    ) -> Result<(), Error> {
        let (digester, table, key) = (&*self.crypto.digester, row.part().table(), &stored.key);
        if !stored.mac_is_valid(digester) {
            seen.find(table, key.id, Violation::Code);
            return Ok(());
        }
        if seen.opened(self.crypto.instance.opens(row))?.is_none() || key.state == FederationKeyState::Retired {
            return Ok(());
        }
        // Each other state has one key, so a second one is an earlier state of its row. Only the older row is reported.
        let is_newer = |other: &StoredFederationKey| {
            (&other.key.issuer, other.key.state) == (&key.issuer, key.state)
                && (other.key.since(), other.key.id) > (key.since(), key.id)
                && other.mac_is_valid(digester)
        };
        let others = self.store.federation_keys().await?;
        if let Some(other) = others.iter().flatten().find(|other| is_newer(other)) {
            seen.find(table, key.id, Violation::SameState { other: other.key.id.to_string() });
        }
        Ok(())
    }
}
