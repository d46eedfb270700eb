//! The contract of the backend: every case runs on SQLite and on PostgreSQL.

use super::bind::Bind;
use super::{Db, KeyShare, OpenTx, Tx, Update, exists_row_by_row, locked, narrow, without_index};
use crate::stored::{AnyId, IdBytes, StoredId as _};
use diesel::connection::{Connection as _, Instrumentation, InstrumentationEvent, SimpleConnection as _};
use diesel::result::DatabaseErrorKind;
use diesel::sql_types::Bool;
use diesel::{
    BoolExpressionMethods as _, BoxableExpression, ExpressionMethods as _, Insertable, QueryDsl as _, Queryable,
    Selectable, SelectableHelper as _, SqliteConnection,
};
use diesel_async::{AsyncConnection as _, AsyncPgConnection, SimpleAsyncConnection as _};
use futures_util::try_join;
use std::sync::{Arc, Mutex};
use vault_core::id::OrganizationId;
use vault_testkit::postgres::Cluster;

diesel::table! {
    organizations (id) {
        id -> crate::stored::Id,
    }
}

diesel::table! {
    things (organization_id, id) {
        organization_id -> crate::stored::Id,
        id -> crate::stored::Id,
        name -> Text,
        size -> BigInt,
        data -> Nullable<Binary>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(organizations, things);
diesel::alias!(things as other_things: OtherThings);

#[derive(Clone, Debug, Insertable)]
#[diesel(table_name = things, treat_none_as_default_value = false)]
struct NewThing<'a> {
    organization_id: IdBytes,
    id: IdBytes,
    name: &'a str,
    size: i64,
    data: Option<&'a [u8]>,
}

/// A second row type of the table, with its columns in another order and without one of them.
#[derive(Insertable)]
#[diesel(table_name = things, treat_none_as_default_value = false)]
struct NewEmptyThing<'a> {
    size: i64,
    name: &'a str,
    id: IdBytes,
    organization_id: IdBytes,
}

#[derive(Debug, PartialEq, Queryable, Selectable)]
#[diesel(table_name = things, check_for_backend(Db))]
struct Thing {
    id: AnyId,
    name: String,
    size: i64,
    data: Option<Vec<u8>>,
}

fn id(number: u8) -> IdBytes {
    OrganizationId::from_bytes([number; 16]).stored()
}

fn thing(number: u8) -> NewThing<'static> {
    let data = (number % 2 == 1).then_some([1_u8, 0, 2].as_slice());
    NewThing { organization_id: id(1), id: id(number), name: "naïve \"name\"", size: i64::from(number) - 2, data }
}

fn stored(number: u8) -> Thing {
    let NewThing { name, size, data, .. } = thing(number);
    Thing { id: id(number).into(), name: name.to_owned(), size, data: data.map(<[u8]>::to_vec) }
}

async fn all(tx: &Tx<'_>) -> Vec<Thing> {
    tx.load(things::table.order(things::id).select(Thing::as_select())).await.unwrap()
}

const SQLITE: &str = "CREATE TABLE organizations (id BLOB PRIMARY KEY) STRICT;
    CREATE TABLE things (organization_id BLOB NOT NULL, id BLOB NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL,
        data BLOB, PRIMARY KEY (organization_id, id)) STRICT;
    INSERT INTO organizations VALUES (x'01010101010101010101010101010101');";
const POSTGRES: &str = "CREATE TABLE organizations (id UUID PRIMARY KEY);
    CREATE TABLE things (organization_id UUID NOT NULL, id UUID NOT NULL, name TEXT NOT NULL, size BIGINT NOT NULL,
        data BYTEA, PRIMARY KEY (organization_id, id));
    INSERT INTO organizations VALUES ('01010101-0101-0101-0101-010101010101');";

/// The statements that a connection has prepared and keeps.
type Kept = Arc<Mutex<Vec<String>>>;

fn note(kept: &Kept) -> impl Instrumentation + use<> {
    let kept = Arc::clone(kept);
    move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::CacheQuery { sql, .. } = event {
            kept.lock().unwrap().push(sql.to_owned());
        }
    }
}

async fn on_sqlite(case: impl AsyncFn(&Tx<'_>, &Kept)) {
    let (mut connection, kept) = (SqliteConnection::establish(":memory:").unwrap(), Kept::default());
    connection.batch_execute(SQLITE).unwrap();
    connection.set_instrumentation(note(&kept));
    case(&connection.tx(), &kept).await;
}

async fn on_postgres(case: impl AsyncFn(&Tx<'_>, &Kept)) {
    let address = Cluster::shared().create_database();
    let (mut connection, kept) = (AsyncPgConnection::establish(&address).await.unwrap(), Kept::default());
    connection.batch_execute(POSTGRES).await.unwrap();
    connection.set_instrumentation(note(&kept));
    connection.batch_execute("BEGIN").await.unwrap();
    case(&connection.tx(), &kept).await;
}

async fn on_both(case: impl AsyncFn(&Tx<'_>, &Kept)) {
    on_sqlite(&case).await;
    on_postgres(&case).await;
}

#[tokio::test]
async fn inserted_rows_are_read_unchanged() {
    on_both(async |tx, _| {
        assert_eq!(tx.insert(things::table, Vec::<NewThing<'_>>::new()).await.unwrap(), 0);
        assert_eq!(tx.insert(things::table, [thing(1)]).await.unwrap(), 1);
        assert_eq!(tx.insert(things::table, [thing(2), thing(3)]).await.unwrap(), 2);
        assert_eq!(tx.insert(things::table, [4, 5, 6].map(thing)).await.unwrap(), 3);
        assert_eq!(all(tx).await, [1, 2, 3, 4, 5, 6].map(stored));
        let row = things::table.filter(things::id.eq(id(3))).select(Thing::as_select());
        assert_eq!(tx.first(row).await.unwrap(), Some(stored(3)));
        let row = things::table.filter(things::id.eq(id(9))).select(Thing::as_select());
        assert_eq!(tx.first(row).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn row_types_of_one_table_have_statements_of_their_own() {
    on_both(async |tx, _| {
        let empty =
            |number| NewEmptyThing { size: i64::from(number), name: "empty", id: id(number), organization_id: id(1) };
        tx.insert(things::table, [thing(1), thing(2)]).await.unwrap();
        tx.insert(things::table, [empty(3), empty(4)]).await.unwrap();
        tx.insert(things::table, [thing(5), thing(6)]).await.unwrap();
        let expected =
            |number| Thing { id: id(number).into(), name: "empty".to_owned(), size: i64::from(number), data: None };
        assert_eq!(all(tx).await, [stored(1), stored(2), expected(3), expected(4), stored(5), stored(6)]);
    })
    .await;
}

#[tokio::test]
async fn several_rows_of_an_organization_that_does_not_exist_are_refused() {
    on_postgres(async |tx, _| {
        let orphans = [2, 3].map(|number| NewThing { organization_id: id(9), ..thing(number) });
        assert!(matches!(tx.insert(things::table, orphans).await, Err(diesel::result::Error::NotFound)));
        assert!(all(tx).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn every_statement_is_prepared_once() {
    on_both(async |tx, kept| {
        let mut first = 0;
        for round in 0..3 {
            tx.insert(things::table, [thing(round)]).await.unwrap();
            tx.insert(things::table, [thing(10 + 2 * round), thing(11 + 2 * round)]).await.unwrap();
            tx.execute(diesel::update(things::table.filter(things::id.eq(id(round)))).set(things::size.eq(7)))
                .await
                .unwrap();
            let few = things::table.filter(things::size.eq(7)).select(Thing::as_select());
            assert_eq!(tx.load(few).await.unwrap().len(), usize::from(round) + 1);
            let one_of_one = things::table.filter(things::id.eq_any([id(round)])).select(things::size);
            assert_eq!(tx.load::<i64, _>(one_of_one).await.unwrap(), [7]);
            let row = things::table.filter(things::id.eq(id(round))).select(things::name);
            let _: Option<String> = tx.first(locked(row, Update)).await.unwrap();
            tx.execute(diesel::delete(things::table.filter(things::id.eq(id(99))))).await.unwrap();
            let kept = kept.lock().unwrap();
            assert!(kept.iter().any(|sql| sql.starts_with("UPDATE")), "{kept:?}");
            assert!(kept.iter().any(|sql| sql.contains(" IN (") || sql.contains(" = ANY(")), "{kept:?}");
            if round == 0 {
                first = kept.len();
            }
            assert_eq!(kept.len(), first, "{kept:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn comparison_accepts_any_number_of_values() {
    on_both(async |tx, _| {
        tx.insert(things::table, [1, 2, 3].map(thing)).await.unwrap();
        for ids in [vec![], vec![2], vec![1, 3], vec![1, 2, 3, 4]] {
            let wanted = ids.iter().map(|number| id(*number));
            let found = things::table.filter(things::id.eq_any(wanted.clone())).order(things::id).select(things::size);
            let found: Vec<i64> = tx.load(found).await.unwrap();
            assert_eq!(found.len(), ids.iter().filter(|number| **number < 4).count(), "{ids:?}");
            let others = things::table.filter(things::id.ne_all(wanted)).select(things::size);
            let others: Vec<i64> = tx.load(others).await.unwrap();
            assert_eq!(found.len() + others.len(), 3);
        }
        let names = things::table.filter(things::name.eq_any(["naïve \"name\"", "x"])).select(things::id);
        assert_eq!(tx.load::<AnyId, _>(names).await.unwrap().len(), 3);
        let some = other_things.filter(other_things.field(things::size).ge(0)).select(other_things.field(things::id));
        let nested = things::table.filter(things::id.eq_any(some)).select(things::id);
        assert_eq!(tx.load::<AnyId, _>(nested).await.unwrap().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn rows_are_inserted_unless_they_exist_or_replaced() {
    on_both(async |tx, _| {
        tx.insert(things::table, [thing(1)]).await.unwrap();
        let again = diesel::insert_into(things::table).values(thing(1)).on_conflict_do_nothing();
        assert_eq!(tx.execute(again).await.unwrap(), 0);
        let replaced = diesel::insert_into(things::table)
            .values(NewThing { size: 42, ..thing(1) })
            .on_conflict((things::organization_id, things::id))
            .do_update()
            .set(things::size.eq(43));
        assert_eq!(tx.execute(replaced).await.unwrap(), 1);
        let returned = diesel::update(things::table).set(things::size.eq(things::size + 1)).returning(things::size);
        assert_eq!(tx.load::<i64, _>(returned).await.unwrap(), [44]);
        let counts = [1_u8, 2].map(|number| diesel::delete(things::table.filter(things::id.eq(id(number)))));
        assert_eq!(tx.execute_each(counts).await.unwrap(), [1, 0]);
    })
    .await;
}

#[tokio::test]
async fn pages_locks_and_hints_do_not_change_results() {
    type Condition<'a> = Box<dyn BoxableExpression<things::table, Db, SqlType = Bool> + 'a>;
    on_both(async |tx, _| {
        tx.insert(things::table, [1, 2, 3, 4].map(thing)).await.unwrap();
        let by_id = || things::table.order(things::id).select(Thing::as_select());
        assert_eq!(tx.page(by_id(), 2).await.unwrap(), [1, 2].map(stored));
        assert_eq!(tx.page(locked(by_id(), KeyShare), usize::MAX).await.unwrap().len(), 4);
        assert!(tx.page(by_id(), 0).await.unwrap().is_empty());
        let few = things::table.filter(narrow(things::size.gt(0)).and(without_index(things::name).ne("x")));
        assert_eq!(tx.load(few.order(things::id).select(Thing::as_select())).await.unwrap(), [3, 4].map(stored));
        let larger = other_things.filter(other_things.field(things::size).gt(things::size));
        let conditions: [Condition<'_>; 2] = [Box::new(exists_row_by_row(larger)), Box::new(things::size.ge(0))];
        let mut boxed = things::table.select(Thing::as_select()).into_boxed::<Db>();
        for condition in conditions {
            boxed = boxed.filter(condition);
        }
        assert_eq!(tx.page(boxed.order(things::id), 9).await.unwrap(), [2, 3].map(stored));
        let second = things::table.order(things::id).offset(1).limit(1).select(things::size);
        assert_eq!(tx.first::<i64, _>(second).await.unwrap(), Some(0));
    })
    .await;
}

#[tokio::test]
async fn non_uuid_position_is_accepted() {
    on_both(async |tx, _| {
        tx.insert(things::table, [1, 2].map(thing)).await.unwrap();
        for damaged in ["0101", "01010101010101010101010101010101ff"] {
            let after = AnyId::from_text(damaged);
            let later = things::table.filter(things::id.gt(after)).select(things::size).order(things::id.desc());
            assert_eq!(tx.load::<i64, _>(later).await.unwrap().first(), Some(&0));
        }
    })
    .await;
}

#[tokio::test]
async fn after_a_failure_no_statement_of_the_transaction_is_executed() {
    on_both(async |tx, _| {
        tx.insert(things::table, [thing(1)]).await.unwrap();
        assert!(tx.has_written() || tx.dialect() == Db::Pg);
        let twice = tx.insert(things::table, [thing(1)]);
        let other = tx.insert(things::table, [thing(2)]);
        let failed = try_join!(twice, other);
        assert!(matches!(failed, Err(diesel::result::Error::DatabaseError(..))), "{failed:?}");
        assert!(tx.insert(things::table, [thing(3)]).await.is_err());
        assert!(tx.load::<i64, _>(things::table.select(things::size)).await.is_err());
    })
    .await;
    let mut connection = SqliteConnection::establish(":memory:").unwrap();
    connection.batch_execute(SQLITE).unwrap();
    {
        let tx = connection.tx();
        let failed = try_join!(
            tx.insert(things::table, [thing(1)]),
            tx.insert(things::table, [thing(1)]),
            tx.insert(things::table, [thing(2)])
        );
        assert!(failed.is_err());
        let late = tx.load::<i64, _>(things::table.select(things::size)).await;
        assert!(
            matches!(late, Err(diesel::result::Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _))),
            "{late:?}"
        );
    }
    assert_eq!(all(&connection.tx()).await, [stored(1)]);
}

#[test]
fn debug_output_shows_no_value() {
    let shown = format!("{:?} {:?} {:?}", Bind::Text("secret"), Bind::Bytes(b"secret"), Bind::Int(7_777));
    assert!(!shown.contains("secret") && !shown.contains("7777") && !shown.contains("115"), "{shown}");
}
