//! A refused login sends the database the same statements, whatever the reason. A separate test program, because the
//! instrumentation applies to all connections of a process.

use crate::support;

use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};
use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex};
use support::NOW;
use support::sqlite::Scratch;
use support::world::{World, address};
use vault_core::account::{AccountChange, ChangeAccount};
use vault_core::digest::Digest;
use vault_core::lockout::{CLOSING_ATTEMPTS, FREE_ATTEMPTS, LONGEST_WAIT_SECONDS};
use vault_core::login::{AttemptOutcome, Reservation, ReserveAttempt, VerifiedFactors};
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::time::Timestamp;
use vault_diesel::SqliteStore;

const NETWORK: Digest = Digest::from_bytes([9; 32]);

#[derive(Default)]
struct Notes {
    /// Statements that the connections keep prepared.
    kept: HashSet<String>,
    statements: Vec<String>,
}

static NOTES: LazyLock<Mutex<Notes>> = LazyLock::new(Mutex::default);

fn note() -> Option<Box<dyn Instrumentation>> {
    Some(Box::new(|event: InstrumentationEvent<'_>| match event {
        InstrumentationEvent::CacheQuery { sql, .. } => {
            NOTES.lock().unwrap().kept.insert(sql.to_owned());
        }
        InstrumentationEvent::StartQuery { query, .. } => {
            let query = query.to_string();
            let sql = query.split(" -- binds").next().unwrap_or_default().to_owned();
            // The writer checks its log after each response.
            if !sql.starts_with("PRAGMA wal_checkpoint") {
                NOTES.lock().unwrap().statements.push(sql);
            }
        }
        _ => {}
    }))
}

/// Cost of a statement, whatever its table: its kind, the number of columns and tables it reads, and whether it is
/// parsed. Updates and inserts cost the same.
#[derive(Debug, PartialEq, Eq)]
enum Cost {
    Reads {
        columns: usize,
        tables: usize,
        rows_ordered: bool,
        was_parsed: bool,
    },
    Writes,
    /// Starts or ends a transaction.
    Other(String),
}

fn cost(sql: &str, kept: &HashSet<String>) -> Cost {
    if sql.starts_with("UPDATE") || sql.starts_with("INSERT") {
        return Cost::Writes;
    }
    match sql.strip_prefix("SELECT ").and_then(|rest| rest.split_once(" FROM ")) {
        Some((columns, from)) => Cost::Reads {
            columns: columns.split(',').count(),
            tables: 1 + from.matches(" JOIN ").count(),
            rows_ordered: from.contains("ORDER BY"),
            was_parsed: !kept.contains(sql),
        },
        None => Cost::Other(sql.to_owned()),
    }
}

/// Runs an attempt from start to end. Returns the reason of the refusal and the cost.
async fn attempt(
    store: &Arc<SqliteStore>,
    world: &World,
    number: u64,
    presented: VerifiedFactors,
    now: Timestamp,
) -> Vec<Cost> {
    NOTES.lock().unwrap().statements.clear();
    let reserve = ReserveAttempt { address: address(number), network: NETWORK };
    let reserved = match world.running_at(now, store, Principal::Operator, reserve).await.unwrap() {
        Reservation::Account(reserved) => Some(reserved.account),
        _ => None,
    };
    let finish = world.refusal(reserved, presented);
    let outcome = world.running_at(now, store, Principal::Operator, finish).await.unwrap();
    assert!(matches!(outcome, AttemptOutcome::Refused(_)));
    let notes = NOTES.lock().unwrap();
    notes.statements.iter().map(|sql| cost(sql, &notes.kept)).collect()
}

#[tokio::test]
async fn refused_logins_execute_equal_statements() {
    set_default_instrumentation(note).unwrap();
    let scratch = Scratch::new();
    let store = scratch.migrated().await;
    let world = World::make(&store, 1).await;
    let [wrong_password, wrong_code, waiting, closed, disabled, re_enrolling] = [11, 12, 13, 14, 15, 16];
    for number in [wrong_password, wrong_code, waiting, closed] {
        world.account_at(&store, number, Role::Viewer).await;
    }
    for (number, change) in
        [(disabled, AccountChange::Disable), (re_enrolling, AccountChange::ReEnrol(Digest::from_bytes([1; 32])))]
    {
        let SessionPrincipal { organization, account, .. } = world.account_at(&store, number, Role::Viewer).await;
        let change = ChangeAccount { organization, account, change };
        world.operate(&store, &Principal::Operator, change).await.unwrap();
    }
    let wrong = || VerifiedFactors::WrongPassword { recovery_code: None };
    let mut now = NOW;
    for _ in 0..CLOSING_ATTEMPTS {
        now = now.plus_seconds(LONGEST_WAIT_SECONDS);
        attempt(&store, &world, closed, wrong(), now).await;
    }
    for _ in 0..FREE_ATTEMPTS {
        attempt(&store, &world, waiting, wrong(), now).await;
    }
    // The connections have then prepared everything that they prepare once.
    attempt(&store, &world, 99, wrong(), now).await;
    attempt(&store, &world, wrong_password, wrong(), now).await;

    let unknown = attempt(&store, &world, 99, wrong(), now).await;
    assert_eq!(unknown.iter().filter(|cost| **cost == Cost::Writes).count(), 3, "{unknown:?}");
    let was_parsed = |cost: &Cost| matches!(cost, Cost::Reads { was_parsed: true, .. });
    assert!(!unknown.iter().any(was_parsed), "{unknown:?}");
    for number in [wrong_password, waiting, closed, disabled, re_enrolling] {
        assert_eq!(attempt(&store, &world, number, wrong(), now).await, unknown, "owner-{number}");
    }
    assert_eq!(attempt(&store, &world, wrong_code, VerifiedFactors::WrongPasscode, now).await, unknown);

    let with_code = || VerifiedFactors::WrongPassword { recovery_code: Some(Digest::from_bytes([5; 32])) };
    attempt(&store, &world, 99, with_code(), now).await;
    let unknown = attempt(&store, &world, 99, with_code(), now).await;
    for number in [wrong_password, waiting, closed, disabled, re_enrolling] {
        assert_eq!(attempt(&store, &world, number, with_code(), now).await, unknown, "owner-{number} with 20 digits");
    }
}
