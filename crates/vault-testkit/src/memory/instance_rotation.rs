//! Moving rows between instance keys.

use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::Refusal;
use vault_core::id::KeyId;
use vault_core::integration::StoredIntegration;
use vault_core::port::{
    DestroyInstanceKey, FindUnderInstanceKey, InstanceKeyRotation, InstancePart, InstanceRow, KeyDestruction,
    MoveToInstanceKey, ReplaceInstanceKey, StoreError,
};
use vault_core::sealed::RetiringInstanceKey;

#[async_trait]
impl InstanceKeyRotation for MemoryStore {
    async fn replace_instance_key(&self, command: ReplaceInstanceKey) -> Result<bool, StoreError> {
        self.decide(|state| {
            let ReplaceInstanceKey { current, next, keys, now, audit } = command;
            let as_read = |id: KeyId| keys.iter().any(|key| key.id == id);
            let is_whole = state.instance_keys.len() == keys.len();
            if state.instance.as_ref() != Some(&current)
                || !is_whole
                || !state.instance_keys.iter().all(|key| as_read(key.id))
            {
                return false;
            }
            let (id, root_key, wrapped) = (current.instance_key, current.root_key, current.wrapped);
            state.retiring_instance_keys.push(RetiringInstanceKey { id, root_key, wrapped, retired_at: now });
            state.instance = Some(next);
            state.instance_keys = keys;
            state.audit.push(audit);
            true
        })
    }

    async fn find_under_instance_key(&self, query: FindUnderInstanceKey) -> Result<Vec<InstanceRow>, StoreError> {
        self.decide(|state| {
            let mut rows = state.instance_rows(query.part);
            rows.retain(|row| row.keys().contains(&query.key) && query.after.is_none_or(|after| row.place() > after));
            rows.sort_by_key(InstanceRow::place);
            rows.truncate(query.limit);
            rows
        })
    }

    async fn count_under_instance_key(&self, key: KeyId) -> Result<i64, StoreError> {
        self.decide(|state| state.count_under_instance_key(key))
    }

    async fn move_to_instance_key(&self, command: MoveToInstanceKey) -> Result<Option<usize>, StoreError> {
        self.decide(|state| {
            if state.instance.as_ref().map(|instance| instance.instance_key) != Some(command.to) {
                return None;
            }
            let mut moved = 0;
            for (before, after) in command.rows {
                if state.instance_rows(before.part()).contains(&before) {
                    state.put_instance_row(after);
                    moved += 1;
                }
            }
            Some(moved)
        })
    }

    async fn destroy_instance_key(&self, command: DestroyInstanceKey) -> Result<KeyDestruction, StoreError> {
        self.decide(|state| {
            let place = state.retiring_instance_keys.iter().position(|row| row.id == command.key);
            let Some(place) = place else { return Ok(KeyDestruction::NotRetiring) };
            if state.count_under_instance_key(command.key) > 0 {
                return Ok(KeyDestruction::InUse);
            }
            let instance = state.instance.as_mut().filter(|instance| instance.keyring == command.current);
            instance.ok_or(Refusal::Contended)?.keyring = command.keyring;
            state.retiring_instance_keys.remove(place);
            state.audit.push(command.audit);
            Ok(KeyDestruction::Destroyed)
        })?
    }
}

impl State {
    fn count_under_instance_key(&self, key: KeyId) -> i64 {
        let rows = InstancePart::ALL.into_iter().flat_map(|part| self.instance_rows(part));
        let rows = rows.filter(|row| row.keys().contains(&key)).count();
        let wide = self.instance_keys.iter().filter(|row| row.wrapped.key() == Some(key)).count();
        i64::try_from(rows + wide).unwrap_or(i64::MAX)
    }

    pub(super) fn instance_rows(&self, part: InstancePart) -> Vec<InstanceRow> {
        let accounts = || self.accounts.values();
        let invitations = || self.invitations.values();
        match part {
            InstancePart::Organizations => {
                let all = self.organization_keys.iter();
                all.map(|(organization, keys)| InstanceRow::Organization {
                    organization: *organization,
                    key: keys.fingerprint_key,
                    wrapped: keys.fingerprint_wrapped.clone(),
                })
                .collect()
            }
            InstancePart::OrganizationKeys => {
                let all = self.organization_keys.values().flat_map(|keys| &keys.keys);
                all.map(|key| InstanceRow::OrganizationKey {
                    organization: key.organization,
                    key: key.id,
                    wrapped: key.wrapped.clone(),
                })
                .collect()
            }
            InstancePart::Accounts => accounts()
                .map(|row| InstanceRow::Account {
                    signed: Box::new(row.signed.clone()),
                    code: row.digest,
                    password: row.password.clone(),
                    seed: row.seed.clone(),
                })
                .collect(),
            InstancePart::PendingSeeds => accounts()
                .filter_map(|row| {
                    let (organization, account) = (row.signed.grant.organization, row.signed.grant.account);
                    let pending = row.pending.as_ref()?;
                    Some(InstanceRow::PendingSeed { organization, account, seed: pending.seed.clone() })
                })
                .collect(),
            InstancePart::Invitations => {
                invitations().map(|row| InstanceRow::Invitation(Box::new(row.stored.clone()))).collect()
            }
            InstancePart::Drafts => invitations()
                .filter_map(|row| {
                    let grant = &row.stored.invitation.grant;
                    let draft = row.draft.as_ref()?;
                    let (password, seed) = (draft.password.clone(), draft.seed.clone());
                    let (organization, account) = (grant.organization, grant.account);
                    Some(InstanceRow::Draft { organization, account, password, seed })
                })
                .collect(),
            InstancePart::Integrations => {
                let without_use = |row| StoredIntegration { last_used_at: None, ..row };
                let all = self.integrations.values().cloned().map(without_use);
                all.map(|row| InstanceRow::Integration(Box::new(row))).collect()
            }
        }
    }

    fn put_instance_row(&mut self, row: InstanceRow) {
        match row {
            InstanceRow::Organization { organization, wrapped, .. } => {
                let keys = self.organization_keys.get_mut(&organization);
                keys.into_iter().for_each(|keys| keys.fingerprint_wrapped = wrapped.clone());
            }
            InstanceRow::OrganizationKey { organization, key, wrapped } => {
                let keys = self.organization_keys.get_mut(&organization).into_iter().flat_map(|keys| &mut keys.keys);
                keys.filter(|row| row.id == key).for_each(|row| row.wrapped = wrapped.clone());
            }
            InstanceRow::Account { signed, code, password, seed } => {
                if let Some(row) = self.accounts.get_mut(&signed.grant.account) {
                    (row.digest, row.password, row.seed) = (code, password, seed);
                }
            }
            InstanceRow::PendingSeed { account, seed, .. } => {
                let pending = self.accounts.get_mut(&account).and_then(|row| row.pending.as_mut());
                pending.into_iter().for_each(|pending| pending.seed = seed.clone());
            }
            InstanceRow::Invitation(stored) => {
                if let Some(row) = self.invitations.get_mut(&stored.invitation.grant.account) {
                    row.stored.digest = stored.digest;
                }
            }
            InstanceRow::Draft { account, password, seed, .. } => {
                if let Some(draft) = self.invitations.get_mut(&account).and_then(|row| row.draft.as_mut()) {
                    (draft.password, draft.seed) = (password, seed);
                }
            }
            InstanceRow::Integration(stored) => {
                let place = (stored.integration.organization, stored.integration.id);
                if let Some(row) = self.integrations.get_mut(&place) {
                    row.digest = stored.digest;
                }
            }
        }
    }
}
