//! Where wrapped keys lie.

use super::super::backend::{Connection, RunQuery, Store};
use super::super::{Decided, Verdict, audit};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{instance, instance_keys, organization_keys, organizations, retiring_instance_keys};
use crate::stored::{Column, StoredId as _};
use crate::transaction::instance_key::require_active;
use crate::update::update;
use async_trait::async_trait;
use diesel::dsl::exists;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::id::{InstanceId, KeyId, OrganizationId};
use vault_core::port::{
    CreateInstance, KeyRepository, ReplaceOrganizationKey, ReplaceRootKey, StoreError, TakeKeyUses,
};
use vault_core::sealed::{
    Blob, InstanceKeyPurpose, InstanceKeyRecord, InstanceRecord, KeyState, OrganizationKeyRecord, OrganizationKeys,
    RetiringInstanceKey,
};
use vault_core::time::Timestamp;

#[async_trait]
impl KeyRepository for Store {
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError> {
        self.read((), |connection, ()| Box::pin(read_instance(connection))).await
    }

    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(create_instance(connection, command))).await
    }

    async fn replace_root_key(&self, command: ReplaceRootKey) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(replace_root(connection, command))).await
    }

    async fn retiring_instance_keys(&self) -> Result<Vec<RetiringInstanceKey>, StoreError> {
        self.read((), |connection, ()| Box::pin(read_retiring(connection))).await
    }

    async fn instance_keys(&self) -> Result<Vec<InstanceKeyRecord>, StoreError> {
        self.read((), |connection, ()| Box::pin(read_instance_keys(connection))).await
    }

    async fn organization_keys(&self, organization: OrganizationId) -> Result<Option<OrganizationKeys>, StoreError> {
        self.read(organization, |connection, id| Box::pin(read_organization_keys(connection, *id))).await
    }

    async fn take_key_uses(&self, command: TakeKeyUses) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(take_uses(connection, command))).await
    }

    async fn replace_organization_key(&self, command: ReplaceOrganizationKey) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(replace(connection, command))).await
    }
}

pub(crate) async fn read_instance(connection: &mut Connection) -> Result<Option<InstanceRecord>, Failure> {
    type Row = (Column<InstanceId>, Column<KeyId>, Column<KeyId>, Column<Blob>, Column<Blob>, i64);
    const TABLE: &str = "instance";
    let row: Option<Row> = instance::table
        .select((
            instance::id,
            instance::root_key_id,
            instance::instance_key_id,
            instance::wrapped,
            instance::keyring,
            instance::created_at,
        ))
        .get_result(connection)
        .await
        .optional()?;
    let Some((id, root_key, instance_key, wrapped, keyring, created_at)) = row else { return Ok(None) };
    let id = id.decode(TABLE, &"unknown", "id")?;
    Ok(Some(InstanceRecord {
        id,
        root_key: root_key.decode(TABLE, &id, "root_key_id")?,
        instance_key: instance_key.decode(TABLE, &id, "instance_key_id")?,
        wrapped: wrapped.decode(TABLE, &id, "wrapped")?,
        keyring: keyring.decode(TABLE, &id, "keyring")?,
        created_at: Timestamp::from_millis(created_at),
    }))
}

async fn create_instance(connection: &mut Connection, command: &CreateInstance) -> Decided<bool> {
    let record = &command.instance;
    let made = diesel::insert_into(instance::table)
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
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if made == 0 {
        return Ok(Verdict::Undo(false));
    }
    for key in &command.keys {
        insert_wide_key(connection, key).await?;
    }
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(true))
}

/// Adds an instance-wide key.
pub(super) async fn insert_wide_key(connection: &mut Connection, key: &InstanceKeyRecord) -> Result<(), Failure> {
    diesel::insert_into(instance_keys::table)
        .values((
            instance_keys::id.eq(key.id.stored()),
            instance_keys::purpose.eq(key.purpose.as_str()),
            instance_keys::wrapped.eq(key.wrapped.as_bytes()),
            instance_keys::created_at.eq(key.created_at.as_millis()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

async fn replace_root(connection: &mut Connection, command: &ReplaceRootKey) -> Decided<bool> {
    let current = &command.current;
    // One begins to retire in the decision that changes the row below.
    let retiring: bool = diesel::select(exists(retiring_instance_keys::table.select(retiring_instance_keys::id)))
        .get_result(connection)
        .await?;
    if retiring {
        return Ok(Verdict::Refused(false));
    }
    let replaced = update(
        instance::table
            .filter(instance::id.eq(current.id.stored()))
            .filter(instance::root_key_id.eq(current.root_key.stored()))
            .filter(instance::instance_key_id.eq(current.instance_key.stored()))
            .filter(instance::wrapped.eq(current.wrapped.as_bytes())),
    )
    .set((instance::root_key_id.eq(command.root_key.stored()), instance::wrapped.eq(command.wrapped.as_bytes())))
    .execute(connection)
    .await?;
    if replaced == 0 {
        return Ok(Verdict::Undo(false));
    }
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(true))
}

pub(crate) async fn read_instance_keys(connection: &mut Connection) -> Result<Vec<InstanceKeyRecord>, Failure> {
    type Row = (Column<KeyId>, Column<InstanceKeyPurpose>, Column<Blob>, i64);
    const TABLE: &str = "instance_keys";
    let rows: Vec<Row> = instance_keys::table
        .order((instance_keys::created_at, instance_keys::id))
        .select((instance_keys::id, instance_keys::purpose, instance_keys::wrapped, instance_keys::created_at))
        .load(connection)
        .await?;
    let decode = |(id, purpose, wrapped, created_at): Row| {
        let id = id.decode(TABLE, &"unknown", "id")?;
        Ok(InstanceKeyRecord {
            id,
            purpose: purpose.decode(TABLE, &id, "purpose")?,
            wrapped: wrapped.decode(TABLE, &id, "wrapped")?,
            created_at: Timestamp::from_millis(created_at),
        })
    };
    rows.into_iter().map(decode).collect()
}

async fn read_organization_keys(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<Option<OrganizationKeys>, Failure> {
    type Row = (Column<KeyId>, Column<KeyState>, Column<Blob>, i64, i64);
    const TABLE: &str = "organization_keys";
    let fingerprint: Option<(Column<KeyId>, Column<Blob>)> = organizations::table
        .filter(organizations::id.eq(organization.stored()))
        .select((organizations::fingerprint_key_id, organizations::fingerprint_wrapped))
        .get_result(connection)
        .await
        .optional()?;
    let Some((fingerprint_key, fingerprint_wrapped)) = fingerprint else { return Ok(None) };
    let rows: Vec<Row> = organization_keys::table
        .filter(organization_keys::organization_id.eq(organization.stored()))
        .order((organization_keys::created_at, organization_keys::id))
        .select((
            organization_keys::id,
            organization_keys::state,
            organization_keys::wrapped,
            organization_keys::uses,
            organization_keys::created_at,
        ))
        .load(connection)
        .await?;
    let decode = |(id, state, wrapped, uses, created_at): Row| {
        let id = id.decode(TABLE, &organization, "id")?;
        Ok(OrganizationKeyRecord {
            organization,
            id,
            state: state.decode(TABLE, &id, "state")?,
            wrapped: wrapped.decode(TABLE, &id, "wrapped")?,
            uses,
            created_at: Timestamp::from_millis(created_at),
        })
    };
    Ok(Some(OrganizationKeys {
        fingerprint_key: fingerprint_key.decode("organizations", &organization, "fingerprint_key_id")?,
        fingerprint_wrapped: fingerprint_wrapped.decode("organizations", &organization, "fingerprint_wrapped")?,
        keys: rows.into_iter().map(decode).collect::<Result<_, Failure>>()?,
    }))
}

async fn read_retiring(connection: &mut Connection) -> Result<Vec<RetiringInstanceKey>, Failure> {
    type Row = (Column<KeyId>, Column<KeyId>, Column<Blob>, i64);
    const TABLE: &str = "retiring_instance_keys";
    let rows: Vec<Row> = retiring_instance_keys::table
        .order((retiring_instance_keys::retired_at, retiring_instance_keys::id))
        .select((
            retiring_instance_keys::id,
            retiring_instance_keys::root_key_id,
            retiring_instance_keys::wrapped,
            retiring_instance_keys::retired_at,
        ))
        .load(connection)
        .await?;
    let decode = |(id, root_key, wrapped, retired_at): Row| {
        let id = id.decode(TABLE, &"unknown", "id")?;
        Ok(RetiringInstanceKey {
            id,
            root_key: root_key.decode(TABLE, &id, "root_key_id")?,
            wrapped: wrapped.decode(TABLE, &id, "wrapped")?,
            retired_at: Timestamp::from_millis(retired_at),
        })
    };
    rows.into_iter().map(decode).collect()
}

/// Stores a key; part of the decision that brings it.
pub(crate) async fn insert(connection: &mut Connection, key: &OrganizationKeyRecord) -> Result<(), Failure> {
    diesel::insert_into(organization_keys::table)
        .values((
            organization_keys::organization_id.eq(key.organization.stored()),
            organization_keys::id.eq(key.id.stored()),
            organization_keys::state.eq(key.state.as_str()),
            organization_keys::wrapped.eq(key.wrapped.as_bytes()),
            organization_keys::uses.eq(key.uses),
            organization_keys::created_at.eq(key.created_at.as_millis()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

async fn take_uses(connection: &mut Connection, command: &TakeKeyUses) -> Decided<bool> {
    let taken = update(
        organization_keys::table
            .filter(organization_keys::organization_id.eq(command.organization.stored()))
            .filter(organization_keys::id.eq(command.key.stored()))
            .filter(organization_keys::state.eq(KeyState::Active.as_str()))
            .filter(organization_keys::uses.eq(command.from)),
    )
    .set(organization_keys::uses.eq(command.from.saturating_add(command.block)))
    .execute(connection)
    .await?;
    Ok(Verdict::Recorded(taken == 1))
}

async fn replace(connection: &mut Connection, command: &ReplaceOrganizationKey) -> Decided<bool> {
    require_active(&connection.tx(), command.next.wrapped.key()).await?;
    let retired = update(
        organization_keys::table
            .filter(organization_keys::organization_id.eq(command.next.organization.stored()))
            .filter(organization_keys::id.eq(command.current.stored()))
            .filter(organization_keys::state.eq(KeyState::Active.as_str())),
    )
    .set(organization_keys::state.eq(KeyState::Retiring.as_str()))
    .execute(connection)
    .await?;
    if retired == 0 {
        return Ok(Verdict::Undo(false));
    }
    insert(connection, &command.next).await?;
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(true))
}
