//! The keys of the instance, and rows of typed tables that depend on one.

use super::{TxRows, several, then};
use crate::failure::Failure;
use crate::stored::{AnyId, place_of};
use crate::transaction::organization::{instance_rotation, key_columns, keys};
use diesel::result::Error as SqlError;
use vault_core::keyring::KeyringEntry;
use vault_core::port::{InstancePart, InstanceRow, InstanceRowKey, InstanceRows, Reply, StoredRowKey, UnreadableRow};
use vault_core::sealed::InstanceRecord;

impl InstanceRows for TxRows<'_> {
    fn instance_places(
        &self,
        part: InstancePart,
        after: Option<StoredRowKey>,
        limit: usize,
    ) -> Reply<'_, Vec<StoredRowKey>> {
        let places = self.tx.page(key_columns::places(part, &after.unwrap_or_default()), limit);
        then(places, |places: Vec<(AnyId, AnyId)>| Ok(places.into_iter().map(place_of).collect()))
    }

    fn instance_row(
        &self,
        part: InstancePart,
        place: InstanceRowKey,
    ) -> Reply<'_, Option<Result<InstanceRow, UnreadableRow>>> {
        several(async move {
            let unreadable = |table, id, reason| Ok(Some(Err(UnreadableRow { table, id, reason })));
            match instance_rotation::read(&self.tx, part, place).await {
                Err(Failure::Damaged { table, id, reason }) => unreadable(table, id, reason),
                Err(Failure::Sql(SqlError::DeserializationError(_))) => {
                    unreadable(part.table(), place.1.to_string(), "a column does not have its type")
                }
                read => Ok(read?.map(Ok)),
            }
        })
    }

    fn lock_instance(&self) -> Reply<'_, Option<InstanceRecord>> {
        several(keys::lock_instance(&self.tx))
    }

    fn set_instance(&self, instance: &InstanceRecord) -> Reply<'_, ()> {
        then(keys::set_instance(&self.tx, instance), |_| Ok(()))
    }

    fn requires(&self, term: KeyringEntry) -> Reply<'_, bool> {
        several(async move { Ok(self.tx.one(key_columns::is_needed(&term)).await?) })
    }

    fn count_under(&self, term: KeyringEntry) -> Reply<'_, i64> {
        several(async move { instance_rotation::count_under(&self.tx, &term).await })
    }

    fn reseal_row(&self, before: &InstanceRow, after: &InstanceRow) -> Reply<'_, bool> {
        let (before, after) = (before.clone(), after.clone());
        several(async move {
            let Some(row) = key_columns::replace(&before, &after) else { return Ok(false) };
            Ok(self.tx.execute(row).await? == 1)
        })
    }
}
