//! The instance key under which rows are sealed and signed.

use crate::db::{KeyShare, Tx, locked};
use crate::failure::Failure;
use crate::schema::instance;
use crate::stored::Column;
use diesel::QueryDsl as _;
use vault_core::Refusal;
use vault_core::id::KeyId;

/// Checks that rows are sealed and signed under the active instance key, and locks it: another key becomes active only after
/// this transaction. A vault without an instance has no key to compare with.
///
/// # Errors
/// [`Refusal::Contended`] if one of `keys` is not active.
pub(crate) async fn require_active(tx: &Tx<'_>, keys: impl IntoIterator<Item = KeyId>) -> Result<(), Failure> {
    let keys: Vec<KeyId> = keys.into_iter().collect();
    if keys.is_empty() {
        return Ok(());
    }
    let active = tx.first(locked(instance::table.select(instance::instance_key_id), KeyShare)).await?;
    let Some(active): Option<Column<KeyId>> = active else { return Ok(()) };
    let active = active.decode("instance", &"unknown", "instance_key_id")?;
    if keys.iter().all(|key| *key == active) { Ok(()) } else { Err(Refusal::Contended.into()) }
}
