//! Destinations of audit entries: a file, the local syslog, or an HTTP server.

use super::{AuditLine, DELIVERED};
use crate::egress;
use crate::settings::Settings;
use async_trait::async_trait;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use std::error::Error;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::str::FromStr;
use std::sync::Arc;
use syslog::{Facility, Formatter3164};
use vault_cli::failure::Failure;
use vault_cli::secret_file;
use vault_client::BaseUrl;
use vault_core::audit::AuditEntry;
use vault_core::port::AuditSink;
use vault_storage::ExportClient;

/// Maximum length of the HTTP server's token in bytes.
const MAX_TOKEN: usize = 8 * 1024;
/// Media type of JSON Lines, as log services expect it.
const JSON_LINES: &str = "application/x-ndjson";

/// The reason why a sink did not accept entries.
type Refused = Box<dyn Error + Send + Sync>;

/// The value of `--audit-sink`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SinkTarget {
    File(PathBuf),
    /// Path of the local syslog socket.
    Syslog(PathBuf),
    Http(String),
}

impl FromStr for SinkTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = |path: &str| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let place = match text.split_once(':') {
            Some(("file", file)) => path(file).map(Self::File),
            Some(("syslog", socket)) => path(socket).map(Self::Syslog),
            Some(("http" | "https", _)) => text.parse::<BaseUrl>().ok().map(|_| Self::Http(text.to_owned())),
            None if text == "syslog" => Some(Self::Syslog("/dev/log".into())),
            _ => None,
        };
        place.ok_or_else(|| {
            "must be file:/PATH, syslog, syslog:/PATH of its socket, or an http or https URL without user, query and fragment"
                .to_owned()
        })
    }
}

impl fmt::Display for SinkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Syslog(path) => write!(f, "syslog:{}", path.display()),
            Self::Http(url) => f.write_str(url),
        }
    }
}

/// A configured sink.
#[derive(Clone)]
pub(super) enum Sink {
    File(Arc<Path>),
    Syslog(Arc<Path>),
    Http(ExportClient),
}

impl Sink {
    /// Creates the sink from the settings.
    ///
    /// # Errors
    /// The token file is invalid, or a file of the outgoing proxy cannot be used.
    pub(super) fn of(settings: &Settings, place: &SinkTarget) -> Result<Self, Failure> {
        let headers = match &settings.server.audit_sink_token_file {
            Some(path) => {
                let flag = "--audit-sink-token-file";
                let bytes = secret_file::read(&settings.files, flag, path, MAX_TOKEN)?;
                let text = std::str::from_utf8(&bytes).ok().map(str::trim).filter(|text| !text.is_empty());
                let text = text.ok_or_else(|| Failure::new(format!("{flag}: {} contains no token", path.display())))?;
                let value = Zeroizing::new(format!("Bearer {text}"));
                vec![("authorization".to_owned(), SecretString::from(value.as_str()))]
            }
            None => Vec::new(),
        };
        Ok(match place {
            SinkTarget::File(path) => Self::File(path.as_path().into()),
            SinkTarget::Syslog(path) => Self::Syslog(path.as_path().into()),
            SinkTarget::Http(url) => Self::Http(ExportClient::new(&egress::of(settings)?, url, &headers)?),
        })
    }

    async fn write(&self, lines: Vec<Vec<u8>>) -> Result<(), Refused> {
        match self {
            Self::File(path) => {
                let path = Arc::clone(path);
                tokio::task::spawn_blocking(move || append(&path, &joined(&lines))).await?
            }
            Self::Syslog(path) => {
                let path = Arc::clone(path);
                tokio::task::spawn_blocking(move || send(&path, &lines)).await?
            }
            Self::Http(client) => Ok(client.post(JSON_LINES, joined(&lines).into()).await?),
        }
    }
}

fn append(path: &Path, text: &[u8]) -> Result<(), Refused> {
    let mut file = open(path)?;
    file.write_all(text)?;
    file.sync_data()?;
    Ok(())
}

/// Sends each line to the syslog socket at `path`.
fn send(path: &Path, lines: &[Vec<u8>]) -> Result<(), Refused> {
    let formatter = Formatter3164 {
        facility: Facility::LOG_AUTHPRIV,
        hostname: None,
        process: "orgvault".to_owned(),
        pid: process::id(),
    };
    let mut logger = syslog::unix_custom(formatter, path)?;
    for line in lines {
        logger.notice(String::from_utf8_lossy(line))?;
    }
    Ok(())
}

/// Joins lines, each with a line feed.
fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

#[async_trait]
impl AuditSink for Sink {
    async fn deliver(&self, entries: &[AuditEntry]) -> Result<(), Refused> {
        let lines = entries.iter().map(|entry| serde_json::to_vec(&AuditLine::from(entry.clone())));
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        let count = u64::try_from(lines.len()).unwrap_or_default();
        self.write(lines).await?;
        metrics::counter!(DELIVERED).increment(count);
        Ok(())
    }
}

/// Opens the file at `path`, or creates it. Rejects a file that another user could have created or can change, because
/// entries could be lost or modified unnoticed.
fn open(path: &Path) -> Result<File, Refused> {
    let mut options = OpenOptions::new();
    // Do not block on a pipe without a reader. Pipes are rejected below.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.append(true).create(true).mode(0o600).custom_flags(i32::try_from(flags.bits())?);
    let shown = path.display();
    let file = options.open(path).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => format!("{shown} is a symbolic link. Name the file itself").into(),
        Some(Errno::NXIO) => format!("{shown} is no regular file").into(),
        _ => Refused::from(error),
    })?;
    let found = file.metadata()?;
    let own = geteuid().as_raw();
    if !found.is_file() {
        return Err(format!("{shown} is no regular file").into());
    }
    if found.uid() != own && found.uid() != 0 {
        let owner = found.uid();
        return Err(
            format!("{shown} belongs to user {owner}, not to root or to user {own}, who runs the server").into()
        );
    }
    if found.mode() & 0o022 != 0 {
        let mode = found.mode() & 0o7777;
        return Err(format!("{shown} has mode {mode:04o}, so other users can change it. Run chmod 600 {shown}").into());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn file_that_others_can_change_is_refused() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("audit.jsonl");
        let mut file = open(&path).expect("it is made");
        file.write_all(b"1\n").expect("it takes a line");
        assert_eq!(file.metadata().expect("it is there").mode() & 0o7777, 0o600);
        open(&path).expect("it is this user's").write_all(b"2\n").expect("it takes another");
        assert_eq!(fs::read(&path).expect("it is there"), b"1\n2\n");

        let refusal = |path: &Path| open(path).err().map(|error| error.to_string()).unwrap_or_default();
        for mode in [0o666, 0o620, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is this user's");
            assert!(refusal(&path).contains("other users can change it. Run chmod 600"), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is this user's");
        assert_eq!(refusal(&path), "");
        let link = scratch.path().join("link");
        symlink(&path, &link).expect("there is room");
        assert!(refusal(&link).contains("is a symbolic link"), "{}", refusal(&link));
        assert_ne!(refusal(scratch.path()), "");
        assert!(refusal(Path::new("/dev/null")).contains("is no regular file"));
    }

    #[test]
    fn sink_targets_are_files_sockets_and_urls() {
        let read = |text: &str| text.parse::<SinkTarget>().map(|place| place.to_string()).ok();
        for (text, shown) in [
            ("file:/var/log/orgvault/audit.jsonl", "file:/var/log/orgvault/audit.jsonl"),
            ("syslog", "syslog:/dev/log"),
            ("syslog:/run/log.sock", "syslog:/run/log.sock"),
            ("https://logs.example/orgvault", "https://logs.example/orgvault"),
        ] {
            assert_eq!(read(text).as_deref(), Some(shown));
        }
        for text in [
            "",
            "file:",
            "/var/log/audit",
            "ftp://logs.example",
            "https://u:p@logs.example",
            "https://a/?k=1",
            "syslogs",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
