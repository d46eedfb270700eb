//! Tests that cannot run on this machine.

use std::io::Write as _;

/// Reasons that `tests/run` accepts, because an administrator of the machine may be unable to change them. They are
/// listed in `CONTRIBUTING.md`.
const ACCEPTED: [&str; 4] = [
    "this machine allows root no mount namespace",
    "this machine allows root no network namespace",
    "this machine has no loop devices",
    "packets cannot be dropped by nftables",
];

/// Ends the test, and prints why it cannot run. If `ORGVAULT_TEST_REQUIRE` is set, as by `tests/run`, the test fails
/// unless `CONTRIBUTING.md` lists the reason.
#[macro_export]
macro_rules! skip {
    ($reason:expr $(, $value:expr)?) => {{
        $crate::skip::note(&$reason);
        return $($value)?;
    }};
}

/// Prints the reason, or fails. A function that may not return calls this instead of [`skip!`](crate::skip!).
#[allow(clippy::print_stderr, reason = "a test that cannot run prints the reason")]
#[track_caller]
pub fn note(reason: &str) {
    eprintln!("SKIPPED: {reason}");
    let Some(list) = std::env::var_os("ORGVAULT_TEST_REQUIRE") else { return };
    assert!(ACCEPTED.iter().any(|accepted| reason.starts_with(accepted)), "required, and cannot run: {reason}");
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).unwrap();
    writeln!(list, "{name}: {reason}").unwrap();
}
