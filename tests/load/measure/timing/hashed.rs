//! Logins that are refused after a hash.

use super::FREE_ATTEMPTS;
use super::attempts::{Attempt, Taken};
use crate::account::Account;
use crate::measure::Ground;
use crate::report::{Comparison, Report};
use crate::shuffle::Shuffler;
use crate::{Result, note};
use std::net::SocketAddr;

/// Accounts that a block uses up: one for each kind but the first.
const ACCOUNTS: usize = 3;

/// What is wrong with a login, and what the server counts it as. All others are compared with the first.
const KINDS: [(&str, &str); ACCOUNTS + 1] = [
    ("unknown address", "unknown-address"),
    ("wrong password", "wrong-password"),
    ("right password, wrong code", "wrong-passcode"),
    ("disabled account, all right", "closed"),
];

/// Compares them in blocks: each uses up the free attempts of one account of each kind and of one unknown address.
pub(super) fn compare(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let blocks = usize::try_from(ground.options.samples)?.div_ceil(FREE_ATTEMPTS);
    // Some unknown addresses fall into a bucket in which another has used the attempts up.
    let made = blocks + blocks / 8 + 4;
    note(&format!("making {} accounts", made * ACCOUNTS));
    ground.vault.run(&["org", "create", "Timing"])?;
    let accounts = Account::create_many(ground.vault, "Timing", made * ACCOUNTS)?;
    let mut shuffler = Shuffler::new();
    let mut times = KINDS.map(|_| Vec::new());
    let mut left_out = Vec::new();
    for (number, block) in accounts.chunks(ACCOUNTS).enumerate() {
        if times[0].len() >= blocks * FREE_ATTEMPTS {
            break;
        }
        let [wrong_password, wrong_code, disabled] = block else { continue };
        ground.vault.run(&["account", "disable", "--email", &disabled.email])?;
        let logins = [
            // As long as those of the accounts.
            wrong_password.strangers_login(&format!("absent-{number}@example.com")),
            wrong_password.wrong_password_login(),
            wrong_code.wrong_code_login(),
            disabled.right_login(),
        ];
        let taken = Taken::take(ground, &attempts(ground.server.address, &logins), order(&mut shuffler))?;
        let came_to = KINDS.map(|(_, outcome)| taken.logins(outcome));
        if came_to != KINDS.map(|_| FREE_ATTEMPTS as u64) || taken.evaluations() != came_to.iter().sum::<u64>() {
            left_out.push(came_to);
            continue;
        }
        for (kind, time) in taken.times {
            times[kind].push(time);
        }
    }
    if times[0].len() < blocks * FREE_ATTEMPTS {
        return Err(format!("too few logins came to what they were meant for: {left_out:?} of {KINDS:?}").into());
    }
    note(&format!("every sample was hashed; {} blocks of {} were left out", left_out.len(), blocks + left_out.len()));
    let [unknown, others @ ..] = &times;
    for ((what, _), times) in KINDS.iter().skip(1).zip(others) {
        report.comparison(Comparison::new(format!("{what}, against {}", KINDS[0].0), times, unknown));
    }
    Ok(())
}

fn attempts(address: SocketAddr, logins: &[String]) -> Vec<Attempt> {
    logins.iter().enumerate().map(|(kind, login)| Attempt::new(kind, address, login)).collect()
}

/// As often as attempts are free, all kinds.
fn order(shuffler: &mut Shuffler) -> Vec<usize> {
    let mut order = Vec::with_capacity(FREE_ATTEMPTS * KINDS.len());
    for _ in 0..FREE_ATTEMPTS {
        let mut turn: Vec<usize> = (0..KINDS.len()).collect();
        shuffler.shuffle(&mut turn);
        order.append(&mut turn);
    }
    order
}
