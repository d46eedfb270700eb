//! Support for the tests.

pub(crate) mod activators;
pub(crate) mod plans;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod subject;
pub(crate) mod world;

use vault_core::port::Clock;
use vault_core::time::Timestamp;

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// The clock of this host.
pub(crate) struct HostClock;

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

#[expect(clippy::disallowed_methods, reason = "compared with the server's own clock")]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

/// Returns a name for this build of the tests, which its processes share.
pub(crate) fn build() -> String {
    let modified = std::env::current_exe().and_then(|program| program.metadata()?.modified()).unwrap();
    modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos().to_string()
}
