//! Receivers of notifications: a webhook server and a mail server, in `tests/receiver.py`.

use crate::script::{Script, python};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Maximum time to wait for a message.
pub const SOON: Duration = Duration::from_secs(60);

/// The receivers of `receiver.py`.
pub struct Receivers {
    script: Script,
    /// URL for webhooks.
    pub web: String,
    smtp: String,
    /// A mail server that offers authentication only after STARTTLS: user `vault`, password [`Receivers::PASSWORD`].
    pub smtp_login: String,
    /// A mail server that requires authentication but offers none.
    pub smtp_no_login: String,
}

impl Receivers {
    /// Password of the mail server's user.
    pub const PASSWORD: &str = "a password of mail";

    /// Starts the receivers.
    pub fn start() -> Self {
        let script = Script::start(python("receiver.py"));
        let places = script.receive(SOON);
        let place = |name: &str| places[name].as_str().unwrap().to_owned();
        let [web, smtp, smtp_login, smtp_no_login] = ["web", "smtp", "smtp_login", "smtp_no_login"].map(place);
        Self { script, web, smtp, smtp_login, smtp_no_login }
    }

    /// Returns a URL of the webhook server.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.web)
    }

    /// Sends a command and waits until it was executed. Discards earlier messages.
    pub fn command(&mut self, command: &str) {
        self.script.send(command);
        self.wait(|message| message["done"] == *command);
    }

    /// Waits for the next message that matches.
    #[track_caller]
    pub fn wait(&self, is_meant: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + SOON;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self.script.receive(left);
            if is_meant(&message) {
                return message;
            }
        }
    }

    /// Waits for the next message to a path with this type.
    #[track_caller]
    pub fn next(&self, path: &str, kind: &str) -> Value {
        self.wait(|message| message["path"] == path && message["body"]["type"] == kind)
    }

    /// Returns the server flags that allow these receivers.
    pub fn flags(&self) -> [&str; 6] {
        let mail = ["--smtp-url", &self.smtp, "--smtp-from", "OrgVault <vault@example.com>"];
        ["--allow-egress", "127.0.0.0/8", mail[0], mail[1], mail[2], mail[3]]
    }
}
