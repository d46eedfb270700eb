//! Rotation of the instance keys: creates new keys, rewraps, reseals and signs rows with them, and destroys unused old
//! keys.

use super::progress::{Progress, Search};
use super::{Keys, RotationEnd};
use crate::audit::{Actor, Affected, AuditAction, AuditChange, ChangedField, Subject};
use crate::digest::RowMac;
use crate::entity::EntityKey;
use crate::error::{Error, Refusal};
use crate::id::KeyId;
use crate::invitation::{EnrolmentDraft, StoredInvitation};
use crate::keyring::{KeyPurpose, KeyringEntry};
use crate::operation::{Reseal, Resealed};
use crate::passcode::PendingSeed;
use crate::port::{
    DestroyKey, Event, FindUnderInstanceKey, InstancePart, InstanceRow, InstanceRowKey, KeyDestruction,
    MoveToInstanceKey, NextInstanceKey, ReplaceInstanceKey, SealError, StoreError,
};
use crate::principal::Principal;
use crate::sealed::{KeyState, OrganizationKeys, RetiringInstanceKey};
use futures_util::lock::Mutex;

/// Number of retries if another rotation starts or ends concurrently.
const ATTEMPTS: usize = 16;

/// A rotation in progress. Its progress is only in the rows: it can be dropped and restarted at any time, and several
/// workers and processes can run it concurrently.
pub struct InstanceRotation {
    keys: Keys,
    /// Key that was active at the start.
    to: KeyId,
    is_new: bool,
    rows: i64,
    progress: Mutex<Progress<InstancePart, InstanceRowKey>>,
    entities: Mutex<Entities>,
}

/// Which entities were sealed again.
enum Entities {
    UpTo(Option<EntityKey>),
    All,
}

fn missing() -> StoreError {
    StoreError::Fault("the vault has no instance".into())
}

impl Keys {
    /// Starts a rotation: gives the instance a new instance key, and new keys for lookups, tokens and the audit log. A few seconds later, nothing is sealed or signed with the old keys. If an earlier instance key is
    /// still retiring, creates no new keys and completes that rotation.
    ///
    /// # Errors
    /// The store failed, the root key cannot be used, or an instance-wide key cannot be unwrapped.
    pub async fn rotate_instance(&self) -> Result<InstanceRotation, Error> {
        for _ in 0..ATTEMPTS {
            let current = self.store.instance().await?.ok_or_else(missing)?;
            let retiring = self.store.retiring_instance_keys().await?;
            if !retiring.is_empty() {
                return self.instance_rotation(&retiring, false).await;
            }
            let keys = self.store.instance_keys().await?;
            self.digester.load_keys(&[current.instance_key]).await?;
            let NextInstanceKey { instance: next, keys } =
                match self.instance_rewrapper.next_instance_key(&current, &keys, self.environment.now()).await {
                    Ok(next) => next,
                    // Another process replaced the key between these reads.
                    Err(_) if self.store.instance().await?.as_ref() != Some(&current) => continue,
                    Err(error) => return Err(error.into()),
                };
            let now = self.environment.now();
            let audit = self.environment.record(
                now,
                None,
                Actor::Operator,
                AuditAction::InstanceKeyReplaced,
                Subject::Instance,
            );
            let recorded = Event::recorded(&audit);
            if self.store.replace_instance_key(ReplaceInstanceKey { current, next, keys, now, audit }).await? {
                self.environment.emit(recorded);
                let retiring = self.store.retiring_instance_keys().await?;
                return self.instance_rotation(&retiring, true).await;
            }
        }
        Err(StoreError::Unavailable("other processes kept replacing the instance key".into()).into())
    }

    async fn instance_rotation(
        &self,
        retiring: &[RetiringInstanceKey],
        is_new: bool,
    ) -> Result<InstanceRotation, Error> {
        self.digester.reload_keys().await?;
        let terms: Vec<_> = retiring.iter().map(instance_term).collect();
        let mut rows = 0_i64;
        for term in &terms {
            rows = rows.saturating_add(self.store.count_under(*term).await?);
        }
        let progress = Mutex::new(Progress::over(targets(&terms)));
        let entities = Mutex::new(Entities::UpTo(None));
        Ok(InstanceRotation { keys: self.clone(), to: self.digester.active_key(), is_new, rows, progress, entities })
    }

    /// Destroys replaced keys for lookups, tokens and the audit log that no row requires, and returns them.
    /// Before a lookup key is destroyed, all rows with its digests are rekeyed, and `seen` is called with the number of
    /// processed rows.
    ///
    /// # Errors
    /// The store failed, or the keyring document cannot be decrypted.
    pub async fn destroy_replaced(&self, seen: &mut (dyn FnMut(u64) + Send)) -> Result<Vec<KeyringEntry>, Error> {
        // Read the time first: everything that was created with a key that was drained by then is visible to the
        // following reads.
        let now = self.environment.now();
        let is_due = |term: &KeyringEntry| term.purpose != KeyPurpose::Instance && term.is_drained(now);
        let due: Vec<_> = self.terms().await?.into_iter().filter(is_due).collect();
        if due.iter().any(|term| term.purpose == KeyPurpose::Lookup) {
            self.digester.reload_keys().await?;
            let mut moves = self.rekey_lookups();
            while moves.step().await? {
                seen(moves.rows());
            }
        }
        let mut destroyed = Vec::new();
        for term in due {
            if self.destroy(term).await? == KeyDestruction::Destroyed {
                destroyed.push(term);
            }
        }
        Ok(destroyed)
    }

    /// Returns the keys of the keyring document.
    pub(super) async fn terms(&self) -> Result<Vec<KeyringEntry>, Error> {
        let current = self.store.instance().await?.ok_or_else(missing)?;
        self.digester.load_keys(&[current.instance_key]).await?;
        Ok(self.instance_rewrapper.terms(&current)?)
    }

    /// Destroys a key unless a row requires it.
    async fn destroy(&self, term: KeyringEntry) -> Result<KeyDestruction, Error> {
        let Self { store, environment, digester, instance_rewrapper, .. } = self;
        for _ in 0..ATTEMPTS {
            let current = store.instance().await?.ok_or_else(missing)?;
            digester.load_keys(&[current.instance_key]).await?;
            let keyring = instance_rewrapper.keyring_without(&current, term.id)?;
            let key = format!("{} {}", term.purpose.as_str(), term.id);
            let affected =
                Affected::from(Subject::Instance).changing([AuditChange::new(ChangedField::Key, Some(key), None)]);
            let action = AuditAction::InstanceKeyDestroyed;
            let audit = environment.record(environment.now(), None, Actor::Operator, action, affected);
            let recorded = Event::recorded(&audit);
            match store.destroy_key(DestroyKey { term, current: current.keyring, keyring, audit }).await {
                // Another process changed the keyring after it was read.
                Err(StoreError::Refused(Refusal::Contended)) => {}
                Ok(KeyDestruction::Destroyed) => {
                    environment.emit(recorded);
                    return Ok(KeyDestruction::Destroyed);
                }
                decided => return Ok(decided?),
            }
        }
        Err(StoreError::Unavailable("other processes kept changing the set of keys".into()).into())
    }
}

fn unreadable(row: &InstanceRow) -> SealError {
    let (table, object) = (row.part().table(), row.place().1.to_string());
    SealError::Integrity { table, column: "key", object, reason: "no key is recognized in it" }
}

type InstanceProgress = Progress<InstancePart, InstanceRowKey>;

impl InstanceProgress {
    /// Leaves a row where it is, and reports it once.
    fn keep_damaged(&mut self, keys: &Keys, row: &InstanceRow, error: &SealError) {
        if self.damaged.insert((row.part(), row.place())) {
            keys.environment.report(error);
        }
    }
}

impl Keys {
    /// Runs a step of the rotation over entities.
    async fn reseal(&self, after: Option<EntityKey>) -> Result<Resealed, Error> {
        let step = Reseal { after, limit: self.batch };
        self.operations.run(&self.environment, &Principal::Operator, step).await
    }

    /// Opens all entities, and returns how many of them do not open.
    async fn damaged_entities(&self) -> Result<i64, Error> {
        let (mut damaged, mut after) = (0_i64, None);
        loop {
            let step = self.reseal(after).await?;
            for key in &step.damaged {
                self.environment.emit(key.damaged());
                damaged += 1;
            }
            after = step.last;
            if after.is_none() {
                return Ok(damaged);
            }
        }
    }

    /// Decrypts all rows that depend on the instance key, and returns how many of them cannot be decrypted.
    async fn damaged_rows(&self, progress: &mut InstanceProgress) -> Result<i64, Error> {
        let mut damaged = self.damaged_entities().await?;
        for part in InstancePart::all() {
            let mut after = None;
            loop {
                let places = self.store.instance_places(part, after, self.batch).await?;
                for (organization, id) in &places {
                    let (Ok(organization), Ok(id)) = (organization.parse(), id.parse()) else {
                        damaged += 1;
                        continue;
                    };
                    let row = match self.store.instance_row(part, (organization, id)).await {
                        Ok(Some(row)) => row,
                        Ok(None) => continue, // it was deleted concurrently
                        Err(StoreError::Integrity { table, id, .. }) => {
                            self.environment.emit(Event::IntegrityFailure { table, id });
                            damaged += 1;
                            continue;
                        }
                        Err(error) => return Err(error.into()),
                    };
                    self.digester.load_keys(&row.keys()).await?;
                    if let Err(error) = self.instance_rewrapper.opens(&row) {
                        progress.keep_damaged(self, &row, &error);
                        damaged += 1;
                    }
                }
                let Some(last) = places.into_iter().next_back() else { break };
                after = Some(last);
            }
        }
        Ok(damaged)
    }
}

/// The keyring entry of a replaced instance key, according to its row. The keyring document may not name it.
pub(super) const fn instance_term(row: &RetiringInstanceKey) -> KeyringEntry {
    KeyringEntry { purpose: KeyPurpose::Instance, id: row.id, state: KeyState::Retiring, since: row.retired_at }
}

/// Returns the rows to move from these keys.
fn targets(terms: &[KeyringEntry]) -> Vec<(KeyId, InstancePart)> {
    terms.iter().flat_map(|term| InstancePart::all().map(|part| (term.id, part))).collect()
}

impl InstanceRotation {
    /// Returns the active instance key.
    pub const fn key(&self) -> KeyId {
        self.to
    }

    /// Returns whether this call created that key. Otherwise it completes an earlier rotation.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the number of rows to move at the start.
    pub const fn rows(&self) -> i64 {
        self.rows
    }

    /// Moves the next rows and returns their number, or `None` if no rows remain. Concurrent calls move different rows.
    ///
    /// # Errors
    /// The store failed. Rows that were moved stay moved, and the call can be repeated.
    pub async fn step(&self) -> Result<Option<usize>, Error> {
        if let Some(moved) = self.reseal().await? {
            return Ok(Some(moved));
        }
        let Some(rows) = self.claim().await? else { return Ok(None) };
        let keys: Vec<_> = rows.iter().flat_map(InstanceRow::keys).collect();
        self.keys.digester.load_keys(&keys).await?;
        let to = self.keys.digester.active_key();
        let mut moved = Vec::with_capacity(rows.len());
        for row in rows {
            match self.make_again(&row) {
                Ok(made) if made != row => moved.push((row, made)),
                // Unchanged, it would be found under the same key for ever.
                Ok(_) => self.progress.lock().await.keep_damaged(&self.keys, &row, &unreadable(&row)),
                Err(error) => self.progress.lock().await.keep_damaged(&self.keys, &row, &error),
            }
        }
        match self.keys.store.move_to_instance_key(MoveToInstanceKey { to, rows: moved }).await? {
            Some(moved) => Ok(Some(moved)),
            // Another rotation replaced the key in the meantime. Later steps claim these rows again.
            None => {
                self.keys.digester.reload_keys().await?;
                Ok(Some(0))
            }
        }
    }

    /// Seals the next entities again that need it. Returns `None` if none remain.
    async fn reseal(&self) -> Result<Option<usize>, Error> {
        let mut entities = self.entities.lock().await;
        while let Entities::UpTo(after) = *entities {
            let step = self.keys.reseal(after).await?;
            *entities = step.last.map_or(Entities::All, |last| Entities::UpTo(Some(last)));
            if step.moved > 0 {
                return Ok(Some(step.moved));
            }
        }
        Ok(None)
    }

    /// Destroys unused keys. Call it after every [`step`](Self::step) has returned `None`. Returns `None` if further
    /// steps are needed, because a row was moved concurrently or another key started to retire.
    ///
    /// # Errors
    /// The store failed.
    pub async fn finish(&self) -> Result<Option<RotationEnd>, Error> {
        let store = &self.keys.store;
        let terms: Vec<_> = store.retiring_instance_keys().await?.iter().map(instance_term).collect();
        let mut progress = self.progress.lock().await;
        let mut kept = Vec::new();
        // The old key may be the only one that decrypts a row whose header is damaged, once it is restored.
        let damaged = self.keys.damaged_rows(&mut progress).await?;
        for term in terms.iter().copied() {
            if damaged > 0 {
                kept.push((term.id, store.count_under(term).await?));
                continue;
            }
            match self.keys.destroy(term).await? {
                KeyDestruction::Destroyed => progress.destroyed.push(term.id),
                KeyDestruction::InUse => kept.push((term.id, store.count_under(term).await?)),
                // Another process destroyed the key.
                KeyDestruction::NotRetiring => {}
            }
        }
        let mut end = progress.end(kept, Progress::over(targets(&terms)));
        for (_, rows) in end.iter_mut().flat_map(|end| &mut end.kept) {
            *rows = (*rows).max(damaged);
        }
        if end.is_none() {
            *self.entities.lock().await = Entities::UpTo(None);
        }
        Ok(end)
    }

    /// Returns the next rows to move.
    async fn claim(&self) -> Result<Option<Vec<InstanceRow>>, Error> {
        // Keep the lock while reading, so that concurrent tasks of this process claim different rows.
        let mut progress = self.progress.lock().await;
        let find = |search: Search<_, _>| {
            let Search { key, part, after, .. } = search;
            self.keys.store.find_under_instance_key(FindUnderInstanceKey { key, part, after, limit: self.keys.batch })
        };
        Ok(progress.claim(find, InstanceRow::place).await?.map(|(_, _, rows)| rows))
    }

    /// Returns the row under the active key. Computes a new MAC only if the old one verifies: otherwise a row planted
    /// through SQL would become valid.
    fn make_again(&self, row: &InstanceRow) -> Result<InstanceRow, SealError> {
        let (rewrapper, digester) = (&self.keys.instance_rewrapper, &*self.keys.digester);
        let unsigned = || {
            let (table, object, reason) =
                (row.part().table(), row.place().1.to_string(), "the MAC of the row does not verify");
            SealError::Integrity { table, column: "code", object, reason }
        };
        let signed = |fits: bool, made: RowMac, code: &RowMac| {
            match (code.key == made.key, fits) {
                // The row already has a MAC under this key. Keep it, even if it does not verify.
                (true, _) => Ok(*code),
                (false, true) => Ok(made),
                (false, false) => Err(unsigned()),
            }
        };
        Ok(match row {
            InstanceRow::Organization { organization, keys } => {
                let fingerprint_wrapped = rewrapper.fingerprint_key(*organization, keys)?;
                let keys = OrganizationKeys { fingerprint_wrapped, ..(**keys).clone() };
                InstanceRow::Organization { organization: *organization, keys: Box::new(keys) }
            }
            InstanceRow::OrganizationKey { organization, key, wrapped } => {
                let wrapped = rewrapper.organization_key(*organization, *key, wrapped)?;
                InstanceRow::OrganizationKey { organization: *organization, key: *key, wrapped }
            }
            InstanceRow::Account { signed: account, code, password, seed } => InstanceRow::Account {
                code: signed(account.fits(digester, code), account.digest(digester), code)?,
                password: rewrapper.password(account.grant.account, password)?,
                seed: rewrapper.seed(account.grant.account, seed)?,
                signed: account.clone(),
            },
            InstanceRow::PendingSeed { organization, account, pending } => {
                let owner = (*organization, *account);
                let seed = rewrapper.seed(*account, &pending.seed)?;
                let made = PendingSeed::sign(owner, seed, pending.expires_at, digester);
                let digest = signed(pending.mac_is_valid(owner, digester), made.digest, &pending.digest)?;
                let pending = PendingSeed { digest, ..made };
                InstanceRow::PendingSeed { organization: *organization, account: *account, pending }
            }
            InstanceRow::Invitation(stored) => {
                let made = stored.invitation.digest(stored.version, digester);
                let digest = signed(stored.mac_is_valid(digester), made, &stored.digest)?;
                InstanceRow::Invitation(Box::new(StoredInvitation { digest, ..(**stored).clone() }))
            }
            InstanceRow::Draft { organization, account, draft } => {
                let owner = (*organization, *account);
                let (password, seed) =
                    (rewrapper.password(*account, &draft.password)?, rewrapper.seed(*account, &draft.seed)?);
                let made = EnrolmentDraft::sign(owner, password, seed, draft.recovery_codes.clone(), digester);
                let digest = signed(draft.mac_is_valid(owner, digester), made.digest, &draft.digest)?;
                let draft = EnrolmentDraft { digest, ..made };
                InstanceRow::Draft { organization: *organization, account: *account, draft }
            }
        })
    }
}
