use super::parameters::OUT_OF_BOUNDS;
use super::*;
use crate::testing::{NoEntropyLeft, entropy};
use argon2::{AssociatedData, ParamsBuilder};
use hex_literal::hex;

fn hasher(parameters: Argon2Parameters) -> Argon2Hasher {
    let pool = HashingPool::with_size(1, 1).unwrap();
    Argon2Hasher::new(pool, parameters, Vec::new(), entropy()).unwrap()
}

async fn hash(hasher: &Argon2Hasher, password: &str) -> DocumentSecret {
    let permit = hasher.permit(Requester::Trusted).unwrap();
    hasher.hash(permit, password.into()).await.unwrap()
}

async fn verify(hasher: &Argon2Hasher, password: &str, stored: Option<&DocumentSecret>) -> PasswordVerdict {
    let permit = hasher.permit(Requester::Trusted).unwrap();
    hasher.verify(permit, password.into(), stored.cloned()).await.unwrap()
}

/// Returns a stored text.
fn text(text: &str) -> DocumentSecret {
    SecretString::from(text).into()
}

/// Returns the sizes of the hashes computed so far, in KiB.
async fn hashes(hasher: &Argon2Hasher) -> Vec<usize> {
    let permit = hasher.permit(Requester::Trusted).unwrap();
    hasher.pool.run(permit, |memory| memory.hashes.clone()).await.unwrap()
}

#[tokio::test]
async fn missing_password_costs_same_work_and_fails() {
    let hasher = hasher(Argon2Parameters::LEAST);
    hash(&hasher, "correct horse").await;
    assert!(matches!(verify(&hasher, "correct horse", None).await, PasswordVerdict::Wrong));
    assert_eq!(hashes(&hasher).await, [19_456; 2]);
}

/// Every byte counts, also after 72 bytes, and nothing is trimmed or normalized.
#[tokio::test]
async fn passwords_are_not_truncated() {
    let hasher = hasher(Argon2Parameters::LEAST);
    for password in ["correct horse ", "pass\0word", "\u{1f511}\u{1f511}", &"p".repeat(73), &"p".repeat(1024)] {
        let stored = hash(&hasher, password).await;
        let right = verify(&hasher, password, Some(&stored)).await;
        assert!(matches!(right, PasswordVerdict::Right { rehashed: None }), "{password}");
        let last = password.char_indices().next_back().unwrap().0;
        for wrong in [&password[..last], &format!("{password}x"), &format!(" {password}"), ""] {
            let verdict = verify(&hasher, wrong, Some(&stored)).await;
            assert!(matches!(verdict, PasswordVerdict::Wrong), "{wrong}");
        }
    }
}

/// A14
#[tokio::test]
async fn impossible_password_is_not_hashed() {
    let hasher = hasher(Argon2Parameters::LEAST);
    let stored = hash(&hasher, "correct horse").await;
    let long = "x".repeat(1025);
    assert!(matches!(verify(&hasher, &long, Some(&stored)).await, PasswordVerdict::Wrong));
    let permit = hasher.permit(Requester::Trusted).unwrap();
    assert!(matches!(hasher.hash(permit, long.into()).await, Err(HashError::Fault(_))));
    assert_eq!(hashes(&hasher).await, [19_456]);
}

/// A64: the document is authentic, but its content is out of bounds.
#[tokio::test]
async fn stored_parameters_are_capped_before_use() {
    let hasher = hasher(Argon2Parameters::LEAST);
    let (salt, sum) = ("c29tZXNhbHRzb21lc2FsdA", "RdescudvJCsgt3ub+b4dWRWJTmaaJObG1jtn2jZWOzI");
    let texts = [
        format!("$argon2id$v=19$m=4194304,t=2,p=1${salt}${sum}"),
        format!("$argon2id$v=19$m=19456,t=100000,p=1${salt}${sum}"),
        format!("$argon2id$v=19$m=19456,t=2,p=255${salt}${sum}"),
        format!("$argon2id$v=19$m=19456,t=0,p=1${salt}${sum}"),
        format!("$argon2id$v=19$m=19456,t=2,p=0${salt}${sum}"),
        format!("$argon2id$v=19$m=7,t=2,p=1${salt}${sum}"),
        format!("$argon2id$v=19$m=4294967296,t=2,p=1${salt}${sum}"),
        format!("$argon2id$v=19$m=019456,t=2,p=1${salt}${sum}"),
        format!("$argon2id$v=19$m=+19456,t=2,p=1${salt}${sum}"),
        format!("$argon2id$v=19$m=19456,t=2,p=1,x=1${salt}${sum}"),
        format!("$argon2id$v=19$t=2,m=19456,p=1${salt}${sum}"),
        format!("$argon2id$v=16$m=19456,t=2,p=1${salt}${sum}"),
        format!("$argon2i$v=19$m=19456,t=2,p=1${salt}${sum}"),
        format!("$argon2id$v=19$m=19456,t=2,p=1$${sum}"),
        format!("$argon2id$v=19$m=19456,t=2,p=1${salt}$"),
        format!("$argon2id$v=19$m=19456,t=2,p=1${salt}"),
        format!("$argon2id$v=19$m=19456,t=2,p=1${salt}${sum}$"),
        format!("$argon2id$v=19$m=19456,t=2,p=1${salt}${sum}="),
        format!("$argon2id$v=19$m=19456,t=2,p=1${salt}${}J", &sum[..42]),
        format!("$argon2id$v=19$m=19456,t=2,p=1$ä{salt}${sum}"),
        format!("$argon2id$v=19$m=19456,t=2,p=1${salt}$ä{sum}"),
        format!("\u{ff04}argon2id$v=19$m=19456,t=2,p=1${salt}${sum}"),
        "x".repeat(100_000),
        String::new(),
    ];
    for stored in &texts {
        let verdict = verify(&hasher, "correct horse", Some(&text(stored))).await;
        assert!(matches!(verdict, PasswordVerdict::Damaged), "{stored:.60}");
    }
    // Each takes the work of one ordinary login and no additional memory.
    assert_eq!(hashes(&hasher).await, vec![19_456; texts.len()]);
    let sound = format!("$argon2id$v=19$m=19456,t=2,p=1${salt}${sum}");
    assert!(Verifier::read(sound.as_bytes()).is_ok());
    for end in 0..sound.len() {
        assert_eq!(Verifier::read(&sound.as_bytes()[..end]).err(), Some(Damaged));
    }
}

#[tokio::test]
async fn weaker_hashes_verify_and_are_rehashed() {
    let weak: Argon2Parameters = "m=8192,t=1,p=1".parse().unwrap();
    let (before, after) = (hasher(weak), hasher(Argon2Parameters::LEAST));
    let stored = hash(&before, "correct horse").await;
    let verdict = verify(&after, "correct horse", Some(&stored)).await;
    let PasswordVerdict::Right { rehashed: Some(rehashed) } = verdict else { panic!("{verdict:?}") };
    let verdict = verify(&after, "correct horse", Some(&rehashed)).await;
    assert!(matches!(verdict, PasswordVerdict::Right { rehashed: None }));
    assert!(matches!(verify(&after, "wrong", Some(&stored)).await, PasswordVerdict::Wrong));
    // Parameters stronger than the current ones, within bounds, are verified and kept.
    let strong = hasher(Argon2Parameters::new(32_768, 2, 2).unwrap());
    let stored = hash(&strong, "correct horse").await;
    let verdict = verify(&after, "correct horse", Some(&stored)).await;
    assert!(matches!(verdict, PasswordVerdict::Right { rehashed: None }));
}

/// While old parameters are stored, a login hashes once with each set: neither the answer nor the time reveals which
/// set an account has, or whether the account exists.
#[tokio::test]
async fn every_login_hashes_once_with_each_set_of_stored_parameters() {
    let [old, older] = ["m=9216,t=1,p=1", "m=8192,t=1,p=1"].map(|text| text.parse().unwrap());
    let today = Argon2Parameters::LEAST;
    let pool = || HashingPool::with_size(1, 1).unwrap();
    let stored = async |parameters| {
        let hasher = Argon2Hasher::new(pool(), parameters, Vec::new(), entropy()).unwrap();
        hash(&hasher, "correct horse").await
    };
    let [new, lagging, far_behind] = [stored(today).await, stored(old).await, stored(older).await];
    let damaged = text("damaged");
    for stored in [None, Some(&new), Some(&lagging), Some(&far_behind), Some(&damaged)] {
        for password in ["correct horse", "wrong horse"] {
            let legacy = vec![older, today, old, old];
            let hasher = Argon2Hasher::new(pool(), today, legacy, entropy()).unwrap();
            let verdict = verify(&hasher, password, stored).await;
            let right = password == "correct horse" && stored.is_some_and(|stored| *stored != damaged);
            assert_eq!(matches!(verdict, PasswordVerdict::Right { .. }), right, "{verdict:?}");
            if let PasswordVerdict::Right { rehashed } = verdict {
                assert_eq!(rehashed.is_some(), stored != Some(&new));
            }
            assert_eq!(hashes(&hasher).await, [8_192, 9_216, 19_456], "{password}");
        }
    }
}

/// A parameter set that was not given at start (because another process stored it later) is used for every login after
/// it has been seen.
#[tokio::test]
async fn parameters_found_later_are_added() {
    let stored = hash(&hasher("m=8192,t=1,p=1".parse().unwrap()), "correct horse").await;
    let after = hasher(Argon2Parameters::LEAST);
    verify(&after, "correct horse", None).await;
    verify(&after, "wrong horse", Some(&stored)).await;
    verify(&after, "correct horse", None).await;
    assert_eq!(hashes(&after).await, [19_456, 8_192, 19_456, 8_192, 19_456]);
}

#[test]
fn parameters_have_one_encoding() {
    let text = "m=19456,t=2,p=1";
    assert_eq!(text.parse(), Ok(Argon2Parameters::LEAST));
    assert_eq!(Argon2Parameters::LEAST.to_string(), text);
    for other in ["", "m=19456,t=2", "m=019456,t=2,p=1", "m=19456,t=2,p=1,", "t=2,m=19456,p=1", "m=99999,t=2,p=1"] {
        assert_eq!(other.parse::<Argon2Parameters>(), Err(OUT_OF_BOUNDS), "{other}");
    }
}

#[test]
fn parameters_have_bounds() {
    for (memory, passes, lanes) in
        [(19_455, 2, 1), (19_456, 1, 1), (19_456, 2, 0), (65_537, 2, 1), (19_456, 11, 1), (19_456, 2, 5)]
    {
        assert_eq!(Argon2Parameters::new(memory, passes, lanes), Err(OUT_OF_BOUNDS));
    }
    assert_eq!(Argon2Parameters::new(19_456, 2, 1), Ok(Argon2Parameters::default()));
    assert_eq!(Argon2Parameters::new(65_536, 10, 4), Ok(Argon2Parameters::MOST));
    // Stored parameters may be as low as argon2 itself allows: 8 KiB per lane.
    for (text, sound) in
        [("m=8,t=1,p=1", true), ("m=7,t=1,p=1", false), ("m=32,t=1,p=4", true), ("m=31,t=1,p=4", false)]
    {
        assert_eq!(text.parse::<Argon2Parameters>().is_ok(), sound, "{text}");
    }
}

#[test]
fn full_queue_responds_immediately() {
    let pool = HashingPool::with_size(2, 3).unwrap();
    let hash_slots: Vec<_> = (0..3).map(|_| pool.permit(Requester::Trusted).unwrap()).collect();
    for _ in 0..3 {
        assert!(matches!(pool.permit(Requester::Trusted), Err(HashError::Busy)));
    }
    assert_eq!(pool.hash_slots(), (3, 3));
    drop(hash_slots);
    assert_eq!(pool.hash_slots(), (0, 3));
    assert!(pool.permit(Requester::Trusted).is_ok());
}

#[test]
fn one_network_cannot_fill_the_queue() {
    let pool = HashingPool::with_size(1, 16).unwrap();
    let network = |number, known| {
        let network = vault_core::digest::Digest::from_bytes([number; 32]);
        pool.permit(Requester::Network { network, known })
    };
    let flood: Vec<_> = std::iter::from_fn(|| network(1, false).ok()).collect();
    assert_eq!(flood.len(), 4);
    let many: Vec<_> = (2..20).filter_map(|number| network(number, false).ok()).collect();
    assert_eq!(flood.len() + many.len(), 8, "half is kept for known networks");
    assert!(network(20, true).is_ok());
    drop(flood);
    assert!(network(1, false).is_ok());
}

#[tokio::test]
async fn permit_of_another_pool_is_refused() {
    let pool = HashingPool::with_size(1, 1).unwrap();
    let foreign = HashingPool::with_size(1, 1).unwrap().permit(Requester::Trusted).unwrap();
    for foreign in [HashPermit(Box::new(())), foreign] {
        assert!(matches!(pool.run(foreign, |_| ()).await, Err(HashError::Fault(_))));
    }
}

#[tokio::test]
async fn cancelled_caller_keeps_hash_slot_until_hash_ends() {
    let pool = HashingPool::with_size(1, 2).unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let [first, second] = [(); 2].map(|()| pool.permit(Requester::Trusted).unwrap());
    let running = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { pool.run(first, move |_| ended.recv()).await }
    });
    tokio::task::yield_now().await; // the job is queued now
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert!(matches!(pool.permit(Requester::Trusted), Err(HashError::Busy)));
    end.send(()).unwrap();
    // The only thread takes it after the first job has ended.
    pool.run(second, |_| ()).await.unwrap();
    let _both = [(); 2].map(|()| pool.permit(Requester::Trusted).unwrap());
}

#[tokio::test]
async fn thread_survives_a_panic() {
    let pool = HashingPool::with_size(1, 1).unwrap();
    let permit = pool.permit(Requester::Trusted).unwrap();
    assert!(matches!(pool.run(permit, |_| panic!("on purpose")).await, Err(HashError::Fault(_))));
    let permit = pool.permit(Requester::Trusted).unwrap();
    assert_eq!(pool.run(permit, |_| 1).await.unwrap(), 1);
}

#[tokio::test]
async fn hashing_runs_at_lowest_priority() {
    let pool = HashingPool::with_size(1, 1).unwrap();
    let permit = pool.permit(Requester::Trusted).unwrap();
    let of_thread = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
    let before = of_thread();
    assert_eq!(pool.run(permit, move |_| of_thread()).await.unwrap(), 19);
    assert_eq!(of_thread(), before, "other threads keep their priority");
}

#[test]
fn without_entropy_there_is_no_hasher() {
    let pool = HashingPool::with_size(1, 1).unwrap();
    let parameters = Argon2Parameters::LEAST;
    let made = Argon2Hasher::new(pool, parameters, Vec::new(), Arc::new(NoEntropyLeft));
    assert!(made.is_err());
}

#[test]
fn hash_without_memory_is_refused() {
    let mut memory = Memory::default();
    let refused = memory.with(usize::MAX / 2048, |_| ()).unwrap_err();
    assert!(matches!(refused, HashError::NoMemory { .. }), "{refused}");
    memory.with(8, |blocks| assert_eq!(blocks.len(), 8)).unwrap();
}

/// RFC 9106 section 5: one vector for each variant.
#[test]
fn rfc_9106() {
    let vectors = [
        (Algorithm::Argon2d, hex!("512b391b6f1162975371d30919734294f868e3be3984f3c1a13a4db9fabe4acb")),
        (Algorithm::Argon2i, hex!("c814d9d1dc7f37aa13f0d77f2494bda1c8de6b016dd388d29952a4c4672b6ce8")),
        (Algorithm::Argon2id, hex!("0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659")),
    ];
    for (algorithm, expected) in vectors {
        let params = ParamsBuilder::new()
            .m_cost(32)
            .t_cost(3)
            .p_cost(4)
            .data(AssociatedData::new(&[4; 12]).unwrap())
            .output_len(32)
            .build()
            .unwrap();
        let mut memory = Memory::default();
        let mut hash = [0; 32];
        let argon2 = Argon2::new_with_secret(&[3; 8], algorithm, Version::V0x13, params.clone()).unwrap();
        memory
            .with(params.block_count(), |blocks| {
                argon2.hash_password_into_with_memory(&[1; 32], &[2; 16], &mut hash, blocks)
            })
            .unwrap()
            .unwrap();
        assert_eq!(hash, expected);
    }
}

#[test]
fn verifier_round_trips() {
    let verifier = Verifier { parameters: Argon2Parameters::LEAST, salt: [1; SALT], hash: [2; HASH] };
    let text = verifier.to_text();
    assert_eq!(
        *text,
        "$argon2id$v=19$m=19456,t=2,p=1$AQEBAQEBAQEBAQEBAQEBAQ$AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI"
    );
    let read = Verifier::read(text.as_bytes()).unwrap();
    assert_eq!((read.parameters, read.salt, read.hash), (verifier.parameters, verifier.salt, verifier.hash));
}
