//! Stores that break one guarantee each: the contract suite must fail on them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use vault_testkit::contract::{ContractStore, audit, organization, run};
use vault_testkit::memory::{Flaw, MemoryStore};

/// What the case says of a sound store and of the flawed one.
fn verdicts(flaw: Flaw, case: impl AsyncFn(&dyn ContractStore)) -> [bool; 2] {
    [MemoryStore::new(), MemoryStore::flawed(flaw)].map(|store| {
        let store = Arc::new(store);
        catch_unwind(AssertUnwindSafe(|| run(async { store }, async |suite: &dyn ContractStore| case(suite).await)))
            .is_ok()
    })
}

#[test]
fn rows_that_outlive_their_organization_are_found() {
    let case = organization::deletion_leaves_nothing_but_the_audit;
    assert_eq!(verdicts(Flaw::RowsOutliveTheirOrganization, case), [true, false]);
}

#[test]
fn an_audit_that_may_fail_is_found() {
    assert_eq!(verdicts(Flaw::AuditIsOptional, audit::what_cannot_be_recorded_does_not_happen), [true, false]);
}
