//! Rotation of the keys of the instance: moves rows from one key to another, and destroys keys that no row needs.

use super::super::Read;
use super::key_columns;
use super::keys::ReadOrganizationKeys;
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::rows::accounts::pending_seed::PendingRow;
use crate::rows::accounts::row::SignedRow;
use crate::rows::drafts::DraftRow;
use crate::schema::{accounts, enrolment_drafts, organization_keys, pending_seeds};
use crate::stored::{CodeColumns, Column};
use diesel::{QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::id::{AccountId, KeyId, OrganizationId};
use vault_core::keyring::KeyringEntry;
use vault_core::port::{InstancePart, InstanceRow, InstanceRowKey};
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};

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

/// Counts the rows that need a key.
pub(crate) async fn count_under(tx: &Tx<'_>, term: &KeyringEntry) -> Result<i64, Failure> {
    let mut rows = 0_i64;
    for count in key_columns::counts(term) {
        rows = rows.saturating_add(tx.one(count).await?);
    }
    Ok(rows)
}
