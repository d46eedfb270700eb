//! Whether the time of a refused login tells why it was refused.
//!
//! First comes what an attacker would send to make unknown addresses differ from known ones: logins at many addresses
//! that nobody has. Then one login at a time; the kinds that are compared take turns in random order, so that whatever
//! else the machine does falls on all of them alike. What the server counts is read before and after: only what came to
//! what it was meant for is a sample.

mod attempts;
mod flood;
mod hashed;
mod waiting;

use super::Ground;
use crate::Result;
use crate::report::Report;

/// Attempts in a row before an account must wait.
const FREE_ATTEMPTS: usize = 5;

/// Measures the response times of refused logins.
pub(crate) fn timing(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    flood::flood(ground)?;
    hashed::compare(ground, report)?;
    waiting::compare(ground, report)
}
