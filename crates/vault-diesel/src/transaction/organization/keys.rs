//! Wrapped keys of the instance.

use super::super::audit::AuditRecorder;
use super::super::{Read, Transaction};
use crate::db::{Db, Reply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::instance;
use crate::stored::{Column, StoredId as _};
use diesel::{
    ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _, insert_into, update,
};
use vault_core::id::{InstanceId, KeyId};
use vault_core::port::CreateInstance;
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
        })
    }
}

/// The instance, if it was created.
pub(crate) struct ReadInstance;

impl Read for ReadInstance {
    type Outcome = Option<InstanceRecord>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<InstanceRecord>, Failure> {
        let row = tx.first(instance::table.select(InstanceColumns::as_select())).await?;
        row.map(InstanceColumns::decode).transpose()
    }
}

/// Reads the instance and locks it.
pub(crate) async fn lock_instance(tx: &Tx<'_>) -> Result<Option<InstanceRecord>, Failure> {
    let row = tx.first(locked(instance::table.select(InstanceColumns::as_select()), Update)).await?;
    row.map(InstanceColumns::decode).transpose()
}

/// Stores the keys of the instance.
pub(crate) fn set_instance<'t>(tx: &'t Tx<'_>, record: &InstanceRecord) -> Reply<'t, usize> {
    tx.execute(update(instance::table).set((
        instance::root_key_id.eq(record.root_key.stored()),
        instance::instance_key_id.eq(record.instance_key.stored()),
        instance::wrapped.eq(record.wrapped.as_bytes()),
        instance::keyring.eq(record.keyring.as_bytes()),
    )))
}

impl Transaction for CreateInstance {
    /// `false` if there is an instance.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let record = &self.instance;
        let new = insert_into(instance::table)
            .values((
                instance::singleton.eq(1),
                instance::id.eq(record.id.stored()),
                instance::root_key_id.eq(record.root_key.stored()),
                instance::instance_key_id.eq(record.instance_key.stored()),
                instance::wrapped.eq(record.wrapped.as_bytes()),
                instance::keyring.eq(record.keyring.as_bytes()),
                instance::created_at.eq(record.created_at.as_millis()),
                instance::restore_epoch.eq(0),
            ))
            .on_conflict_do_nothing();
        if tx.execute(new).await? == 0 {
            return Ok(false);
        }
        audit.record(tx, &self.audit).await?;
        Ok(true)
    }
}
