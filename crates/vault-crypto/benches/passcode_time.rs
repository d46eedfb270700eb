//! Checks whether the time of a passcode check discloses anything about the code: two kinds of code in random order, a
//! million checks, Welch's t-test of their times ("dudect": Reparaz, Balasch and Verbauwhede, 2017). Below 4.5 either
//! way, no difference is seen.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people to run")]

use secrecy::ExposeSecret as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use vault_core::email::EmailAddress;
use vault_core::id::InstanceId;
use vault_core::passcode::{Digits, Passcode, TimeStep};
use vault_core::port::{NewSeed, PasscodeVerifier};
use vault_core::time::Timestamp;
use vault_crypto::{Keyring, LoadedRootKey, OsEntropy, TotpVerifier, passcode_of};

const CHECKS: usize = 1_000_000;
/// Checks that are thrown away: from them comes what counts as an interruption.
const WARM_UP: usize = 20_000;
const LIMIT: f64 = 4.5;

/// Mean and variance, one sample after the other (Welford).
#[derive(Clone, Copy, Default)]
struct Samples {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Samples {
    fn add(&mut self, sample: f64) {
        self.count += 1.0;
        let off = sample - self.mean;
        self.mean += off / self.count;
        self.squares += off * (sample - self.mean);
    }

    /// The squared error of the mean.
    fn error(&self) -> f64 {
        self.squares / (self.count - 1.0) / self.count
    }
}

fn welch(a: &Samples, b: &Samples) -> f64 {
    (a.mean - b.mean) / (a.error() + b.error()).sqrt()
}

fn verifier() -> TotpVerifier {
    let directory = tempfile::tempdir().unwrap();
    let root = LoadedRootKey::generate(&directory.path().join("root.key"), Arc::new(OsEntropy)).unwrap();
    let made = Keyring::create(&root, Arc::new(OsEntropy), InstanceId::from_bytes([1; 16]), Timestamp::from_millis(0));
    made.unwrap().keyring.passcodes()
}

fn digits(text: &str) -> Digits {
    match Passcode::read(&text.into()) {
        Passcode::TimeBased(digits) => digits,
        Passcode::Recovery(_) | Passcode::Impossible => unreachable!("six digits"),
    }
}

fn main() {
    let verifier = verifier();
    let NewSeed { seed, secret } = verifier.new_seed(&EmailAddress::parse("a@example.com").unwrap()).unwrap();
    let now = Timestamp::from_millis(1_800_000_000_000);
    let step = TimeStep::at(now);
    let [right, earlier] = [step, step.previous()].map(|step| passcode_of(&secret, step).unwrap());
    let [right, earlier] = [right, earlier].map(|code| code.expose_secret().to_owned());
    let other_last = |code: &str| {
        let last = if code.ends_with('0') { '1' } else { '0' };
        format!("{}{last}", &code[..5])
    };
    let almost = other_last(&right);
    // The first digit differs from that of either code.
    let wrong = (0..10).map(|digit| format!("{digit}{}", &right[1..]));
    let wrong = wrong.into_iter().find(|code| code[..1] != right[..1] && code[..1] != earlier[..1]).unwrap();

    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut coin = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::from(state >> 60 & 1 == 1)
    };
    println!("{CHECKS} checks each; below {LIMIT} either way, no difference is seen");
    for (name, code) in
        [("right", &right), ("right, of the step before", &earlier), ("all but the last digit right", &almost)]
    {
        let codes = [digits(code), digits(&wrong)];
        let time = |kind: usize| {
            let started = Instant::now();
            black_box(verifier.matching_step(Some(&seed), black_box(&codes[kind]), now)).unwrap();
            started.elapsed().as_nanos() as f64
        };
        let mut first: Vec<f64> = (0..WARM_UP).map(|round| time(round % 2)).collect();
        first.sort_by(f64::total_cmp);
        let interrupted = first[WARM_UP * 9 / 10];
        let mut samples = [Samples::default(); 2];
        for _ in 0..CHECKS {
            let kind = coin();
            let taken = time(kind);
            if taken < interrupted {
                samples[kind].add(taken);
            }
        }
        let t = welch(&samples[0], &samples[1]);
        let verdict = if t.abs() < LIMIT { "met" } else { "NOT MET" };
        println!("{name:<30} {:>6.0} ns   wrong {:>6.0} ns   t {t:>6.2}   {verdict}", samples[0].mean, samples[1].mean);
    }
}
