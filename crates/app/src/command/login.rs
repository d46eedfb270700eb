//! `orgvault login` and `orgvault logout`

use crate::client::args::LoginArgs;
use crate::client::login::{Login, failure};
use crate::client::prompt;
use crate::failure::Failure;
use crate::output::Output;
use serde::Serialize;
use std::path::Path;
use vault_client::{Client, ClientSettings, LoginRequest, ProblemCode};

/// A login, as scripts read it: without its token.
#[derive(Serialize)]
struct Shown<'a> {
    url: &'a str,
    email: &'a str,
    expires_at: &'a str,
}

/// Logs in.
pub(crate) fn log_in(args: LoginArgs, output: Output) -> Result<(), Failure> {
    let LoginArgs { url, server_ca_file, email, password_file, passcode_file } = args;
    let stdin = |file: &Option<_>| file.as_deref() == Some(Path::new("-"));
    if stdin(&password_file) && stdin(&passcode_file) {
        return Err(Failure::usage("--password-file and --passcode-file cannot both read standard input"));
    }
    let ca_file = server_ca_file.map(std::path::absolute).transpose()?;
    let client = Client::with(&url, &ClientSettings { ca_file: ca_file.clone() })?;
    let password = prompt::secret("--password-file", password_file.as_deref(), "Password")?;
    let passcode = prompt::secret("--passcode-file", passcode_file.as_deref(), "Passcode")?;
    let request =
        LoginRequest { email: email.clone(), password: password.into(), passcode: passcode.into(), ttl: None };
    let session = client.log_in(&request).map_err(|error| failure(&format!("log in to {url}"), &error))?;
    let expires_at = session.expires_at().unwrap_or_default().to_owned();
    let login = Login { url, ca_file, email, access_token: session.token().clone().into(), expires_at };
    login.write()?;
    let shown = Shown { url: &login.url, email: &login.email, expires_at: &login.expires_at };
    output.print(&shown, &format!("Logged in to {} as {} until {}.", login.url, login.email, login.expires_at))
}

/// Logs out. A login that has ended by itself is only forgotten.
pub(crate) fn log_out(output: Output) -> Result<(), Failure> {
    let login = Login::read()?;
    let (url, email) = (login.url.clone(), login.email.clone());
    let ended = match login.session()?.log_out() {
        Ok(()) => true,
        Err(error) if error.code() == Some(ProblemCode::InvalidToken) => false,
        Err(error) => return Err(failure(&format!("log out of {url}"), &error)),
    };
    Login::remove()?;
    let text = match ended {
        true => format!("Logged {email} out of {url}."),
        false => format!("The login of {email} to {url} had ended. Removed it from this machine."),
    };
    output.print(&serde_json::json!({"url": url, "email": email, "ended": ended}), &text)
}
