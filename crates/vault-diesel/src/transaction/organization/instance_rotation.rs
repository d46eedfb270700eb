//! Rotation of the keys of the instance: moves rows from one key to another, and destroys keys that no row needs.

use super::super::audit::AuditRecorder;
use super::super::{Read, Transaction};
use super::key_columns;
use super::keys::{ReadOrganizationKeys, insert_instance_key};
use crate::db::{Db, Tx, Update, locked};
use crate::failure::Failure;
use crate::rows::accounts::directory;
use crate::rows::accounts::pending_seed::PendingRow;
use crate::rows::accounts::row::{SignedRow, account_of};
use crate::rows::invitations::{DraftRow, InvitationRow, lock as lock_invitation};
use crate::schema::{
    accounts, enrolment_drafts, instance, instance_keys, invitations, organization_keys, pending_seeds,
    retiring_instance_keys,
};
use crate::stored::{AnyId, CodeColumns, Column, StoredId as _};
use diesel::{
    ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _, delete, insert_into, update,
};
use vault_core::Refusal;
use vault_core::id::{AccountId, KeyId, OrganizationId};
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::port::{
    DestroyKey, InstancePart, InstanceRow, InstanceRowKey, KeyDestruction, LookupMove, ReplaceInstanceKey,
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

/// Reads the row of a part with a row key, if it exists.
pub(crate) async fn read(
    tx: &Tx<'_>,
    part: InstancePart,
    place: InstanceRowKey,
) -> Result<Option<InstanceRow>, Failure> {
    macro_rules! first {
        ($table:ident, $row:ty) => {{
            let row = $table::table.filter(key_columns::at(part, place)).select(<$row>::as_select());
            tx.first::<$row, _>(row).await?.map(<$row>::decode).transpose()
        }};
    }
    match part {
        InstancePart::Organizations => {
            let keys = ReadOrganizationKeys(place.0).read(tx).await?;
            Ok(keys.map(|keys| InstanceRow::Organization { organization: place.0, keys: Box::new(keys) }))
        }
        InstancePart::OrganizationKeys => first!(organization_keys, KeyRow),
        InstancePart::Accounts => first!(accounts, SealedAccountRow),
        InstancePart::PendingSeeds => first!(pending_seeds, SeedRow),
        InstancePart::Invitations => {
            let row: Option<_> = first!(invitations, InvitationRow)?;
            Ok(row.map(|stored| InstanceRow::Invitation(Box::new(stored))))
        }
        InstancePart::Drafts => first!(enrolment_drafts, AccountDraftRow),
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

async fn move_lookup(tx: &Tx<'_>, LookupMove { part, place, address }: &LookupMove) -> Result<bool, Failure> {
    let (organization, account) = (place.0, AccountId::from_uuid(place.1));
    match part {
        InstancePart::Accounts => {
            let version = account_of(organization.stored(), account.stored()).select(accounts::version);
            let version: Option<i64> = tx.first(locked(version, Update)).await?;
            Ok(version.is_some() && directory::move_account(tx, address, organization, account).await?)
        }
        _ => {
            let invitation = lock_invitation(tx, organization, account).await?;
            Ok(invitation.is_some() && directory::move_invitation(tx, address, organization, account).await?)
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
