//! Entities, and the values by which they are found.

use super::{TxRows, changed_one, several, then};
use crate::db::{self, Db, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{entities, global_lookups, lookups};
use crate::stored::{AFTER_ALL_IDS, AnyId, BEFORE_ALL_IDS, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _, Queryable, Selectable,
    SelectableHelper as _,
};
use futures_util::try_join;
use uuid::Uuid;
use vault_core::entity::{EntityKey, Index, Kind};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{EntityRow, EntityRows, LookupRow, NamePosition, Reply};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

const TABLE: &str = "entities";

#[derive(Queryable, Selectable)]
#[diesel(table_name = entities, check_for_backend(Db))]
struct StoredEntity {
    organization_id: AnyId,
    kind: String,
    id: AnyId,
    version: i64,
    due_at: Option<i64>,
    last_used_at: Option<i64>,
    sealed: Vec<u8>,
}

impl StoredEntity {
    fn decode(self) -> Result<EntityRow, Failure> {
        let kind = self.kind.parse().map_err(|_| Failure::damaged(TABLE, self.id.to_string(), "kind"))?;
        let organization = self.organization_id.decode(TABLE)?;
        let key = EntityKey { organization, kind, id: *self.id.decode::<KeyId>(TABLE)?.as_uuid() };
        let [due_at, last_used_at] = [self.due_at, self.last_used_at].map(|at| at.map(Timestamp::from_millis));
        Ok(EntityRow { key, version: self.version, due_at, last_used_at, sealed: Blob::from_bytes(self.sealed) })
    }
}

fn decode(rows: Vec<StoredEntity>) -> Result<Vec<EntityRow>, Failure> {
    rows.into_iter().map(StoredEntity::decode).collect()
}

fn stored(id: Uuid) -> IdBytes {
    KeyId::from_uuid(id).stored()
}

#[auto_type(no_type_alias)]
fn entities_of(organization: IdBytes, kind: &'static str) -> _ {
    entities::table.filter(entities::organization_id.eq(organization)).filter(entities::kind.eq(kind))
}

#[auto_type(no_type_alias)]
pub(super) fn entity_of(organization: IdBytes, kind: &'static str, id: IdBytes) -> _ {
    entities::table
        .filter(entities::organization_id.eq(organization))
        .filter(entities::kind.eq(kind))
        .filter(entities::id.eq(id))
}

/// Reads the entities of a kind and locks them, so that transactions that lock one of them run entirely before or after this one.
pub(super) async fn lock_all(tx: &Tx<'_>, organization: OrganizationId, kind: Kind) -> Result<Vec<EntityRow>, Failure> {
    let all = entities_of(organization.stored(), kind.as_str()).order(entities::id).select(StoredEntity::as_select());
    decode(tx.load(locked(all, Update)).await?)
}

fn columns(key: EntityKey) -> (IdBytes, &'static str, IdBytes) {
    (key.organization.stored(), key.kind.as_str(), stored(key.id))
}

impl EntityRows for TxRows<'_> {
    fn entity(&self, key: EntityKey) -> Reply<'_, Option<EntityRow>> {
        let (organization, kind, id) = columns(key);
        let row = entity_of(organization, kind, id).select(StoredEntity::as_select());
        let read = || then(self.tx.first(row), |row: Option<StoredEntity>| row.map(StoredEntity::decode).transpose());
        match key.kind {
            // Those that authorize.
            Kind::Organization | Kind::Account => self.kept_or(|facts| &mut facts.entities, key, read),
            _ => read(),
        }
    }

    fn insert_entity(&self, row: &EntityRow) -> Reply<'_, bool> {
        let (organization, kind, id) = columns(row.key);
        let new = diesel::insert_into(entities::table).values((
            entities::organization_id.eq(organization),
            entities::kind.eq(kind),
            entities::id.eq(id),
            entities::version.eq(row.version),
            entities::due_at.eq(row.due_at.map(Timestamp::as_millis)),
            entities::sealed.eq(row.sealed.as_bytes()),
        ));
        then(self.tx.execute(new.on_conflict_do_nothing()), changed_one)
    }

    fn replace_entity(&self, before: i64, row: &EntityRow) -> Reply<'_, bool> {
        let (organization, kind, id) = columns(row.key);
        let of = entity_of(organization, kind, id).filter(entities::version.eq(before));
        let set = (
            entities::version.eq(row.version),
            entities::due_at.eq(row.due_at.map(Timestamp::as_millis)),
            entities::sealed.eq(row.sealed.as_bytes()),
        );
        then(self.tx.execute(diesel::update(of).set(set)), changed_one)
    }

    fn remove_entity(&self, key: EntityKey) -> Reply<'_, bool> {
        let (organization, kind, id) = columns(key);
        several(async move {
            let names = Index::names_of(key.kind);
            let leading = lookups::table.filter(lookups::organization_id.eq(organization)).filter(lookups::id.eq(id));
            let global = global_lookups::table.filter(global_lookups::organization_id.eq(organization));
            let global = global.filter(global_lookups::id.eq(id)).filter(global_lookups::name.eq_any(names.clone()));
            let (_, _, removed) = try_join!(
                self.tx.execute(diesel::delete(leading.filter(lookups::name.eq_any(names)))),
                self.tx.execute(diesel::delete(global)),
                self.tx.execute(diesel::delete(entity_of(organization, kind, id))),
            )?;
            Ok(removed == 1)
        })
    }

    fn set_last_use(&self, key: EntityKey, last_used_at: Option<Timestamp>) -> Reply<'_, ()> {
        let (organization, kind, id) = columns(key);
        let used = entities::last_used_at.eq(last_used_at.map(Timestamp::as_millis));
        then(self.tx.execute(diesel::update(entity_of(organization, kind, id)).set(used)), |_| Ok(()))
    }

    fn count_entities(&self, organization: OrganizationId, kind: Kind) -> Reply<'_, i64> {
        then(self.tx.one(entities_of(organization.stored(), kind.as_str()).count()), Ok)
    }

    fn lock_entities(&self, organization: OrganizationId, kind: Kind) -> Reply<'_, Vec<EntityRow>> {
        several(lock_all(&self.tx, organization, kind))
    }

    fn due_entities(
        &self,
        organization: OrganizationId,
        kind: Kind,
        after: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Reply<'_, Vec<EntityRow>> {
        let due = entities_of(organization.stored(), kind.as_str())
            .filter(entities::due_at.gt(after.as_millis()))
            .filter(entities::due_at.le(until.as_millis()))
            .order((entities::due_at, entities::id))
            .select(StoredEntity::as_select());
        then(self.tx.page(due, limit), decode)
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

    fn newest_entities(
        &self,
        kind: Kind,
        of: Option<OrganizationId>,
        after: Option<(OrganizationId, Uuid)>,
        limit: usize,
    ) -> Reply<'_, Vec<EntityRow>> {
        let start = after.map(|(organization, id)| (organization.stored(), stored(id)));
        let (organization, id) = start.unwrap_or((BEFORE_ALL_IDS, AFTER_ALL_IDS));
        let of_kind = entities::table.filter(entities::kind.eq(kind.as_str())).select(StoredEntity::as_select());
        let rows = match of {
            Some(of) => {
                let own = of_kind.filter(entities::organization_id.eq(of.stored())).filter(entities::id.lt(id));
                self.tx.page(own.order(entities::id.desc()), limit)
            }
            None => {
                let same = entities::organization_id.eq(organization).and(entities::id.lt(id));
                let all = of_kind.filter(entities::organization_id.gt(organization).or(same));
                self.tx.page(all.order((entities::organization_id, entities::id.desc())), limit)
            }
        };
        then(rows, decode)
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
        then(self.tx.page(rows, limit), decode_lookups)
    }

    fn global_lookups_after(&self, after: Option<LookupRow>, limit: usize) -> Reply<'_, Vec<LookupRow>> {
        let (name, value) = after.map(|row| (row.index, row.value)).unwrap_or_default();
        let of_name = global_lookups::name.eq(name.clone()).and(global_lookups::value.gt(value));
        let rows = global_lookups::table
            .filter(global_lookups::name.gt(name).or(of_name))
            .order((global_lookups::name, global_lookups::value))
            .select((global_lookups::organization_id, global_lookups::name, global_lookups::value, global_lookups::id));
        then(self.tx.page(rows, limit), decode_lookups)
    }

    fn find_anywhere(&self, index: Index, value: &str) -> Reply<'_, Option<(OrganizationId, Uuid)>> {
        let row = global_lookup_of(index.as_str(), value.to_owned());
        let row = row.select((global_lookups::organization_id, global_lookups::id));
        then(self.tx.first(row), |found: Option<(AnyId, AnyId)>| {
            let decode = |(of, id): (AnyId, AnyId)| {
                Ok((of.decode("global_lookups")?, *id.decode::<KeyId>("global_lookups")?.as_uuid()))
            };
            found.map(decode).transpose()
        })
    }

    fn find(&self, organization: OrganizationId, index: Index, value: &str) -> Reply<'_, Option<Uuid>> {
        let row = lookup_of(organization.stored(), index.as_str(), value.to_owned()).select(lookups::id);
        then(self.tx.first(row), |id: Option<AnyId>| {
            id.map(|id| Ok(*id.decode::<KeyId>("lookups")?.as_uuid())).transpose()
        })
    }

    fn enter(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool> {
        let (organization, id) = (key.organization.stored(), stored(key.id));
        if index.is_global() {
            let new = diesel::insert_into(global_lookups::table).values((
                global_lookups::name.eq(index.as_str()),
                global_lookups::value.eq(value),
                global_lookups::organization_id.eq(organization),
                global_lookups::id.eq(id),
            ));
            return then(self.tx.execute(new.on_conflict_do_nothing()), changed_one);
        }
        let new = diesel::insert_into(lookups::table).values((
            lookups::organization_id.eq(organization),
            lookups::name.eq(index.as_str()),
            lookups::value.eq(value),
            lookups::id.eq(id),
        ));
        then(self.tx.execute(new.on_conflict_do_nothing()), changed_one)
    }

    fn leave(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool> {
        let (organization, id) = (key.organization.stored(), stored(key.id));
        if index.is_global() {
            let row = global_lookup_of(index.as_str(), value.to_owned());
            let own = row.filter(global_lookups::organization_id.eq(organization)).filter(global_lookups::id.eq(id));
            return then(self.tx.execute(diesel::delete(own)), changed_one);
        }
        let row = lookup_of(organization, index.as_str(), value.to_owned());
        then(self.tx.execute(diesel::delete(row.filter(lookups::id.eq(id)))), changed_one)
    }
}

fn decode_lookups(rows: Vec<(AnyId, String, String, AnyId)>) -> Result<Vec<LookupRow>, Failure> {
    let decode = |(organization, index, value, id): (AnyId, String, String, AnyId)| {
        let id = *id.decode::<KeyId>("lookups")?.as_uuid();
        Ok(LookupRow { organization: organization.decode("lookups")?, index, value, id })
    };
    rows.into_iter().map(decode).collect()
}

#[auto_type(no_type_alias)]
fn global_lookup_of(index: &'static str, value: String) -> _ {
    global_lookups::table.filter(global_lookups::name.eq(index)).filter(global_lookups::value.eq(value))
}

/// The row of a value.
#[auto_type(no_type_alias)]
fn lookup_of(organization: IdBytes, index: &'static str, value: String) -> _ {
    lookups::table
        .filter(lookups::organization_id.eq(organization))
        .filter(lookups::name.eq(index))
        .filter(lookups::value.eq(value))
}
