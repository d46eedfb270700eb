//! Rows of organizations, in addition to their documents.

use super::{TxRows, lock_all, logins, several, then};
use crate::db::{Share, Update, locked};
use crate::schema::{
    account_logins, account_notices, attempt_classes, check_requests, credential_counts, entities, event_deliveries,
    global_lookups, hourly_counts, lookups, organization_keys, organizations, receiver_status, recovery_codes,
    sessions,
};
use crate::stored::{AnyId, Column, StoredId as _};
use crate::transaction::organization::{erasure, keys};
use diesel::{ExpressionMethods as _, QueryDsl as _, delete, insert_into};
use futures_util::try_join;
use vault_core::entity::Kind;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{OrganizationRows, Reply};
use vault_core::sealed::{KeyState, OrganizationKeys};

impl OrganizationRows for TxRows<'_> {
    fn is_active_key(&self, organization: OrganizationId, key: KeyId) -> Reply<'_, bool> {
        self.kept_or(
            |facts| &mut facts.active_keys,
            (organization, key),
            || {
                let state = keys::key_of(organization.stored(), key.stored()).select(organization_keys::state);
                then(self.tx.first(locked(state, Share)), move |state: Option<Column<KeyState>>| {
                    let state = state.map(|state| state.decode("organization_keys", &key, "state")).transpose()?;
                    Ok(state == Some(KeyState::Active))
                })
            },
        )
    }

    fn insert_organization(&self, organization: OrganizationId, keys: &OrganizationKeys) -> Reply<'_, ()> {
        let (of, new) = (organization.stored(), keys.clone());
        several(async move {
            let row = insert_into(organizations::table).values((
                organizations::id.eq(of),
                organizations::fingerprint_key_id.eq(new.fingerprint_key.stored()),
                organizations::fingerprint_wrapped.eq(new.fingerprint_wrapped.as_bytes()),
            ));
            self.tx.execute(row).await?;
            let count = (credential_counts::organization_id.eq(of), credential_counts::credentials.eq(0));
            self.tx.execute(insert_into(credential_counts::table).values(count)).await?;
            for key in &new.keys {
                keys::insert(&self.tx, key).await?;
            }
            Ok(())
        })
    }

    fn end_sessions(&self, organization: OrganizationId) -> Reply<'_, ()> {
        let own = sessions::table.filter(sessions::organization_id.eq(organization.stored()));
        then(self.tx.execute(delete(own)), |_| Ok(()))
    }

    fn remove_organization(&self, organization: OrganizationId) -> Reply<'_, ()> {
        let of = organization.stored();
        several(async move {
            let tx = &self.tx;
            // Locked first, in the order of all transactions, so that no login or save runs in between.
            let own = keys::organization_of(of).select(organizations::id);
            let _own: Option<AnyId> = tx.first(locked(own, Update)).await?;
            lock_all(tx, organization, Kind::Integration).await?;
            macro_rules! remove {
                ($($table:ident),* $(,)?) => {
                    $(tx.execute(delete($table::table.filter($table::organization_id.eq(of)))).await?;)*
                };
            }
            remove!(hourly_counts, check_requests, global_lookups, lookups, entities);
            logins::lock_all_of_organization(tx, organization).await?;
            remove!(sessions, account_notices, recovery_codes, attempt_classes, account_logins);
            remove!(event_deliveries, receiver_status, organization_keys, credential_counts);
            try_join!(tx.execute(delete(keys::organization_of(of))), erasure::start(tx, organization))?;
            Ok(())
        })
    }
}
