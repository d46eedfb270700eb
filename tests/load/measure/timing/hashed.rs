//! Logins that are rejected without a lockout.

use super::FREE_ATTEMPTS;
use super::attempts::{Attempt, Taken};
use crate::account::Account;
use crate::measure::Ground;
use crate::report::{Comparison, Report};
use crate::shuffle::Shuffler;
use crate::{Result, note};
use std::net::SocketAddr;

/// Number of accounts that a block uses: one for each kind except the first.
const ACCOUNTS: usize = 5;

/// For each kind: the error, the outcome that the server counts, and whether a stored hash was checked.
const KINDS: [(&str, &str, bool); ACCOUNTS + 1] = [
    ("unknown address", "unknown-address", false),
    ("wrong password", "wrong-password", true),
    ("right password, wrong code", "wrong-passcode", true),
    ("disabled account, all right", "disabled", false),
    ("wrong password, 20 digits", "wrong-password", true),
    ("right password, 20 digits", "wrong-passcode", true),
];

/// Pairs of kinds that are compared.
const PAIRS: [(usize, usize); 5] = [(1, 0), (2, 0), (3, 0), (2, 1), (5, 4)];

/// Compares the kinds in blocks. Each block uses the free attempts of one account of each kind.
pub(super) fn compare(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let blocks = usize::try_from(ground.options.samples)?.div_ceil(FREE_ATTEMPTS);
    note(&format!("making {} accounts", blocks * ACCOUNTS));
    ground.vault.run(&["org", "create", "Timing"])?;
    let accounts = Account::create_many(ground.vault, "Timing", blocks * ACCOUNTS)?;
    let mut shuffler = Shuffler::new();
    let mut times = KINDS.map(|_| Vec::new());
    for (number, block) in accounts.chunks(ACCOUNTS).enumerate() {
        let [wrong_password, wrong_code, disabled, wrong_long, right_long] = block else { continue };
        ground.vault.run(&["account", "disable", "--email", &disabled.email])?;
        let logins = [
            // The addresses have the length of those of the accounts.
            wrong_password.strangers_login(&format!("absent-{number}@example.com")),
            wrong_password.wrong_password_login(),
            wrong_code.wrong_code_login(),
            disabled.right_login(),
            wrong_long.wrong_all_login(),
            right_long.right_password_login(),
        ];
        let taken = Taken::take(ground, &attempts(ground.server.address, &logins), order(&mut shuffler))?;
        check(&taken)?;
        for (kind, time) in taken.times {
            times[kind].push(time);
        }
    }
    for (kind, other) in PAIRS {
        let what = format!("{}, against {}", KINDS[kind].0, KINDS[other].0);
        report.comparison(Comparison::new(what, &times[kind], &times[other]));
    }
    Ok(())
}

/// Checks that all attempts had the expected outcome.
fn check(taken: &Taken) -> Result<()> {
    let meant = |outcome: &str| KINDS.iter().filter(|kind| kind.1 == outcome).count() * FREE_ATTEMPTS;
    for (what, outcome, _) in KINDS {
        let (came, meant) = (taken.logins(outcome), meant(outcome));
        if came != meant as u64 {
            return Err(format!("{what}: {came} logins came to {outcome}, not {meant}").into());
        }
    }
    let stored = KINDS.iter().filter(|kind| kind.2).count() * FREE_ATTEMPTS;
    match taken.evaluations() {
        evaluated if evaluated == stored as u64 => Ok(()),
        evaluated => Err(format!("{evaluated} logins were compared with a stored hash, not {stored}").into()),
    }
}

fn attempts(address: SocketAddr, logins: &[String]) -> Vec<Attempt> {
    logins.iter().enumerate().map(|(kind, login)| Attempt::new(kind, address, login)).collect()
}

/// Returns an order with as many attempts of each kind as are free.
fn order(shuffler: &mut Shuffler) -> Vec<usize> {
    let mut order = Vec::with_capacity(FREE_ATTEMPTS * KINDS.len());
    for _ in 0..FREE_ATTEMPTS {
        let mut turn: Vec<usize> = (0..KINDS.len()).collect();
        shuffler.shuffle(&mut turn);
        order.append(&mut turn);
    }
    order
}
