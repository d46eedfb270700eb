//! Wrapped keys of the instance and of organizations.

use super::super::audit::AuditRecorder;
use super::super::instance_key::require_active;
use super::super::{Read, Transaction};
use crate::db::{Db, Reply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{instance, organization_keys, organizations};
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _, insert_into,
    update,
};
use vault_core::id::{InstanceId, KeyId, OrganizationId};
use vault_core::port::{CreateInstance, ReplaceOrganizationKey, ReserveKeyUses};
use vault_core::sealed::{Blob, InstanceRecord, KeyState, OrganizationKeyRecord, OrganizationKeys, ReboundKeys};
use vault_core::time::Timestamp;

#[auto_type(no_type_alias)]
pub(crate) fn organization_of(id: IdBytes) -> _ {
    organizations::table.filter(organizations::id.eq(id))
}

/// A key of an organization.
#[auto_type(no_type_alias)]
pub(crate) fn key_of(organization: IdBytes, key: IdBytes) -> _ {
    organization_keys::table
        .filter(organization_keys::organization_id.eq(organization))
        .filter(organization_keys::id.eq(key))
}

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

#[derive(Queryable, Selectable)]
#[diesel(table_name = organization_keys, check_for_backend(Db))]
struct OrganizationKeyColumns {
    id: Column<KeyId>,
    state: Column<KeyState>,
    wrapped: Column<Blob>,
    uses: i64,
    created_at: i64,
}

/// The keys of an organization, the oldest first. `None` if the organization does not exist.
pub(crate) struct ReadOrganizationKeys(pub(crate) OrganizationId);

impl Read for ReadOrganizationKeys {
    type Outcome = Option<OrganizationKeys>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<OrganizationKeys>, Failure> {
        const TABLE: &str = "organization_keys";
        let organization = self.0;
        // One statement: the wrap of the fingerprint key is bound to the keys.
        let rows = organizations::table
            .left_join(organization_keys::table.on(organization_keys::organization_id.eq(organizations::id)))
            .filter(organizations::id.eq(organization.stored()))
            .order((organization_keys::created_at, organization_keys::id))
            .select((
                (organizations::fingerprint_key_id, organizations::fingerprint_wrapped),
                Option::<OrganizationKeyColumns>::as_select(),
            ));
        type Own = (Column<KeyId>, Column<Blob>);
        let rows: Vec<(Own, Option<OrganizationKeyColumns>)> = tx.load(rows).await?;
        let mut own = None;
        let mut keys = Vec::with_capacity(rows.len());
        for (row, key) in rows {
            own.get_or_insert(row);
            keys.extend(key);
        }
        let Some((fingerprint_key, fingerprint_wrapped)) = own else { return Ok(None) };
        let decode = |row: OrganizationKeyColumns| {
            let id = row.id.decode(TABLE, &organization, "id")?;
            Ok(OrganizationKeyRecord {
                organization,
                id,
                state: row.state.decode(TABLE, &id, "state")?,
                wrapped: row.wrapped.decode(TABLE, &id, "wrapped")?,
                uses: row.uses,
                created_at: Timestamp::from_millis(row.created_at),
            })
        };
        Ok(Some(OrganizationKeys {
            fingerprint_key: fingerprint_key.decode("organizations", &organization, "fingerprint_key_id")?,
            fingerprint_wrapped: fingerprint_wrapped.decode("organizations", &organization, "fingerprint_wrapped")?,
            keys: keys.into_iter().map(decode).collect::<Result<_, Failure>>()?,
        }))
    }
}

/// Stores a key of an organization. Part of the transaction that creates it.
pub(crate) fn insert<'t>(tx: &'t Tx<'_>, key: &OrganizationKeyRecord) -> Reply<'t, usize> {
    tx.execute(insert_into(organization_keys::table).values((
        organization_keys::organization_id.eq(key.organization.stored()),
        organization_keys::id.eq(key.id.stored()),
        organization_keys::state.eq(key.state.as_str()),
        organization_keys::wrapped.eq(key.wrapped.as_bytes()),
        organization_keys::uses.eq(key.uses),
        organization_keys::created_at.eq(key.created_at.as_millis()),
    )))
}

/// Reserves uses of a key.
impl Transaction for ReserveKeyUses {
    /// `false` if the key is not active, or others were reserved in the meantime.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let row = key_of(self.organization.stored(), self.key.stored())
            .filter(organization_keys::state.eq(KeyState::Active.as_str()))
            .filter(organization_keys::uses.eq(self.from));
        let uses = organization_keys::uses.eq(self.from.saturating_add(self.block));
        audit.commit_without_entry();
        Ok(tx.execute(update(row).set(uses)).await? == 1)
    }
}

/// Stores the wrap of a fingerprint key that is bound to other keys. Returns `false` if the stored wrap is not the
/// previous one, because the keys have changed.
pub(super) async fn rebind(tx: &Tx<'_>, organization: OrganizationId, wrap: &ReboundKeys) -> Result<bool, Failure> {
    let row =
        organization_of(organization.stored()).filter(organizations::fingerprint_wrapped.eq(wrap.before.as_bytes()));
    let wrapped = organizations::fingerprint_wrapped.eq(wrap.after.as_bytes());
    Ok(tx.execute(update(row).set(wrapped)).await? == 1)
}

impl Transaction for ReplaceOrganizationKey {
    /// `false` if the current key is not active.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        require_active(tx, [&self.next.wrapped, &self.fingerprint.after].into_iter().filter_map(Blob::key)).await?;
        if !rebind(tx, self.next.organization, &self.fingerprint).await? {
            return Ok(false);
        }
        let current = key_of(self.next.organization.stored(), self.current.stored())
            .filter(organization_keys::state.eq(KeyState::Active.as_str()));
        let retired = organization_keys::state.eq(KeyState::Retiring.as_str());
        if tx.execute(update(current).set(retired)).await? == 0 {
            return Ok(false);
        }
        insert(tx, &self.next).await?;
        audit.record(tx, &self.audit).await?;
        Ok(true)
    }
}
