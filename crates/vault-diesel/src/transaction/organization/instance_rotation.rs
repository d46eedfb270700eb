//! Rotation of the keys of the instance: moves rows from one key to another, and destroys keys that no row needs.

use super::super::Read;
use super::key_columns;
use super::keys::ReadOrganizationKeys;
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::schema::organization_keys;
use crate::stored::Column;
use diesel::{QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::keyring::KeyringEntry;
use vault_core::port::{InstancePart, InstanceRow, InstanceRowKey};
use vault_core::sealed::Blob;

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

/// Counts the rows that need a key.
pub(crate) async fn count_under(tx: &Tx<'_>, term: &KeyringEntry) -> Result<i64, Failure> {
    let mut rows = 0_i64;
    for count in key_columns::counts(term) {
        rows = rows.saturating_add(tx.one(count).await?);
    }
    Ok(rows)
}
