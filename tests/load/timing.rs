//! Response times of rejected logins: whether they disclose the reason of the rejection.
//!
//! The measurement first sends what an attacker would send to make unknown addresses differ from known ones: logins at
//! many unknown addresses. Then it sends one login at a time. The compared kinds alternate in random order, so that
//! other load on the host affects all of them equally. Counters of the server show that each attempt had the expected
//! outcome.

use crate::Options;
use crate::bench::Bench;
use crate::engine::run;
use crate::report::{Row, median, note};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use vault_tests::passcode::current_step;
use vault_tests::{Account, Client};

/// Number of attempts in a row before an account is locked out.
const FREE_ATTEMPTS: usize = 5;
/// Number of accounts that are locked out at the same time.
const LOCKED: usize = 10;
/// Number of attempts of each kind during one lockout, which lasts 30 seconds.
const PER_LOCKOUT: usize = 100;
const EVALUATIONS: &str = "orgvault_password_evaluations_total";
/// Has the form of a recovery code but belongs to no account.
const NO_RECOVERY_CODE: &str = "00000000000000000000";

/// Kinds of logins without a lockout.
const KINDS: [&str; 6] = [
    "unknown address",
    "wrong password",
    "right password, wrong code",
    "disabled account, all right",
    "wrong password, 20 digits",
    "right password, 20 digits",
];

pub(crate) fn measure(options: &Options, bench: &Bench<'_>) -> Vec<Row> {
    flood(options, bench);
    let mut rows = hashed(options, bench);
    rows.extend(locked(options, bench));
    rows
}

/// Logs in at unknown addresses, each of them once.
fn flood(options: &Options, bench: &Bench<'_>) {
    note(&format!("{} logins at unknown addresses", options.strangers));
    let next = AtomicUsize::new(0);
    // Below the quarter of the hash queue that one network may use.
    run(&bench.api, 4, None, |caller| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= options.strangers {
                return None;
            }
            let body = login(&format!("stranger-{number}@example.com"), &"x".repeat(26), "000000");
            caller.send("POST", "/v1/login", "", Some(&body))?.expect(401);
        }
    });
}

/// Compares logins that are rejected without a lockout, in blocks that use the free attempts of five accounts.
fn hashed(options: &Options, bench: &Bench<'_>) -> Vec<Row> {
    let blocks = options.samples.div_ceil(FREE_ATTEMPTS);
    note(&format!("creating {} accounts", blocks * 5));
    let accounts = bench.accounts("Timing", blocks * 5);
    let admin = bench.vault.account("Timing", "admin").log_in(&bench.client());
    let (mut random, client) = (Shuffler::default(), bench.client());
    let mut times = KINDS.map(|_| Vec::new());
    for (number, block) in accounts.chunks_exact(5).enumerate() {
        let [wrong_password, wrong_code, disabled, wrong_long, right_long] = block else { unreachable!() };
        admin.change_account(&disabled.id, &json!({"state": "disabled"})).expect(200);
        let logins = [
            // The addresses have the length of those of the accounts.
            wrong(&absent(wrong_password, number), wrong_password, "000000"),
            wrong(&wrong_password.email, wrong_password, "000000"),
            wrong_code.login(&wrong_code.authenticator.wrong_code(current_step())),
            disabled.login(&disabled.authenticator.code(current_step())),
            wrong(&wrong_long.email, wrong_long, NO_RECOVERY_CODE),
            right_long.login(NO_RECOVERY_CODE),
        ];
        let counts = || {
            let outcomes = ["unknown-address", "wrong-password", "wrong-passcode", "disabled"];
            let series = outcomes.map(|outcome| format!("orgvault_logins_total{{outcome=\"{outcome}\"}}"));
            (series.map(|series| bench.count(&series)), bench.count(EVALUATIONS))
        };
        let (before, evaluated_before) = counts();
        for _ in 0..FREE_ATTEMPTS {
            for kind in random.order(KINDS.len()) {
                times[kind].push(time(&client, &logins[kind]));
            }
        }
        let (after, evaluated) = counts();
        let added = [0, 1, 2, 3].map(|place| after[place] - before[place]);
        assert_eq!(added, [5, 10, 10, 5], "unknown addresses, wrong passwords, wrong passcodes, disabled accounts");
        assert_eq!(evaluated - evaluated_before, 20, "logins that were compared with a stored hash");
    }
    [(1, 0), (2, 0), (3, 0), (2, 1), (5, 4)].map(|pair| compare(bench, &KINDS, &times, pair)).into()
}

/// Compares unknown addresses with wrong and right passwords of accounts that are locked out, all with 20 digits.
fn locked(options: &Options, bench: &Bench<'_>) -> Vec<Row> {
    let names = ["unknown address", "wrong password in a lockout", "right password in a lockout"];
    let accounts = bench.accounts("Locked", options.samples.div_ceil(PER_LOCKOUT) * LOCKED);
    let (mut random, client) = (Shuffler::default(), bench.client());
    let mut times = names.map(|_| Vec::new());
    for (lockout, accounts) in accounts.chunks(LOCKED).enumerate() {
        for account in accounts {
            for _ in 0..FREE_ATTEMPTS {
                time(&client, &wrong(&account.email, account, NO_RECOVERY_CODE));
            }
        }
        let turns = (options.samples - times[0].len()).min(PER_LOCKOUT);
        let counts = || [bench.count("orgvault_logins_total{outcome=\"locked\"}"), bench.count(EVALUATIONS)];
        let before = counts();
        for turn in 0..turns {
            let number = turn % LOCKED;
            let account = &accounts[number];
            let logins = [
                wrong(&absent(account, lockout * LOCKED + number), account, NO_RECOVERY_CODE),
                wrong(&account.email, account, NO_RECOVERY_CODE),
                account.login(NO_RECOVERY_CODE),
            ];
            for kind in random.order(names.len()) {
                times[kind].push(time(&client, &logins[kind]));
            }
        }
        let after = counts();
        assert_eq!(after[0] - before[0], 2 * turns as u64, "logins during a lockout");
        assert_eq!(after[1], before[1], "logins during a lockout that were compared with a stored hash");
    }
    [(1, 0), (2, 0), (2, 1)].map(|pair| compare(bench, &names, &times, pair)).into()
}

fn login(email: &str, password: &str, passcode: &str) -> Value {
    json!({"email": email, "password": password, "passcode": passcode})
}

/// Returns a login with a wrong password of the length of the account's.
fn wrong(email: &str, account: &Account, passcode: &str) -> Value {
    login(email, &"x".repeat(account.password.len()), passcode)
}

/// Returns an unknown address with the length of the account's.
fn absent(account: &Account, number: usize) -> String {
    let domain = "@example.com";
    format!("{number:a>width$}{domain}", width = account.email.len() - domain.len())
}

/// Returns the response time of a rejected login, in milliseconds.
fn time(client: &Client, login: &Value) -> f64 {
    let call = client.request("POST", "/v1/login").json(login);
    let started = Instant::now();
    let answer = call.try_send().expect("a response");
    let time = started.elapsed().as_secs_f64() * 1000.0;
    answer.expect(401);
    time
}

fn compare(bench: &Bench<'_>, names: &[&str], times: &[Vec<f64>], (kind, other): (usize, usize)) -> Row {
    let (values, others) = (&times[kind], &times[other]);
    let (median, other_median) = (median(values), median(others));
    let counts = values.len() as f64 * others.len() as f64;
    let by_chance = ((values.len() + others.len() + 1) as f64 / (12.0 * counts)).sqrt();
    let (difference, auc) = ((median - other_median) * 1000.0, auc(values, others));
    Row::new(
        bench.name(&format!("{}, against {}", names[kind], names[other])),
        vec![("median ms", median), ("difference µs", difference), ("AUC", auc), ("by chance ±", by_chance)],
    )
}

/// Returns the probability that a value exceeds one of `others`, where equal values count half. This is Mann–Whitney's
/// U divided by the number of pairs, and the area under the ROC curve of a classifier that uses the value. At 0.5, the
/// samples are indistinguishable.
fn auc(values: &[f64], others: &[f64]) -> f64 {
    let exceeded = |value: &f64| -> f64 {
        others.iter().map(|other| if value > other { 1.0 } else { f64::from(u8::from(value == other)) / 2.0 }).sum()
    };
    values.iter().map(exceeded).sum::<f64>() / (values.len() as f64 * others.len() as f64)
}

/// Shuffles in the same way in each run, so that two runs send the same requests.
struct Shuffler(u64);

impl Default for Shuffler {
    fn default() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }
}

impl Shuffler {
    /// Returns the numbers below `count` in random order.
    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for place in (1..count).rev() {
            // xorshift64
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            order.swap(place, usize::try_from(self.0 % (place as u64 + 1)).unwrap());
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greater_values_count_one_and_equal_values_half() {
        assert_eq!(auc(&[3.0, 4.0], &[1.0, 2.0]), 1.0);
        assert_eq!(auc(&[1.0, 2.0], &[3.0, 4.0]), 0.0);
        assert_eq!(auc(&[1.0, 1.0], &[1.0]), 0.5);
        // Of the six pairs, four have a greater value: 2 > 1 and all three of 5. One pair is equal.
        assert_eq!(auc(&[2.0, 5.0], &[1.0, 2.0, 3.0]), (1.0 + 0.5 + 3.0) / 6.0);
    }
}
