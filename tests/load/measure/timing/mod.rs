//! Response times of rejected logins: whether they disclose the reason of the rejection.
//!
//! The measurement first sends what an attacker would send to make unknown addresses differ from known ones: logins at
//! many unknown addresses. Then it sends one login at a time. The compared kinds alternate in random order, so that
//! other load on the host affects all of them equally. The counters of the server are read before and after. Only
//! attempts with the expected outcome are part of a sample.

mod attempts;
mod flood;
mod hashed;
mod waiting;

use super::Ground;
use crate::Result;
use crate::report::Report;

/// Number of attempts in a row before an account is locked out.
const FREE_ATTEMPTS: usize = 5;

/// Measures the response times of rejected logins.
pub(crate) fn timing(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    flood::flood(ground)?;
    hashed::compare(ground, report)?;
    waiting::compare(ground, report)
}
