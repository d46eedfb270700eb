//! Who gets a seat in the queue of the password hash.
//!
//! Every password to hash holds a seat from before its account is looked up until it is hashed. There are few, so the
//! rule keeps one network, or many networks from which nobody ever logged in, from taking them all.

use crate::digest::Digest;
use std::collections::HashMap;

/// Who asks for a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// An operator, or somebody who has proven who they are. Only the number of seats limits them.
    Trusted,
    /// A client that has proven nothing yet.
    Network {
        /// The keyed digest of its network.
        network: Digest,
        /// Whether anybody logged in from that network within
        /// [`NETWORK_KNOWN_SECONDS`](crate::lockout::NETWORK_KNOWN_SECONDS). Asked of the network alone, never of the
        /// address that wants to log in: otherwise a refusal would reveal whether the address exists.
        known: bool,
    },
}

/// A seat that is held. Return it with [`Seats::give_back`].
#[derive(Debug)]
#[must_use = "a seat that is dropped is never free again"]
pub struct Seat(Requester);

/// The seats of one process.
#[derive(Debug)]
pub struct Seats {
    total: usize,
    taken: usize,
    taken_by_unknown: usize,
    taken_by_network: HashMap<[u8; 32], usize>,
}

impl Seats {
    /// As many free seats.
    pub fn new(total: usize) -> Self {
        Self { total, taken: 0, taken_by_unknown: 0, taken_by_network: HashMap::new() }
    }

    /// The most seats that one network holds: a quarter, but at least one.
    pub const fn most_of_a_network(&self) -> usize {
        match self.total / 4 {
            0 => 1,
            quarter => quarter,
        }
    }

    /// The most seats that all unknown networks hold together. The other half is kept for known networks.
    pub const fn most_of_unknown_networks(&self) -> usize {
        self.total.div_ceil(2)
    }

    /// How many there are.
    pub const fn total(&self) -> usize {
        self.total
    }

    /// How many are held.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// Takes a seat, if the rule leaves one to this requester.
    pub fn take(&mut self, requester: Requester) -> Option<Seat> {
        if self.taken >= self.total {
            return None;
        }
        if let Requester::Network { network, known } = requester {
            let of_network = self.taken_by_network.get(network.as_bytes()).copied().unwrap_or(0);
            let of_unknown = self.taken_by_unknown + usize::from(!known);
            if of_network >= self.most_of_a_network() || of_unknown > self.most_of_unknown_networks() {
                return None;
            }
            self.taken_by_unknown = of_unknown;
            self.taken_by_network.insert(*network.as_bytes(), of_network + 1);
        }
        self.taken += 1;
        Some(Seat(requester))
    }

    /// Frees a seat that was taken here.
    pub fn give_back(&mut self, seat: Seat) {
        self.taken = self.taken.saturating_sub(1);
        if let Requester::Network { network, known } = seat.0 {
            self.taken_by_unknown = self.taken_by_unknown.saturating_sub(usize::from(!known));
            if let Some(count) = self.taken_by_network.get_mut(network.as_bytes()) {
                *count -= 1;
                if *count == 0 {
                    self.taken_by_network.remove(network.as_bytes());
                }
            }
        }
    }
}
