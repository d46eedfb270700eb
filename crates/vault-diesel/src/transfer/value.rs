//! Values of any column in either database.

use bytes::BytesMut;
use diesel::deserialize::{self, FromSql as FromDiesel, QueryableByName};
use diesel::row::{Field as _, NamedRow};
use diesel::sql_types;
use diesel::sqlite::{Sqlite, SqliteType};
use sha2::{Digest as _, Sha256};
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// A value of a type that the schema uses, or null. An ID is bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row of any table.
pub(super) struct AnyRow(pub(super) Vec<Value>);

impl Value {
    /// Adds the value to a digest, in an unambiguous encoding.
    fn digest(&self, digest: &mut Sha256) {
        let (kind, bytes): (u8, &[u8]) = match self {
            Self::Null => (0, &[]),
            Self::Integer(number) => (1, &number.to_be_bytes()),
            Self::Text(text) => (2, text.as_bytes()),
            Self::Bytes(bytes) => (3, bytes),
        };
        digest.update([kind]);
        digest.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(bytes);
    }
}

/// The number of rows, and SHA-256 of their values in the order of the primary key.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) rows: u64,
    digest: Sha256,
}

impl Tally {
    pub(super) fn add(&mut self, row: &AnyRow) {
        self.rows += 1;
        row.0.iter().for_each(|value| value.digest(&mut self.digest));
    }

    pub(super) fn digest(self) -> [u8; 32] {
        self.digest.finalize().into()
    }
}

impl QueryableByName<Sqlite> for AnyRow {
    fn build<'a>(row: &impl NamedRow<'a, Sqlite>) -> deserialize::Result<Self> {
        let value = |index: usize| -> deserialize::Result<Value> {
            let field = diesel::row::Row::get(row, index).ok_or("a column is missing")?;
            let Some(value) = field.value() else { return Ok(Value::Null) };
            match value.value_type() {
                Some(SqliteType::Long) => FromDiesel::<sql_types::BigInt, Sqlite>::from_sql(value).map(Value::Integer),
                Some(SqliteType::Text) => FromDiesel::<sql_types::Text, Sqlite>::from_sql(value).map(Value::Text),
                Some(SqliteType::Binary) => FromDiesel::<sql_types::Binary, Sqlite>::from_sql(value).map(Value::Bytes),
                other => Err(format!("a column contains a value of type {other:?}").into()),
            }
        };
        (0..row.field_count()).map(value).collect::<Result<_, _>>().map(Self)
    }
}

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self, ty) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Integer(number), &Type::INT8) => number.to_sql(ty, out),
            (Self::Text(text), &Type::TEXT) => text.to_sql(ty, out),
            (Self::Bytes(bytes), &Type::BYTEA) => bytes.to_sql(ty, out),
            (Self::Bytes(id), &Type::UUID) if id.len() == 16 => {
                out.extend_from_slice(id);
                Ok(IsNull::No)
            }
            _ => Err("a value is not of its column's type".into()),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA, Type::UUID].contains(ty)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        match *ty {
            Type::INT8 => FromSql::from_sql(ty, raw).map(Self::Integer),
            Type::TEXT => FromSql::from_sql(ty, raw).map(Self::Text),
            // An id is its bytes.
            _ => Ok(Self::Bytes(raw.to_vec())),
        }
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(ty: &Type) -> bool {
        <Self as ToSql>::accepts(ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(values: Vec<Value>) -> [u8; 32] {
        let mut tally = Tally::default();
        tally.add(&AnyRow(values));
        tally.digest()
    }

    #[test]
    fn rows_that_differ_have_different_digests() {
        let text = |text: &str| Value::Text(text.to_owned());
        let rows = [
            vec![text("a"), text("b")],
            vec![text("ab"), text("")],
            vec![Value::Bytes(b"a".to_vec()), text("b")],
            vec![text("a"), Value::Null],
            vec![text("a"), Value::Integer(0)],
        ];
        let digests: std::collections::BTreeSet<_> = rows.into_iter().map(digest).collect();
        assert_eq!(digests.len(), 5);
    }
}
