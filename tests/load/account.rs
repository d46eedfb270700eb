//! Accounts and their unused codes.

use crate::client::exchange;
use crate::vault::{Server, Vault};
use crate::{Result, request};
use serde_json::Value;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use time::OffsetDateTime;
use vault_tests::passcode::{Authenticator, STEP_SECONDS, current_step};

/// Number of logins of a new account in a row: the codes of two steps and its recovery codes.
pub(crate) const LOGINS: usize = 12;
/// A code of the previous step is used only in the first seconds of a step, so that it does not expire in a queue.
const FRESH: i64 = 15;

/// Has the form of a recovery code but belongs to no account.
const NO_RECOVERY_CODE: &str = "00000000000000000000";

pub(crate) struct Account {
    /// The email address.
    pub(crate) email: String,
    pub(crate) password: String,
    authenticator: Authenticator,
    last_step: i64,
    recovery_codes: Vec<String>,
}

/// A code that works once.
pub(crate) enum Code {
    /// A passcode of a time step.
    Step(i64),
    Recovery(String),
}

impl Account {
    /// Creates an account with the role editor.
    pub(crate) fn create(vault: &Vault, organization: &str, email: &str) -> Result<Self> {
        Self::create_as(vault, organization, email, "editor")
    }

    /// Creates an account with this role.
    pub(crate) fn create_as(vault: &Vault, organization: &str, email: &str, role: &str) -> Result<Self> {
        let arguments = ["account", "create", "--org", organization, "--email", email, "--role", role];
        Self::read(&vault.run(&arguments)?).ok_or_else(|| "`account create` printed something else".into())
    }

    fn read(details: &Value) -> Option<Self> {
        let codes = details.get("recovery_codes")?.as_array()?;
        Some(Self {
            email: details.get("email")?.as_str()?.to_owned(),
            password: details.get("password")?.as_str()?.to_owned(),
            authenticator: Authenticator::new(details.get("totp")?.get("secret")?.as_str()?),
            last_step: 0,
            recovery_codes: codes.iter().filter_map(|code| Some(code.as_str()?.to_owned())).collect(),
        })
    }

    /// Creates `count` accounts, two in parallel.
    pub(crate) fn create_many(vault: &Vault, organization: &str, count: usize) -> Result<Vec<Self>> {
        in_pairs(0..count, |number| {
            Self::create(vault, organization, &format!("{}-{number}@example.com", organization.to_lowercase()))
        })
    }

    /// Removes and returns a code that the server accepts now, if the account has an unused one.
    pub(crate) fn take_code(&mut self) -> Option<Code> {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        let step = now / STEP_SECONDS;
        if self.last_step < step - 1 && now % STEP_SECONDS < FRESH {
            self.last_step = step - 1;
            return Some(Code::Step(step - 1));
        }
        if self.last_step < step {
            self.last_step = step;
            return Some(Code::Step(step));
        }
        self.recovery_codes.pop().map(Code::Recovery)
    }

    /// Returns a code that the server did not check.
    pub(crate) fn give_back(&mut self, code: Code) {
        match code {
            Code::Step(step) => self.last_step = self.last_step.min(step - 1),
            Code::Recovery(code) => self.recovery_codes.push(code),
        }
    }

    /// Returns the body of a login with `code`.
    pub(crate) fn login(&self, code: &Code) -> String {
        let passcode = match code {
            Code::Step(step) => self.authenticator.code(*step),
            Code::Recovery(code) => code.clone(),
        };
        login(&self.email, &self.password, &passcode)
    }

    /// Returns the body of a login with the right password and the current passcode without marking it as used.
    pub(crate) fn right_login(&self) -> String {
        login(&self.email, &self.password, &self.right_passcode())
    }

    /// Returns the current passcode without marking it as used.
    pub(crate) fn right_passcode(&self) -> String {
        self.authenticator.code(current_step())
    }

    /// Returns the body of a login with the right password and a wrong passcode.
    pub(crate) fn wrong_code_login(&self) -> String {
        login(&self.email, &self.password, &self.authenticator.wrong_code(current_step()))
    }

    /// Returns the body of a login with a wrong password of the same length as the right one.
    pub(crate) fn wrong_password_login(&self) -> String {
        wrong_login(&self.email, self.password.len())
    }

    /// Returns the body of a login with the right password and an unknown recovery code.
    pub(crate) fn right_password_login(&self) -> String {
        login(&self.email, &self.password, NO_RECOVERY_CODE)
    }

    /// Returns the body of a login with a wrong password of the same length and an unknown recovery code.
    pub(crate) fn wrong_all_login(&self) -> String {
        login(&self.email, &"x".repeat(self.password.len()), NO_RECOVERY_CODE)
    }

    /// Returns the body of a login with an unknown email address that otherwise resembles one of this account.
    pub(crate) fn strangers_login(&self, email: &str) -> String {
        wrong_login(email, self.password.len())
    }

    /// Logs in and returns the access token.
    pub(crate) fn log_in(&mut self, server: &Server) -> Result<String> {
        let code = self.take_code().ok_or("the account has no code left")?;
        let (status, _, body) = exchange(server.address, &request::login(server.address, &self.login(&code)))?;
        let answer: Value = serde_json::from_slice(&body)?;
        match answer.get("access_token").and_then(Value::as_str) {
            Some(token) if status == 200 => Ok(token.to_owned()),
            _ => Err(format!("{} cannot log in: {answer}", self.email).into()),
        }
    }
}

/// Returns the body of a login with a wrong password and a wrong passcode.
pub(crate) fn wrong_login(email: &str, password_length: usize) -> String {
    login(email, &"x".repeat(password_length), "000000")
}

fn login(email: &str, password: &str, passcode: &str) -> String {
    let ttl = 86_400;
    serde_json::json!({"email": email, "password": password, "passcode": passcode, "ttl": ttl}).to_string()
}

/// An organization with the token of an editor.
pub(crate) struct Organization {
    pub(crate) name: String,
    /// Access token of an editor.
    pub(crate) token: String,
}

impl Organization {
    /// Creates an organization and an editor, and logs the editor in.
    pub(crate) fn create(vault: &Vault, server: &Server, name: &str) -> Result<Self> {
        vault.run(&["org", "create", name])?;
        let email = format!("editor@{}.example.com", name.to_lowercase());
        let token = Account::create(vault, name, &email)?.log_in(server)?;
        Ok(Self { name: name.to_owned(), token })
    }

    /// Creates an organization for each number, two in parallel.
    pub(crate) fn create_many(vault: &Vault, server: &Server, name: &str, numbers: Range<usize>) -> Result<Vec<Self>> {
        in_pairs(numbers, |number| Self::create(vault, server, &format!("{name}-{number}")))
    }
}

/// Calls `make` for each number, two in parallel, in no particular order.
fn in_pairs<T: Send>(numbers: Range<usize>, make: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let made = Mutex::new(Vec::with_capacity(numbers.len()));
    let next = AtomicUsize::new(numbers.start);
    // Errors cross threads as text because they are not `Send`.
    let maker = || -> std::result::Result<(), String> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(());
            }
            let one = make(number).map_err(|error| error.to_string())?;
            made.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        }
    };
    thread::scope(|scope| {
        let other = scope.spawn(maker);
        maker()?;
        other.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
    })?;
    Ok(made.into_inner().unwrap_or_else(PoisonError::into_inner))
}
