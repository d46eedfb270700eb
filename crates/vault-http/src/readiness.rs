//! Readiness of the server, checked at most once per second.

use futures_util::future::BoxFuture;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Time for which a result is reused.
const FRESH: Duration = Duration::from_secs(1);
/// Time limit of a check. After it, the server is not ready.
const DEADLINE: Duration = Duration::from_secs(3);

/// Checks whether everything that requests need is available, for `/readyz`.
///
/// Clones share one result, so that any number of listeners and probes cause one check per second.
#[derive(Clone)]
pub struct Readiness(Arc<Shared>);

/// Ready, or the reason why not.
type Found = Result<(), String>;

struct Shared {
    check: Box<dyn Fn() -> BoxFuture<'static, Found> + Send + Sync>,
    last: Mutex<Option<(Instant, Found)>>,
}

impl Readiness {
    /// Creates the state from `check`, which returns the reason if the server is not ready. The admin listener shows
    /// this reason. A check that takes more than 3 s counts as not ready. It is called on request if the last result is
    /// older than 1 s, and never concurrently.
    pub fn new<F>(check: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let check = move || -> BoxFuture<'static, Found> { Box::pin(check()) };
        Self(Arc::new(Shared { check: Box::new(check), last: Mutex::default() }))
    }

    /// Returns whether requests can be served, or the reason why not. If the caller is cancelled, the result of its
    /// check is lost.
    pub(crate) async fn find_out(self) -> Result<(), String> {
        let mut last = self.0.last.lock().await;
        if let Some((found_at, ready)) = &*last
            && found_at.elapsed() < FRESH
        {
            return ready.clone();
        }
        let late = || Err(format!("the check did not finish within {} s", DEADLINE.as_secs()));
        let ready = timeout(DEADLINE, (self.0.check)()).await.unwrap_or_else(|_| late());
        *last = Some((Instant::now(), ready.clone()));
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Creates a readiness whose checks take this long, and a counter of the checks.
    fn counted(takes: Duration) -> (Readiness, Arc<AtomicU32>) {
        let checks = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&checks);
        let readiness = Readiness::new(move || {
            let number = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::time::sleep(takes).await;
                if number.is_multiple_of(2) { Ok(()) } else { Err("odd".to_owned()) }
            }
        });
        (readiness, checks)
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_check_runs_once_a_second_for_all_callers() {
        let (readiness, checks) = counted(Duration::from_millis(200));
        let odd = Err("odd".to_owned());
        for (second, ready) in [(1, Ok(())), (2, odd), (3, Ok(()))] {
            let answers = join_all((0..100).map(|_| readiness.clone().find_out())).await;
            assert!(answers.iter().all(|answer| *answer == ready), "all have the result of one check");
            tokio::time::advance(FRESH - Duration::from_millis(1)).await;
            assert_eq!(readiness.clone().find_out().await, ready, "it holds for a second");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(checks.load(Ordering::Relaxed), second);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn check_that_takes_too_long_is_not_ready() {
        let (readiness, checks) = counted(Duration::from_secs(60));
        let began = Instant::now();
        let answers = join_all((0..3).map(|_| readiness.clone().find_out())).await;
        assert_eq!(began.elapsed(), DEADLINE);
        assert!(
            answers.iter().all(|answer| answer.as_ref().is_err_and(|reason| reason.contains("3 s"))),
            "{answers:?}"
        );
        assert_eq!(checks.load(Ordering::Relaxed), 1);
    }
}
