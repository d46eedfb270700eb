//! A client that logs in and out: a passcode or recovery code works once, and a session that was logged out stays
//! invalid.

use crate::ledger::Outcome;
use crate::log::AckLog;
use crate::workers::Tally;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use vault_tests::binary::Run;
use vault_tests::passcode::current_step;
use vault_tests::{Account, Client, Vault};

/// Attempts in a row after which the next one must wait.
const FREE_ATTEMPTS: u32 = 5;
/// Maximum number of tries of a command.
const PATIENCE: usize = 40;

pub(crate) struct LoginClient {
    account: Account,
    /// Unused recovery codes. `None` represents the current passcode.
    codes: VecDeque<Option<String>>,
    /// The last code of an acknowledged login.
    spent: Option<String>,
    /// Sessions that were created and not logged out.
    live: Vec<String>,
    /// Sessions whose logout was acknowledged.
    ended: Vec<String>,
    /// Attempts since the last acknowledged login. A request without a response counts, so that a crash gives no
    /// additional guess.
    attempts: u32,
}

impl LoginClient {
    /// Creates a client with a separate account.
    pub(crate) fn new(vault: &Vault) -> Self {
        let account = vault.account("Acme", "viewer");
        let (codes, live, ended) = (VecDeque::new(), Vec::new(), Vec::new());
        let mut client = Self { account, codes, spent: None, live, ended, attempts: 0 };
        client.take_codes();
        client
    }

    fn take_codes(&mut self) {
        self.codes = (0..10).map(|_| Some(self.account.recovery_code())).collect();
        self.codes.push_front(None);
    }

    /// Returns `true` if its next attempt must wait.
    fn must_wait(&self) -> bool {
        self.attempts >= FREE_ATTEMPTS
    }

    /// Continues with another account if few codes remain or the next attempt must wait.
    pub(crate) fn refill(&mut self, vault: &Vault) {
        if self.codes.len() < 4 || self.must_wait() {
            let email = format!("after.{}@example.com", self.account.id);
            let create = ["account", "create", "--org", "Acme", "--email", &email, "--role", "viewer", "--json"];
            self.account = Account::new(&patiently(vault, &create).json(), None);
            self.take_codes();
            self.spent = None;
            self.live.clear();
            self.attempts = 0;
        }
    }

    /// Returns `true` if it can log in once more.
    pub(crate) fn has_codes(&self) -> bool {
        !self.codes.is_empty() && !self.must_wait()
    }

    /// Logs in and, in most cases, out again.
    pub(crate) fn log_in_and_out(&mut self, client: &Client, log: &AckLog, tally: &mut Tally) -> Outcome {
        if self.must_wait() {
            return Outcome::Refused;
        }
        let Some(code) = self.codes.pop_front() else { return Outcome::Refused };
        self.attempts += 1;
        let code = code.unwrap_or_else(|| self.account.authenticator.code(current_step()));
        let started = Instant::now();
        let answer = client.request("POST", "/v1/login").json(&self.account.login(&code)).try_send();
        let answer = answer.map_err(|error| error.to_string());
        let outcome = tally.count(&answer, started.elapsed());
        log.note(&format!("login {}", &code[code.len() - 3..]), outcome);
        let Some(answer) = answer.ok().filter(|_| outcome == Outcome::Done) else { return outcome };
        let token = answer.json()["access_token"].as_str().expect("a token").to_owned();
        self.spent = Some(code);
        self.attempts = 0;
        if self.codes.len().is_multiple_of(4) {
            self.live.push(token);
            return outcome;
        }
        let started = Instant::now();
        let answer = client.request("POST", "/v1/logout").bearer(&token).try_send().map_err(|error| error.to_string());
        let outcome = tally.count(&answer, started.elapsed());
        log.note("logout", outcome);
        if outcome == Outcome::Done {
            self.ended.push(token);
        }
        outcome
    }

    /// Checks that a used code is rejected, ended sessions stay ended, and live sessions remain valid.
    pub(crate) fn check(&mut self, client: &Client, losses: &mut Vec<String>) {
        if let Some(code) = self.spent.take() {
            self.attempts += 1;
            let answer = client.log_in(&self.account.login(&code));
            if answer.status != 401 {
                losses.push(format!("a code that logged in was answered {} the second time", answer.status));
            }
        }
        let status = |token: &String| client.get("/v1/account").bearer(token).send().status;
        for token in self.ended.drain(..) {
            let status = status(&token);
            if status != 401 {
                losses.push(format!("a session that was ended was answered {status}"));
            }
        }
        for token in self.live.drain(..) {
            let status = status(&token);
            if status != 200 {
                losses.push(format!("a session that was started was answered {status}"));
            }
        }
    }
}

/// Runs a command until it succeeds. It may fail for a while after a fault.
fn patiently(vault: &Vault, arguments: &[&str]) -> Run {
    for _ in 0..PATIENCE {
        let run = vault.run(arguments);
        if run.status == Some(0) {
            return run;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    vault.run(arguments).done()
}
