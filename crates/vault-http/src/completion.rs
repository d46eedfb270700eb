//! Runs use cases to their end, whether or not the client waits.

use crate::{origin, trace};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// Runs `use_case` on the thread that asks for it, in the context of `runtime`: a thread that waits for another one to run it
/// would be woken once more for each request. If the client disconnects, it continues on `runtime`.
pub(crate) fn complete<T: Send + 'static>(
    runtime: &Handle,
    use_case: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = T> {
    let use_case: UseCase<T> = Box::pin(trace::carried(origin::carried(use_case)));
    Completion { use_case: Some(use_case), runtime: runtime.clone() }
}

type UseCase<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A use case that continues on `runtime` if this future is dropped before it ends.
struct Completion<T: Send + 'static> {
    /// `None` once it has ended, or panicked.
    use_case: Option<UseCase<T>>,
    runtime: Handle,
}

impl<T: Send + 'static> Future for Completion<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // A use case that panics is dropped: it could not continue.
        let Some(mut use_case) = self.use_case.take() else { return Poll::Pending };
        // What it starts, such as a connection to the database, must outlive the thread of this request.
        let entered = self.runtime.enter();
        let polled = use_case.as_mut().poll(context);
        drop(entered);
        if polled.is_pending() {
            self.use_case = Some(use_case);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Completion<T> {
    fn drop(&mut self) {
        if let Some(use_case) = self.use_case.take() {
            self.runtime.spawn(use_case);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    #[test]
    fn use_case_continues_without_its_client_and_starts_tasks_on_its_runtime() {
        let main = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (go, gone) = oneshot::channel::<()>();
        let (reply, started_on) = oneshot::channel();
        let use_case = async move {
            let runtime = Handle::current().id();
            gone.await.unwrap();
            tokio::spawn(async move { reply.send(runtime).unwrap() });
        };
        // Polled once by a client on another runtime, which then disconnects.
        let handle = main.handle().clone();
        let client = Builder::new_current_thread().build().unwrap();
        client.block_on(async { assert!(complete(&handle, use_case).now_or_never().is_none()) });
        drop(client);
        go.send(()).unwrap();
        assert_eq!(main.block_on(started_on).unwrap(), handle.id());
    }

    #[test]
    fn finished_or_panicked_use_case_is_not_rerun() {
        let main = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let handle = main.handle().clone();
        assert_eq!(complete(&handle, async { 7 }).now_or_never(), Some(7));
        let panics = async { panic!("a use case") };
        let caught = std::panic::AssertUnwindSafe(complete(&handle, panics)).catch_unwind().now_or_never();
        assert!(caught.unwrap().is_err());
        assert_eq!(main.metrics().num_alive_tasks(), 0);
    }
}
