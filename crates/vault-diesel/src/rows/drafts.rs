//! Drafts of enrolments.

use super::{TxRows, several, then};
use crate::db::{Db, Reply as SqlReply, Tx};
use crate::failure::Failure;
use crate::schema::enrolment_drafts;
use crate::stored::{CodeColumns, Column, Digests, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::id::{AccountId, OrganizationId, PasswordId, SeedId};
use vault_core::invitation::EnrolmentDraft;
use vault_core::port::{AccountPlace, DraftRows, Reply};
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};

const DRAFTS: &str = "enrolment_drafts";

#[auto_type(no_type_alias)]
fn draft_of(organization: IdBytes, account: IdBytes) -> _ {
    enrolment_drafts::table
        .filter(enrolment_drafts::organization_id.eq(organization))
        .filter(enrolment_drafts::account_id.eq(account))
}

/// Removes a draft.
fn remove<'t>(tx: &'t Tx<'_>, organization: OrganizationId, account: AccountId) -> SqlReply<'t, usize> {
    tx.execute(diesel::delete(draft_of(organization.stored(), account.stored())))
}

/// A draft.
#[derive(Queryable, Selectable)]
#[diesel(table_name = enrolment_drafts, check_for_backend(Db))]
pub(crate) struct DraftRow {
    password_id: Column<PasswordId>,
    password: Column<Blob>,
    seed_id: Column<SeedId>,
    seed: Column<Blob>,
    recovery_codes: Column<Digests>,
    #[diesel(select_expression = (enrolment_drafts::digest, enrolment_drafts::digest_key_id))]
    digest: CodeColumns,
}

impl DraftRow {
    pub(crate) fn decode(self, account: AccountId) -> Result<EnrolmentDraft, Failure> {
        let Digests(recovery_codes) = self.recovery_codes.decode(DRAFTS, &account, "recovery_codes")?;
        let id = self.password_id.decode(DRAFTS, &account, "password_id")?;
        let password = SealedPassword { id, blob: self.password.decode(DRAFTS, &account, "password")? };
        let id = self.seed_id.decode(DRAFTS, &account, "seed_id")?;
        let seed = SealedSeed { id, blob: self.seed.decode(DRAFTS, &account, "seed")? };
        Ok(EnrolmentDraft { password, seed, recovery_codes, digest: self.digest.decode(DRAFTS, &account, "digest")? })
    }
}

impl DraftRows for TxRows<'_> {
    fn draft(&self, (organization, account): AccountPlace) -> Reply<'_, Option<EnrolmentDraft>> {
        let row = draft_of(organization.stored(), account.stored()).select(DraftRow::as_select());
        then(self.tx.first(row), move |row: Option<DraftRow>| row.map(|row| row.decode(account)).transpose())
    }

    fn put_draft(&self, (organization, account): AccountPlace, draft: &EnrolmentDraft) -> Reply<'_, ()> {
        let draft = draft.clone();
        several(async move {
            remove(&self.tx, organization, account).await?;
            let new = diesel::insert_into(enrolment_drafts::table).values((
                enrolment_drafts::organization_id.eq(organization.stored()),
                enrolment_drafts::account_id.eq(account.stored()),
                enrolment_drafts::password_id.eq(draft.password.id.stored()),
                enrolment_drafts::password.eq(draft.password.blob.as_bytes()),
                enrolment_drafts::seed_id.eq(draft.seed.id.stored()),
                enrolment_drafts::seed.eq(draft.seed.blob.as_bytes()),
                enrolment_drafts::recovery_codes.eq(Digests::bytes(&draft.recovery_codes)),
                enrolment_drafts::digest.eq(draft.digest.code.as_bytes().as_slice()),
                enrolment_drafts::digest_key_id.eq(draft.digest.key.stored()),
            ));
            self.tx.execute(new).await?;
            Ok(())
        })
    }

    fn remove_draft(&self, (organization, account): AccountPlace) -> Reply<'_, ()> {
        then(remove(&self.tx, organization, account), |_| Ok(()))
    }
}
