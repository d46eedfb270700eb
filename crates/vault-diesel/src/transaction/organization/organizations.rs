//! Organizations.

use super::super::audit::AuditRecorder;
use super::super::authorize::organization_of;
use super::super::credential::count;
use super::super::instance_key::require_active;
use super::super::login::attempts;
use super::super::{Read, Transaction};
use super::{erasure, keys};
use crate::db::{Db, Tx, Update, locked};
use crate::failure::Failure;
use crate::rows::lock_all;
use crate::schema::{
    account_logins, account_notices, accounts, attempt_classes, check_requests, credential_counts, directory,
    enrolment_codes, enrolment_drafts, entities, event_deliveries, global_lookups, hourly_counts, invitations,
    invited_addresses, lookups, organization_keys, organization_names, organizations, pending_seeds, receiver_status,
    recovery_codes, sessions,
};
use crate::stored::{AnyId, Column, StoredId as _};
use diesel::{
    ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _, delete, insert_into,
};
use vault_core::entity::Kind;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::organization::{Organization, OrganizationName, OrganizationState};
use vault_core::port::{CreateOrganization, DeleteOrganization, SetOrganizationState};
use vault_core::sealed::{Blob, OrganizationKeys};
use vault_core::time::Timestamp;

const TABLE: &str = "organizations";

#[derive(Queryable, Selectable)]
#[diesel(table_name = organizations, check_for_backend(Db))]
struct OrganizationRow {
    id: Column<OrganizationId>,
    name: Column<OrganizationName>,
    state: Column<OrganizationState>,
    created_at: i64,
}

impl OrganizationRow {
    fn decode(self) -> Result<Organization, Failure> {
        let id = self.id.decode(TABLE, &"unknown", "id")?;
        Ok(Organization {
            id,
            name: self.name.decode(TABLE, &id, "name")?,
            state: self.state.decode(TABLE, &id, "state")?,
            created_at: Timestamp::from_millis(self.created_at),
        })
    }
}

impl Transaction for CreateOrganization {
    /// `false` if the name or the id is in use.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { organization, keys, .. } = self;
        require_active(tx, wrapping_keys(keys)).await?;
        let name = insert_into(organization_names::table)
            .values((
                organization_names::name_key.eq(organization.name.uniqueness_key()),
                organization_names::organization_id.eq(organization.id.stored()),
            ))
            .on_conflict_do_nothing();
        if tx.execute(name).await? == 0 {
            return Ok(false);
        }
        let new = insert_into(organizations::table)
            .values((
                organizations::id.eq(organization.id.stored()),
                organizations::name.eq(organization.name.as_str()),
                organizations::name_key.eq(organization.name.uniqueness_key()),
                organizations::state.eq(organization.state.as_str()),
                organizations::fingerprint_key_id.eq(keys.fingerprint_key.stored()),
                organizations::fingerprint_wrapped.eq(keys.fingerprint_wrapped.as_bytes()),
                organizations::created_at.eq(organization.created_at.as_millis()),
            ))
            .on_conflict_do_nothing();
        if tx.execute(new).await? == 0 {
            return Ok(false);
        }
        let count = credential_counts::organization_id.eq(organization.id.stored());
        tx.execute(insert_into(credential_counts::table).values((count, credential_counts::credentials.eq(0)))).await?;
        for key in &keys.keys {
            keys::insert(tx, key).await?;
        }
        audit.record(tx, &self.audit).await?;
        Ok(true)
    }
}

/// The instance keys that wrap the keys of an organization.
fn wrapping_keys(keys: &OrganizationKeys) -> Vec<KeyId> {
    let wrapped = keys.keys.iter().map(|key| &key.wrapped).chain([&keys.fingerprint_wrapped]);
    wrapped.filter_map(Blob::key).collect()
}

/// The organization with a name, if it exists. The name is in its unique form.
pub(crate) struct FindOrganization(pub(crate) String);

impl Read for FindOrganization {
    type Outcome = Option<Organization>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<Organization>, Failure> {
        let id = organization_names::table
            .filter(organization_names::name_key.eq(&self.0))
            .select(organization_names::organization_id);
        let Some(id): Option<Column<OrganizationId>> = tx.first(id).await? else { return Ok(None) };
        ReadOrganization(id.decode("organization_names", &self.0, "organization_id")?).read(tx).await
    }
}

/// The organization with an id, if it exists.
pub(crate) struct ReadOrganization(pub(crate) OrganizationId);

impl Read for ReadOrganization {
    type Outcome = Option<Organization>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<Organization>, Failure> {
        let row = tx.first(organization_of(self.0.stored()).select(OrganizationRow::as_select())).await?;
        row.map(OrganizationRow::decode).transpose()
    }
}

/// All organizations, by name.
pub(crate) struct ListOrganizations;

impl Read for ListOrganizations {
    type Outcome = Vec<Organization>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<Organization>, Failure> {
        let all = organizations::table.order(organizations::name_key).select(OrganizationRow::as_select());
        tx.load(all).await?.into_iter().map(OrganizationRow::decode).collect()
    }
}

impl Transaction for SetOrganizationState {
    /// `false` if the organization does not exist.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let organization = self.organization.stored();
        let state = organizations::state.eq(self.state.as_str());
        if tx.execute(diesel::update(organization_of(organization)).set(state)).await? == 0 {
            return Ok(false);
        }
        if self.state == OrganizationState::Disabled {
            tx.execute(delete(sessions::table.filter(sessions::organization_id.eq(organization)))).await?;
            lock_all(tx, self.organization, Kind::Integration).await?;
        }
        audit.record(tx, &self.audit).await?;
        Ok(true)
    }
}

/// Deletes an organization, except for rows that [`erasure::EraseSlice`] deletes.
impl Transaction for DeleteOrganization {
    /// `false` if the organization does not exist.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let of = self.organization.stored();
        // Locked before what belongs to it, so that no login or save runs in between.
        count::lock(tx, self.organization).await?;
        let name = organization_of(of).select(organizations::name_key);
        let Some(name): Option<String> = tx.first(locked(name, Update)).await? else { return Ok(false) };
        let owned = accounts::table.filter(accounts::organization_id.eq(of)).select(accounts::id);
        let _owned: Vec<AnyId> = tx.load(locked(owned, Update)).await?;
        let invited = invitations::table.filter(invitations::organization_id.eq(of)).select(invitations::code);
        let codes: Vec<Vec<u8>> = tx.load(locked(invited, Update)).await?;
        lock_all(tx, self.organization, Kind::Integration).await?;
        for code in codes {
            tx.execute(delete(enrolment_codes::table.filter(enrolment_codes::code.eq(code)))).await?;
        }
        tx.execute(delete(directory::table.filter(directory::organization_id.eq(of)))).await?;
        tx.execute(delete(invited_addresses::table.filter(invited_addresses::organization_id.eq(of)))).await?;
        tx.execute(delete(enrolment_drafts::table.filter(enrolment_drafts::organization_id.eq(of)))).await?;
        tx.execute(delete(invitations::table.filter(invitations::organization_id.eq(of)))).await?;
        tx.execute(delete(hourly_counts::table.filter(hourly_counts::organization_id.eq(of)))).await?;
        tx.execute(delete(check_requests::table.filter(check_requests::organization_id.eq(of)))).await?;
        tx.execute(delete(global_lookups::table.filter(global_lookups::organization_id.eq(of)))).await?;
        tx.execute(delete(lookups::table.filter(lookups::organization_id.eq(of)))).await?;
        tx.execute(delete(entities::table.filter(entities::organization_id.eq(of)))).await?;
        attempts::lock_all_of_organization(tx, self.organization).await?;
        tx.execute(delete(sessions::table.filter(sessions::organization_id.eq(of)))).await?;
        tx.execute(delete(account_notices::table.filter(account_notices::organization_id.eq(of)))).await?;
        tx.execute(delete(pending_seeds::table.filter(pending_seeds::organization_id.eq(of)))).await?;
        tx.execute(delete(recovery_codes::table.filter(recovery_codes::organization_id.eq(of)))).await?;
        tx.execute(delete(attempt_classes::table.filter(attempt_classes::organization_id.eq(of)))).await?;
        tx.execute(delete(account_logins::table.filter(account_logins::organization_id.eq(of)))).await?;
        tx.execute(delete(accounts::table.filter(accounts::organization_id.eq(of)))).await?;
        tx.execute(delete(event_deliveries::table.filter(event_deliveries::organization_id.eq(of)))).await?;
        tx.execute(delete(receiver_status::table.filter(receiver_status::organization_id.eq(of)))).await?;
        tx.execute(delete(organization_keys::table.filter(organization_keys::organization_id.eq(of)))).await?;
        tx.execute(delete(credential_counts::table.filter(credential_counts::organization_id.eq(of)))).await?;
        let name = organization_names::table
            .filter(organization_names::name_key.eq(name))
            .filter(organization_names::organization_id.eq(of));
        tx.execute(delete(name)).await?;
        tx.execute(delete(organization_of(of))).await?;
        erasure::start(tx, self.organization).await?;
        audit.record(tx, &self.audit).await?;
        Ok(true)
    }
}
