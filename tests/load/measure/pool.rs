//! Accounts that log in again and again, none of them twice at a time.

use crate::account::{Account, Code};
use std::collections::VecDeque;

/// The accounts, and who of them is logging in.
pub(super) struct Pool<'a> {
    accounts: &'a mut [Account],
    /// Accounts with no login in flight.
    idle: VecDeque<usize>,
    /// The account and the code of each connection's login.
    under_way: Vec<Option<(usize, Code)>>,
}

impl<'a> Pool<'a> {
    /// All idle.
    pub(super) fn new(accounts: &'a mut [Account], connections: usize) -> Self {
        let idle = (0..accounts.len()).collect();
        Self { accounts, idle, under_way: (0..connections).map(|_| None).collect() }
    }

    /// The body of a login on connection `slot`, by the first of so many idle accounts that has a code left.
    pub(super) fn ask(&mut self, slot: usize, most: usize) -> Option<String> {
        for _ in 0..self.idle.len().min(most) {
            let place = self.idle.pop_front()?;
            let account = &mut self.accounts[place];
            if let Some(code) = account.take_code() {
                let login = account.login(&code);
                self.under_way[slot] = Some((place, code));
                return Some(login);
            }
            self.idle.push_back(place);
        }
        None
    }

    /// The login on connection `slot`, if one of these accounts made it, is over. If it was not even `looked_at`, its
    /// code still works.
    pub(super) fn settle(&mut self, slot: usize, looked_at: bool) {
        if let Some((place, code)) = self.under_way[slot].take() {
            if !looked_at {
                self.accounts[place].give_back(code);
            }
            self.idle.push_back(place);
        }
    }
}
