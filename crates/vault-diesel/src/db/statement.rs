//! A query whose text and values are rendered. It is not generic, so Diesel's connection code is compiled once for all queries.

use super::backend::{Db, DbQueryBuilder};
use super::bind::{Binds, Scalar, TypedBind};
use crate::stored::Id;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryBuilder as _, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Text, Untyped};
use diesel::sqlite::Sqlite;
use std::any::TypeId;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

/// A query, rendered.
#[derive(Debug)]
pub(super) struct Statement<'q> {
    text: Cow<'static, str>,
    /// Whether connections keep it prepared. They find it by its text.
    keep: bool,
    binds: Vec<TypedBind<'q>>,
}

/// The text of a query's type in a dialect, and whether its statement is kept prepared.
type Texts = HashMap<(TypeId, Db), (&'static str, bool)>;

/// The texts of the queries whose type fixes their text. Their number is bounded by the code, so they are never dropped.
static TEXTS: LazyLock<RwLock<Texts>> = LazyLock::new(RwLock::default);

impl<'q> Statement<'q> {
    /// Renders a query. `id` is its [`QueryId`], if its type fixes its text.
    pub(super) fn of(
        query: &'q (impl QueryFragment<Db> + ?Sized),
        id: Option<TypeId>,
        dialect: Db,
    ) -> QueryResult<Self> {
        let mut binds = Binds::default();
        query.collect_binds(&mut binds, &mut (), dialect.as_static())?;
        let (text, keep) = text_of(id, dialect, || {
            let mut text = DbQueryBuilder::new(dialect);
            query.to_sql(&mut text, dialect.as_static())?;
            let text = text.finish();
            // Diesel keeps no `UPDATE`, because its columns may differ from call to call. Here they differ with its text.
            let keep = query.is_safe_to_cache_prepared(dialect.as_static())? || text.starts_with("UPDATE ");
            Ok((text, keep))
        })?;
        Ok(Self { text, keep, binds: binds.0 })
    }

    /// A statement whose text does not come from Diesel.
    pub(super) fn new(text: Cow<'static, str>, binds: Vec<TypedBind<'q>>) -> Self {
        Self { text, keep: true, binds }
    }
}

/// Returns the text of a query and whether connections keep it prepared, rendered once for each id.
pub(super) fn text_of(
    id: Option<TypeId>,
    dialect: Db,
    render: impl FnOnce() -> QueryResult<(String, bool)>,
) -> QueryResult<(Cow<'static, str>, bool)> {
    let Some(id) = id else {
        let (text, keep) = render()?;
        return Ok((Cow::Owned(text), keep));
    };
    let key = (id, dialect);
    if let Some((text, keep)) = TEXTS.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok((Cow::Borrowed(text), *keep));
    }
    let (text, keep) = render()?;
    let mut texts = TEXTS.write().unwrap_or_else(PoisonError::into_inner);
    let (text, keep) = *texts.entry(key).or_insert_with(|| (Box::leak(text.into_boxed_str()), keep));
    Ok((Cow::Borrowed(text), keep))
}

impl Query for Statement<'_> {
    type SqlType = Untyped;
}

impl QueryId for Statement<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

// Everything is in `walk_ast`: Diesel calls the other methods through a reference, which forwards this one only.
impl QueryFragment<Sqlite> for Statement<'_> {
    #[inline]
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        out.push_sql(&self.text);
        if !self.keep {
            out.unsafe_to_cache_prepared();
        }
        for bind in &self.binds {
            match bind.of.scalar {
                Scalar::BigInt => out.push_bind_param_value_only::<BigInt, _>(bind)?,
                Scalar::Text => out.push_bind_param_value_only::<Text, _>(bind)?,
                Scalar::Bool => out.push_bind_param_value_only::<Bool, _>(bind)?,
                Scalar::Binary | Scalar::Id | Scalar::Unused => out.push_bind_param_value_only::<Binary, _>(bind)?,
            }
        }
        Ok(())
    }
}

impl QueryFragment<Pg> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(&self.text);
        if !self.keep {
            out.unsafe_to_cache_prepared();
        }
        for bind in &self.binds {
            match (bind.of.scalar, bind.of.is_array) {
                (Scalar::BigInt, false) => out.push_bind_param_value_only::<BigInt, _>(bind)?,
                (Scalar::Text, false) => out.push_bind_param_value_only::<Text, _>(bind)?,
                (Scalar::Bool, false) => out.push_bind_param_value_only::<Bool, _>(bind)?,
                (Scalar::Id, false) => out.push_bind_param_value_only::<Id, _>(bind)?,
                (Scalar::Binary | Scalar::Unused, false) => out.push_bind_param_value_only::<Binary, _>(bind)?,
                (Scalar::BigInt, true) => out.push_bind_param_value_only::<Array<BigInt>, _>(bind)?,
                (Scalar::Text, true) => out.push_bind_param_value_only::<Array<Text>, _>(bind)?,
                (Scalar::Bool, true) => out.push_bind_param_value_only::<Array<Bool>, _>(bind)?,
                (Scalar::Id, true) => out.push_bind_param_value_only::<Array<Id>, _>(bind)?,
                (Scalar::Binary | Scalar::Unused, true) => out.push_bind_param_value_only::<Array<Binary>, _>(bind)?,
            }
        }
        Ok(())
    }
}
