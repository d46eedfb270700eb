//! Audit entries in the local syslog (RFC 3164).

use crate::LineError;
use std::path::Path;
use std::process;
use std::sync::Arc;
use syslog::{Facility, Formatter3164};

/// The local syslog at a Unix socket.
#[derive(Clone, Debug)]
pub struct AuditSyslog(Arc<Path>);

impl AuditSyslog {
    /// Creates the destination at `socket`.
    pub fn new(socket: &Path) -> Self {
        Self(socket.into())
    }

    /// Sends each line as a message of facility `authpriv` and severity `notice`.
    ///
    /// # Errors
    /// The socket does not accept a line.
    pub async fn send(&self, lines: Vec<Vec<u8>>) -> Result<(), LineError> {
        let socket = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || send(&socket, &lines)).await?
    }
}

fn send(socket: &Path, lines: &[Vec<u8>]) -> Result<(), LineError> {
    let formatter = Formatter3164 {
        facility: Facility::LOG_AUTHPRIV,
        hostname: None,
        process: "orgvault".to_owned(),
        pid: process::id(),
    };
    let mut logger = syslog::unix_custom(formatter, socket)?;
    for line in lines {
        logger.notice(String::from_utf8_lossy(line))?;
    }
    Ok(())
}
