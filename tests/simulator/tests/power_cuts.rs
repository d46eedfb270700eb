//! The short form of the campaign: a fixed number of seeds, and the faults that the campaign must find. For longer
//! runs, use `cargo run --release -p vault-simulator`.

use vault_simulator::{Ground, Lie, Outcome, Planted, play};

async fn seeds(seeds: impl IntoIterator<Item = u64>, planted: Planted) -> Outcome {
    let ground = Ground::prepare().await;
    let mut all = Outcome::default();
    for seed in seeds {
        all += play(seed, planted, &ground).await;
    }
    all
}

#[tokio::test]
async fn acknowledged_writes_survive_power_cuts() {
    let outcome = seeds(1..=40, Planted::default()).await;
    assert!(outcome.violations.is_empty(), "{outcome:#?}");
    // The seeds must cover every kind of event.
    let Outcome { cuts, kills, failed_calls, stops, acknowledged, indeterminate, .. } = outcome;
    for (what, count, least) in [
        ("power cuts", cuts, 250),
        ("kills", kills, 20),
        ("failed calls", failed_calls, 20),
        ("stops", stops, 3),
        ("acknowledged writes", acknowledged, 800),
        ("indeterminate writes", indeterminate, 20),
    ] {
        assert!(count >= least, "{count} {what}");
    }
}

#[tokio::test]
async fn same_seed_repeats_the_run() {
    assert_eq!(seeds(100..104, Planted::default()).await, seeds(100..104, Planted::default()).await);
}

/// Plays seeds until one finds an error.
async fn is_found(planted: Planted) {
    let ground = Ground::prepare().await;
    for seed in 1..=60 {
        if !play(seed, planted, &ground).await.violations.is_empty() {
            return;
        }
    }
    panic!("{planted:?} was not found");
}

#[tokio::test]
async fn ineffective_syncs_are_found() {
    for lie in [Lie::Syncs, Lie::SyncsOfTheLog, Lie::SyncsOfTheDatabase] {
        is_found(Planted { lie, early_answers: false }).await;
    }
}

#[tokio::test]
async fn database_that_does_not_sync_is_found() {
    is_found(Planted { lie: Lie::Synchronous, early_answers: false }).await;
}

#[tokio::test]
async fn answers_before_the_commit_are_found() {
    is_found(Planted { lie: Lie::None, early_answers: true }).await;
}
