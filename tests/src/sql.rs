//! Access to the rows of a vault on PostgreSQL.

use crate::binary::Run;
use crate::vault::Vault;
use std::io::{Seek, Write};
use std::process::{Command, Stdio};

/// The rows of a vault, with the access of an attacker who has the database's password.
pub struct Sql<'a>(&'a str);

impl<'a> Sql<'a> {
    /// Returns the rows of `vault`.
    pub fn of(vault: &'a Vault) -> Self {
        Self(vault.url())
    }

    /// Returns the rows of the database at `url`.
    pub fn at(url: &'a str) -> Self {
        Self(url)
    }

    /// Runs a statement and returns its rows.
    #[track_caller]
    pub fn run(&self, statement: &str) -> Vec<Vec<String>> {
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-"]);
        // Use separators that no value contains.
        psql.args(["--field-separator=\u{1f}", "--record-separator=\u{1e}", "--dbname", self.0]);
        // Statements can exceed the maximum length of arguments.
        let mut input = tempfile::tempfile().unwrap();
        input.write_all(statement.as_bytes()).and_then(|()| input.rewind()).unwrap();
        let output = Run::of(psql.stdin(Stdio::from(input))).done().stdout;
        let rows = output.trim_end_matches('\n').split('\u{1e}').filter(|row| !row.is_empty());
        rows.map(|row| row.split('\u{1f}').map(str::to_owned).collect()).collect()
    }

    /// Returns the single value of a statement.
    #[track_caller]
    pub fn value(&self, statement: &str) -> String {
        let rows = self.run(statement);
        assert!(rows.len() == 1 && rows[0].len() == 1, "{statement}: {rows:?}");
        rows[0][0].clone()
    }

    /// Returns the single value of type `bytea` of a statement.
    #[track_caller]
    pub fn bytes(&self, statement: &str) -> Vec<u8> {
        let text = self.value(statement);
        hex::decode(text.strip_prefix("\\x").expect("bytes")).unwrap()
    }

    /// Returns every row of every table as table name and text, to check that nothing changes or remains.
    #[track_caller]
    pub fn everything(&self) -> Vec<Vec<String>> {
        let tables = self.run("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'");
        let of_one = |table: &Vec<String>| format!("SELECT '{0}', t::text FROM {0} t", table[0]);
        let all: Vec<String> = tables.iter().map(of_one).collect();
        if all.is_empty() { Vec::new() } else { self.run(&format!("{} ORDER BY 1, 2", all.join(" UNION ALL "))) }
    }
}
