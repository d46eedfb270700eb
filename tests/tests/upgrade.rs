//! Vaults of earlier versions, with their rows, can be migrated and work as before.

use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use vault_crypto::{DatabaseKeyFile, LoadedRootKey, OsEntropy};
use vault_tests::binary::Run;
use vault_tests::database::new_postgres;
use vault_tests::earlier::{DATABASE_KEY, Earlier, ROOT_KEY, folders, keyed};
use vault_tests::passcode::current_step;
use vault_tests::process::free_address;
use vault_tests::samples::{every_type, small};
use vault_tests::sql::Sql;
use vault_tests::{Account, ActivationListener, Database, Integration, Session, Vault};

vault_tests::on_both_databases!(
    vault_of_a_build_before_the_first_release_is_refused,
    vault_of_an_earlier_version_works_as_before,
    killed_upgrade_is_completed_by_next_start
);

/// Serves the migrated vault and asserts that all its data exists and works.
fn is_whole(earlier: &Earlier, mut vault: Vault) {
    let listener = ActivationListener { address: free_address() };
    // The restored copy has no anchor.
    vault.serve_with(&[&format!("--activation-listen={}", listener.address), "--adopt-anchor"]);
    let client = vault.client();
    let account = |member: &str| Account::new(&earlier.known[member], earlier.known["password"].as_str());
    let admin = account("admin");

    let code = admin.authenticator.code(current_step());
    let session = Session::new(&client, &client.log_in(&admin.login(&code)).expect(200));
    assert_eq!(listed(&session), earlier.known["listed"]);
    account("other_admin").log_in(&client); // with a recovery code
    client.log_in(&account("disabled").sound_login()).problem("invalid-login");

    let integration = Integration::of(&vault, "nightly", &earlier.known["integration"]);
    for (namespace, expected) in earlier.known["activated"].as_object().unwrap() {
        let answer = integration.activate(&listener.client(), namespace).expect(201).json();
        assert_eq!(answer["credentials"], *expected, "{namespace}");
    }
    integration.activate(&listener.client(), "frozen").problem("frozen");
    let stopped = Integration::of(&vault, "stopped", &earlier.known["stopped_integration"]);
    assert_eq!(stopped.activate(&listener.client(), "imports/0").status, 401);

    // The staged version can be promoted, and further operations work.
    let versioned = earlier.text("versioned");
    assert_eq!(session.versions(versioned)[..2], [(2, "current".to_owned()), (3, "staged".to_owned())]);
    session.promote(versioned, 3).expect(200);
    let promoted = integration.activate(&listener.client(), "imports/0").expect(201).json();
    assert_eq!(promoted["credentials"][0]["data"], small("imports/0", 3)["data"]);
    let new = session.save(&small("imports/new", 9));
    session.delete(&new).expect(204);
    assert_eq!(vault.metric("orgvault_integrity_failures_total"), 0);
}

/// Returns the vaults of earlier versions, and one of this version, created in `scratch`. The latter shows whether a
/// vault that is stored now can be restored later.
fn earlier(scratch: &Path) -> Vec<Earlier> {
    Earlier::all().into_iter().chain([Earlier::read(make(scratch))]).collect()
}

fn vault_of_an_earlier_version_works_as_before(database: Database) {
    let scratch = tempfile::tempdir().unwrap();
    for earlier in earlier(scratch.path()) {
        is_whole(&earlier, earlier.restored(database).upgraded());
    }
}

fn vault_of_a_build_before_the_first_release_is_refused(database: Database) {
    let vault = Vault::init(database);
    const EARLIER: &str = "DELETE FROM schema_versions; \
        INSERT INTO schema_versions (version, applied_at) VALUES ('0001_foundation', 1), ('0018_filters', 2)";
    const VERSIONS: &str = "SELECT count(*) || ' ' || min(version) || ' ' || max(version) FROM schema_versions";
    let file = vault.data_dir().join("orgvault.db");
    let key = || database_key(&vault);
    match database {
        Database::Postgres => _ = Sql::of(&vault).run(EARLIER),
        Database::Sqlite => keyed(&file, &key()).execute_batch(EARLIER).unwrap(),
    }
    let versions = || match database {
        Database::Postgres => Sql::of(&vault).value(VERSIONS),
        Database::Sqlite => fs::read(&file).map(hex::encode).unwrap(),
    };
    let files = || -> Vec<_> {
        let name = |name: &str| vault.data_dir().join(name);
        [DATABASE_KEY, ROOT_KEY].map(name).iter().map(|file| fs::read(file).ok()).collect()
    };
    let (rows, content) = (versions(), files());
    for arguments in [&["account", "list"][..], &["migrate"], &["serve"], &["init"]] {
        let refused = vault.run(arguments).refused();
        let reason = "has schema version 0001_foundation, created by an unreleased build";
        assert!(refused.stderr.contains(reason), "{arguments:?}: {}", refused.stderr);
    }
    assert_eq!((versions(), files()), (rows, content), "nothing was written");
}

fn killed_upgrade_is_completed_by_next_start(database: Database) {
    let scratch = tempfile::tempdir().unwrap();
    for earlier in earlier(scratch.path()) {
        let restored = earlier.restored(database);
        for moment in 0..12 {
            let mut migrate = restored.migrate().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // At a different moment each time. The result is always the same.
            std::thread::sleep(std::time::Duration::from_millis(moment * moment * 4));
            let _ = migrate.kill();
            migrate.wait().unwrap();
        }
        is_whole(&earlier, restored.upgraded());
    }
}

/// The changes that the next version may make to a database while replicas of this version serve it. They continue, and
/// no new one starts.
#[test]
fn replicas_continue_after_additive_migration() {
    let vault = Vault::start(Database::Postgres);
    let other = vault.replica();
    let (admin, mut saved) = (vault.admin(), Vec::new());
    let session = admin.log_in(&vault.client());
    saved.push(session.save(&small("before", 1)));
    Sql::of(&vault).run(
        "ALTER TABLE audit ADD COLUMN later TEXT; ALTER TABLE credentials ADD COLUMN later BIGINT NOT NULL DEFAULT 0; \
         ALTER TABLE sessions ADD COLUMN later TEXT; ALTER TABLE entities ADD COLUMN later TEXT; \
         CREATE TABLE later (id TEXT PRIMARY KEY); CREATE INDEX credentials_later ON credentials (later); \
         INSERT INTO schema_versions (version, applied_at) VALUES ('9999_later', 0)",
    );
    for client in [vault.client(), other.client()] {
        let session = session.on(&client);
        saved.push(session.save(&small("after", 2)));
        session.replace(&saved[0], &small("before", saved.len()), false).expect(201);
        assert_eq!(session.ids().len(), saved.len());
        admin.log_in(&client).log_out().expect(204);
    }
    session.delete(&saved[1]).expect(204);
    let refused = vault.run(&["account", "list"]).refused();
    assert!(refused.stderr.contains("has schema version 9999_later"), "{}", refused.stderr);
    assert_eq!(vault.metric("orgvault_integrity_failures_total"), 0);
}

/// Returns the key of a vault's database file in hexadecimal.
pub(crate) fn database_key(vault: &Vault) -> String {
    let root = LoadedRootKey::load(&vault.data_dir().join("root.key"), Arc::new(OsEntropy)).unwrap();
    let file = DatabaseKeyFile::next_to(&vault.data_dir().join("orgvault.db"));
    hex::encode(file.load(&root).unwrap().expose_bytes().as_slice())
}

/// Returns the list of credentials, without fields that a new version may add.
fn listed(session: &Session) -> Value {
    const KNOWN: [&str; 11] = [
        "id",
        "type",
        "namespace",
        "information",
        "version",
        "created_at",
        "updated_at",
        "labels",
        "description",
        "vend",
        "expires_at",
    ];
    let items = session.list().into_iter().map(|item| {
        let members = item.as_object().unwrap().iter().filter(|(name, _)| KNOWN.contains(&name.as_str()));
        Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
    });
    items.collect()
}

fn pack(file: &Path, sql: &str) {
    fs::write(file, sql).unwrap();
    Run::of(Command::new("gzip").args(["--no-name", "--best", "--force"]).arg(file)).done();
}

/// Dumps schema and rows as SQL.
fn dump(database: &Connection) -> String {
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = database.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut sql = texts("SELECT sql || ';' FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
    for table in texts("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
        let columns = texts(&format!("SELECT 'quote(' || name || ')' FROM pragma_table_info('{table}')"));
        let values = columns.join(" || ',' || ");
        sql.extend(texts(&format!("SELECT 'INSERT INTO {table} VALUES(' || {values} || ');' FROM {table}")));
    }
    sql.extend(texts("SELECT sql || ';' FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"));
    format!("BEGIN;\n{}\nCOMMIT;\n", sql.join("\n"))
}

/// Creates the stored vault of the newest schema. Run before a release, with the released binary.
#[test]
#[ignore = "makes a pinned vault"]
fn create_vault_archive_of_this_version() {
    make(&folders());
}

/// Creates a vault and stores it in a new folder of `folders`.
fn make(folders: &Path) -> PathBuf {
    let (mut vault, listener) = ActivationListener::open(Database::Sqlite);
    let password = "a rather long passphrase";
    let create = |organization: &str, email: &str, role: &str| {
        vault.organization(organization);
        let file = vault.password_file(password);
        let arguments = ["account", "create", "--org", organization, "--email", email, "--role", role];
        vault.json(&[&arguments[..], &["--password-file", file.to_str().unwrap()]].concat())
    };
    let admin = create("Acme", "ada@example.com", "admin");
    let other_admin = create("Globex", "other@example.org", "admin");
    let disabled = create("Acme", "dan@example.com", "editor");
    vault.run(&["account", "set", "--state", "disabled", "--email", "dan@example.com"]).done();

    let session = Account::new(&admin, Some(password)).log_in(&vault.client());
    let mut versioned = String::new();
    for (number, sample) in every_type().into_iter().enumerate() {
        let mut request = sample.request.clone();
        request["namespace"] = format!("imports/{}", number + 1).into();
        request["labels"] = json!({"team": "data", "number": number.to_string()});
        request["description"] = "of an earlier version".into();
        request["expires_at"] = "2099-01-01T00:00:00Z".into();
        session.save(&request);
        if number == 0 {
            versioned = session.save(&small("imports/0", 1));
            session.replace(&versioned, &small("imports/0", 2), false).expect(201);
            session.replace(&versioned, &small("imports/0", 3), true).expect(201);
        }
    }
    session.save(&small("frozen", 4));
    vault.run(&["namespace", "freeze", "frozen", "--org", "Acme"]).done();
    session.invite("grace@example.com", "viewer").expect(201);
    let make = |name: &str| {
        vault.json(&["integration", "create", "--org", "Acme", "--name", name, "--namespace", "imports/*", "frozen"])
    };
    let (integration, stopped) = (make("nightly"), make("stopped"));
    vault.run(&["integration", "set", "--state", "disabled", "--org", "Acme", "--name", "stopped"]).done();
    let nightly = Integration::of(&vault, "nightly", &integration);
    let activated: Value = (0..=every_type().len())
        .map(|number| {
            let namespace = format!("imports/{number}");
            let answer = nightly.activate(&listener.client(), &namespace).expect(201).json();
            (namespace, answer["credentials"].clone())
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let listed = listed(&session);
    vault.stop();

    let key = database_key(&vault);
    let database = keyed(&vault.data_dir().join("orgvault.db"), &key);
    let newest: String = database.query_row("SELECT max(version) FROM schema_versions", [], |row| row.get(0)).unwrap();
    let folder = folders.join(newest);
    fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| hex::encode(fs::read(vault.data_dir().join(name)).unwrap());
    let known = json!({
        "root_key": file(ROOT_KEY), "database_key_file": file(DATABASE_KEY), "database_key": key,
        "password": password, "admin": admin, "other_admin": other_admin, "disabled": disabled,
        "integration": integration, "stopped_integration": stopped,
        "versioned": versioned, "listed": listed, "activated": activated,
    });
    fs::write(folder.join("vault.json"), serde_json::to_string_pretty(&known).unwrap()).unwrap();
    pack(&folder.join("sqlite.sql"), &dump(&database));
    drop(database);
    let url = new_postgres();
    vault.run(&["migrate-to", &url]).done();
    let dumped = Run::of(Command::new("pg_dump").args([
        "--no-owner",
        "--no-privileges",
        "--rows-per-insert=500",
        "--dbname",
        &url,
    ]))
    .done();
    // Omits settings that older servers do not know, and commands that only `psql` understands.
    let sql: Vec<&str> =
        dumped.stdout.lines().filter(|line| !line.starts_with("SET ") && !line.starts_with('\\')).collect();
    pack(&folder.join("postgres.sql"), &sql.join("\n"));
    folder
}
