//! Logins that are refused without a hash, during a wait.

use super::FREE_ATTEMPTS;
use super::attempts::{Attempt, Taken};
use crate::account::Account;
use crate::measure::Ground;
use crate::report::{Comparison, Report};
use crate::shuffle::Shuffler;
use crate::{Result, note};

/// How many accounts, and as many unknown addresses, wait at once.
const PAIRS: usize = 10;
/// How many attempts of each kind are made in one wait: it lasts 30 seconds.
const PER_WAIT: usize = 1_000;
/// How many times as many samples are taken as of logins that cost a hash.
const MORE: usize = 3;

/// Compares known and unknown addresses that must wait.
pub(super) fn compare(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let wanted = usize::try_from(ground.options.samples)? * MORE;
    let waits = wanted.div_ceil(PER_WAIT);
    ground.vault.run(&["org", "create", "Waiting"])?;
    let accounts = Account::create_many(ground.vault, "Waiting", waits * PAIRS)?;
    let mut shuffler = Shuffler::new();
    let mut times = [Vec::new(), Vec::new()];
    for (number, accounts) in accounts.chunks(PAIRS).enumerate() {
        let attempts = attempts(ground, accounts, number);
        let all = (0..attempts.len()).cycle().take(attempts.len() * FREE_ATTEMPTS);
        Taken::take(ground, &attempts, all.collect())?;
        let turns = (wanted - times[0].len()).min(PER_WAIT);
        let taken = Taken::take(ground, &attempts, order(&mut shuffler, turns))?;
        let turned_away = taken.logins("turned-away");
        if turned_away != 2 * turns as u64 || taken.evaluations() != 0 {
            return Err(format!("of {} logins in a wait {turned_away} were turned away", 2 * turns).into());
        }
        for (kind, time) in taken.times {
            times[kind].push(time);
        }
    }
    note("no sample of a wait was hashed");
    let [unknown, known] = &times;
    report.comparison(Comparison::new("known address in a wait, against unknown in a wait", known, unknown));
    Ok(())
}

/// An unknown address (kind 0) and an account (kind 1), and so on.
fn attempts(ground: &Ground<'_>, accounts: &[Account], wait: usize) -> Vec<Attempt> {
    let address = ground.server.address;
    let pair = |(number, account): (usize, &Account)| {
        // As long as those of the accounts.
        let email = format!("nowhere-{}@example.com", wait * PAIRS + number);
        let unknown = Attempt::new(0, address, &account.strangers_login(&email));
        [unknown, Attempt::new(1, address, &account.wrong_password_login())]
    };
    accounts.iter().enumerate().flat_map(pair).collect()
}

/// So many turns, one pair each.
fn order(shuffler: &mut Shuffler, turns: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(2 * turns);
    for turn in 0..turns {
        let first = 2 * (turn % PAIRS);
        let mut pair = [first, first + 1];
        shuffler.shuffle(&mut pair);
        order.extend(pair);
    }
    order
}
