//! Rows that attempts on unknown addresses read and write instead of those of an account. Each method executes the same number of
//! statements, columns and locks as for the row of an account.

use super::accounts::row::{SignedRow, TABLE as ACCOUNTS};
use super::logins::FoundRow;
use super::{TxRows, then};
use crate::db::{Reply as SqlReply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{decoy_accounts, decoys};
use crate::stored::CodeColumns;
use diesel::dsl::auto_type;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _};
use vault_core::audit::SealedAuditRecord;
use vault_core::port::{DecoyRows, Reply};
use vault_core::time::Timestamp;

/// The row that a decoy replaces. Accounts have their own table.
#[derive(Clone, Copy)]
#[repr(i64)]
enum Part {
    /// The throttle bucket that counts an attempt.
    Class = 0,
    /// The row of an account's logins.
    Logins = 1,
    /// The entry of the audit log.
    Entry = 2,
    /// The organization.
    Organization = 3,
}

/// No decoy has this part, as most accounts have no bucket of the network of an attempt.
const NO_PART: i64 = -1;

#[auto_type(no_type_alias)]
fn decoy_of(part: i64, decoy: i64) -> _ {
    decoys::table.filter(decoys::part.eq(part)).filter(decoys::decoy.eq(decoy))
}

/// The columns of [`SignedRow`].
#[auto_type(no_type_alias)]
fn signed_columns() -> _ {
    (
        decoy_accounts::organization_id,
        decoy_accounts::id,
        decoy_accounts::email,
        decoy_accounts::role,
        decoy_accounts::state,
        decoy_accounts::version,
        decoy_accounts::password_id,
        decoy_accounts::seed_id,
        decoy_accounts::sessions_since,
        decoy_accounts::kept_session,
    )
}

fn write<'t>(tx: &'t Tx<'_>, part: Part, decoy: u16, now: Timestamp) -> SqlReply<'t, usize> {
    let row = diesel::update(decoy_of(part as i64, i64::from(decoy)));
    tx.execute(row.set((decoys::writes.eq(decoys::writes + 1), decoys::latest.eq(now.as_millis()))))
}

impl DecoyRows for TxRows<'_> {
    fn read_decoy(&self, decoy: u16) -> Reply<'_, ()> {
        let found = decoy_accounts::table
            .inner_join(decoys::table.on(decoys::decoy.eq(decoy_accounts::decoy)))
            .filter(decoys::part.eq(Part::Organization as i64))
            .filter(decoy_accounts::decoy.eq(i64::from(decoy)))
            .select((
                decoy_accounts::organization_state,
                signed_columns(),
                (decoy_accounts::grant_digest, decoy_accounts::grant_key_id),
                decoy_accounts::password,
                decoy_accounts::seed,
            ));
        then(self.tx.first::<FoundRow, _>(found), |found| {
            found.map(FoundRow::decode).transpose()?;
            Ok(())
        })
    }

    fn lock_decoy_buckets(&self, decoy: u16) -> Reply<'_, ()> {
        let classes = decoys::table
            .filter(decoys::decoy.eq(i64::from(decoy)))
            .filter(decoys::part.eq(Part::Class as i64).or(decoys::part.eq(NO_PART)))
            .order(decoys::part)
            .select((decoys::part, decoys::decoy, decoys::writes, decoys::latest));
        then(self.tx.load::<(i64, i64, i64, Option<i64>), _>(locked(classes, Update)), |_| Ok(()))
    }

    fn write_decoy_bucket(&self, decoy: u16, now: Timestamp) -> Reply<'_, ()> {
        then(write(&self.tx, Part::Class, decoy, now), |_| Ok(()))
    }

    fn decoy_organization(&self, decoy: u16) -> Reply<'_, ()> {
        let organization = decoy_of(Part::Organization as i64, i64::from(decoy)).select(decoys::writes);
        then(self.tx.first::<i64, _>(organization), |_| Ok(()))
    }

    fn lock_decoy_account(&self, decoy: u16) -> Reply<'_, ()> {
        let account = decoy_accounts::table
            .filter(decoy_accounts::decoy.eq(i64::from(decoy)))
            .select((signed_columns(), (decoy_accounts::grant_digest, decoy_accounts::grant_key_id)));
        then(self.tx.first(locked(account, Update)), |account: Option<(SignedRow, CodeColumns)>| {
            let Some((signed, digest)) = account else { return Ok(()) };
            let signed = signed.decode()?;
            digest.decode(ACCOUNTS, &signed.grant.account, "grant_digest")?;
            Ok::<_, Failure>(())
        })
    }

    fn lock_decoy_logins(&self, decoy: u16) -> Reply<'_, ()> {
        let row =
            decoy_of(Part::Logins as i64, i64::from(decoy)).select((decoys::decoy, decoys::writes, decoys::latest));
        then(self.tx.first::<(i64, i64, Option<i64>), _>(locked(row, Update)), |_| Ok(()))
    }

    fn write_decoy_logins(&self, decoy: u16, now: Timestamp) -> Reply<'_, ()> {
        then(write(&self.tx, Part::Logins, decoy, now), |_| Ok(()))
    }

    fn write_decoy_entry(&self, decoy: u16, entry: &SealedAuditRecord) -> Reply<'_, ()> {
        let mut content = entry.record.to_authenticated_bytes();
        content.extend_from_slice(entry.code.as_bytes());
        let row = diesel::update(decoy_of(Part::Entry as i64, i64::from(decoy))).set((
            decoys::writes.eq(decoys::writes + 1),
            decoys::latest.eq(entry.record.at.as_millis()),
            decoys::content.eq(content),
        ));
        then(self.tx.execute(row), |_| Ok(()))
    }
}
