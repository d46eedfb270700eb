//! A credential and its audit record, as the vault stores them, without meaning.

use std::time::{SystemTime, UNIX_EPOCH};
use uuid::{Uuid, uuid};

/// The size of an authentication code.
const CODE: usize = 32;

/// The values that are the same in every row.
pub(super) struct Common {
    pub(super) key: Uuid,
    pub(super) account: Uuid,
    pub(super) session: Uuid,
    pub(super) code: Vec<u8>,
}

impl Common {
    pub(super) fn new() -> Self {
        Self {
            key: uuid!("0b1f6c0e-5d7a-4f3e-8a52-2f9d1c7e4b60"),
            account: uuid!("2c9e7a44-91d3-4a0b-b1c5-7e3f8d2a6c11"),
            session: uuid!("5e0d3b72-6c48-4f9a-9e27-1a8b4c6d7f22"),
            code: vec![0xC3; CODE],
        }
    }
}

/// The sealed values of a row.
#[derive(Clone)]
pub(super) struct Sealed {
    pub(super) information: Vec<u8>,
    pub(super) data_key: Vec<u8>,
    pub(super) data: Vec<u8>,
}

/// The values that differ in each row.
pub(super) struct Own {
    pub(super) id: Uuid,
    pub(super) namespace: String,
    pub(super) subject: String,
    pub(super) at: i64,
    pub(super) sealed: Sealed,
}

/// The columns that a list reads: ID, type, namespace, version, creation and update time, key, information.
pub(super) type Listed = (Uuid, String, String, i64, i64, i64, Uuid, Vec<u8>);

/// Creates rows with increasing IDs, as those of the vault increase with time.
pub(super) struct Rows {
    base: u64,
    next: u64,
}

impl Rows {
    #[expect(clippy::disallowed_methods, reason = "only distinguishes the ids of one run from those of the next")]
    pub(super) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { base: u64::try_from(since.as_millis()).unwrap_or(0), next: 0 }
    }

    /// The next row.
    pub(super) fn next_with(&mut self, sealed: Sealed) -> Own {
        self.next += 1;
        let (base, next) = (self.base & 0xFFFF_FFFF_FFFF, self.next);
        let id = Uuid::from_u128(u128::from(base) << 80 | 0x7CC3_9D1E << 48 | u128::from(next));
        let subject = format!("credential:{id}");
        let namespace = format!("imports/nightly-{next:08X}");
        Own { id, namespace, subject, at: i64::try_from(base).unwrap_or(i64::MAX), sealed }
    }

    /// The next rows, all with the same seals.
    pub(super) fn many(&mut self, count: usize, sealed: &Sealed) -> Vec<Own> {
        (0..count).map(|_| self.next_with(sealed.clone())).collect()
    }
}
