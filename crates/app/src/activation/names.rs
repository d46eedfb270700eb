//! Values of flags that are one of several names.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// One of `names`, which `parse` reads.
pub(crate) fn named<T, const N: usize>(
    names: [&'static str; N],
    parse: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(move |text| parse(&text).ok_or("is none of the names"))
}
