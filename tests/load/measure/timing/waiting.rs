//! Logins that are rejected during a lockout: whether they disclose that the password was right.

use super::FREE_ATTEMPTS;
use super::attempts::{Attempt, Taken};
use crate::account::Account;
use crate::measure::Ground;
use crate::report::{Comparison, Report};
use crate::shuffle::Shuffler;
use crate::{Result, note};

/// Number of accounts that are locked out concurrently.
const ACCOUNTS: usize = 10;
/// Number of attempts of each kind during one lockout, which lasts 30 seconds. Each attempt is hashed.
const PER_WAIT: usize = 100;

/// The kinds of attempts, in the order in which each account uses them.
const KINDS: [&str; 3] = ["unknown address", "wrong password in a wait", "right password in a wait"];

/// Compares unknown addresses with wrong and right passwords of accounts that are locked out, all with 20 digits.
pub(super) fn compare(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let wanted = usize::try_from(ground.options.samples)?;
    let waits = wanted.div_ceil(PER_WAIT);
    ground.vault.run(&["org", "create", "Waiting"])?;
    let accounts = Account::create_many(ground.vault, "Waiting", waits * ACCOUNTS)?;
    let mut shuffler = Shuffler::new();
    let mut times = KINDS.map(|_| Vec::new());
    for (number, accounts) in accounts.chunks(ACCOUNTS).enumerate() {
        let attempts = attempts(ground, accounts, number);
        let wrong = (1..attempts.len()).step_by(KINDS.len()).cycle().take(accounts.len() * FREE_ATTEMPTS);
        Taken::take(ground, &attempts, wrong.collect())?;
        let turns = (wanted - times[0].len()).min(PER_WAIT);
        let taken = Taken::take(ground, &attempts, order(&mut shuffler, turns))?;
        let turned_away = taken.logins("locked");
        if turned_away != 2 * turns as u64 || taken.evaluations() != 0 {
            return Err(format!("of {} logins in a wait {turned_away} were turned away", 2 * turns).into());
        }
        for (kind, time) in taken.times {
            times[kind].push(time);
        }
    }
    note("no sample of a wait was compared with a stored hash");
    for (kind, other) in [(1, 0), (2, 0), (2, 1)] {
        let what = format!("{}, against {}", KINDS[kind], KINDS[other]);
        report.comparison(Comparison::new(what, &times[kind], &times[other]));
    }
    Ok(())
}

/// Returns attempts of all kinds with the first account, then of all kinds with the second, and so on.
fn attempts(ground: &Ground<'_>, accounts: &[Account], wait: usize) -> Vec<Attempt> {
    let address = ground.server.address;
    let of_one = |(number, account): (usize, &Account)| {
        // The addresses have the length of those of the accounts.
        let email = format!("nowhere-{}@example.com", wait * ACCOUNTS + number);
        [
            Attempt::new(0, address, &account.strangers_login(&email)),
            Attempt::new(1, address, &account.wrong_all_login()),
            Attempt::new(2, address, &account.right_password_login()),
        ]
    };
    accounts.iter().enumerate().flat_map(of_one).collect()
}

/// Returns an order of `turns` groups, each with all kinds for one account.
fn order(shuffler: &mut Shuffler, turns: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(KINDS.len() * turns);
    for turn in 0..turns {
        let first = KINDS.len() * (turn % ACCOUNTS);
        let mut kinds = [first, first + 1, first + 2];
        shuffler.shuffle(&mut kinds);
        order.extend(kinds);
    }
    order
}
