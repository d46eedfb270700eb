//! The whole contract on the store in memory.

use std::sync::Arc;
use vault_testkit::memory::MemoryStore;

async fn store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new())
}

vault_testkit::store_contract!(store());
