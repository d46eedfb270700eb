//! Plans that PostgreSQL makes for the statements of the store.

use super::postgres::query;

/// Settings of the store's sessions.
const SETTINGS: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
];

/// Tables in which an organization may have any number of rows.
const TABLES: [&str; 3] = ["credentials", "credential_secrets", "credential_labels"];

/// Adds a column to the audit log that contains the settings of the session that writes an entry.
pub(crate) fn note_settings(address: &str) {
    let set = SETTINGS.map(|(name, _)| format!("current_setting('{name}')")).join(" || ' ' || ");
    let column = format!(
        "ALTER TABLE audit ADD COLUMN session_settings TEXT; \
         ALTER TABLE audit ALTER COLUMN session_settings SET DEFAULT {set}"
    );
    query(address, &column);
}

/// Checks that plans are read here with the settings of the store's sessions.
pub(crate) fn assert_settings(address: &str) {
    let seen = "SELECT DISTINCT session_settings FROM audit WHERE session_settings IS NOT NULL";
    assert_eq!(query(address, seen).trim(), SETTINGS.map(|(_, value)| value).join(" "));
}

/// Fills the tables so that the server misestimates organizations and filters. Next to thousands of small organizations
/// there is a large one, whose credentials have one namespace, one type, one key and one label.
pub(crate) fn fill(address: &str) {
    let statements = "
        INSERT INTO credentials (organization_id, id, type, namespace, version, vend, expires_at, revision, card, key_id, created_at,
            updated_at)
            SELECT lpad((row / 3)::text, 32, '1')::uuid, lpad(row::text, 32, '0')::uuid, 's3', 'ns', 1, 'any', 9223372036854775807, 1, ''::bytea, lpad('3', 32, '3')::uuid, 0, 0
                FROM generate_series(1, 30000) row
            UNION ALL SELECT lpad('2', 32, '2')::uuid, lpad(row::text, 32, '0')::uuid, 's3', 'ns', 1, 'any', 9223372036854775807, 1, ''::bytea, lpad('3', 32, '3')::uuid, 0, 0
                FROM generate_series(1, 20000) row;
        INSERT INTO credential_secrets (organization_id, id, version, data_key, data) SELECT organization_id, id, 1, '', '' FROM credentials
            ON CONFLICT DO NOTHING;
        INSERT INTO credential_labels (organization_id, id, label) SELECT organization_id, id, 'label' FROM credentials;
        INSERT INTO credential_secrets (organization_id, id, version, data_key, data, destroy_at)
            SELECT organization_id, id, 9, '', '', 0 FROM credentials";
    query(address, statements);
}

/// Makes the server gather statistics of all tables.
pub(crate) fn analyze(address: &str) {
    query(address, "ANALYZE");
}

/// Checks that a list with several filters does not compare all rows of one table with all rows of another, even
/// without statistics.
///
/// # Panics
/// If it does.
pub(crate) fn assert_labels_lead_row_by_row(address: &str, sql: &str) {
    if sql.starts_with("SELECT") && sql.contains("credential_labels") && sql.contains("EXISTS") {
        let plan = plan(address, sql);
        assert!(!plan.contains("Join Filter"), "{sql}\n{plan}");
    }
}

/// Returns whether a statement uses the tables. If it does, an index must lead to each row, by more than the
/// organization.
///
/// # Panics
/// If no such index is used.
pub(crate) fn is_led_by_indexes(address: &str, sql: &str) -> bool {
    let plan = plan(address, sql);
    let mut led = false;
    let mut lines = plan.lines().peekable();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |word: &str| words.iter().position(|one| *one == word).and_then(|place| words.get(place + 1));
        let Some(table) = after("on").filter(|table| TABLES.contains(table)) else { continue };
        if line.contains("Insert on") || line.contains("Update on") || line.contains("Delete on") {
            continue;
        }
        let index = after("using").unwrap_or_else(|| panic!("{table} without an index: {sql}\n{plan}"));
        let condition = lines.next_if(|line| line.contains("Index Cond:")).unwrap_or_default();
        for column in leading_columns(address, index).split(' ') {
            assert!(condition.contains(&format!("({column} ")), "{index} not by its {column}: {sql}\n{plan}");
        }
        led = true;
    }
    led
}

/// Returns the first column of an index, and the second if the first is the organization.
fn leading_columns(address: &str, index: &str) -> String {
    let columns = format!(
        "SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = '{index}'::regclass \
         AND attnum <= 1 + (SELECT count(*) FROM pg_attribute WHERE attrelid = '{index}'::regclass AND attnum = 1 \
         AND attname = 'organization_id')"
    );
    query(address, &columns).trim().to_owned()
}

/// Returns the generic plan of a statement.
fn plan(address: &str, sql: &str) -> String {
    let begins = |words: &[&str]| words.iter().any(|word| sql.starts_with(word));
    if !begins(&["SELECT", "INSERT", "UPDATE", "DELETE"]) || sql.contains(" FROM organizations, unnest(") {
        // Nothing is planned, or only new rows are inserted and the row of the organization is read.
        return String::new();
    }
    let parameters = (1..=99).rev().find(|number| sql.contains(&format!("${number}"))).unwrap_or_default();
    let given = match parameters {
        0 => String::new(),
        _ => format!("({})", vec!["NULL"; parameters].join(", ")),
    };
    let settings: Vec<_> = SETTINGS.iter().map(|(name, value)| format!("SET {name} = {value}")).collect();
    let settings = settings.join("; ");
    query(address, &format!("{settings}; PREPARE planned AS {sql}; EXPLAIN (COSTS OFF) EXECUTE planned{given}"))
}
