//! Rotation of the keys of the instance: moves rows from one key to another, and destroys keys that no row needs.

use super::super::account::directory;
use super::super::account::enrolment::DraftRow;
use super::super::account::invitation_row::{self, InvitationRow};
use super::super::account::pending_seed::PendingRow;
use super::super::account::row::{SignedRow, account_of};
use super::super::audit::AuditRecorder;
use super::super::credential::labels;
use super::super::credential::row::credential_of;
use super::super::{Read, Transaction};
use super::key_columns;
use super::keys::{ReadOrganizationKeys, insert_instance_key};
use crate::db::{Db, KeyShare, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{
    accounts, credentials, enrolment_drafts, instance, instance_keys, invitations, organization_keys, organizations,
    pending_seeds, retiring_instance_keys,
};
use crate::stored::{AnyId, CodeColumns, Column, StoredId as _, place_of};
use diesel::{
    ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _, delete, insert_into, update,
};
use uuid::Uuid;
use vault_core::Refusal;
use vault_core::id::{AccountId, KeyId, OrganizationId};
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::port::{
    DestroyKey, FindUnderInstanceKey, InstancePart, InstanceRow, InstanceRowKey, KeyDestruction, LookupMove,
    MoveToInstanceKey, ReplaceInstanceKey, StoredRowKey,
};
use vault_core::sealed::{Blob, InstanceKeyPurpose, SealedPassword, SealedSeed};

impl Transaction for ReplaceInstanceKey {
    /// `false` if the instance was changed in the meantime.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { current, next, keys, now, .. } = self;
        // A transaction that stores something under the instance key locks this row.
        let row = instance::table.filter(instance::keyring.eq(current.keyring.as_bytes()));
        let row = row.select((instance::root_key_id, instance::instance_key_id, instance::wrapped));
        let row: Option<(Column<KeyId>, Column<KeyId>, Vec<u8>)> = tx.first(locked(row, Update)).await?;
        let Some((root_key, instance_key, wrapped)) = row else { return Ok(false) };
        let root_key = root_key.decode("instance", &current.id, "root_key_id")?;
        let instance_key = instance_key.decode("instance", &current.id, "instance_key_id")?;
        let expected = (current.root_key, current.instance_key, current.wrapped.as_bytes());
        if (root_key, instance_key, wrapped.as_slice()) != expected {
            return Ok(false);
        }
        let retiring = insert_into(retiring_instance_keys::table).values((
            retiring_instance_keys::id.eq(current.instance_key.stored()),
            retiring_instance_keys::root_key_id.eq(current.root_key.stored()),
            retiring_instance_keys::wrapped.eq(current.wrapped.as_bytes()),
            retiring_instance_keys::retired_at.eq(now.as_millis()),
        ));
        tx.execute(retiring).await?;
        let changed = update(instance::table).set((
            instance::instance_key_id.eq(next.instance_key.stored()),
            instance::wrapped.eq(next.wrapped.as_bytes()),
            instance::keyring.eq(next.keyring.as_bytes()),
        ));
        tx.execute(changed).await?;
        for key in keys {
            let row = update(instance_keys::table.filter(instance_keys::id.eq(key.id.stored())));
            if tx.execute(row.set(instance_keys::wrapped.eq(key.wrapped.as_bytes()))).await? == 0 {
                insert_instance_key(tx, key).await?;
            }
        }
        // A key that was created in the meantime would be lost with the instance key.
        if tx.one(key_columns::wraps_keys(&current.instance_key)).await? {
            return Ok(false);
        }
        audit.record(tx, &self.audit).await?;
        Ok(true)
    }
}

/// The row keys of a part, in their order.
pub(crate) struct InstancePlaces {
    pub(crate) part: InstancePart,
    pub(crate) after: StoredRowKey,
    pub(crate) limit: usize,
}

impl Read for InstancePlaces {
    type Outcome = Vec<StoredRowKey>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<StoredRowKey>, Failure> {
        let places: Vec<(AnyId, AnyId)> = tx.page(key_columns::places(self.part, &self.after), self.limit).await?;
        Ok(places.into_iter().map(place_of).collect())
    }
}

/// The row of a part with a row key, if it exists.
pub(crate) struct ReadInstanceRow {
    pub(crate) part: InstancePart,
    pub(crate) place: InstanceRowKey,
}

impl Read for ReadInstanceRow {
    type Outcome = Option<InstanceRow>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<InstanceRow>, Failure> {
        let (organization, id) = self.place;
        let before = id.as_u128().checked_sub(1).map(|before| stored((organization, Uuid::from_u128(before))));
        let rows = read(tx, self.part, None, &before.unwrap_or_default(), 1).await?;
        Ok(rows.into_iter().find(|row| row.place() == self.place))
    }
}

impl Read for FindUnderInstanceKey {
    type Outcome = Vec<InstanceRow>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<InstanceRow>, Failure> {
        read(tx, self.part, Some(&self.key), &self.after.map(stored).unwrap_or_default(), self.limit).await
    }
}

fn stored((organization, id): InstanceRowKey) -> StoredRowKey {
    (organization.to_string(), id.to_string())
}

/// Reads the rows of a part after a row key: those that name a key, or all.
async fn read(
    tx: &Tx<'_>,
    part: InstancePart,
    key: Option<&KeyId>,
    after: &StoredRowKey,
    limit: usize,
) -> Result<Vec<InstanceRow>, Failure> {
    let following = key_columns::following(part, key, after);
    match part {
        InstancePart::Organizations => {
            let rows = organizations::table.filter(following).order(organizations::id).select(organizations::id);
            let rows: Vec<Column<OrganizationId>> = tx.page(rows, limit).await?;
            let mut found = Vec::with_capacity(rows.len());
            for id in rows {
                let organization = id.decode("organizations", &"unknown", "id")?;
                // `None` if it was deleted in the meantime.
                if let Some(keys) = ReadOrganizationKeys(organization).read(tx).await? {
                    found.push(InstanceRow::Organization { organization, keys: Box::new(keys) });
                }
            }
            Ok(found)
        }
        InstancePart::OrganizationKeys => {
            let rows = organization_keys::table.filter(following);
            let rows = rows.order((organization_keys::organization_id, organization_keys::id));
            let rows: Vec<KeyRow> = tx.page(rows.select(KeyRow::as_select()), limit).await?;
            rows.into_iter().map(KeyRow::decode).collect()
        }
        InstancePart::Accounts => {
            let rows = accounts::table.filter(following).order((accounts::organization_id, accounts::id));
            let rows: Vec<SealedAccountRow> = tx.page(rows.select(SealedAccountRow::as_select()), limit).await?;
            rows.into_iter().map(SealedAccountRow::decode).collect()
        }
        InstancePart::PendingSeeds => {
            let rows = pending_seeds::table.filter(following);
            let rows = rows.order((pending_seeds::organization_id, pending_seeds::account_id));
            let rows: Vec<SeedRow> = tx.page(rows.select(SeedRow::as_select()), limit).await?;
            rows.into_iter().map(SeedRow::decode).collect()
        }
        InstancePart::Invitations => {
            let rows = invitations::table.filter(following);
            let rows = rows.order((invitations::organization_id, invitations::account_id));
            let rows: Vec<InvitationRow> = tx.page(rows.select(InvitationRow::as_select()), limit).await?;
            rows.into_iter().map(|row| Ok(InstanceRow::Invitation(Box::new(row.decode()?)))).collect()
        }
        InstancePart::Drafts => {
            let rows = enrolment_drafts::table.filter(following);
            let rows = rows.order((enrolment_drafts::organization_id, enrolment_drafts::account_id));
            let rows: Vec<AccountDraftRow> = tx.page(rows.select(AccountDraftRow::as_select()), limit).await?;
            rows.into_iter().map(AccountDraftRow::decode).collect()
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = organization_keys, check_for_backend(Db))]
struct KeyRow {
    organization_id: Column<OrganizationId>,
    id: Column<KeyId>,
    wrapped: Column<Blob>,
}

impl KeyRow {
    fn decode(self) -> Result<InstanceRow, Failure> {
        const TABLE: &str = "organization_keys";
        let key = self.id.decode(TABLE, &"unknown", "id")?;
        Ok(InstanceRow::OrganizationKey {
            organization: self.organization_id.decode(TABLE, &key, "organization_id")?,
            key,
            wrapped: self.wrapped.decode(TABLE, &key, "wrapped")?,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = accounts, check_for_backend(Db))]
struct SealedAccountRow {
    #[diesel(embed)]
    signed: SignedRow,
    #[diesel(select_expression = (accounts::grant_digest, accounts::grant_key_id))]
    code: CodeColumns,
    password: Column<Blob>,
    seed: Column<Blob>,
}

impl SealedAccountRow {
    fn decode(self) -> Result<InstanceRow, Failure> {
        const TABLE: &str = "accounts";
        let signed = self.signed.decode()?;
        let account = signed.grant.account;
        Ok(InstanceRow::Account {
            code: self.code.decode(TABLE, &account, "grant_digest")?,
            password: SealedPassword { id: signed.password, blob: self.password.decode(TABLE, &account, "password")? },
            seed: SealedSeed { id: signed.seed, blob: self.seed.decode(TABLE, &account, "seed")? },
            signed: Box::new(signed),
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = pending_seeds, check_for_backend(Db))]
struct SeedRow {
    organization_id: Column<OrganizationId>,
    account_id: Column<AccountId>,
    #[diesel(embed)]
    pending: PendingRow,
}

impl SeedRow {
    fn decode(self) -> Result<InstanceRow, Failure> {
        const TABLE: &str = "pending_seeds";
        let account = self.account_id.decode(TABLE, &"unknown", "account_id")?;
        let organization = self.organization_id.decode(TABLE, &account, "organization_id")?;
        Ok(InstanceRow::PendingSeed { organization, account, pending: self.pending.decode(account)? })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = enrolment_drafts, check_for_backend(Db))]
struct AccountDraftRow {
    organization_id: Column<OrganizationId>,
    account_id: Column<AccountId>,
    #[diesel(embed)]
    draft: DraftRow,
}

impl AccountDraftRow {
    fn decode(self) -> Result<InstanceRow, Failure> {
        const TABLE: &str = "enrolment_drafts";
        let account = self.account_id.decode(TABLE, &"unknown", "account_id")?;
        let organization = self.organization_id.decode(TABLE, &account, "organization_id")?;
        Ok(InstanceRow::Draft { organization, account, draft: self.draft.decode(account)? })
    }
}

/// The number of rows that need a key.
pub(crate) struct CountUnder(pub(crate) KeyringEntry);

impl Read for CountUnder {
    type Outcome = i64;

    async fn read(&self, tx: &Tx<'_>) -> Result<i64, Failure> {
        let mut rows = 0_i64;
        for count in key_columns::counts(&self.0) {
            rows = rows.saturating_add(tx.one(count).await?);
        }
        Ok(rows)
    }
}

impl Transaction for MoveToInstanceKey {
    /// The number of rows. `None` if the new key is not active.
    type Outcome = Option<usize>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Option<usize>, Failure> {
        // The key must not be replaced before this transaction ends.
        let active = tx.first(locked(instance::table.select(instance::instance_key_id), KeyShare)).await?;
        let decode = |active: Column<KeyId>| active.decode("instance", &"unknown", "instance_key_id");
        if active.map(decode).transpose()? != Some(self.to) {
            return Ok(None);
        }
        audit.commit_without_entry();
        let moved = tx.execute_each(self.rows.iter().filter_map(key_columns::replace)).await?;
        Ok(Some(moved.into_iter().sum()))
    }
}

/// Moves rows to the current lookup key: they are found by the new digests only.
pub(crate) struct RekeyLookups(pub(crate) Vec<LookupMove>);

impl Transaction for RekeyLookups {
    /// The number of rows that were changed.
    type Outcome = usize;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<usize, Failure> {
        audit.commit_without_entry();
        let mut moved = 0;
        for row in &self.0 {
            moved += usize::from(move_lookup(tx, row).await?);
        }
        Ok(moved)
    }
}

async fn move_lookup(tx: &Tx<'_>, row: &LookupMove) -> Result<bool, Failure> {
    match row {
        LookupMove::Address { part: InstancePart::Accounts, place: (organization, id), address } => {
            let account = AccountId::from_uuid(*id);
            let version = account_of(organization.stored(), account.stored()).select(accounts::version);
            let version: Option<i64> = tx.first(locked(version, Update)).await?;
            Ok(version.is_some() && directory::move_account(tx, address, *organization, account).await?)
        }
        LookupMove::Address { place: (organization, id), address, .. } => {
            let account = AccountId::from_uuid(*id);
            let invitation = invitation_row::lock(tx, *organization, account).await?;
            Ok(invitation.is_some() && directory::move_invitation(tx, address, *organization, account).await?)
        }
        LookupMove::Credential { organization, id, code: (before, after), labels } => {
            let row = credential_of(organization.stored(), id.stored())
                .filter(credentials::code.eq(before.as_bytes().as_slice()));
            let code = credentials::code.eq(after.as_bytes().as_slice());
            let moved = tx.execute(update(row).set(code)).await? == 1;
            if moved {
                labels::replace(tx, *organization, *id, labels).await?;
            }
            Ok(moved)
        }
    }
}

impl Transaction for DestroyKey {
    type Outcome = KeyDestruction;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<KeyDestruction, Failure> {
        let id = self.term.id.stored();
        let retiring = retiring_instance_keys::table.filter(retiring_instance_keys::id.eq(id));
        let with_purpose = instance_keys::table.filter(instance_keys::id.eq(id));
        let purpose = InstanceKeyPurpose::ALL.into_iter().find(|of| KeyPurpose::from(*of) == self.term.purpose);
        let key: Option<AnyId> = match purpose {
            None => tx.first(locked(retiring.select(retiring_instance_keys::id), Update)).await?,
            Some(purpose) => {
                let row = with_purpose.filter(instance_keys::purpose.eq(purpose.as_str()));
                tx.first(locked(row.select(instance_keys::id), Update)).await?
            }
        };
        if key.is_none() {
            return Ok(KeyDestruction::NotRetiring);
        }
        if tx.one(key_columns::is_needed(&self.term)).await? {
            return Ok(KeyDestruction::InUse);
        }
        match purpose {
            None => tx.execute(delete(retiring)).await?,
            Some(_) => tx.execute(delete(with_purpose)).await?,
        };
        let row = instance::table.filter(instance::keyring.eq(self.current.as_bytes()));
        if tx.execute(update(row).set(instance::keyring.eq(self.keyring.as_bytes()))).await? == 0 {
            return Err(Refusal::Contended.into());
        }
        audit.record(tx, &self.audit).await?;
        Ok(KeyDestruction::Destroyed)
    }
}
