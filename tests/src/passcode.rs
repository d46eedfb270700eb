//! Time-based passcodes like those of an authenticator app (RFC 6238).

use std::time::{SystemTime, UNIX_EPOCH};
use totp_rs::{Algorithm, Builder, Secret, Totp};

/// Length of a time step in seconds.
pub const STEP_SECONDS: i64 = 30;

/// The authenticator of an account.
#[derive(Clone)]
pub struct Authenticator(Totp);

impl Authenticator {
    /// Creates an authenticator from the Base32 secret that is shown once.
    pub fn new(secret: &str) -> Self {
        let secret = Secret::try_from_base32(secret).expect("the secret is Base32");
        Self(Builder::new().with_algorithm(Algorithm::SHA1).with_digits(6).with_secret(secret).build_noncompliant())
    }

    /// Returns the code of `step`.
    pub fn code(&self, step: i64) -> String {
        self.0.generate(u64::try_from(step * STEP_SECONDS).unwrap()).to_string()
    }

    /// Returns a code that differs from those of the steps around `step`.
    pub fn wrong_code(&self, step: i64) -> String {
        let near: Vec<String> = (step - 5..=step + 5).map(|step| self.code(step)).collect();
        (0..).map(|number| format!("{number:06}")).find(|code| !near.contains(code)).unwrap()
    }
}

/// Returns the current step.
#[expect(clippy::disallowed_methods, reason = "an authenticator has a clock of its own")]
pub fn current_step() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap() / STEP_SECONDS
}

/// Runs `attempt` with the current step, and again if the step changed during the run. Each run must use an account
/// without used codes, and must return its observations instead of asserting on them.
pub fn within_one_step<T>(mut attempt: impl FnMut(i64) -> T) -> T {
    for _ in 0..20 {
        let step = current_step();
        let observed = attempt(step);
        if current_step() == step {
            return observed;
        }
    }
    panic!("20 attempts, each longer than the rest of its step")
}
