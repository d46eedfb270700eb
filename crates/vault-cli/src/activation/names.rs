//! Flags whose value is one of several names.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Returns a parser that accepts one of `names` and converts it with `parse`.
pub(crate) fn named<T, const N: usize>(
    names: [&'static str; N],
    parse: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(move |text| parse(&text).ok_or("is none of the names"))
}
