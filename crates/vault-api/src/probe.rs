//! `/livez` and `/readyz`.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The answer of a server that lives or is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeStatus {
    /// Always `ok`: anything else is a problem document.
    pub status: Cow<'static, str>,
}
