//! The whole contract, with all cases running concurrently on one store in memory: they must not affect each other.

use std::sync::{Arc, LazyLock};
use vault_testkit::memory::MemoryStore;

static STORE: LazyLock<Arc<MemoryStore>> = LazyLock::new(Arc::default);

async fn store() -> Arc<MemoryStore> {
    Arc::clone(&STORE)
}

vault_testkit::store_contract!(store());
