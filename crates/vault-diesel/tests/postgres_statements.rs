//! Every statement on rows of an organization names the organization, and no transaction of an organization writes rows
//! that are stored elsewhere. A distributed PostgreSQL therefore finds the rows on one node and commits them in one
//! phase.

use crate::support;
use vault_testkit::commands::CredentialCommands as _;

use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};
use support::NOW;
use support::activators::activated;
use support::plans;
use support::postgres::{patient_store, query};
use support::world::World;
use vault_core::activation::ListActivations;
use vault_core::credential::{
    CredentialQuery, CredentialType, HealthState, Labels, ListFilter, ListPosition, ListVersions, SaveCredential,
    ShowCredential, VersionLimits,
};
use vault_core::digest::Digest;
use vault_core::id::CredentialId;
use vault_core::json::{Member, Node};
use vault_core::organization::{MoveCredentials, RotateOrganization};
use vault_core::port::Idempotency;
use vault_core::principal::Principal;
use vault_testkit::postgres::Cluster;

static STATEMENTS: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);
/// Sets of tables that a transaction wrote.
static WRITTEN: LazyLock<Mutex<BTreeSet<BTreeSet<String>>>> = LazyLock::new(Mutex::default);

/// Tables that are read before the organization is known, and the column by which they are distributed.
const LOOKUPS: [(&str, &str); 1] = [("global_lookups", "value")];

fn note() -> Option<Box<dyn Instrumentation>> {
    let mut written = BTreeSet::new();
    Some(Box::new(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            let query = query.to_string();
            let sql = query.split(" -- binds").next().unwrap_or_default().replace('"', "");
            if sql.starts_with("BEGIN") {
                WRITTEN.lock().unwrap().insert(std::mem::take(&mut written));
            }
            written.extend(written_by(&sql).map(str::to_owned));
            STATEMENTS.lock().unwrap().insert(sql);
        }
    }))
}

/// Returns the column by which such a table is distributed.
fn lookup(table: &str) -> Option<&'static str> {
    LOOKUPS.iter().find(|(lookup, _)| *lookup == table).map(|(_, key)| *key)
}

/// Returns the table that a statement changes.
fn written_by(sql: &str) -> Option<&str> {
    let rest = ["INSERT INTO ", "UPDATE ", "DELETE  FROM ", "DELETE FROM "]
        .iter()
        .find_map(|words| sql.strip_prefix(words))?;
    rest.split([' ', '(']).next()
}

/// Returns whether a statement reads or changes rows of `table`.
fn touches(sql: &str, table: &str) -> bool {
    let bare = sql.replace(['(', ')'], " ");
    let words: Vec<&str> = bare.split_whitespace().collect();
    words.windows(2).any(|pair| matches!(pair[0], "FROM" | "JOIN" | "INTO" | "UPDATE") && pair[1] == table)
}

/// Returns whether a statement names the organization of the rows of `table` that it reads or changes.
fn names_the_organization(sql: &str, table: &str) -> bool {
    if sql.starts_with(&format!("INSERT INTO {table} ")) {
        let columns = sql.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(columns, _)| columns);
        return columns.split(", ").any(|column| column == "organization_id");
    }
    // Either with a parameter, or through another table of the statement that names it.
    let qualified = format!("{table}.organization_id = ");
    sql.contains(&qualified) || sql.contains(&format!("= {table}.organization_id"))
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_statements_filter_by_organization() {
    let has_own_process = std::env::var_os("NEXTEST").is_some();
    assert!(has_own_process, "the instrumentation applies to all tests of a process: run `cargo nextest run`");
    set_default_instrumentation(note).unwrap();
    let address = Cluster::shared().create_database();
    let store = patient_store(&address).await;
    store.migrate(NOW, &mut |_| {}).await.unwrap();
    plans::note_settings(&address);
    let world = World::make(&store, 1).await;
    STATEMENTS.lock().unwrap().clear();

    let label = Digest::from_bytes([8; 32]);
    let mut saved: Vec<CredentialId> = Vec::new();
    for round in 0..2 {
        let saves = (0..6).map(|number| {
            let mut save = SaveCredential { namespace: activated(), ..world.save() };
            let member = Member { name: "label".to_owned(), value: Node::String("value".into()) };
            save.metadata.labels = Labels::parse(Node::Object(vec![member]), "").unwrap();
            let (account, body) = (world.account, Digest::from_bytes([7; 32]));
            // The second round repeats the requests.
            save.new.idempotency =
                (number > 2).then(|| Idempotency { account, key: format!("{number}"), body: body.into() });
            world.by_account(&store, save)
        });
        let made = futures_util::future::try_join_all(saves).await.unwrap();
        if round == 0 {
            saved = made;
        }
    }
    let after = Some(ListPosition { expires_at: None, id: saved[3] });
    let by = |filter| CredentialQuery { filter, ..world.list(3) };
    let both = vec![label.into(), Digest::from_bytes([9; 32]).into()];
    let lists = [
        world.list(3),
        CredentialQuery { after, ..world.list(3) },
        by(ListFilter { namespace: Some(activated()), ..ListFilter::default() }),
        by(ListFilter { kind: Some(CredentialType::DirectLink), ..ListFilter::default() }),
        CredentialQuery { labels: vec![label.into()], ..world.list(3) },
        CredentialQuery {
            labels: both.clone(),
            ..by(ListFilter { namespace: Some(activated()), ..ListFilter::default() })
        },
        CredentialQuery {
            labels: both,
            ..by(ListFilter { health: Some(HealthState::Failing), ..ListFilter::default() })
        },
        by(ListFilter { health: Some(HealthState::Unchecked), ..ListFilter::default() }),
        by(ListFilter { expires_before: Some(NOW.plus_seconds(1)), ..ListFilter::default() }),
    ];
    let user = world.principal();
    for list in lists {
        world.listed(&store, list).await.unwrap();
    }
    world.operate(&store, &user, ShowCredential(world.organization, saved[0])).await.unwrap();
    world.operate(&store, &user, ListVersions(world.organization, saved[0])).await.unwrap();

    for revision in 1..=2 {
        let replacements = saved[..6].iter().map(|id| {
            let mut replace = world.replace(*id, revision);
            if revision == 1 {
                // The first version is destroyed.
                replace.limits = VersionLimits { previous_seconds: 0, ..replace.limits };
            }
            world.by_account(&store, replace)
        });
        futures_util::future::try_join_all(replacements).await.unwrap();
    }

    let stored = world.integration(&store).await;
    let principal = world.activator(&stored);
    for _ in 0..2 {
        let takings = (0..3).map(|_| {
            let (store, command) = (Arc::clone(&store), world.take(&principal));
            let activation = command.payload.activation.as_ref().unwrap().id;
            async move {
                store.fetch_credentials(command).await.unwrap();
                activation
            }
        });
        let started = futures_util::future::join_all(takings).await;
        let hand_outs = started.iter().map(|activation| {
            let command = world.issue_credentials(&principal, *activation, &saved[..2]);
            let store = Arc::clone(&store);
            async move { store.issue_credentials(command).await.unwrap() }
        });
        futures_util::future::join_all(hand_outs).await;
        store.end_activation(world.end(&principal, started[0])).await.unwrap();
    }
    let rotation = RotateOrganization(world.organization);
    assert!(world.operate(&store, &Principal::Operator, rotation).await.unwrap().is_new);
    let step = MoveCredentials { organization: world.organization, after: None, limit: 4 };
    assert_eq!(world.operate(&store, &Principal::Operator, step).await.unwrap().moved, 4);
    let listed = ListActivations { principal: principal.clone(), now: world.now(), after: None, limit: 10 };
    store.list_activations(listed).await.unwrap();
    assert!(world.set_frozen(&store, &Principal::Operator, true).await);
    world.operate(&store, &Principal::Operator, world.delete_integration(&stored)).await.unwrap();
    futures_util::future::join_all(saved.iter().chain(&saved).map(|id| world.delete(&store, *id))).await;
    world.log_out(&store).await;

    let tables = "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' \
                  AND column_name = 'organization_id'";
    let tables = query(&address, tables);
    let statements = STATEMENTS.lock().unwrap().clone();
    let mut seen = BTreeSet::new();
    for sql in &statements {
        for table in tables.lines() {
            if touches(sql, table) {
                seen.insert(table);
                match lookup(table) {
                    // The deletion of an integration searches for its tokens on every node.
                    Some(key) => {
                        let named = sql.contains(&format!("{table}.{key} = ")) || sql.starts_with("INSERT INTO");
                        assert!(named || sql.starts_with("DELETE"), "{table}: {sql}");
                    }
                    None => assert!(names_the_organization(sql, table), "{table}: {sql}"),
                }
            }
        }
    }
    let expected = [
        "activations",
        "audit",
        "check_requests",
        "credential_labels",
        "credential_secrets",
        "credential_uses",
        "credentials",
        "entities",
        "global_lookups",
        "idempotency_keys",
        "lookups",
        "sessions",
    ];
    for table in expected {
        assert!(seen.contains(table), "no statement on {table} was seen");
    }
    let written = WRITTEN.lock().unwrap().clone();
    let is_of_a_tenant =
        |table: &String| table == "organizations" || tables.lines().any(|of| of == table) && lookup(table).is_none();
    let mut whole = 0;
    for tables in written.iter().filter(|tables| tables.iter().any(is_of_a_tenant)) {
        let elsewhere: Vec<&String> = tables.iter().filter(|table| !is_of_a_tenant(table)).collect();
        // A row that is searched for before its organization is known has a lookup row, which is written together with
        // it.
        let led_to = ["entities", "organizations"].iter().any(|of| tables.contains(*of));
        let lookups = led_to && elsewhere.iter().all(|table| lookup(table).is_some());
        // A login records its network once a day.
        let login = tables.contains("sessions") && elsewhere == ["known_networks"];
        assert!(
            elsewhere.is_empty() || lookups || login,
            "a transaction writes rows of an organization and others: {tables:?}"
        );
        whole += usize::from(elsewhere.is_empty());
    }
    assert!(whole > 5, "{written:?}");
    plans::assert_settings(&address);
    plans::fill(&address);
    statements.iter().for_each(|sql| plans::assert_labels_lead_row_by_row(&address, sql));
    plans::analyze(&address);
    let led = statements.iter().filter(|sql| plans::is_led_by_indexes(&address, sql)).count();
    assert!(led > 20, "{led} statements on credentials");
}
