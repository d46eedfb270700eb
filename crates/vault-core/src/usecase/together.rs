//! Several waits at once, without a runtime.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// How many stores are waited for at once.
pub(super) const AT_ONCE: usize = 16;

/// A future that a port returns.
pub(super) type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Waits for all of them; their results in their order.
pub(super) async fn together<T>(futures: Vec<Pending<'_, T>>) -> Vec<T> {
    let mut slots: Vec<(Option<Pending<'_, T>>, Option<T>)> =
        futures.into_iter().map(|future| (Some(future), None)).collect();
    poll_fn(|context| {
        let mut left = 0;
        for (future, result) in &mut slots {
            if let Some(pending) = future {
                match pending.as_mut().poll(context) {
                    Poll::Ready(done) => {
                        *result = Some(done);
                        *future = None;
                    }
                    Poll::Pending => left += 1,
                }
            }
        }
        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    slots.into_iter().filter_map(|(_, result)| result).collect()
}
