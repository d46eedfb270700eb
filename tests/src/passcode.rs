//! Time-based passcodes, as an authenticator app makes them (RFC 6238).

use std::time::{SystemTime, UNIX_EPOCH};
use totp_rs::{Algorithm, Builder, Secret, Totp};

/// The length of a step, in seconds.
pub const STEP_SECONDS: i64 = 30;

/// An account's authenticator.
#[derive(Clone)]
pub struct Authenticator(Totp);

impl Authenticator {
    /// Set up with the secret that was shown once, as Base32 text.
    pub fn new(secret: &str) -> Self {
        let secret = Secret::try_from_base32(secret).expect("the secret is Base32");
        Self(Builder::new().with_algorithm(Algorithm::SHA1).with_digits(6).with_secret(secret).build_noncompliant())
    }

    /// The code of `step`.
    pub fn code(&self, step: i64) -> String {
        self.0.generate(u64::try_from(step * STEP_SECONDS).unwrap()).to_string()
    }

    /// A code that none of the steps around `step` has.
    pub fn wrong_code(&self, step: i64) -> String {
        let near: Vec<String> = (step - 5..=step + 5).map(|step| self.code(step)).collect();
        (0..).map(|number| format!("{number:06}")).find(|code| !near.contains(code)).unwrap()
    }
}

/// The step of this moment.
#[expect(clippy::disallowed_methods, reason = "an authenticator has a clock of its own")]
pub fn current_step() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap() / STEP_SECONDS
}

/// What `attempt` observed, if the step did not change while it did. Else it is made again: it is given the
/// step, must begin with an account that has used no code yet, and must not judge what it observes.
pub fn within_one_step<T>(mut attempt: impl FnMut(i64) -> T) -> T {
    for _ in 0..20 {
        let step = current_step();
        let observed = attempt(step);
        if current_step() == step {
            return observed;
        }
    }
    panic!("20 attempts, each longer than what was left of its step")
}
