//! Statements about tables and columns that a list names, which the types of Diesel's query builder cannot express.

use super::backend::Db;
use crate::stored::{AnyId, Id};
use diesel::expression::{ValidGrouping, is_aggregate};
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{BigInt, Binary, SingleValue, Text};
use diesel::{AppearsOnTable, Expression};
use std::marker::PhantomData;

/// A part of a statement. Its texts are constants.
#[derive(Clone, Debug)]
enum Part<'a> {
    Text(&'static str),
    Dialect { sqlite: &'static str, pg: &'static str },
    Name(&'static str),
    Id(AnyId),
    Bytes(&'a [u8]),
    String(&'a str),
    Number(i64),
}

/// A statement or a condition with the result `ST`, built from constant texts and bound values. Diesel does not check it against
/// the tables.
#[derive(Clone, Debug)]
pub(crate) struct Parts<'a, ST> {
    parts: Vec<Part<'a>>,
    result: PhantomData<ST>,
}

impl<'a, ST> Parts<'a, ST> {
    pub(crate) fn new(text: &'static str) -> Self {
        Self { parts: vec![Part::Text(text)], result: PhantomData }
    }

    fn with(mut self, part: Part<'a>) -> Self {
        self.parts.push(part);
        self
    }

    pub(crate) fn text(self, text: &'static str) -> Self {
        self.with(Part::Text(text))
    }

    /// A text that differs between the dialects.
    pub(crate) fn dialect(self, sqlite: &'static str, pg: &'static str) -> Self {
        self.with(Part::Dialect { sqlite, pg })
    }

    /// The name of a table or column.
    pub(crate) fn name(self, name: &'static str) -> Self {
        self.with(Part::Name(name))
    }

    pub(crate) fn id(self, id: impl Into<AnyId>) -> Self {
        self.with(Part::Id(id.into()))
    }

    pub(crate) fn bytes(self, bytes: &'a [u8]) -> Self {
        self.with(Part::Bytes(bytes))
    }

    pub(crate) fn string(self, string: &'a str) -> Self {
        self.with(Part::String(string))
    }

    pub(crate) fn number(self, number: i64) -> Self {
        self.with(Part::Number(number))
    }

    /// Appends each item, with a text before each that follows another.
    pub(crate) fn each<I>(
        self,
        items: impl IntoIterator<Item = I>,
        between: &'static str,
        append: impl Fn(Self, I) -> Self,
    ) -> Self {
        let appended = |statement: Self, (number, item)| {
            append(if number == 0 { statement } else { statement.text(between) }, item)
        };
        items.into_iter().enumerate().fold(self, appended)
    }
}

impl<ST> QueryId for Parts<'_, ST> {
    type QueryId = ();
    // Connections find the statement by its text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<ST> Query for Parts<'_, ST> {
    type SqlType = ST;
}

impl<ST> QueryFragment<Db> for Parts<'_, ST> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_sql(text),
                Part::Dialect { sqlite, pg } => out.push_sql(match *out.backend() {
                    Db::Sqlite => sqlite,
                    Db::Pg => pg,
                }),
                Part::Name(name) => out.push_identifier(name)?,
                Part::Id(id) => out.push_bind_param::<Id, _>(id)?,
                Part::Bytes(bytes) => out.push_bind_param::<Binary, _>(*bytes)?,
                Part::String(string) => out.push_bind_param::<Text, _>(*string)?,
                Part::Number(number) => out.push_bind_param::<BigInt, _>(number)?,
            }
        }
        Ok(())
    }
}

impl<ST: SingleValue> Expression for Parts<'_, ST> {
    type SqlType = ST;
}

impl<ST, GB> ValidGrouping<GB> for Parts<'_, ST> {
    type IsAggregate = is_aggregate::Never;
}

impl<S, ST: SingleValue> AppearsOnTable<S> for Parts<'_, ST> {}
