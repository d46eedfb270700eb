//! `orgvault login`, `orgvault logout` and `orgvault profiles`

use crate::client::args::{LoginArgs, ProfileArg};
use crate::client::login::{Login, Profile, failure};
use crate::client::prompt;
use crate::failure::Failure;
use crate::output::{Output, table, warn};
use serde::Serialize;
use std::path::Path;
use vault_client::{BaseUrl, Client, ClientSettings, LoginRequest, ProblemCode, Session};
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
    let same_server = |login: &&Login| url.as_ref().is_none_or(|url| *url == login.url);
    let ca_file = match server_ca_file {
        Some(file) => Some(std::path::absolute(file)?),
        None => last.as_ref().filter(same_server).and_then(|login| login.ca_file.clone()),
    };
    let last_url = || last.as_ref().map_or_else(|| DEFAULT_URL.to_owned(), |login| login.url.clone());
    // A login replaces only the session. The activation settings have an address of their own.
    let activation = last.as_ref().and_then(|login| login.activation.clone());
    let url = url.clone().unwrap_or_else(last_url);
    let client = Client::with(&url, &ClientSettings { ca_file: ca_file.clone(), ..ClientSettings::default() })?;
    require_encryption(&url, allow_http, "password and passcode")?;
    let email = match email.or_else(|| last.map(|login| login.email)) {
        Some(email) => email,
        None => prompt::line("--email", "E-mail address")?,
    };
    let password = prompt::secret("--password-file", password_file.as_deref(), "Password")?;
    let passcode = prompt::passcode("--passcode-file", passcode_file.as_deref(), "Passcode (each works once)")?;
    let request =
        LoginRequest { email: email.clone(), password: password.into(), passcode: passcode.into(), ttl: None };
    let session = client.log_in(&request).map_err(|error| failure(&format!("log in to {url} as {email}"), &error))?;
    let expires_at = session.expires_at().unwrap_or_default().to_owned();
    let login = Login { url, ca_file, email, access_token: session.token().clone().into(), expires_at, activation };
    login.write(&profile)?;
    let shown =
        Shown { profile: profile.as_str(), url: &login.url, email: &login.email, expires_at: &login.expires_at };
    output.print(&shown, &format!("Logged in to {} as {} until {}.", login.url, login.email, login.expires_at))
}

/// Logs out. The login is removed from this host also if it has expired, or if the server does not end it.
pub fn log_out(ProfileArg { profile }: &ProfileArg, output: Output) -> Result<(), Failure> {
    let login = Login::read(profile)?;
    let (url, email, expires_at) = (login.url.clone(), login.email.clone(), login.expires_at.clone());
    let session = login.session();
    Login::remove(profile)?;
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
        let Login { url, email, expires_at, .. } = Login::read(&profile)?;
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
