//! Writing changes of credentials.

use super::labels;
use super::row::credential_of;
use super::sealed::secrets_of;
use crate::db::Tx;
use crate::failure::Failure;
use crate::new_row::{NewClaim, NewSecret, expiry_column};
use crate::schema::{credential_secrets, credentials, idempotency_keys};
use crate::stored::StoredId as _;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use futures_util::future::{OptionFuture, try_join_all};
use futures_util::try_join;
use vault_core::check::CheckReason;
use vault_core::credential::CredentialUpdate;
use vault_core::time::Timestamp;

/// Writes a change of a credential.
pub(crate) async fn write(tx: &Tx<'_>, change: &CredentialUpdate<'_>) -> Result<(), Failure> {
    let CredentialUpdate { organization, id, before, check, at, .. } = *change;
    let (of, key) = (organization.stored(), id.stored());
    let secrets = || secrets_of(of, key);
    // Deleting first makes room for the new version next to it: in the other order, SQLite splits a page and joins it again.
    let destroyed = change.effects.destroyed.as_slice();
    let destroyed = (!destroyed.is_empty())
        .then(|| tx.execute(diesel::delete(secrets().filter(credential_secrets::version.eq_any(destroyed)))));
    let moved = change.effects.moved.iter().map(|(number, destroy_at)| {
        let version = diesel::update(secrets().filter(credential_secrets::version.eq(*number)));
        tx.execute(version.set(credential_secrets::destroy_at.eq(destroy_at.map(Timestamp::as_millis))))
    });
    // Unchanged columns are omitted, so that its indexes are not written.
    let has_other_expiry = before.expires_at != change.expires_at;
    let has_other_version = before.version != change.current;
    let changed = (
        credentials::revision.eq(before.revision.saturating_add(1)),
        credentials::card.eq(change.card.as_bytes()),
        credentials::updated_at.eq(at.as_millis()),
        (before.vend != change.vend).then(|| credentials::vend.eq(change.vend.as_str())),
        has_other_expiry.then(|| credentials::expires_at.eq(expiry_column(change.expires_at))),
        has_other_version.then(|| {
            (
                credentials::version.eq(change.current),
                credentials::checked_at.eq(check.map(|check| check.at.as_millis())),
                credentials::check_since.eq(check.map(|check| check.since.as_millis())),
                credentials::check_failed.eq(check.and_then(|check| check.failed).map(CheckReason::as_str)),
            )
        }),
    );
    let (_, moved, _) = try_join!(
        async { OptionFuture::from(destroyed).await.transpose() },
        try_join_all(moved),
        tx.execute(diesel::update(credential_of(of, key)).set(changed)),
    )?;
    if moved.contains(&0) {
        return Err(Failure::damaged("credential_secrets", id.to_string(), "missing"));
    }
    if let Some(labels) = &change.labels {
        labels::replace(tx, organization, id, labels).await?;
    }
    if let Some(version) = &change.version {
        tx.insert_later(credential_secrets::table, NewSecret::of(organization, id, version)).await?;
        if let Some(idempotency) = &version.idempotency {
            let claim = NewClaim::of(organization, (id, version.number), idempotency, at);
            tx.insert_later(idempotency_keys::table, claim).await?;
        }
    }
    Ok(())
}
