//! The keys of the instance.

use super::{TxRows, several, then};
use crate::transaction::organization::{key_columns, keys};
use vault_core::keyring::KeyringEntry;
use vault_core::port::{InstanceRows, Reply};
use vault_core::sealed::InstanceRecord;

impl InstanceRows for TxRows<'_> {
    fn lock_instance(&self) -> Reply<'_, Option<InstanceRecord>> {
        several(keys::lock_instance(&self.tx))
    }

    fn set_instance(&self, instance: &InstanceRecord) -> Reply<'_, ()> {
        then(keys::set_instance(&self.tx, instance), |_| Ok(()))
    }

    fn requires(&self, entry: KeyringEntry) -> Reply<'_, bool> {
        several(async move { Ok(self.tx.one(key_columns::is_needed(&entry)).await?) })
    }

    fn count_under(&self, entry: KeyringEntry) -> Reply<'_, i64> {
        several(async move {
            let mut rows = 0_i64;
            for count in key_columns::counts(&entry) {
                rows = rows.saturating_add(self.tx.one(count).await?);
            }
            Ok(rows)
        })
    }
}
