//! Cache of opened documents.

use crate::entity::{Entity, EntityKey};
use crate::port::EntityRow;
use crate::sealed::Blob;
use quick_cache::Weighter;
use quick_cache::sync::Cache as WeightedCache;
use std::any::Any;
use std::sync::Arc;

/// Maximum size of the sealed documents in the cache, in bytes. Their values need about as much again.
const CAPACITY: u64 = 4 << 20;
/// Size of an entry without its document, in bytes.
const ENTRY: u64 = 256;

/// Opened documents. The cache saves decryption and parsing, and decides nothing: it returns a document only if key, version and
/// sealed bytes of a row that was just read are equal.
pub struct Cache(WeightedCache<EntityKey, Arc<Document>, BySize>);

struct Document {
    version: i64,
    sealed: Blob,
    value: Arc<dyn Any + Send + Sync>,
}

#[derive(Clone)]
struct BySize;

impl Weighter<EntityKey, Arc<Document>> for BySize {
    fn weight(&self, _key: &EntityKey, document: &Arc<Document>) -> u64 {
        document.sealed.as_bytes().len() as u64 + ENTRY
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self(WeightedCache::with_weighter(1_000, CAPACITY, BySize))
    }
}

impl Cache {
    /// Returns the value of a row that was opened before.
    pub(crate) fn find<E: Entity>(&self, row: &EntityRow) -> Option<Arc<E>> {
        let document = self.0.get(&row.key)?;
        let is_equal = document.version == row.version && document.sealed == row.sealed;
        if is_equal { Arc::downcast(Arc::clone(&document.value)).ok() } else { None }
    }

    /// Keeps the value of a row, instead of that of an earlier version.
    pub(crate) fn insert<E: Entity>(&self, row: &EntityRow, value: &Arc<E>) {
        let document = Document { version: row.version, sealed: row.sealed.clone(), value: value.clone() };
        self.0.insert(row.key, Arc::new(document));
    }
}
