//! Accounts that log in repeatedly. No account has two concurrent logins.

use crate::account::{Account, Code};
use std::collections::VecDeque;

/// The accounts, with the state of their logins.
pub(super) struct Pool<'a> {
    accounts: &'a mut [Account],
    /// Accounts with no login in flight.
    idle: VecDeque<usize>,
    /// The account and the code of each connection's login.
    under_way: Vec<Option<(usize, Code)>>,
}

impl<'a> Pool<'a> {
    /// Creates a pool in which all accounts are idle.
    pub(super) fn new(accounts: &'a mut [Account], connections: usize) -> Self {
        let idle = (0..accounts.len()).collect();
        Self { accounts, idle, under_way: (0..connections).map(|_| None).collect() }
    }

    /// Returns the body of a login on connection `slot`, for the first of `most` idle accounts that has an unused code.
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

    /// Finishes the login on connection `slot`, if an account of this pool sent it. If the server did not check it
    /// (`looked_at` is `false`), its code can still be used.
    pub(super) fn settle(&mut self, slot: usize, looked_at: bool) {
        if let Some((place, code)) = self.under_way[slot].take() {
            if !looked_at {
                self.accounts[place].give_back(code);
            }
            self.idle.push_back(place);
        }
    }
}
