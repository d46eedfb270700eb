//! Networks from which users log in.

use crate::digest::Digest;
use crate::lockout::network_is_known;
use crate::operation::{Access, Failure, Operation, Unit};

/// Returns whether any account logged in from the network within
/// [`NETWORK_KNOWN_SECONDS`](crate::lockout::NETWORK_KNOWN_SECONDS), with a precision of one day. Reads only by network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkIsKnown(pub Digest);

impl Operation for NetworkIsKnown {
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let last_login = unit.rows().known_network(&self.0).await?;
        Ok(last_login.is_some_and(|at| network_is_known(at, unit.now())))
    }
}
