//! From names to addresses.

use async_trait::async_trait;
use std::io;
use std::net::IpAddr;

/// Finds the addresses of a host. They are judged afterwards, whoever found them.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// The addresses of `host`, which is a name.
    ///
    /// # Errors
    /// There is no such name, or nobody to ask.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}
