//! Support for the tests.

pub(crate) mod activators;
pub(crate) mod plans;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod subject;
pub(crate) mod world;

use vault_core::time::Timestamp;

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Returns a name for this build of the tests, which its processes share.
pub(crate) fn build() -> String {
    let modified = std::env::current_exe().and_then(|program| program.metadata()?.modified()).unwrap();
    modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos().to_string()
}
