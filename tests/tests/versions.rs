//! Replacing a credential's data: jobs notice only that the data is new.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use vault_tests::samples::small;
use vault_tests::{ActivationListener, Database, Integration, Vault, on_both_databases};

on_both_databases! {
    activation_gets_exactly_the_current_version,
}

const THREADS: usize = 16;

#[test]
fn configured_number_of_versions_is_kept() {
    for (flags, expected) in [(["--keep-versions", "3"], &[5, 4, 3][..]), (["--keep-previous", "0"], &[5])] {
        let vault = Vault::start_with(Database::Sqlite, &flags);
        let session = vault.admin_session();
        let id = session.save(&small("a", 1));
        for number in 2..=5 {
            session.replace(&id, &small("a", number), false).expect(201);
        }
        let numbers: Vec<_> = session.versions(&id).into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, expected, "{flags:?}");
    }
}

/// The data of each replacement contains its version number. So an issued credential is consistent exactly if its parts
/// match, and current exactly if its number is not below the last one acknowledged before the request.
fn activation_gets_exactly_the_current_version(database: Database) {
    const REPLACEMENTS: i64 = 100;
    let (vault, listener) =
        ActivationListener::open_with(database, &["--activation-rate=0", "--max-activations=1000000"]);
    let session = vault.admin_session();
    let data = |number: i64| small("imports", usize::try_from(number).unwrap());
    let id = session.save(&data(1));
    let integration = Integration::make(&vault, "nightly", &["imports"]);
    let (acknowledged, failed) = (AtomicI64::new(1), AtomicBool::new(false));
    let barrier = Barrier::new(THREADS + 1);
    let last = REPLACEMENTS + 1;
    let counts: Vec<(usize, usize)> = thread::scope(|scope| {
        let programs: Vec<_> = (0..THREADS)
            .map(|_| {
                let (client, integration, acknowledged, failed) =
                    (listener.client(), &integration, &acknowledged, &failed);
                let (barrier, id) = (&barrier, &id);
                scope.spawn(move || {
                    barrier.wait();
                    let (mut whole, mut contended) = (0, 0);
                    loop {
                        let least = acknowledged.load(Ordering::SeqCst);
                        let answer = integration.activate(&client, "imports");
                        if answer.status == 503 {
                            contended += 1; // replaced repeatedly while it was being issued
                        } else {
                            let answer = answer.expect(201).json();
                            let [found] = &answer["credentials"].as_array().unwrap()[..] else { panic!("{answer}") };
                            let version = found["version"].as_i64().unwrap();
                            assert_eq!(found["id"], **id);
                            assert_eq!(found["data"], data(version)["data"], "a version as a whole");
                            assert!(version >= least, "version {version} after {least} was acknowledged");
                            whole += 1;
                            if version == last {
                                return (whole, contended);
                            }
                        }
                        assert!(!failed.load(Ordering::SeqCst), "the replacements failed");
                    }
                })
            })
            .collect();
        barrier.wait();
        let replaced = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for number in 2..=last {
                // Every fifth version is staged first.
                let stage = number % 5 == 0;
                let version = session.replace(&id, &data(number), stage).expect(201).json()["version"].as_i64();
                assert_eq!(version, Some(number));
                if stage {
                    session.promote(&id, number).expect(200);
                }
                acknowledged.store(number, Ordering::SeqCst);
            }
        }));
        failed.store(replaced.is_err(), Ordering::SeqCst);
        programs.into_iter().map(|program| program.join().unwrap()).collect()
    });
    let whole: usize = counts.iter().map(|(whole, _)| whole).sum();
    let contended: usize = counts.iter().map(|(_, contended)| contended).sum();
    // Usually some hundred consistent ones, and some dozen retries.
    assert!(whole > THREADS && whole > contended, "{whole} whole, {contended} asked to retry");
}
