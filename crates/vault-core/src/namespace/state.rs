//! States of namespaces.

use super::Namespace;
use crate::audit::{Affected, Subject};
use crate::entity::{Entity, Index, Kind, Lookup};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// State of a namespace that was ever frozen. It remains when the namespace is thawed, so that its version never starts again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceState {
    /// The namespace, unique in its organization.
    pub namespace: Namespace,
    /// Time at which it was frozen, if it is frozen.
    pub frozen_at: Option<Timestamp>,
}

impl NamespaceState {
    /// Returns the value by which the state of a namespace is found.
    pub fn lookup(namespace: &Namespace) -> Lookup {
        Lookup::new(Index::Namespace, namespace.as_str())
    }
}

impl Entity for NamespaceState {
    const KIND: Kind = Kind::Namespace;

    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        let frozen = self.frozen_at.map(|_| Lookup::new(Index::FrozenNamespace, self.namespace.as_str()));
        std::iter::once(Self::lookup(&self.namespace)).chain(frozen).collect()
    }

    fn subject(&self, _id: Uuid) -> Affected {
        Affected::from(Subject::Namespace).within(self.namespace.clone())
    }
}
