//! Work that a server does beside answering requests.

use std::future::Future;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Resolves when the work is to end.
pub(crate) type Stopped = oneshot::Receiver<()>;

/// Work that goes on until it is told to end.
pub(crate) struct Background {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Background {
    /// Begins.
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(work: impl FnOnce(Stopped) -> F) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(work(stopped)) }
    }

    /// Ends, once what is under way is finished.
    pub(crate) async fn end(self) {
        drop(self.stop);
        let _ = self.task.await; // only a panic, which has been reported
    }
}
