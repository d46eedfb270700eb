//! A fake activation listener with prepared responses, and the program as its client.

#![allow(dead_code, reason = "each test file takes its part")]

use secrecy::ExposeSecret;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use vault_core::integration::IntegrationToken;
use vault_core::port::{Entropy, NoEntropy};

pub const S3_ID: &str = "0193a5c0-0000-7000-8000-000000000001";
pub const GCS_ID: &str = "0193a5c0-0000-7000-8000-000000000002";
pub const ACTIVATION: &str = "0193a5c0-0000-7000-8000-00000000000a";
pub const SECRET: &str = "wJalr'XUt$n FEMI";

/// Returns an `s3` credential of the region `eu-west-1`.
pub fn s3() -> String {
    let data =
        format!(r#"{{"access_key_id":"AKIA","bucket":"b","region":"eu-west-1","secret_access_key":"{SECRET}"}}"#);
    format!(r#"{{"id":"{S3_ID}","type":"s3","version":1,"form":"raw","data":{data}}}"#)
}

/// Returns a saved `gcs` credential, whose tools read it from a file.
pub fn gcs() -> String {
    let key = r#"{"client_email":"a@b.iam.gserviceaccount.com","private_key":"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n","token_uri":"https://oauth2.googleapis.com/token","type":"service_account"}"#;
    let data = format!(r#"{{"bucket":"b","service_account_key":{key}}}"#);
    format!(r#"{{"id":"{GCS_ID}","type":"gcs","version":1,"form":"raw","data":{data}}}"#)
}

/// Returns the body of an activation that does not expire during a test.
pub fn activation(credentials: &[String]) -> String {
    ending("2999-11-20T12:00:00Z", credentials)
}

/// Returns the body of an activation that expires at this time.
pub fn ending(expires_at: &str, credentials: &[String]) -> String {
    format!(
        r#"{{"id":"{ACTIVATION}","namespace":"a/b","expires_at":"{expires_at}","credentials":[{}]}}"#,
        credentials.join(",")
    )
}

/// Returns a problem document.
pub fn problem(status: u16, code: &str) -> String {
    format!(r#"{{"type":"x","title":"T","status":{status},"detail":"D","code":"{code}","request_id":"r"}}"#)
}

/// A fake listener, a token, and a directory for private files.
pub struct ActivationListener {
    directory: TempDir,
    end: Arc<Mutex<(u16, String)>>,
    renewals: Arc<Mutex<Vec<(u16, String)>>>,
    date: Arc<Mutex<Option<String>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

type Hook = Box<dyn FnMut(&str) + Send>;

impl ActivationListener {
    /// Starts a listener that responds to activations and checks with this status and body.
    pub fn new(status: u16, body: String) -> Self {
        Self::with_hook(status, body, Box::new(|_| ()))
    }

    /// Starts a listener that also calls `hook` with method and path of each request before it responds.
    pub fn with_hook(status: u16, body: String, mut hook: Hook) -> Self {
        let directory = TempDir::new().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let end = Arc::new(Mutex::new((204, String::new())));
        let renewals = Arc::new(Mutex::new(Vec::new()));
        let date = Arc::new(Mutex::new(None::<String>));
        let activation_listener = Self {
            directory,
            end: Arc::clone(&end),
            renewals: Arc::clone(&renewals),
            date: Arc::clone(&date),
            requests: Arc::clone(&requests),
        };
        let listener = UnixListener::bind(activation_listener.path("socket")).unwrap();
        write_private(&activation_listener.path("token"), &token());
        fs::DirBuilder::new().mode(0o700).create(activation_listener.runtime()).unwrap();
        fs::create_dir(activation_listener.path("work")).unwrap();
        // The thread runs until the test's process exits.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read(&mut stream);
                let (line, rest) = request.split_once(" HTTP/1.1\r\n").unwrap();
                assert!(rest.to_lowercase().contains("authorization: bearer ovi_"), "{request}");
                let (_, sent) = rest.split_once("\r\n\r\n").unwrap();
                requests.lock().unwrap().push(format!("{line} {sent}").trim_end().to_owned());
                hook(line);
                let (status, body) = if line.starts_with("DELETE ") {
                    end.lock().unwrap().clone()
                } else if line.ends_with("/renew") {
                    let mut renewals = renewals.lock().unwrap();
                    if renewals.len() > 1 { renewals.remove(0) } else { renewals[0].clone() }
                } else {
                    (status, body.clone())
                };
                let length = if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
                let date = date.lock().unwrap().iter().map(|date| format!("Date: {date}\r\n")).collect::<String>();
                stream.write_all(format!("HTTP/1.1 {status} Whatever\r\n{date}{length}\r\n{body}").as_bytes()).unwrap();
            }
        });
        activation_listener
    }

    /// Sets the response to requests that end an activation.
    pub fn end_with(&self, status: u16, body: String) {
        *self.end.lock().unwrap() = (status, body);
    }

    /// Sets the header `Date` of the responses.
    pub fn date_with(&self, date: String) {
        *self.date.lock().unwrap() = Some(date);
    }

    /// Sets the responses to renewals. The last one is repeated.
    pub fn renew_with(&self, answers: Vec<(u16, String)>) {
        *self.renewals.lock().unwrap() = answers;
    }

    /// Returns a path in the directory of this test.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the directory for private files.
    pub fn runtime(&self) -> PathBuf {
        self.path("runtime")
    }

    /// Returns the number of entries in the directory for private files.
    pub fn left_behind(&self) -> usize {
        fs::read_dir(self.runtime()).unwrap().count()
    }

    /// Returns method, path and body of each request.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the program with these arguments, in a separate process group. In the foreground group of a terminal,
    /// keys would send signals to its command directly.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orgvault"));
        self.set_up(&mut command);
        command.args(words);
        command
    }

    /// Sets the environment of the integration for `command`.
    pub fn set_up(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ORGVAULT_") {
                command.env_remove(name);
            }
        }
        command
            .env("ORGVAULT_ACTIVATION_URL", format!("unix:{}", self.path("socket").display()))
            .env("ORGVAULT_INTEGRATION_TOKEN_FILE", self.path("token"))
            .env("XDG_RUNTIME_DIR", self.runtime())
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .process_group(0);
    }

    /// Runs the program with these arguments.
    pub fn run(&self, words: &[&str]) -> Ran {
        Ran::of(self.command(words).output().unwrap())
    }

    /// Runs `orgvault exec` with a shell `script`.
    pub fn exec(&self, flags: &[&str], script: &str) -> Ran {
        self.run(&[&["exec", "--namespace", "a/b"], flags, &["--", "sh", "-c", script]].concat())
    }
}

/// Exit status and output of a run.
#[derive(Debug)]
pub struct Ran {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Asserts success and returns the standard output.
    #[track_caller]
    pub fn done(self) -> String {
        assert_eq!(self.status, Some(0), "{self:?}");
        self.stdout
    }

    /// Asserts this exit status and an empty standard output, and returns the standard error.
    #[track_caller]
    pub fn refused(self, status: i32) -> String {
        assert_eq!((self.status, &*self.stdout), (Some(status), ""), "{self:?}");
        assert!(self.stderr.starts_with("orgvault: "), "{self:?}");
        self.stderr
    }
}

/// Writes a file with mode 0600.
pub fn write_private(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

struct Same;

impl Entropy for Same {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        bytes.fill(7);
        Ok(())
    }
}

/// Returns a valid integration token.
pub fn token() -> String {
    IntegrationToken::generate(&Same).unwrap().text().expose_secret().to_owned()
}

fn read(stream: &mut impl Read) -> String {
    let mut request = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).unwrap();
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return text;
        }
    }
}
