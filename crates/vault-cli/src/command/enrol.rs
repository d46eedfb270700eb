//! `orgvault enrol`

use crate::client::args::EnrolArgs;
use crate::client::data::printable;
use crate::client::login::failure;
use crate::client::prompt;
use crate::failure::Failure;
use crate::output::{Output, note};
use crate::text::{passcode_sheet, quoted};
use secrecy::{ExposeSecret as _, SecretString};
use std::io::{self, IsTerminal as _, Write as _};
use url::Url;
use vault_client::{
    Client, ClientError, ClientSettings, ConfirmEnrolmentRequest, EnrolRequest, EnrolResponse, ProblemCode,
};
use vault_core::passcode::{PasscodeSecret, RecoveryCode};

/// The alternative to a terminal, which [`run`] requires.
const FLAG: &str = "LINK";
/// How often a passcode that is not accepted can be typed again.
const PASSCODES: usize = 3;

/// Enrols: sets a password, shows the authenticator's secret, and confirms it with a passcode.
pub fn run(args: EnrolArgs, base_path: &str, output: Output) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("enrolment needs a terminal. Scripts use the HTTP API: docs/API.md, \"Enrolment\""));
    }
    let link = match args.link {
        Some(link) => SecretString::from(link),
        None => prompt::hidden(FLAG, "Enrolment link (hidden)")?,
    };
    let Link { url, code } = Link::parse(link.expose_secret(), base_path)?; // the code is sent to its server only
    super::login::require_encryption(&url, args.allow_http, "the enrolment code and the password")?;
    let client = Client::with(&url, &ClientSettings { ca_file: args.server_ca_file, ..ClientSettings::default() })?;
    let EnrolResponse { email, totp, recovery_codes } = draft(&client, &code)?;
    let passcode = PasscodeSecret { secret: totp.secret.into_secret(), uri: totp.uri.into_secret() };
    let codes: Vec<RecoveryCode> = recovery_codes.into_iter().map(|code| RecoveryCode(code.into_secret())).collect();
    // They are for the person at the terminal, also if the result is printed as JSON.
    writeln!(io::stderr(), "Save these now. They are not shown again:\n\n{}", passcode_sheet(&passcode, &codes)?)?;
    confirm(&client, &code)?;
    let document = serde_json::json!({"email": email, "url": url});
    let log_in = format!("orgvault login --url {} --email {}", quoted(&url), quoted(&email));
    output.print(&document, &format!("Enrolled {email}. Log in with the next passcode:\n  {log_in}"))
}

/// Sends the password. Asks again for one that the server rejects.
fn draft(client: &Client, code: &SecretString) -> Result<EnrolResponse, Failure> {
    loop {
        let password = prompt::hidden(FLAG, "New password")?;
        let again = prompt::hidden(FLAG, "New password again")?;
        // Compared with each other only.
        if password.expose_secret() != again.expose_secret() {
            note("the passwords differ. Type them again");
            continue;
        }
        let request = EnrolRequest { enrolment_code: code.clone().into(), password: password.into() };
        match client.enrol(&request) {
            Err(ClientError::Problem { problem, .. })
                if problem.errors.iter().any(|error| error.pointer == "/password")
                    && problem.errors.iter().all(|error| error.pointer == "/password") =>
            {
                for error in &problem.errors {
                    note(&printable(&error.detail));
                }
            }
            enrolled => return enrolled.map_err(|error| failed(&error)),
        }
    }
}

fn confirm(client: &Client, code: &SecretString) -> Result<(), Failure> {
    for attempt in 1.. {
        let passcode = prompt::passcode(FLAG, None, "Passcode (six digits)")?;
        let request = ConfirmEnrolmentRequest { enrolment_code: code.clone().into(), passcode: passcode.into() };
        match client.confirm_enrolment(&request) {
            Err(error) if error.code() == Some(ProblemCode::InvalidEnrolment) && attempt < PASSCODES => {
                note("the passcode was not accepted. Type the one that the authenticator shows now");
            }
            confirmed => return confirmed.map_err(|error| failed(&error)),
        }
    }
    Ok(())
}

fn failed(error: &ClientError) -> Failure {
    failure("enrol", error)
}

/// An enrolment link: `https://vault.example.com/#/enrol/CODE`.
struct Link {
    /// The URL of the server's HTTP API.
    url: String,
    code: SecretString,
}

impl Link {
    fn parse(text: &str, base_path: &str) -> Result<Self, Failure> {
        let invalid = || Failure::usage("this is not an enrolment link: it has the form https://HOST/#/enrol/CODE");
        let mut url = Url::parse(text.trim()).map_err(|_| invalid())?;
        let code = url.fragment().and_then(|fragment| fragment.strip_prefix("/enrol/")).filter(|code| !code.is_empty());
        let code = SecretString::from(code.ok_or_else(invalid)?);
        url.set_fragment(None);
        url.set_path(base_path);
        Ok(Self { url: url.as_str().trim_end_matches('/').to_owned(), code })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_names_the_server_and_the_code() {
        for (text, url) in [
            ("https://vault.example.com/#/enrol/A-1", "https://vault.example.com/v1"),
            (" http://127.0.0.1:8080/#/enrol/A-1\n", "http://127.0.0.1:8080/v1"),
        ] {
            let link = Link::parse(text, "/v1").expect("a link");
            assert_eq!((&*link.url, link.code.expose_secret()), (url, "A-1"));
        }
        for text in ["", "A-1", "https://vault.example.com/", "https://vault.example.com/#/enrol/", "/#/enrol/A-1"] {
            let error = Link::parse(text, "/v1").err().expect("no link").to_string();
            assert!(error.contains("https://HOST/#/enrol/CODE") && !error.contains("A-1"), "{error}");
        }
    }
}
