//! The row of the instance.

use super::{TxRows, key_columns, several, then};
use crate::db::{Db, Tx, Update, locked};
use crate::failure::Failure;
use crate::new_row::NewEntry;
use crate::schema::{audit, instance};
use crate::stored::{Column, StoredId as _};
use diesel::{
    ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _, insert_into, update,
};
use vault_core::id::{InstanceId, KeyId};
use vault_core::keyring::KeyringEntry;
use vault_core::port::{CreateInstance, InstanceRows, Reply};
use vault_core::sealed::{Blob, InstanceRecord};
use vault_core::time::Timestamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = instance, check_for_backend(Db))]
struct InstanceColumns {
    id: Column<InstanceId>,
    root_key_id: Column<KeyId>,
    instance_key_id: Column<KeyId>,
    wrapped: Column<Blob>,
    keyring: Column<Blob>,
    created_at: i64,
    restore_epoch: i64,
}

impl InstanceColumns {
    fn decode(self) -> Result<InstanceRecord, Failure> {
        const TABLE: &str = "instance";
        let id = self.id.decode(TABLE, &"unknown", "id")?;
        Ok(InstanceRecord {
            id,
            root_key: self.root_key_id.decode(TABLE, &id, "root_key_id")?,
            instance_key: self.instance_key_id.decode(TABLE, &id, "instance_key_id")?,
            wrapped: self.wrapped.decode(TABLE, &id, "wrapped")?,
            keyring: self.keyring.decode(TABLE, &id, "keyring")?,
            created_at: Timestamp::from_millis(self.created_at),
            restore_epoch: u64::try_from(self.restore_epoch)
                .map_err(|_| Failure::damaged(TABLE, id.to_string(), "restore_epoch"))?,
        })
    }
}

fn epoch_column(record: &InstanceRecord) -> i64 {
    i64::try_from(record.restore_epoch).unwrap_or(i64::MAX)
}

/// Reads the instance, if it was created.
pub(crate) async fn read(tx: &Tx<'_>) -> Result<Option<InstanceRecord>, Failure> {
    let row: Option<InstanceColumns> = tx.first(instance::table.select(InstanceColumns::as_select())).await?;
    row.map(InstanceColumns::decode).transpose()
}

/// Creates the instance. Returns `false` if there is one.
pub(crate) async fn create(tx: &Tx<'_>, creation: &CreateInstance) -> Result<bool, Failure> {
    let record = &creation.instance;
    let new = insert_into(instance::table).values((
        instance::singleton.eq(1),
        instance::id.eq(record.id.stored()),
        instance::root_key_id.eq(record.root_key.stored()),
        instance::instance_key_id.eq(record.instance_key.stored()),
        instance::wrapped.eq(record.wrapped.as_bytes()),
        instance::keyring.eq(record.keyring.as_bytes()),
        instance::created_at.eq(record.created_at.as_millis()),
        instance::restore_epoch.eq(epoch_column(record)),
    ));
    if tx.execute(new.on_conflict_do_nothing()).await? == 0 {
        return Ok(false);
    }
    tx.insert(audit::table, [NewEntry::of(&creation.audit)]).await?;
    Ok(true)
}

impl InstanceRows for TxRows<'_> {
    fn lock_instance(&self) -> Reply<'_, Option<InstanceRecord>> {
        let row = self.tx.first(locked(instance::table.select(InstanceColumns::as_select()), Update));
        then(row, |row: Option<InstanceColumns>| row.map(InstanceColumns::decode).transpose())
    }

    fn set_instance(&self, record: &InstanceRecord) -> Reply<'_, ()> {
        let keys = (
            instance::root_key_id.eq(record.root_key.stored()),
            instance::instance_key_id.eq(record.instance_key.stored()),
            instance::wrapped.eq(record.wrapped.as_bytes()),
            instance::keyring.eq(record.keyring.as_bytes()),
            instance::restore_epoch.eq(epoch_column(record)),
        );
        then(self.tx.execute(update(instance::table).set(keys)), |_| Ok(()))
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
