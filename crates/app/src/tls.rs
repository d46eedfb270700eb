//! Certificate and key of the listeners. They are loaded at start and reloaded when the files change.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use vault_cli::failure::Failure;
use vault_cli::secret_file;
use vault_http::{Tls, TlsError, certificate_name};
use zeroize::Zeroizing;

const CERTIFICATE_FLAG: &str = "--tls-cert-file";
const KEY_FLAG: &str = "--tls-key-file";
const CLIENTS_FLAG: &str = "--activation-client-ca-file";
/// Interval of checking the files for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Maximum size of a certificate chain in bytes.
const MAX_CERTIFICATES: u64 = 256 * 1024;
/// Maximum size of a key in bytes.
const MAX_KEY: usize = 32 * 1024;

/// Paths of the PEM files with certificate and key.
#[derive(Clone)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Identifies the versions of the files, to detect changes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp([Option<FileStamp>; 2]);

/// Device, inode, size, and the times of the last modification and status change.
type FileStamp = (u64, u64, u64, (i64, i64), (i64, i64));

/// The certificate and key in use.
pub(crate) struct LoadedTls {
    /// TLS configuration for the listener.
    pub(crate) tls: Tls,
    files: TlsFiles,
    stamp: Stamp,
}

impl TlsFiles {
    /// Loads certificate and key.
    pub(crate) fn load(&self) -> Result<LoadedTls, Failure> {
        self.load_with(Tls::new)
    }

    /// Returns the first host name in the certificate, if the file can be read.
    pub(crate) fn name(&self) -> Option<String> {
        certificate_name(&read_certificates(CERTIFICATE_FLAG, &self.certificate).ok()?)
    }

    /// Loads certificate and key for a listener that requires client certificates issued by a CA in `clients`.
    pub(crate) fn load_for_clients_of(&self, clients: &Path) -> Result<LoadedTls, Failure> {
        let authority = read_certificates(CLIENTS_FLAG, clients)?;
        self.load_with(|certificates, key| Tls::with_client_authority(certificates, key, &authority))
            .map_err(|failure| Failure::new(format!("{CLIENTS_FLAG} {}, {failure}", clients.display())))
    }

    fn load_with(&self, make: impl FnOnce(&[u8], &[u8]) -> Result<Tls, TlsError>) -> Result<LoadedTls, Failure> {
        let stamp = self.stamp(); // before reading, so that no later change is missed
        let (certificates, key) = self.read()?;
        let tls = make(&certificates, &key).map_err(|violation| self.flawed(&violation))?;
        Ok(LoadedTls { tls, files: self.clone(), stamp })
    }

    fn replace(&self, tls: &Tls) -> Result<(), Failure> {
        let (certificates, key) = self.read()?;
        tls.replace(&certificates, &key).map_err(|violation| self.flawed(&violation))
    }

    fn read(&self) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), Failure> {
        let certificates = read_certificates(CERTIFICATE_FLAG, &self.certificate)?;
        Ok((certificates, secret_file::read(KEY_FLAG, &self.key, MAX_KEY)?))
    }

    fn flawed(&self, violation: &TlsError) -> Failure {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        Failure::new(format!("{CERTIFICATE_FLAG} {certificate}, {KEY_FLAG} {key}: {violation}"))
    }

    fn stamp(&self) -> Stamp {
        let stamp = |path: &Path| path.metadata().ok().map(|found| of_file(&found));
        Stamp([stamp(&self.certificate), stamp(&self.key)])
    }
}

/// Reads the certificates in `path`, which `flag` names.
pub(crate) fn read_certificates(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_CERTIFICATES).read_to_end(&mut content));
    read.map_err(|error| Failure::new(format!("{flag}: cannot read {}: {error}", path.display())))?;
    Ok(content)
}

fn of_file(found: &Metadata) -> FileStamp {
    let (modified, changed) = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
    (found.dev(), found.ino(), found.len(), modified, changed)
}

impl LoadedTls {
    /// Reloads the files when they change, until cancelled. If the new ones are invalid, the previous ones remain in
    /// use.
    pub(crate) async fn follow(self) {
        let Self { tls, files, stamp: mut taken } = self;
        let mut seen = taken;
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let look = files.clone();
            let Ok(now) = tokio::task::spawn_blocking(move || look.stamp()).await else { return };
            if now != seen {
                seen = now; // the other file may still change: wait until both are stable
                continue;
            }
            if now == taken {
                continue;
            }
            taken = now; // whether or not the reload succeeds, until they change again
            let (files, tls) = (files.clone(), tls.clone());
            match tokio::task::spawn_blocking(move || files.replace(&tls)).await {
                Ok(Ok(())) => tracing::info!("certificate and key were reloaded"),
                Ok(Err(failure)) => {
                    tracing::error!(cause = %failure, "the changed certificate and key cannot be used; the previous ones stay in use");
                }
                Err(_) => return,
            }
        }
    }
}
