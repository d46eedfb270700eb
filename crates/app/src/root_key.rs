//! Loads the root key from its location, which may be the output of a command.

use crate::compose;
use crate::settings::{RootKeySource, Settings};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;
use vault_cli::failure::Failure;
use vault_cli::text::legible_line;
use vault_crypto::{LoadedRootKey, OsEntropy, RootKeyError, SecretFile};
use vault_embed::{Error, RootKey};
use zeroize::Zeroizing;

/// Time limit of a command.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Maximum length of its output: a key in hexadecimal and a line feed.
const MAX_OUTPUT: usize = 65;
/// Number of bytes at the end of its standard error that a message contains.
const MAX_STDERR: usize = 1_000;

pub(crate) async fn load(settings: &Settings) -> Result<RootKey, Failure> {
    match &settings.root_key {
        // A root key at another path may be older than the vault. The one in the data directory is created together
        // with it.
        RootKeySource::File(path) if *path == settings.data_dir.join("root.key") => Ok(RootKey::file(path)),
        source => load_from(settings, "--root-key", source).await,
    }
}

/// Returns the root key in `source`, the value of `flag`. It may be older than the vault or replace its root key. A missing file is
/// created together with the vault.
pub(crate) async fn load_from(settings: &Settings, flag: &str, source: &RootKeySource) -> Result<RootKey, Failure> {
    match source {
        RootKeySource::File(path) => Ok(RootKey::provisioned_file(path)),
        RootKeySource::Credential(name) => {
            let path = source.file().ok_or_else(|| {
                Failure::usage(format!(
                    "{flag}: credential:{name} needs the directory that systemd names in CREDENTIALS_DIRECTORY, and the \
                     variable is not set. Start the service with LoadCredential={name}:/FILE or \
                     LoadCredentialEncrypted={name}:/FILE; for a command outside of it, pass {flag}=file:PATH"
                ))
            })?;
            let refused = |error| compose::failure(settings, Error::RootKey(RootKeyError::from(error)));
            Ok(RootKey::opened(SecretFile::open(&path).map_err(refused)?))
        }
        RootKeySource::Command(words) => Ok(RootKey::loaded(output(flag, words).await?)),
    }
}

/// Runs a command and returns the key that it prints.
async fn output(flag: &str, words: &[String]) -> Result<LoadedRootKey, Failure> {
    let program = words.first().map_or("", String::as_str);
    let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or(program).to_owned();
    let failed = |what: String| Failure::new(format!("{flag}: the command `{}` {what}", legible_line(&name)));
    let mut command = Command::new(program);
    command.args(words.iter().skip(1)).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn().map_err(|error| {
        failed(match error.kind() {
            io::ErrorKind::NotFound => "was not found. Install it, or use its absolute path".to_owned(),
            io::ErrorKind::PermissionDenied => {
                "is not executable by the user of this process. Correct its mode, or use another one".to_owned()
            }
            _ => format!("cannot be started: {error}"),
        })
    })?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)));
    // A buffer that grows would leave copies of the key in memory.
    let mut key = Zeroizing::new([0; MAX_OUTPUT + 1]);
    let mut stderr = Vec::new();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ended = timeout(TIME_LIMIT, async {
        let exited = async {
            let status = child.wait().await;
            drop(group); // its other processes may keep the pipes open
            status
        };
        tokio::try_join!(read_key(out, &mut *key), read_end(err, &mut stderr), exited)
    });
    let ended = ended.await;
    let stderr = String::from_utf8_lossy(&stderr);
    let cause = match stderr.trim() {
        "" => String::new(),
        text => format!(": {}", legible_line(text)),
    };
    match ended {
        Err(_) => {
            let seconds = TIME_LIMIT.as_secs();
            Err(failed(format!("did not exit within {seconds} s and was killed. It must not prompt{cause}")))
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(failed("prints more than a root key. It must print only the key, in one line".to_owned()))
        }
        Ok(Err(error)) => Err(failed(format!("failed: {error}"))),
        Ok(Ok((length, (), status))) => match failure_of(status) {
            Some(how) => Err(failed(format!("{how}. Run it as the user of the vault, until it prints the key{cause}"))),
            None => LoadedRootKey::decode(&key[..length], Arc::new(OsEntropy))
                .map_err(|error| failed(format!("prints no root key: its output {error}"))),
        },
    }
}

fn failure_of(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exited with status {code}")),
        (None, Some(signal)) => Some(format!("was killed by signal {signal}")),
        (None, None) => Some("failed".to_owned()),
    }
}

/// Reads the output into `key`, which must be longer than it. Returns its length.
async fn read_key(output: Option<impl AsyncRead + Unpin>, key: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    let Some(mut output) = output else { return Ok(length) };
    loop {
        match output.read(&mut key[length..]).await? {
            0 if length < key.len() => return Ok(length),
            0 => return Err(io::ErrorKind::FileTooLarge.into()),
            count => length += count,
        }
    }
}

/// Reads standard error until its end, and keeps its last bytes.
async fn read_end(stderr: Option<impl AsyncRead + Unpin>, end: &mut Vec<u8>) -> io::Result<()> {
    let Some(mut stderr) = stderr else { return Ok(()) };
    let mut part = [0; MAX_STDERR];
    loop {
        match stderr.read(&mut part).await? {
            0 => return Ok(()),
            count => end.extend_from_slice(&part[..count]),
        }
        end.drain(..end.len().saturating_sub(MAX_STDERR));
    }
}

/// The process group of a command. Drop kills it.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            let _ = kill_process_group(leader, Signal::KILL); // an error means that it is empty
        }
    }
}
