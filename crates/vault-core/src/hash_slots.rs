//! Assignment of slots in the queue of the password hash.
//!
//! Every password to hash occupies a slot from before the lookup of its account until it is hashed. There are few
//! slots, so the limits prevent one network, or many networks without previous logins, from occupying all of them.

use crate::digest::Digest;
use std::collections::HashMap;

/// Requester of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// An operator or an authenticated user, limited only by the number of slots.
    Trusted,
    /// A client that has not authenticated.
    Network {
        /// Keyed digest of its network.
        network: Digest,
        /// Whether any account logged in from that network within
        /// [`NETWORK_KNOWN_SECONDS`](crate::lockout::NETWORK_KNOWN_SECONDS). This depends only on the network, never on
        /// the address of the login: otherwise a refusal would disclose whether the address exists.
        known: bool,
    },
}

/// An occupied slot. Return it with [`HashSlots::release`].
#[derive(Debug)]
#[must_use = "a slot that is dropped is never released"]
pub struct HashSlot(Requester);

/// The slots of one process.
#[derive(Debug)]
pub struct HashSlots {
    total: usize,
    taken: usize,
    taken_by_unknown: usize,
    taken_by_network: HashMap<[u8; 32], usize>,
}

impl HashSlots {
    /// Creates this number of free slots.
    pub fn new(total: usize) -> Self {
        Self { total, taken: 0, taken_by_unknown: 0, taken_by_network: HashMap::new() }
    }

    /// Returns the maximum number of slots per network: a quarter, but at least one.
    pub const fn most_of_a_network(&self) -> usize {
        match self.total / 4 {
            0 => 1,
            quarter => quarter,
        }
    }

    /// Returns the maximum number of slots for all unknown networks together. The other half is reserved for known
    /// networks.
    pub const fn most_of_unknown_networks(&self) -> usize {
        self.total.div_ceil(2)
    }

    /// Returns the number of slots.
    pub const fn total(&self) -> usize {
        self.total
    }

    /// Returns the number of occupied slots.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// Acquires a slot if the limits permit it for this requester.
    pub fn take(&mut self, requester: Requester) -> Option<HashSlot> {
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
        Some(HashSlot(requester))
    }

    /// Releases a slot.
    pub fn release(&mut self, hash_slot: HashSlot) {
        self.taken = self.taken.saturating_sub(1);
        if let Requester::Network { network, known } = hash_slot.0 {
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
