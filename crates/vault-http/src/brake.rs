//! Holding a refusal back for a moment. A client that ignores `Retry-After` and asks again at once would otherwise take
//! the processor time that is left for hashing, which is the least urgent work there is.

use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a refusal is held back.
const HOLD: Duration = Duration::from_millis(100);
/// How many are held back at once; more are answered without delay, so that a flood costs no memory either.
const HELD: usize = 1_024;

/// Holds refusals back.
pub(crate) struct Brake(Semaphore);

impl Default for Brake {
    fn default() -> Self {
        Self(Semaphore::new(HELD))
    }
}

impl Brake {
    /// Waits a moment, unless too many wait already.
    pub(crate) async fn hold(&self) {
        if let Ok(_held) = self.0.try_acquire() {
            tokio::time::sleep(HOLD).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test(start_paused = true)]
    async fn so_many_wait_and_no_more() {
        let brake = Brake::default();
        let mut held: Vec<_> = (0..HELD).map(|_| Box::pin(brake.hold())).collect();
        assert!(held.iter_mut().all(|hold| hold.now_or_never().is_none()));
        assert!(brake.hold().now_or_never().is_some());
        tokio::time::advance(HOLD).await;
        assert!(held.iter_mut().all(|hold| hold.now_or_never().is_some()));
        assert!(brake.hold().now_or_never().is_none());
    }
}
