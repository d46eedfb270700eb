//! The bare driver on the same file format, tables, settings and rows.

use crate::Stopwatch;
use crate::world::World;
use rusqlite::{Connection, params};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use vault_core::Command;
use vault_core::port::SaveCredential;
use vault_diesel::SqliteKey;
use zeroize::Zeroizing;

const KEY: [u8; 32] = [7; 32];

pub(crate) fn key() -> SqliteKey {
    SqliteKey::from_bytes(Zeroizing::new(KEY))
}

fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    let hex = KEY.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    connection
        .execute_batch(&format!(
            "PRAGMA key = \"x'{hex}'\"; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
             PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; PRAGMA cache_size = -16384; \
             PRAGMA temp_store = MEMORY"
        ))
        .unwrap();
    connection
}

/// Saves into the file of `world`, which nobody else has open.
pub(crate) fn saves(world: &World, path: &Path, count: usize) -> (Duration, Duration) {
    let connection = open(path);
    let saves: Vec<Command<SaveCredential>> = (0..count).map(|_| world.save()).collect();
    let watch = Stopwatch::start();
    for batch in saves.chunks(64) {
        connection.prepare_cached("BEGIN IMMEDIATE").unwrap().execute([]).unwrap();
        batch.iter().for_each(|save| insert(&connection, world, save));
        connection.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
    }
    watch.stop()
}

fn insert(connection: &Connection, world: &World, command: &Command<SaveCredential>) {
    let organization = world.organization.to_string();
    let (account, session, key) = (world.account.to_string(), world.session.to_string(), world.key.to_string());
    let Command { now, audit, act: save, .. } = command;
    let id = save.id.to_string();
    connection
        .prepare_cached(
            "UPDATE credential_counts SET credentials = credentials + 1 WHERE organization_id = ?1 AND credentials < ?2",
        )
        .unwrap()
        .execute(params![organization, save.limit])
        .unwrap();
    let live: i64 = connection
        .prepare_cached(
            "SELECT s.expires_at FROM organizations o JOIN accounts a ON a.organization_id = o.id \
             JOIN sessions s ON s.organization_id = o.id AND s.account_id = a.id \
             JOIN organization_keys k ON k.organization_id = o.id \
             WHERE o.id = ?1 AND a.id = ?2 AND s.id = ?3 AND k.id = ?4",
        )
        .unwrap()
        .query_row(params![organization, account, session, key], |row| row.get(0))
        .unwrap();
    assert!(live > 0);
    connection
        .prepare_cached(
            "INSERT INTO credentials (organization_id, id, type, namespace, version, created_at, updated_at, \
             expires_at, key_id, information) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?5, 9223372036854775807, ?6, ?7)",
        )
        .unwrap()
        .execute(params![
            organization,
            id,
            save.kind.as_str(),
            save.namespace.as_str(),
            now.as_millis(),
            key,
            save.sealed.information.as_bytes()
        ])
        .unwrap();
    connection
        .prepare_cached("INSERT INTO credential_secrets (organization_id, id, data_key, data) VALUES (?1, ?2, ?3, ?4)")
        .unwrap()
        .execute(params![organization, id, save.sealed.data_key.as_bytes(), save.sealed.data.as_bytes()])
        .unwrap();
    let record = &audit.record;
    connection
        .prepare_cached(
            "INSERT INTO audit (id, at, organization_id, actor, account_id, session_id, action, subject, count, \
             key_id, code) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )
        .unwrap()
        .execute(params![
            record.id.to_string(),
            record.at.as_millis(),
            organization,
            record.actor.kind(),
            account,
            session,
            record.action.as_str(),
            record.subject.text(),
            record.count,
            key,
            audit.code.as_bytes().as_slice()
        ])
        .unwrap();
}

pub(crate) fn lists(world: &World, path: &Path, count: usize) -> (Duration, Duration) {
    let connection = open(path);
    let organization = world.organization.to_string();
    let watch = Stopwatch::start();
    for _ in 0..count {
        connection.prepare_cached("BEGIN").unwrap().execute([]).unwrap();
        let mut statement = connection
            .prepare_cached(
                "SELECT id, type, namespace, version, created_at, updated_at, key_id, information FROM credentials \
                 WHERE organization_id = ?1 AND id < '~' ORDER BY id DESC LIMIT 100",
            )
            .unwrap();
        let mut rows = statement.query([&organization]).unwrap();
        let mut read = 0;
        while let Some(row) = rows.next().unwrap() {
            read += row.get_ref(7).unwrap().as_bytes().unwrap().len();
        }
        assert!(read >= 30_000);
        drop(rows);
        drop(statement);
        connection.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
    }
    watch.stop()
}
