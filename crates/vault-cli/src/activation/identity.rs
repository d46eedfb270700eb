//! The source of a job's token: the integration token, or an identity token of its environment.

use super::args::ListenerArgs;
use super::listener;
use crate::failure::Failure;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use vault_client::github_identity_token;
use vault_core::identity::audience;

const FILE: &str = "ORGVAULT_IDENTITY_TOKEN_FILE";
const TOKEN: &str = "ORGVAULT_IDENTITY_TOKEN";
const GITHUB_URL: &str = "ACTIONS_ID_TOKEN_REQUEST_URL";
const GITHUB_TOKEN: &str = "ACTIONS_ID_TOKEN_REQUEST_TOKEN";
/// Maximum length of an identity token in bytes, including the line end.
const MAX_TOKEN: u64 = 8 * 1024 + 2;

/// The source of the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenSource {
    /// The integration token, in a file.
    Integration(PathBuf),
    /// An identity token in a file, which the environment refreshes.
    File(PathBuf),
    /// An identity token in a variable.
    Variable,
    /// An identity token that GitHub Actions issues on request.
    GitHub,
}

impl TokenSource {
    /// Returns the first available source.
    pub(crate) fn of(args: &ListenerArgs) -> Result<Self, Failure> {
        if let Some(path) = &args.token_file {
            return Ok(Self::Integration(path.clone()));
        }
        match Self::from_environment() {
            Some(source) => Ok(source),
            None => Err(Failure::usage(format!(
                "--token-file is missing, and there is no identity token: set ORGVAULT_INTEGRATION_TOKEN_FILE, {FILE} or \
                 {TOKEN}. In GitHub Actions, give the job `permissions: id-token: write` and set ORGVAULT_INTEGRATION_ID"
            ))),
        }
    }

    /// Returns the first available source of an identity token.
    pub(crate) fn from_environment() -> Option<Self> {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        match () {
            () if is_set(FILE) => Some(Self::File(env::var_os(FILE).unwrap_or_default().into())),
            () if is_set(TOKEN) => Some(Self::Variable),
            () if is_set(GITHUB_URL) && is_set(GITHUB_TOKEN) => Some(Self::GitHub),
            () => None,
        }
    }

    /// Returns the current token.
    pub(crate) fn token(&self, args: &ListenerArgs) -> Result<SecretString, Failure> {
        match self {
            Self::Integration(path) => listener::token("--token-file", path),
            Self::GitHub => match args.integration_id {
                Some(id) => {
                    Ok(github_identity_token(&variable(GITHUB_URL)?, &variable(GITHUB_TOKEN)?.into(), &audience(id))?)
                }
                None => Err(Failure::usage(
                    "--integration-id is missing: GitHub Actions issues an identity token for one integration. \
                     `orgvault integration show` prints its id",
                )),
            },
            Self::File(_) | Self::Variable => self.stored(),
        }
    }

    /// Returns the identity token from the file or variable.
    pub(crate) fn stored(&self) -> Result<SecretString, Failure> {
        let text = match self {
            Self::File(path) => {
                let failed = |reason: String| Failure::new(format!("{FILE}: {}: {reason}", path.display()));
                let size = path.metadata().map_err(|error| failed(error.to_string()))?.len();
                if size > MAX_TOKEN {
                    return Err(failed("is longer than 8 KiB, so it is no identity token".to_owned()));
                }
                fs::read_to_string(path).map_err(|error| failed(error.to_string()))?
            }
            _ => variable(TOKEN)?,
        };
        let token = SecretString::from(text.trim());
        match claims(&token) {
            Some(_) => Ok(token),
            None => Err(Failure::new(format!("the identity token {self} is not a JSON Web Token"))),
        }
    }

    /// Returns the variables that the command must not inherit. With them, it could request identity tokens for any
    /// audience.
    pub(crate) const fn variables(&self) -> &'static [&'static str] {
        match self {
            Self::GitHub => &[GITHUB_URL, GITHUB_TOKEN],
            Self::Integration(_) | Self::File(_) | Self::Variable => &[],
        }
    }

    /// Describes the source, if it is an identity token.
    pub(crate) fn identity(&self) -> Option<String> {
        match self {
            Self::Integration(_) => None,
            source => Some(format!("using the identity token {source}")),
        }
    }
}

impl fmt::Display for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integration(path) | Self::File(path) => write!(f, "in {}", path.display()),
            Self::Variable => write!(f, "in {TOKEN}"),
            Self::GitHub => f.write_str("of GitHub Actions"),
        }
    }
}

fn variable(name: &str) -> Result<String, Failure> {
    env::var(name).map_err(|_| Failure::new(format!("{name} is not set, or no text")))
}

/// Returns the claims of a token without verifying it.
pub(crate) fn claims(token: &SecretString) -> Option<Value> {
    let payload = token.expose_secret().split('.').nth(1)?; // claims are not secret
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    claims.is_object().then_some(claims)
}
