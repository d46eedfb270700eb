//! Changes of the keys of the instance.

use super::{Access, Failure, Operation, Unit};
use crate::audit::{Affected, AuditAction, AuditChange, ChangedField, Subject};
use crate::keyring::KeyringEntry;
use crate::sealed::InstanceRecord;

/// Replaces the keys of the instance, if they are unchanged since they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplaceInstance {
    /// The instance as read.
    pub current: InstanceRecord,
    /// The instance with its new keys.
    pub next: InstanceRecord,
    /// The difference.
    pub change: InstanceChange,
}

/// A change of the keys of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceChange {
    /// Another root key wraps the instance key.
    RootKey,
    /// There is another instance key. Nothing can be stored under the previous one any more.
    InstanceKey,
    /// A retiring key is destroyed, unless a row requires it. If it is no instance key, it retired so long ago that nothing new
    /// is created with it.
    Destroyed(KeyringEntry),
}

/// Result of a change of the keys of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacedInstance {
    /// The keys were replaced.
    Replaced,
    /// The keys have changed since they were read.
    Changed,
    /// Rows require the key that was to be destroyed.
    InUse,
}

impl Operation for ReplaceInstance {
    type Outcome = ReplacedInstance;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<ReplacedInstance, Failure> {
        // A transaction that stores something under the instance key locks this row.
        if unit.rows().lock_instance().await?.as_ref() != Some(&self.current) {
            return Ok(ReplacedInstance::Changed);
        }
        let instance = Affected::from(Subject::Instance);
        let (action, affected) = match self.change {
            InstanceChange::RootKey => (AuditAction::RootKeyReplaced, instance),
            InstanceChange::InstanceKey => (AuditAction::InstanceKeyReplaced, instance),
            InstanceChange::Destroyed(entry) if unit.rows().requires(entry).await? => {
                return Ok(ReplacedInstance::InUse);
            }
            InstanceChange::Destroyed(entry) => {
                let key = format!("{} {}", entry.purpose.as_str(), entry.id);
                let change = AuditChange::new(ChangedField::Key, Some(key), None);
                (AuditAction::InstanceKeyDestroyed, instance.changing([change]))
            }
        };
        unit.rows().set_instance(&self.next).await?;
        unit.record(None, action, affected).await?;
        Ok(ReplacedInstance::Replaced)
    }
}

/// Counts the rows that require a retiring key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountUnder(pub KeyringEntry);

impl Operation for CountUnder {
    type Outcome = i64;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<i64, Failure> {
        Ok(unit.rows().count_under(self.0).await?)
    }
}
