//! Proxy exceptions for the endpoint of `exec`. A proxy would receive the endpoint's token, and cannot connect to it.

use super::endpoint::HOST_NAME;
use std::ffi::{OsStr, OsString};

/// Clients read one of these variables or both, in different order.
const NAMES: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// Returns the variables for the command: the user's values, extended by the endpoint's host.
pub(super) fn variables(user: impl Fn(&str) -> Option<OsString>) -> [(&'static str, OsString); 2] {
    let [lower, upper] = NAMES.map(user);
    // Clients read the other variable if one is not set, so start from its value.
    let values = [lower.as_ref().or(upper.as_ref()), upper.as_ref().or(lower.as_ref())];
    let extended = values.map(|value| extended(value.map(OsString::as_os_str).unwrap_or_default()));
    let [lower, upper] = extended;
    [(NAMES[0], lower), (NAMES[1], upper)]
}

/// Adds the endpoint's host to `value`. A single asterisk disables all proxies, and would lose this meaning in a list.
fn extended(value: &OsStr) -> OsString {
    let text = value.to_string_lossy();
    let items = || text.split(|c: char| c == ',' || c.is_ascii_whitespace());
    if text.trim() == "*" || items().any(|item| item == HOST_NAME) {
        return value.to_owned();
    }
    let mut extended = value.to_owned();
    if !text.trim_end().is_empty() && !text.trim_end().ends_with(',') {
        extended.push(",");
    }
    extended.push(HOST_NAME);
    extended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_host_is_added_to_the_users_exceptions() {
        let of = |lower: Option<&str>, upper: Option<&str>| {
            let user = |name: &str| if name == "no_proxy" { lower } else { upper }.map(OsString::from);
            variables(user).map(|(_, value)| value.into_string().expect("text"))
        };
        for (lower, upper, expected) in [
            (None, None, ["127.0.0.1", "127.0.0.1"]),
            (Some("a.example"), None, ["a.example,127.0.0.1", "a.example,127.0.0.1"]),
            (None, Some("a.example,"), ["a.example,127.0.0.1", "a.example,127.0.0.1"]),
            (Some("a"), Some("b"), ["a,127.0.0.1", "b,127.0.0.1"]),
            (Some(""), Some("b"), ["127.0.0.1", "b,127.0.0.1"]),
            (Some("*"), None, ["*", "*"]),
            (Some("a, 127.0.0.1 ,b"), None, ["a, 127.0.0.1 ,b", "a, 127.0.0.1 ,b"]),
            (Some("127.0.0.10"), None, ["127.0.0.10,127.0.0.1", "127.0.0.10,127.0.0.1"]),
            (
                Some("localhost, 127.0.0.0/8"),
                None,
                ["localhost, 127.0.0.0/8,127.0.0.1", "localhost, 127.0.0.0/8,127.0.0.1"],
            ),
        ] {
            assert_eq!(of(lower, upper), expected, "{lower:?} {upper:?}");
        }
    }
}
