//! Whether the disk of the database has space.

use super::super::Transaction;
use super::super::audit::AuditRecorder;
use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::known_networks;
use diesel::{ExpressionMethods as _, QueryDsl as _, delete, insert_into};

/// Writes a page, which needs space, and leaves nothing in it.
pub(crate) struct ProveSpace;

impl Transaction for ProveSpace {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        let no_network = [0_u8; 32].as_slice();
        let new = (known_networks::network.eq(no_network), known_networks::last_login_at.eq(0));
        tx.execute(insert_into(known_networks::table).values(new)).await?;
        tx.execute(delete(known_networks::table.filter(known_networks::network.eq(no_network)))).await?;
        audit.commit_without_entry();
        Ok(())
    }
}
