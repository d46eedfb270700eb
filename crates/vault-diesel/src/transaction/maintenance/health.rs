//! Checks that the database can be read, and that its disk has space.

use super::super::audit::AuditRecorder;
use super::super::{Read, Transaction};
use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::{instance, known_networks};
use diesel::{ExpressionMethods as _, QueryDsl as _, delete, insert_into};

/// Writes a page, which needs disk space, and leaves nothing in it.
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

/// Reads a page.
pub(crate) struct ReadPage;

impl Read for ReadPage {
    type Outcome = ();

    async fn read(&self, tx: &Tx<'_>) -> Result<(), Failure> {
        let _instances: Vec<i64> = tx.load(instance::table.select(instance::singleton)).await?;
        Ok(())
    }
}
