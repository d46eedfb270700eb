//! Name resolution.

use async_trait::async_trait;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use tokio::sync::{Semaphore, oneshot};

/// A resolver of host names. The egress policy checks its results.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// Returns the addresses of the host name `host`.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`] if too many lookups are in progress. Other kinds if the name is unknown or no
    /// name server responds.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's resolver (`getaddrinfo`), with at most [`SystemResolver::MAX_LOOK_UPS`] concurrent lookups.
///
/// `getaddrinfo` blocks and cannot be cancelled: a deadline ends the wait, but not the lookup. Each lookup therefore
/// has a separate thread outside Tokio's blocking pool, which database reads need. While a name server does not
/// respond, all threads become busy and further lookups fail immediately.
#[derive(Clone)]
pub(crate) struct SystemResolver {
    free: Arc<Semaphore>,
    lookup: Arc<Lookup>,
}

type Lookup = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Stack size of a lookup thread. `getaddrinfo` allocates its buffers on the heap.
const STACK: usize = 256 * 1024;

impl SystemResolver {
    /// Maximum number of concurrent requests to storage providers: 8 operations with 8 credentials each.
    pub(crate) const MAX_LOOK_UPS: usize = 64;

    /// Creates a resolver.
    pub(crate) fn new() -> Self {
        Self::of(Self::MAX_LOOK_UPS, |host| Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect()))
    }

    fn of(most: usize, lookup: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), lookup: Arc::new(lookup) }
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(|_| io::ErrorKind::ResourceBusy)?;
        let (lookup, host) = (Arc::clone(&self.lookup), host.to_owned());
        let (sender, found) = oneshot::channel();
        thread::Builder::new().name("lookup".to_owned()).stack_size(STACK).spawn(move || {
            let answer = {
                let _permit = permit; // released before the receiver gets the result, and on panic
                lookup(&host)
            };
            let _ = sender.send(answer); // the deadline may have ended the wait
        })?;
        found.await.unwrap_or_else(|_| Err(io::Error::other("the lookup returned no address")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::sync::{Mutex, mpsc};

    #[test]
    fn unresponsive_name_server_blocks_only_its_threads() {
        const MOST: usize = 4;
        let (started, begins) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let resolver = SystemResolver::of(MOST, move |host| {
            if host == "silent.test" {
                started.send(()).unwrap();
                let _ = released.lock().unwrap().recv(); // until the test drops the other end
            }
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        });
        // A single thread for all other blocking work.
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).build().unwrap();
        let silent = || {
            let resolver = resolver.clone();
            runtime.spawn(async move { resolver.resolve("silent.test").await })
        };
        let waiting: Vec<_> = (0..MOST).map(|_| silent()).collect();
        (0..MOST).for_each(|_| begins.recv().unwrap());

        let busy = |resolver: &SystemResolver| runtime.block_on(resolver.resolve("store.test")).map_err(|e| e.kind());
        assert_eq!(busy(&resolver), Err(io::ErrorKind::ResourceBusy));
        let read = runtime.spawn_blocking(|| "a row");
        assert_eq!(runtime.block_on(read).unwrap(), "a row");
        // A cancelled wait does not release the permit, because the thread is still running.
        for wait in waiting {
            wait.abort();
            assert!(runtime.block_on(wait).unwrap_err().is_cancelled());
        }
        assert_eq!(busy(&resolver), Err(io::ErrorKind::ResourceBusy));

        drop(release);
        drop(runtime.block_on(resolver.free.acquire_many(MOST.try_into().unwrap())).unwrap());
        assert_eq!(busy(&resolver), Ok(vec![Ipv4Addr::LOCALHOST.into()]));
    }

    #[tokio::test]
    async fn system_resolves_localhost() {
        let found = SystemResolver::new().resolve("localhost").await.unwrap();
        assert!(found.iter().any(IpAddr::is_loopback), "{found:?}");
    }

    #[tokio::test]
    async fn panicking_lookup_is_error_and_frees_thread() {
        let resolver = SystemResolver::of(1, |_| panic!("on purpose"));
        for _ in 0..2 {
            assert_eq!(resolver.resolve("store.test").await.unwrap_err().kind(), io::ErrorKind::Other);
        }
    }
}
