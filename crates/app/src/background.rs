//! Background tasks of a server.

use std::future::Future;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Completes when the task should stop.
pub(crate) type Stopped = oneshot::Receiver<()>;

/// A task that runs until it is stopped.
pub(crate) struct Background {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Background {
    /// Starts the task.
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(work: impl FnOnce(Stopped) -> F) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(work(stopped)) }
    }

    /// Stops the task and waits until it has finished its current work.
    pub(crate) async fn end(self) {
        drop(self.stop);
        let _ = self.task.await; // only a panic, which was reported
    }
}
