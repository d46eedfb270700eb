//! Logins with unknown email addresses, each of them used once.

use crate::account::wrong_login;
use crate::client::{Answer, Next, Verdict, Workload, run};
use crate::measure::{Ground, evaluate};
use crate::metrics::Metrics;
use crate::{Result, note, request};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Number of connections, below the quarter of the hash queue that one network may use.
const CONNECTIONS: usize = 4;
/// Length of generated passwords.
const PASSWORD_LENGTH: usize = 26;

struct Strangers {
    address: SocketAddr,
    left: u64,
}

impl Workload for Strangers {
    fn next(&mut self, _slot: usize, request: &mut Vec<u8>, _now: Instant) -> Next {
        let Some(left) = self.left.checked_sub(1) else { return Next::End };
        self.left = left;
        let login = wrong_login(&format!("stranger-{left}@example.com"), PASSWORD_LENGTH);
        request.extend_from_slice(&request::login(self.address, &login));
        Next::Ask
    }

    fn answered(&mut self, _slot: usize, answer: &Answer<'_>) -> Verdict {
        match evaluate(answer, 401) {
            // The login is neither repeated nor counted: see below.
            Verdict::Throttled(_) => Verdict::Throttled(Duration::ZERO),
            verdict => verdict,
        }
    }
}

/// Sends the number of logins that the options specify.
pub(super) fn flood(ground: &Ground<'_>) -> Result<()> {
    let strangers = ground.options.strangers;
    note(&format!("{strangers} logins at unknown addresses"));
    let before = Metrics::read(ground.server)?;
    run(&ground.to_the_end(CONNECTIONS), &mut Strangers { address: ground.server.address, left: strangers })?;
    let after = Metrics::read(ground.server)?;
    let refused = after.logins("unknown-address") - before.logins("unknown-address");
    if refused != strangers || after.evaluations() != before.evaluations() {
        return Err(format!("of {strangers} logins at unknown addresses {refused} were refused as such").into());
    }
    Ok(())
}
