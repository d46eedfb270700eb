//! Google Cloud Storage: gcp-storage-emulator, from PyPI.

use super::http::{encode, have};
use super::process::Server;

/// The server. It does not require tokens.
#[derive(Debug)]
pub struct GoogleEmulator(Server);

impl GoogleEmulator {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// The emulator is not installed or does not start.
    pub fn start() -> Self {
        Self(Server::start("gcp-storage-emulator", &[], |port, _| {
            let port = port.to_string();
            ["start", "--host", "127.0.0.1", "--port", &port, "--in-memory", "--quiet"].map(str::to_owned).to_vec()
        }))
    }

    /// Returns the address: `http://127.0.0.1:port`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.0.address())
    }

    /// Creates a bucket.
    pub fn create_bucket(&self, bucket: &str) {
        let body = format!("{{\"name\":\"{bucket}\"}}");
        let fields = [("Content-Type", "application/json")];
        have(self.0.address(), "POST", "/storage/v1/b?project=test", &fields, body.as_bytes());
    }

    /// Uploads an object to a bucket.
    pub fn put(&self, bucket: &str, name: &str, content: &[u8]) {
        let path = format!("/upload/storage/v1/b/{bucket}/o?uploadType=media&name={}", encode(name));
        have(self.0.address(), "POST", &path, &[("Content-Type", "text/plain")], content);
    }

    /// Returns the list of a bucket's objects, as JSON.
    pub fn list(&self, bucket: &str) -> String {
        have(self.0.address(), "GET", &format!("/storage/v1/b/{bucket}/o"), &[], b"").body
    }
}
