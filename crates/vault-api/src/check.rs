//! Results of a check.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One check of one credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckItem {
    /// Kind of check: `settings`, `authenticate`, `list`, `read`, `write`, `lifetime` or `least-privilege`.
    pub check: Cow<'static, str>,
    /// Result: `passed`, `failed`, `warning` or `skipped`.
    pub result: Cow<'static, str>,
    /// The bucket, if the credential has several and this one did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Reason why it did not pass, for programs. Absent if it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// Remedy in one line, for users. Absent if it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Cow<'static, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_that_passed_has_no_reason() {
        for text in [
            r#"{"check":"authenticate","result":"passed"}"#,
            r#"{"check":"list","result":"failed","reason":"denied","remedy":"Ask."}"#,
        ] {
            let item: Option<CheckItem> = serde_json::from_str(text).ok();
            assert_eq!(item.and_then(|item| serde_json::to_string(&item).ok()).as_deref(), Some(text));
        }
    }
}
