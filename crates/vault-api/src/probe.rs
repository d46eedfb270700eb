//! Responses of `/livez` and `/readyz`.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Response of a server that is alive or ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeStatus {
    /// Always `ok`. Otherwise, the response is a problem document.
    pub status: Cow<'static, str>,
}
