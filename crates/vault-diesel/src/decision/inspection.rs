//! Reading what is stored row by row.

use super::backend::{Connection, RunQuery, Store};
use super::organization::instance_rotation;
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{credential_versions, credentials, frozen_namespaces, organizations};
use crate::stored::{AnyId, Column, StoredId as _, columns_of, place_of};
use crate::transaction::credential::versions::versions as read_versions;
use crate::transaction::credential::{checks, labels};
use crate::transaction::lookups::MissingLookups;
use async_trait::async_trait;
use diesel::dsl::exists;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::audit::AuditEntry;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::organization::OrganizationState;
use vault_core::port::{
    ClosedState, Find, Inspection, InstancePart, InstancePlace, InstanceRow, LookUp, RecordedStates, StoreError,
    StoredPlace, WholeCredential,
};
use vault_core::principal::Principal;
use vault_core::time::Timestamp;

#[async_trait]
impl Inspection for Store {
    async fn instance_places(
        &self,
        part: InstancePart,
        after: Option<StoredPlace>,
        limit: usize,
    ) -> Result<Vec<StoredPlace>, StoreError> {
        self.read((part, after, limit), |connection, (part, after, limit)| {
            Box::pin(instance_rotation::places(connection, *part, after.clone(), *limit))
        })
        .await
    }

    async fn instance_row(&self, part: InstancePart, place: InstancePlace) -> Result<Option<InstanceRow>, StoreError> {
        self.read((part, place), |connection, (part, place)| {
            Box::pin(instance_rotation::row_at(connection, *part, *place))
        })
        .await
    }

    async fn credential_places(
        &self,
        after: Option<StoredPlace>,
        limit: usize,
    ) -> Result<Vec<StoredPlace>, StoreError> {
        self.read((after.unwrap_or_default(), limit), |connection, (after, limit)| {
            Box::pin(places(connection, after, *limit))
        })
        .await
    }

    async fn whole_credential(
        &self,
        organization: OrganizationId,
        id: CredentialId,
    ) -> Result<Option<WholeCredential>, StoreError> {
        self.read((organization, id), |connection, place| Box::pin(whole(connection, *place))).await
    }

    async fn missing_look_ups(
        &self,
        part: InstancePart,
        place: InstancePlace,
        expected: Vec<LookUp>,
    ) -> Result<Vec<&'static str>, StoreError> {
        self.answer(None, MissingLookups { part, place, expected }).await
    }

    async fn version_places(
        &self,
        after: Option<StoredPlace>,
        limit: usize,
    ) -> Result<Vec<(StoredPlace, bool)>, StoreError> {
        self.read((after.unwrap_or_default(), limit), |connection, (after, limit)| {
            Box::pin(version_places(connection, after, *limit))
        })
        .await
    }

    async fn closures(&self, organization: OrganizationId) -> Result<Option<ClosedState>, StoreError> {
        self.read(organization, |connection, organization| Box::pin(closures(connection, *organization))).await
    }

    async fn recorded_states(&self, query: RecordedStates) -> Result<Vec<AuditEntry>, StoreError> {
        self.answer(None, query).await
    }
}

async fn places(connection: &mut Connection, after: &StoredPlace, limit: usize) -> Result<Vec<StoredPlace>, Failure> {
    let (organization, id) = &columns_of(after);
    let following = credentials::table
        .filter(credentials::organization_id.ge(organization))
        .filter(credentials::organization_id.gt(organization).or(credentials::id.gt(id)))
        .order((credentials::organization_id, credentials::id))
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select((credentials::organization_id, credentials::id));
    let places: Vec<(AnyId, AnyId)> = following.load(connection).await?;
    Ok(places.into_iter().map(place_of).collect())
}

async fn version_places(
    connection: &mut Connection,
    after: &StoredPlace,
    limit: usize,
) -> Result<Vec<(StoredPlace, bool)>, Failure> {
    let (organization, id) = &columns_of(after);
    let credential = credentials::table
        .filter(credentials::organization_id.eq(credential_versions::organization_id))
        .filter(credentials::id.eq(credential_versions::id));
    let following = credential_versions::table
        .filter(credential_versions::organization_id.ge(organization))
        .filter(credential_versions::organization_id.gt(organization).or(credential_versions::id.gt(id)))
        .order((credential_versions::organization_id, credential_versions::id))
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select(((credential_versions::organization_id, credential_versions::id), exists(credential)));
    let mut places: Vec<((AnyId, AnyId), bool)> = following.load(connection).await?;
    places.dedup();
    Ok(places.into_iter().map(|(place, is_owned)| (place_of(place), is_owned)).collect())
}

async fn closures(connection: &mut Connection, organization: OrganizationId) -> Result<Option<ClosedState>, Failure> {
    let id = organization.stored();
    let state: Option<Column<OrganizationState>> = organizations::table
        .filter(organizations::id.eq(id))
        .select(organizations::state)
        .get_result(connection)
        .await
        .optional()?;
    let Some(state) = state else { return Ok(None) };
    let state = state.decode("organizations", &organization, "state")?;
    let frozen: Vec<Column<Namespace>> = frozen_namespaces::table
        .filter(frozen_namespaces::organization_id.eq(id))
        .select(frozen_namespaces::namespace)
        .load(connection)
        .await?;
    let decode = |namespace: Column<Namespace>| namespace.decode("frozen_namespaces", &organization, "namespace");
    Ok(Some(ClosedState { state, frozen: frozen.into_iter().map(decode).collect::<Result<_, _>>()? }))
}

async fn whole(
    connection: &mut Connection,
    place: (OrganizationId, CredentialId),
) -> Result<Option<WholeCredential>, Failure> {
    let (organization, id) = place;
    // The time is that of a session, which an operator has none of.
    let now = Timestamp::from_millis(0);
    let query = Find { principal: Principal::Operator, of: organization, key: id, now };
    let Some(versions) = read_versions(&connection.tx(), &query).await? else { return Ok(None) };
    let numbers = versions.others.iter().map(|version| version.number).chain([versions.current.version]);
    let mut sealed = Vec::new();
    for number in numbers {
        let version = checks::read(&connection.tx(), place, number).await?;
        sealed.push(version.ok_or(Failure::Overtaken)?.credential);
    }
    let labels = labels::read(&connection.tx(), organization, id).await?;
    Ok(Some(WholeCredential { versions, sealed, labels }))
}
