//! `orgvault login`, `orgvault logout` and `orgvault profiles`

use crate::client::args::{LoginArgs, ProfileArg};
use crate::client::login::{Login, Profile, StoredSession, failure};
use crate::client::prompt;
use crate::failure::Failure;
use crate::output::{Output, table, warn};
use serde::Serialize;
use std::path::Path;
use vault_client::{BaseUrl, LoginRequest, ProblemCode, Session};
use vault_core::port::Clock as _;
use vault_core::time::Timestamp;
use vault_crypto::SystemClock;

/// Default URL of the server, which `quickstart` serves.
const DEFAULT_URL: &str = "http://127.0.0.1:8080/v1";

/// A login in JSON output, without its token.
#[derive(Serialize)]
struct Shown<'a> {
    profile: &'a str,
    url: &'a str,
    email: &'a str,
    expires_at: &'a str,
}

/// A stored login in a list.
#[derive(Serialize)]
struct Listed {
    profile: String,
    url: String,
    email: String,
    expires_at: String,
    expired: bool,
}

/// Refuses to send `what` unencrypted over the network, unless `allow_http` is set.
pub(super) fn require_encryption(url: &str, allow_http: bool, what: &str) -> Result<(), Failure> {
    if allow_http || url.parse::<BaseUrl>().is_ok_and(|base| base.is_private()) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{url} would send {what} unencrypted over the network. Use an https URL, or pass --allow-http"
    )))
}

/// Logs in.
pub fn log_in(args: LoginArgs, output: Output) -> Result<(), Failure> {
    let LoginArgs { profile, url, allow_http, server_ca_file, email, password_file, passcode_file } = args;
    let profile = profile.profile;
    let stdin = |file: &Option<_>| file.as_deref() == Some(Path::new("-"));
    if stdin(&password_file) && stdin(&passcode_file) {
        return Err(Failure::usage("--password-file and --passcode-file cannot both read standard input"));
    }
    // Ignore a damaged login file, which is replaced below.
    let last = Login::find(&profile).ok().flatten();
    let url = match (url, &last) {
        (Some(url), Some(last)) if is_same_server(&url, &last.url) => last.url.clone(),
        (None, Some(last)) => last.url.clone(),
        (url, _) => url.unwrap_or_else(|| DEFAULT_URL.to_owned()),
    };
    // A login replaces only the session. The activation settings have an address of their own.
    let same = last.as_ref().filter(|login| login.url == url);
    let ca_file = match server_ca_file {
        Some(file) => Some(std::path::absolute(file)?),
        None => same.and_then(|login| login.ca_file.clone()),
    };
    let socket = same.and_then(|login| login.socket.clone());
    let activation = last.as_ref().and_then(|login| login.activation.clone());
    let mut login = Login { url, ca_file, socket, email: String::new(), session: None, activation };
    let client = login.client(None)?;
    if login.socket.is_none() {
        require_encryption(&login.url, allow_http, "password and passcode")?;
    }
    login.email = match email.or_else(|| last.map(|login| login.email)) {
        Some(email) => email,
        None => prompt::line("--email", "E-mail address")?,
    };
    let password = prompt::secret("--password-file", password_file.as_deref(), "Password")?;
    let passcode = prompt::passcode("--passcode-file", passcode_file.as_deref(), "Passcode (each works once)")?;
    let request =
        LoginRequest { email: login.email.clone(), password: password.into(), passcode: passcode.into(), ttl: None };
    let session = client
        .log_in(&request)
        .map_err(|error| failure(&format!("log in to {} as {}", login.url, login.email), &error))?;
    let expires_at = session.expires_at().unwrap_or_default().to_owned();
    let access_token = session.token().clone().into();
    login.session = Some(StoredSession { access_token, expires_at: expires_at.clone() });
    login.write(&profile)?;
    let shown = Shown { profile: profile.as_str(), url: &login.url, email: &login.email, expires_at: &expires_at };
    output.print(&shown, &format!("Logged in to {} as {} until {expires_at}.", login.url, login.email))
}

fn is_same_server(one: &str, other: &str) -> bool {
    let parsed = one.parse::<BaseUrl>().ok().zip(other.parse().ok());
    parsed.is_some_and(|(one, other)| one.has_same_server(&other))
}

/// Logs out. The session is removed from this host also if it has expired, or if the server does not end it.
pub fn log_out(ProfileArg { profile }: &ProfileArg, output: Output) -> Result<(), Failure> {
    let (login, StoredSession { access_token, expires_at }) = Login::read(profile)?;
    let session = login.client(None).map(|client| client.resume(access_token.into_secret()));
    login.end(profile)?;
    let (url, email) = (login.url, login.email);
    let not_ended = |cause: Failure| {
        warn(&format!("the session was not ended and is valid until {expires_at}: {cause}"));
        (false, format!("Removed the login of {email} to {url} from this host."))
    };
    let (ended, text) = match session.map(Session::log_out) {
        Ok(Ok(())) => (true, format!("Logged {email} out of {url}.")),
        Ok(Err(error)) if error.code() == Some(ProblemCode::InvalidToken) => {
            (false, format!("The login of {email} to {url} had expired or was revoked. Removed it from this host."))
        }
        Ok(Err(error)) => not_ended(Failure::from(&error)),
        Err(cause) => not_ended(cause),
    };
    let document = serde_json::json!({"profile": profile.as_str(), "url": url, "email": email, "ended": ended});
    output.print(&document, &text)
}

/// Lists the stored logins of this user without contacting the servers.
pub fn list(output: Output) -> Result<(), Failure> {
    let now = SystemClock.now();
    let mut listed = Vec::new();
    for profile in Profile::all()? {
        let Some(Login { url, email, session: Some(StoredSession { expires_at, .. }), .. }) = Login::find(&profile)?
        else {
            continue;
        };
        let expired = Timestamp::from_rfc3339(&expires_at).is_some_and(|moment| moment <= now);
        listed.push(Listed { profile: profile.as_str().to_owned(), url, email, expires_at, expired });
    }
    if listed.is_empty() {
        return output.print(&listed, "You are not logged in anywhere. Run `orgvault login`.");
    }
    let rows: Vec<Vec<String>> = listed
        .iter()
        .map(|login| {
            let until = if login.expired { "expired".to_owned() } else { login.expires_at.clone() };
            vec![login.profile.clone(), login.email.clone(), login.url.clone(), until]
        })
        .collect();
    output.print(&listed, &table(&["PROFILE", "E-MAIL", "SERVER", "EXPIRES"], &rows))
}
