//! Verification that the audit log is unchanged.

use super::Operator;
use crate::audit::{
    AuditEntry, AuditFinding, AuditVerification, CHECKPOINT_ENTRIES, CheckpointContent, CheckpointRef, FindEntries,
    ListEntries, ReadCheckpoints, SealedCheckpoint,
};
use crate::digest::Digest;
use crate::error::Error;
use crate::id::AuditId;
use crate::port::{AuditOrder, AuditRange};
use crate::principal::Scope;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Number of checkpoints that are read at a time.
const PAGE: usize = 16;
/// Maximum number of entries with invalid MACs that are compared with each other, to detect exchanged entries.
const COMPARED: usize = 256;
/// Maximum number of missing checkpoints that are remembered, so that each is reported once.
const REMEMBERED: usize = 1_000;

/// Callback that receives findings immediately.
type Report<'a> = &'a mut (dyn FnMut(AuditFinding) + Send);

impl Operator {
    /// Verifies all entries and checkpoints, page by page, and passes each finding to `report`. With `anchor`, also
    /// verifies that the store has that checkpoint. Calls `progress` with the number of completed steps and the total;
    /// entries are read twice. Concurrent writes of entries are permitted.
    ///
    /// # Errors
    /// The store failed.
    pub async fn verify_audit(
        &self,
        anchor: Option<CheckpointRef>,
        report: Report<'_>,
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<AuditVerification, Error> {
        let mut found = 0;
        let mut report = |finding| {
            found += 1;
            report(finding);
        };
        let newest = self.newest_checkpoint().await?.number;
        let mut verification = AuditVerification { newest, ..AuditVerification::default() };
        self.verify_checkpoints(&mut verification, &mut report, progress).await?;
        self.verify_others(&mut verification, &mut report, progress).await?;
        if let Some(anchor) = anchor
            && !self.has_checkpoint(anchor).await?
        {
            match self.newest_checkpoint().await?.number {
                newest if newest < anchor.number => report(AuditFinding::Truncated { newest, anchored: anchor.number }),
                _ => report(AuditFinding::AnchorDiffers { checkpoint: anchor.number }),
            }
        }
        verification.findings = found;
        Ok(verification)
    }

    /// Verifies that each checkpoint follows from its predecessor and contains the stored entries.
    async fn verify_checkpoints(
        &self,
        verification: &mut AuditVerification,
        report: Report<'_>,
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<(), Error> {
        let (mut number, mut previous, mut changed) = (0, Some(CheckpointRef::NONE.hash), Vec::new());
        'pages: loop {
            let page = self.run(ReadCheckpoints::After { number, limit: PAGE }).await?;
            if page.is_empty() {
                break;
            }
            for stored in page {
                if stored.number > verification.newest {
                    break 'pages; // created since
                }
                let genuine = |sealed: &SealedCheckpoint| self.environment.audit.is_genuine_checkpoint(sealed);
                let sealed = stored.sealed.filter(genuine);
                let starts = number == 0 && sealed.as_ref().is_some_and(|sealed| sealed.checkpoint.is_start());
                if stored.number > number + 1 && !starts {
                    report(AuditFinding::CheckpointsMissing { first: number + 1, last: stored.number - 1 });
                    previous = None;
                }
                number = stored.number;
                previous = match sealed {
                    Some(sealed) if starts => {
                        verification.start = number;
                        Some(sealed.checkpoint.hash)
                    }
                    Some(sealed) => {
                        verification.checkpoints += 1;
                        self.verify_checkpoint(&sealed, previous, verification, &mut changed, report).await?;
                        Some(sealed.checkpoint.hash)
                    }
                    None => {
                        report(AuditFinding::CheckpointChanged { checkpoint: number });
                        None
                    }
                };
                progress(steps(number), steps(verification.newest) * 2);
            }
        }
        self.tell_apart(&changed, report);
        Ok(())
    }

    async fn verify_checkpoint(
        &self,
        sealed: &SealedCheckpoint,
        previous: Option<Digest>,
        verification: &mut AuditVerification,
        changed: &mut Vec<(AuditEntry, i64)>,
        report: Report<'_>,
    ) -> Result<(), Error> {
        let checkpoint = &sealed.checkpoint;
        let number = checkpoint.number;
        let found = self.run(FindEntries(checkpoint.entries.clone())).await?;
        let found: HashMap<String, AuditEntry> = found.into_iter().map(|entry| (entry.id.clone(), entry)).collect();
        let (mut macs, mut sound) = (Vec::new(), true);
        for id in &checkpoint.entries {
            let Some(entry) = found.get(&id.to_string()) else {
                report(AuditFinding::Missing { entry: *id, checkpoint: number });
                sound = false;
                continue;
            };
            if !entry.is_genuine(&*self.environment.audit) {
                sound = false;
                if changed.len() < COMPARED {
                    changed.push((entry.clone(), number));
                } else {
                    report(AuditFinding::Changed { entry: entry.id.clone(), checkpoint: number });
                }
                continue;
            }
            if entry.checkpoint == Some(number) {
                verification.entries += 1;
            } else {
                report(AuditFinding::Reordered {
                    entry: entry.id.clone(),
                    belongs: format!("checkpoint {number}, and its row says {}", place(entry.checkpoint)),
                });
            }
            macs.push((*id, entry.mac.as_slice()));
        }
        if let Some(previous) = previous.filter(|_| sound) {
            let content = CheckpointContent { previous, number, at: checkpoint.at, entries: &macs };
            if self.environment.audit.hash_checkpoint(&content.to_bytes()) != checkpoint.hash {
                report(AuditFinding::CheckpointReplaced { checkpoint: number });
            }
        }
        Ok(())
    }

    /// Returns whether a checkpoint with a valid MAC follows its predecessor `before`, and contains its entries as they
    /// were sealed. Without a predecessor, it must be the first or the start.
    pub(super) async fn is_as_sealed(
        &self,
        sealed: &SealedCheckpoint,
        before: Option<CheckpointRef>,
    ) -> Result<bool, Error> {
        let checkpoint = &sealed.checkpoint;
        if before.is_none() && checkpoint.is_start() {
            return Ok(true);
        }
        let before = before.unwrap_or(CheckpointRef::NONE);
        if checkpoint.number != before.number.saturating_add(1) {
            return Ok(false);
        }
        let (mut scratch, mut changed, mut found) = (AuditVerification::default(), Vec::new(), false);
        self.verify_checkpoint(sealed, Some(before.hash), &mut scratch, &mut changed, &mut |_| found = true).await?;
        Ok(!found && changed.is_empty())
    }

    /// Reports entries with invalid MACs: as reordered if the MAC verifies under the ID of another entry, otherwise as
    /// changed.
    fn tell_apart(&self, changed: &[(AuditEntry, i64)], report: Report<'_>) {
        let ids: Vec<AuditId> = changed.iter().filter_map(|(entry, _)| entry.id.parse().ok()).collect();
        for (entry, checkpoint) in changed {
            let belongs = ids.iter().find(|id| entry.mac_matches_id(**id, &*self.environment.audit));
            report(match belongs {
                Some(id) => AuditFinding::Reordered { entry: entry.id.clone(), belongs: format!("entry {id}") },
                None => AuditFinding::Changed { entry: entry.id.clone(), checkpoint: *checkpoint },
            });
        }
    }

    /// Verifies that each entry is in the checkpoint that its row names, or in none yet.
    async fn verify_others(
        &self,
        verification: &mut AuditVerification,
        report: Report<'_>,
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<(), Error> {
        let range = AuditRange { scope: Scope::All, from: None, until: None, order: AuditOrder::OldestFirst };
        let (mut after, mut seen, mut missing) = (None, 0, HashSet::new());
        loop {
            let page = self.run(ListEntries { range, after: after.clone(), limit: CHECKPOINT_ENTRIES }).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id.clone());
            seen += count(page.len());
            let mut named: BTreeMap<i64, Vec<AuditEntry>> = BTreeMap::new();
            for entry in page {
                match entry.checkpoint {
                    Some(number) => named.entry(number).or_default().push(entry),
                    None if entry.is_genuine(&*self.environment.audit) => verification.unsealed += 1,
                    None => report(AuditFinding::Added { entry: entry.id, checkpoint: None }),
                }
            }
            for (number, entries) in named {
                let stored = self.run(ReadCheckpoints::From(number)).await?.pop();
                match stored.filter(|stored| stored.number == number) {
                    // Reported with the checkpoints.
                    Some(stored) if stored.sealed.is_none() => {}
                    Some(stored) => {
                        let ids = stored.sealed.map(|sealed| sealed.checkpoint.entries).unwrap_or_default();
                        let ids: HashSet<AuditId> = ids.into_iter().collect();
                        for entry in entries {
                            if !entry.id.parse().is_ok_and(|id| ids.contains(&id)) {
                                report(AuditFinding::Added { entry: entry.id, checkpoint: Some(number) });
                            }
                        }
                    }
                    None if (1..=verification.start).contains(&number) => {
                        for entry in entries {
                            report(AuditFinding::Added { entry: entry.id, checkpoint: Some(number) });
                        }
                    }
                    None if (1..=verification.newest).contains(&number) => {} // reported with the checkpoints
                    None => {
                        if missing.len() < REMEMBERED && missing.insert(number) {
                            report(AuditFinding::CheckpointsMissing { first: number, last: number });
                        }
                    }
                }
            }
            let (half, entries) = (steps(verification.newest), verification.entries.max(1));
            let share = u128::from(half) * u128::from(seen.min(entries)) / u128::from(entries);
            progress(half + u64::try_from(share).unwrap_or(half), half * 2);
        }
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Returns the number of steps for the checkpoints up to this one.
fn steps(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default().min(u64::MAX / 2)
}

fn place(checkpoint: Option<i64>) -> String {
    checkpoint.map_or_else(|| "that none holds it".to_owned(), |number| format!("checkpoint {number}"))
}
