//! What lies behind the interface: the rows, on PostgreSQL.

use crate::binary::Run;
use crate::vault::Vault;
use std::process::{Command, Stdio};

/// The rows of a vault, as an intruder with the database's password sees and changes them.
pub struct Sql<'a>(&'a str);

impl<'a> Sql<'a> {
    /// The rows of `vault`.
    pub fn of(vault: &'a Vault) -> Self {
        Self(vault.url())
    }

    /// Runs a statement, and gives the rows it returns.
    #[track_caller]
    pub fn run(&self, statement: &str) -> Vec<Vec<String>> {
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set=ON_ERROR_STOP=1"]);
        // Nothing that a value can hold stands between values or between rows.
        psql.args(["--field-separator=\u{1f}", "--record-separator=\u{1e}", "--dbname", self.0, "--command", statement]);
        psql.stdin(Stdio::null());
        let output = Run::of(&mut psql).done().stdout;
        let rows = output.trim_end_matches('\n').split('\u{1e}').filter(|row| !row.is_empty());
        rows.map(|row| row.split('\u{1f}').map(str::to_owned).collect()).collect()
    }

    /// The one value that a statement returns.
    #[track_caller]
    pub fn value(&self, statement: &str) -> String {
        let rows = self.run(statement);
        assert!(rows.len() == 1 && rows[0].len() == 1, "{statement}: {rows:?}");
        rows[0][0].clone()
    }

    /// The bytes that a statement returns, of type `bytea`.
    #[track_caller]
    pub fn bytes(&self, statement: &str) -> Vec<u8> {
        let text = self.value(statement);
        hex::decode(text.strip_prefix("\\x").expect("bytes")).unwrap()
    }

    /// Every row of every table, in an order of their own: for tests that nothing changes.
    #[track_caller]
    pub fn everything(&self) -> Vec<(String, Vec<Vec<String>>)> {
        let tables = self.run("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' ORDER BY 1");
        let rows = |table: &str| self.run(&format!("SELECT t::text FROM {table} t ORDER BY 1"));
        tables.iter().map(|table| (table[0].clone(), rows(&table[0]))).collect()
    }
}
