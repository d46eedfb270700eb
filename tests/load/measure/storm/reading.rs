//! Lists of 100 credentials, with or without other load.

use crate::Result;
use crate::account::Organization;
use crate::client::{Answer, Next, Sample, Verdict, Workload, run};
use crate::measure::Ground;
use crate::measure::lists::{FirstPage, PAGE};
use std::time::{Duration, Instant};

/// Number of connections that list.
pub(super) const CONNECTIONS: usize = 8;

/// Requests the newest page with a pause after each response.
struct Paced {
    page: FirstPage,
    pause: Duration,
    /// Time of the next request of each connection.
    due: Vec<Instant>,
}

impl Workload for Paced {
    fn next(&mut self, slot: usize, request: &mut Vec<u8>, now: Instant) -> Next {
        if now < self.due[slot] { Next::Wait(self.due[slot]) } else { self.page.next(slot, request, now) }
    }

    fn answered(&mut self, slot: usize, answer: &Answer<'_>) -> Verdict {
        self.due[slot] = Instant::now() + self.pause;
        self.page.answered(slot, answer)
    }
}

/// Lists for one round, with this pause after each response.
pub(super) fn list(ground: &Ground<'_>, organization: &Organization, pause: Duration) -> Result<Sample> {
    let page = FirstPage::new(ground.server.address, &organization.token, PAGE)?;
    let now = Instant::now();
    // Start the connections one after the other instead of concurrently.
    let due = (0..CONNECTIONS).map(|slot| now + pause.mul_f64(slot as f64 / CONNECTIONS as f64)).collect();
    run(&ground.round(CONNECTIONS), &mut Paced { page, pause, due })
}
