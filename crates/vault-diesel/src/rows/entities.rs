//! Entities, and the values by which they are found.

use super::{TxRows, changed_one, then};
use crate::db::{self, Db};
use crate::failure::Failure;
use crate::schema::{entities, lookups};
use crate::stored::{AnyId, BEFORE_ALL_IDS, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _, Queryable, Selectable,
    SelectableHelper as _,
};
use uuid::Uuid;
use vault_core::entity::{EntityKey, Index};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{EntityRow, EntityRows, LookupRow, NamePosition, Reply};
use vault_core::sealed::Blob;

const TABLE: &str = "entities";

#[derive(Queryable, Selectable)]
#[diesel(table_name = entities, check_for_backend(Db))]
struct StoredEntity {
    organization_id: AnyId,
    kind: String,
    id: AnyId,
    version: i64,
    sealed: Vec<u8>,
}

impl StoredEntity {
    fn decode(self) -> Result<EntityRow, Failure> {
        let kind = self.kind.parse().map_err(|_| Failure::damaged(TABLE, self.id.to_string(), "kind"))?;
        let organization = self.organization_id.decode(TABLE)?;
        let key = EntityKey { organization, kind, id: *self.id.decode::<KeyId>(TABLE)?.as_uuid() };
        Ok(EntityRow { key, version: self.version, sealed: Blob::from_bytes(self.sealed) })
    }
}

fn decode(rows: Vec<StoredEntity>) -> Result<Vec<EntityRow>, Failure> {
    rows.into_iter().map(StoredEntity::decode).collect()
}

fn stored(id: Uuid) -> IdBytes {
    KeyId::from_uuid(id).stored()
}

#[auto_type(no_type_alias)]
fn entity_of(organization: IdBytes, kind: &'static str, id: IdBytes) -> _ {
    entities::table
        .filter(entities::organization_id.eq(organization))
        .filter(entities::kind.eq(kind))
        .filter(entities::id.eq(id))
}

fn columns(key: EntityKey) -> (IdBytes, &'static str, IdBytes) {
    (key.organization.stored(), key.kind.as_str(), stored(key.id))
}

impl EntityRows for TxRows<'_> {
    fn entity(&self, key: EntityKey) -> Reply<'_, Option<EntityRow>> {
        let (organization, kind, id) = columns(key);
        let row = entity_of(organization, kind, id).select((entities::version, entities::sealed));
        then(self.tx.first(row), move |row: Option<(i64, Vec<u8>)>| {
            Ok(row.map(|(version, sealed)| EntityRow { key, version, sealed: Blob::from_bytes(sealed) }))
        })
    }

    fn insert_entity(&self, row: &EntityRow) -> Reply<'_, bool> {
        let (organization, kind, id) = columns(row.key);
        let new = diesel::insert_into(entities::table).values((
            entities::organization_id.eq(organization),
            entities::kind.eq(kind),
            entities::id.eq(id),
            entities::version.eq(row.version),
            entities::sealed.eq(row.sealed.as_bytes()),
        ));
        then(self.tx.execute(new.on_conflict_do_nothing()), changed_one)
    }

    fn replace_entity(&self, before: i64, row: &EntityRow) -> Reply<'_, bool> {
        let (organization, kind, id) = columns(row.key);
        let of = entity_of(organization, kind, id).filter(entities::version.eq(before));
        let set = (entities::version.eq(row.version), entities::sealed.eq(row.sealed.as_bytes()));
        then(self.tx.execute(diesel::update(of).set(set)), changed_one)
    }

    fn reseal_entity(&self, row: &EntityRow, sealed: &Blob) -> Reply<'_, bool> {
        let (organization, kind, id) = columns(row.key);
        let of = entity_of(organization, kind, id)
            .filter(entities::version.eq(row.version))
            .filter(entities::sealed.eq(row.sealed.as_bytes()));
        then(self.tx.execute(diesel::update(of).set(entities::sealed.eq(sealed.as_bytes()))), changed_one)
    }

    fn entities_after(&self, after: Option<EntityKey>, limit: usize) -> Reply<'_, Vec<EntityRow>> {
        let (organization, kind, id) = after.map_or((BEFORE_ALL_IDS, "", BEFORE_ALL_IDS), columns);
        let of_kind = entities::kind.gt(kind).or(entities::kind.eq(kind).and(entities::id.gt(id)));
        let later = entities::organization_id.gt(organization);
        let rows = entities::table
            .filter(entities::organization_id.ge(organization))
            .filter(later.or(entities::organization_id.eq(organization).and(of_kind)))
            .order((entities::organization_id, entities::kind, entities::id))
            .select(StoredEntity::as_select());
        then(self.tx.page(rows, limit), decode)
    }

    fn listed_entities(
        &self,
        index: Index,
        of: Option<OrganizationId>,
        after: Option<NamePosition>,
        limit: usize,
    ) -> Reply<'_, Vec<(String, EntityRow)>> {
        // Every value sorts after the empty text.
        let after = after.map(|after| (after.organization.stored(), after.name));
        let (organization, value) = after.unwrap_or((BEFORE_ALL_IDS, String::new()));
        let columns = (lookups::value, StoredEntity::as_select());
        let is_it = entities::organization_id.eq(lookups::organization_id).and(entities::id.eq(lookups::id));
        let led = lookups::table.inner_join(entities::table.on(is_it.and(entities::kind.eq(index.kind().as_str()))));
        let led = led.filter(lookups::name.eq(index.as_str()));
        let rows: db::Reply<'_, Vec<(String, StoredEntity)>> = match of {
            Some(of) => {
                let own = led.filter(lookups::organization_id.eq(of.stored())).filter(lookups::value.gt(value));
                self.tx.page(own.order(lookups::value).select(columns), limit)
            }
            None => {
                let same = lookups::organization_id.eq(organization).and(lookups::value.gt(value));
                let all = led.filter(lookups::organization_id.gt(organization).or(same));
                let order = (lookups::organization_id, lookups::value);
                self.tx.page(all.order(order).select(columns), limit)
            }
        };
        then(rows, |rows| rows.into_iter().map(|(value, row)| Ok((value, row.decode()?))).collect())
    }

    fn lookups_after(&self, after: Option<LookupRow>, limit: usize) -> Reply<'_, Vec<LookupRow>> {
        let after = after.map(|row| (row.organization.stored(), row.index, row.value));
        let (organization, name, value) = after.unwrap_or((BEFORE_ALL_IDS, String::new(), String::new()));
        let of_name = lookups::name.gt(name.clone()).or(lookups::name.eq(name).and(lookups::value.gt(value)));
        let rows = lookups::table
            .filter(lookups::organization_id.ge(organization))
            .filter(
                lookups::organization_id.gt(organization).or(lookups::organization_id.eq(organization).and(of_name)),
            )
            .order((lookups::organization_id, lookups::name, lookups::value))
            .select((lookups::organization_id, lookups::name, lookups::value, lookups::id));
        then(self.tx.page(rows, limit), |rows: Vec<(AnyId, String, String, AnyId)>| {
            let decode = |(organization, index, value, id): (AnyId, String, String, AnyId)| {
                let id = *id.decode::<KeyId>("lookups")?.as_uuid();
                Ok(LookupRow { organization: organization.decode("lookups")?, index, value, id })
            };
            rows.into_iter().map(decode).collect()
        })
    }

    fn find(&self, organization: OrganizationId, index: Index, value: &str) -> Reply<'_, Option<Uuid>> {
        let row = lookup_of(organization.stored(), index.as_str(), value.to_owned()).select(lookups::id);
        then(self.tx.first(row), |id: Option<AnyId>| {
            id.map(|id| Ok(*id.decode::<KeyId>("lookups")?.as_uuid())).transpose()
        })
    }

    fn enter(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool> {
        let new = diesel::insert_into(lookups::table).values((
            lookups::organization_id.eq(key.organization.stored()),
            lookups::name.eq(index.as_str()),
            lookups::value.eq(value),
            lookups::id.eq(stored(key.id)),
        ));
        then(self.tx.execute(new.on_conflict_do_nothing()), changed_one)
    }

    fn leave(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool> {
        let row = lookup_of(key.organization.stored(), index.as_str(), value.to_owned());
        then(self.tx.execute(diesel::delete(row.filter(lookups::id.eq(stored(key.id))))), changed_one)
    }
}

/// The row of a value.
#[auto_type(no_type_alias)]
pub(crate) fn lookup_of(organization: IdBytes, index: &'static str, value: String) -> _ {
    lookups::table
        .filter(lookups::organization_id.eq(organization))
        .filter(lookups::name.eq(index))
        .filter(lookups::value.eq(value))
}
