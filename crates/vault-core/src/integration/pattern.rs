//! Namespaces that an integration may activate.

use crate::field::{FieldCode, FieldError, child};
use crate::namespace::Namespace;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A pattern for one namespace, or for all below a prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamespacePattern {
    /// Only this namespace.
    Exact(Namespace),
    /// All namespaces that start with this one and a `/`, including future ones, but not this one itself. Written with
    /// the suffix `/*`.
    Below(Namespace),
}

impl NamespacePattern {
    const BELOW: &str = "/*";

    /// Parses `text`. `pointer` is its position in the request, for the error.
    ///
    /// # Errors
    /// Returns the rule that the text violates.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, FieldError> {
        let pattern = match text.strip_suffix(Self::BELOW) {
            Some(prefix) => Namespace::parse(prefix, pointer).map(Self::Below)?,
            None if text.contains('*') => {
                let detail = "may contain * only at the end, after a slash: imports/*";
                return Err(FieldError::new(pointer, FieldCode::Malformed, detail));
            }
            None => Namespace::parse(text, pointer).map(Self::Exact)?,
        };
        Ok(pattern)
    }

    /// Returns whether it permits the activation of `namespace`.
    pub fn allows(&self, namespace: &Namespace) -> bool {
        match self {
            Self::Exact(allowed) => allowed == namespace,
            Self::Below(prefix) => {
                let rest = namespace.as_str().strip_prefix(prefix.as_str());
                rest.and_then(|rest| rest.strip_prefix('/')).is_some_and(|below| !below.is_empty())
            }
        }
    }
}

impl fmt::Display for NamespacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(namespace) => f.write_str(namespace.as_str()),
            Self::Below(prefix) => write!(f, "{prefix}{}", Self::BELOW),
        }
    }
}

/// 1 to 64 sorted patterns without duplicates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespacePatterns(Vec<NamespacePattern>);

impl NamespacePatterns {
    /// Maximum number of patterns.
    pub const MAX: usize = 64;

    /// Parses `texts`. `pointer` is the position of the list in the request, for the errors.
    ///
    /// # Errors
    /// All violations, each at its position in the list.
    pub fn parse<T: AsRef<str>>(texts: &[T], pointer: &str) -> Result<Self, Vec<FieldError>> {
        if texts.is_empty() {
            return Err(vec![FieldError::new(pointer, FieldCode::Blank, "must contain at least one namespace")]);
        }
        if texts.len() > Self::MAX {
            return Err(vec![FieldError::new(pointer, FieldCode::TooLong, "must contain at most 64 namespaces")]);
        }
        let mut patterns = Vec::with_capacity(texts.len());
        let mut errors = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            match NamespacePattern::parse(text.as_ref(), &child(pointer, &index.to_string())) {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => errors.push(error),
            }
        }
        patterns.sort();
        patterns.dedup();
        if errors.is_empty() { Ok(Self(patterns)) } else { Err(errors) }
    }

    /// Returns whether one of them permits the activation of `namespace`.
    pub fn allow(&self, namespace: &Namespace) -> bool {
        self.0.iter().any(|pattern| pattern.allows(namespace))
    }

    /// Iterates over the patterns.
    pub fn iter(&self) -> impl Iterator<Item = &NamespacePattern> {
        self.0.iter()
    }
}
