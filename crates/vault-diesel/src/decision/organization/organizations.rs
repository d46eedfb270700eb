//! Organizations.

use super::super::backend::{Connection, RunQuery, Store, for_update};
use super::super::{Decided, Verdict, audit};
use super::{erasure, keys};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{
    account_logins, account_notices, accounts, attempt_classes, check_requests, credential_counts, directory,
    enrolment_codes, enrolment_drafts, event_deliveries, frozen_namespaces, hourly_counts, integration_tokens,
    integrations, invitations, invited_addresses, organization_keys, organization_names, organizations, pending_seeds,
    receivers, recovery_codes, sessions,
};
use crate::stored::{AnyId, Column, StoredId as _};
use crate::transaction::instance_key::require_active;
use crate::transaction::integration::row as integration_row;
use crate::transaction::login::attempts;
use crate::update::update;
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::organization::{Organization, OrganizationName, OrganizationState};
use vault_core::port::{
    CreateOrganization, DeleteOrganization, OrganizationRepository, SetOrganizationState, StoreError,
};
use vault_core::sealed::{Blob, OrganizationKeys};
use vault_core::time::Timestamp;

#[async_trait]
impl OrganizationRepository for Store {
    async fn create_organization(&self, command: CreateOrganization) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(create(connection, command))).await
    }

    async fn find_organization(&self, name: &OrganizationName) -> Result<Option<Organization>, StoreError> {
        self.read(name.uniqueness_key(), |connection, key| Box::pin(find(connection, key))).await
    }

    async fn organization(&self, id: OrganizationId) -> Result<Option<Organization>, StoreError> {
        self.read(id, |connection, id| Box::pin(get(connection, *id))).await
    }

    async fn list_organizations(&self) -> Result<Vec<Organization>, StoreError> {
        self.read((), |connection, ()| Box::pin(list(connection))).await
    }

    async fn set_organization_state(&self, command: SetOrganizationState) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(set_state(connection, command))).await
    }

    async fn delete_organization(&self, command: DeleteOrganization) -> Result<bool, StoreError> {
        let organization = command.organization;
        let deleted = self.write(command, |connection, command| Box::pin(delete(connection, command))).await?;
        // Its credentials cannot be opened any more; their rows, and those of activations, go in short transactions.
        // Should this be cut off, maintenance goes on with it.
        while deleted && self.write(organization, |connection, id| Box::pin(erasure::erase(connection, *id))).await? {}
        Ok(deleted)
    }
}

type OrganizationRow = (Column<OrganizationId>, Column<OrganizationName>, Column<OrganizationState>, i64);

const COLUMNS: (organizations::id, organizations::name, organizations::state, organizations::created_at) =
    (organizations::id, organizations::name, organizations::state, organizations::created_at);

fn decode((id, name, state, created_at): OrganizationRow) -> Result<Organization, Failure> {
    let id = id.decode("organizations", &"unknown", "id")?;
    Ok(Organization {
        id,
        name: name.decode("organizations", &id, "name")?,
        state: state.decode("organizations", &id, "state")?,
        created_at: Timestamp::from_millis(created_at),
    })
}

async fn create(connection: &mut Connection, command: &CreateOrganization) -> Decided<bool> {
    let organization = &command.organization;
    require_active(&connection.tx(), above(&command.keys)).await?;
    let named = diesel::insert_into(organization_names::table)
        .values((
            organization_names::name_key.eq(organization.name.uniqueness_key()),
            organization_names::organization_id.eq(organization.id.stored()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if named == 0 {
        return Ok(Verdict::Undo(false));
    }
    let made = diesel::insert_into(organizations::table)
        .values((
            organizations::id.eq(organization.id.stored()),
            organizations::name.eq(organization.name.as_str()),
            organizations::name_key.eq(organization.name.uniqueness_key()),
            organizations::state.eq(organization.state.as_str()),
            organizations::fingerprint_key_id.eq(command.keys.fingerprint_key.stored()),
            organizations::fingerprint_wrapped.eq(command.keys.fingerprint_wrapped.as_bytes()),
            organizations::created_at.eq(organization.created_at.as_millis()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if made == 0 {
        return Ok(Verdict::Undo(false));
    }
    diesel::insert_into(credential_counts::table)
        .values((credential_counts::organization_id.eq(organization.id.stored()), credential_counts::credentials.eq(0)))
        .execute(connection)
        .await?;
    for key in &command.keys.keys {
        keys::insert(connection, key).await?;
    }
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(true))
}

/// The instance keys that wrap an organization's keys.
fn above(keys: &OrganizationKeys) -> Vec<KeyId> {
    let wrapped = keys.keys.iter().map(|key| &key.wrapped).chain([&keys.fingerprint_wrapped]);
    wrapped.filter_map(Blob::key).collect()
}

async fn find(connection: &mut Connection, name_key: &str) -> Result<Option<Organization>, Failure> {
    let id: Option<Column<OrganizationId>> = organization_names::table
        .filter(organization_names::name_key.eq(name_key))
        .select(organization_names::organization_id)
        .get_result(connection)
        .await
        .optional()?;
    let Some(id) = id else { return Ok(None) };
    get(connection, id.decode("organization_names", &name_key, "organization_id")?).await
}

async fn get(connection: &mut Connection, id: OrganizationId) -> Result<Option<Organization>, Failure> {
    let row: Option<OrganizationRow> = organizations::table
        .filter(organizations::id.eq(id.stored()))
        .select(COLUMNS)
        .get_result(connection)
        .await
        .optional()?;
    row.map(decode).transpose()
}

async fn list(connection: &mut Connection) -> Result<Vec<Organization>, Failure> {
    let rows: Vec<OrganizationRow> =
        organizations::table.order(organizations::name_key).select(COLUMNS).load(connection).await?;
    rows.into_iter().map(decode).collect()
}

async fn set_state(connection: &mut Connection, command: &SetOrganizationState) -> Decided<bool> {
    let organization = command.organization.stored();
    let changed = update(organizations::table.filter(organizations::id.eq(organization)))
        .set(organizations::state.eq(command.state.as_str()))
        .execute(connection)
        .await?;
    if changed == 0 {
        return Ok(Verdict::Undo(false));
    }
    if command.state == OrganizationState::Disabled {
        diesel::delete(sessions::table.filter(sessions::organization_id.eq(organization))).execute(connection).await?;
        integration_row::lock_all(&connection.tx(), command.organization).await?;
    }
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(true))
}

async fn delete(connection: &mut Connection, command: &DeleteOrganization) -> Decided<bool> {
    let organization = command.organization.stored();
    // Locked before what hangs on it, so that no login or save slips in between.
    let _count: Option<i64> = for_update!(
        credential_counts::table
            .filter(credential_counts::organization_id.eq(organization))
            .select(credential_counts::credentials)
    )
    .get_result(connection)
    .await
    .optional()?;
    let row = organizations::table.filter(organizations::id.eq(organization)).select(organizations::name_key);
    let name_key: Option<String> = for_update!(row).get_result(connection).await.optional()?;
    let Some(name_key) = name_key else { return Ok(Verdict::Undo(false)) };
    let owned = accounts::table.filter(accounts::organization_id.eq(organization)).select(accounts::id);
    let _owned: Vec<AnyId> = for_update!(owned).load(connection).await?;
    let invited = invitations::table.filter(invitations::organization_id.eq(organization));
    let invited: Vec<Vec<u8>> = for_update!(invited.select(invitations::code)).load(connection).await?;
    integration_row::lock_all(&connection.tx(), command.organization).await?;
    for code in invited {
        diesel::delete(enrolment_codes::table.filter(enrolment_codes::code.eq(code))).execute(connection).await?;
    }
    macro_rules! clear {
        ($($table:ident),*) => {$(
            diesel::delete($table::table.filter($table::organization_id.eq(organization)))
                .execute(connection)
                .await?;
        )*};
    }
    clear!(directory, invited_addresses, enrolment_drafts, invitations, hourly_counts, check_requests);
    clear!(integration_tokens, integrations, frozen_namespaces);
    attempts::lock_all_of_organization(&connection.tx(), command.organization).await?;
    clear!(sessions, account_notices, pending_seeds, recovery_codes, attempt_classes, account_logins, accounts);
    clear!(event_deliveries, receivers, organization_keys, credential_counts);
    let name = organization_names::table
        .filter(organization_names::name_key.eq(name_key))
        .filter(organization_names::organization_id.eq(organization));
    diesel::delete(name).execute(connection).await?;
    diesel::delete(organizations::table.filter(organizations::id.eq(organization))).execute(connection).await?;
    erasure::begin(connection, command.organization).await?;
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(true))
}
