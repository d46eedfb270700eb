//! The source of a job's token: the integration token, or an identity token of its environment.

use crate::failure::Failure;
use crate::secret_file;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use vault_client::github_identity_token;
use vault_core::id::IntegrationId;
use vault_core::identity::audience;
use vault_core::integration::IntegrationToken;

const FILE: &str = "ORGVAULT_IDENTITY_TOKEN_FILE";
const TOKEN: &str = "ORGVAULT_IDENTITY_TOKEN";
/// Variable with the ID of the integration, for which GitHub Actions issues a token on request.
pub(crate) const INTEGRATION: &str = "ORGVAULT_INTEGRATION_ID";
const GITHUB_URL: &str = "ACTIONS_ID_TOKEN_REQUEST_URL";
const GITHUB_TOKEN: &str = "ACTIONS_ID_TOKEN_REQUEST_TOKEN";
/// Maximum size of a token file in bytes. Larger than any token, so that errors can describe the content.
const MAX_TOKEN_FILE: usize = 4 * 1024;
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
    pub(crate) fn of(token_file: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = token_file {
            return Ok(Self::Integration(path.to_owned()));
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
    pub(crate) fn token(&self) -> Result<SecretString, Failure> {
        match self {
            Self::Integration(path) => integration_token("--token-file", path),
            Self::GitHub => match integration_id()? {
                Some(id) => {
                    Ok(github_identity_token(&variable(GITHUB_URL)?, &variable(GITHUB_TOKEN)?.into(), &audience(id))?)
                }
                None => Err(Failure::usage(
                    "ORGVAULT_INTEGRATION_ID is missing: GitHub Actions issues an identity token for one integration. \
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

/// Returns the ID of the integration in the environment.
pub(crate) fn integration_id() -> Result<Option<IntegrationId>, Failure> {
    let text = env::var(INTEGRATION).ok().filter(|text| !text.is_empty());
    text.map(|text| {
        text.parse().map_err(|_| Failure::usage(format!("{INTEGRATION}: must be the ID of an integration")))
    })
    .transpose()
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

/// Reads the integration token in `path`, without a line end. Fails unless it has the format of a token, so nothing
/// else is sent.
pub(super) fn integration_token(flag: &str, path: &Path) -> Result<SecretString, Failure> {
    let bytes = secret_file::read(flag, path, MAX_TOKEN_FILE)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default().trim_end_matches(['\r', '\n']);
    let token = SecretString::from(text);
    if IntegrationToken::read(&token).is_some() {
        return Ok(token);
    }
    let expected = format!("an integration token ({} characters, starting with ovi_)", IntegrationToken::LENGTH);
    let found = match text {
        text if text.starts_with("ovi_") => "it starts like one, but was changed or not copied whole",
        text if text.starts_with("v4.local.") => "it contains an access token, which a login returns for an account",
        text if text.starts_with("-----BEGIN") => "it has a certificate or a key",
        "" => "it is empty or not text",
        _ => "it has something else",
    };
    Err(Failure::new(format!("{flag}: {} does not contain {expected}: {found}", path.display())))
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

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use vault_core::port::{Entropy, NoEntropy};

    struct Same;

    impl Entropy for Same {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
            bytes.fill(7);
            Ok(())
        }
    }

    #[test]
    fn token_file_is_complete_and_private() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        let read = |content: &str, mode| {
            fs::write(&path, content).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            integration_token("--token-file", &path)
                .map(|token| token.expose_secret().to_owned())
                .map_err(|violation| violation.to_string())
        };
        let whole = IntegrationToken::generate(&Same).expect("a token");
        let whole = whole.text().expose_secret();
        for content in [whole.to_owned(), format!("{whole}\n"), format!("{whole}\r\n")] {
            assert_eq!(read(&content, 0o600).as_deref(), Ok(whole));
        }
        let short = &whole[..whole.len() - 1];
        for (content, found) in [
            (short, "not copied whole"),
            (&format!("{whole} "), "not copied whole"),
            (&format!("v4.local.{}", "a".repeat(400)), "access token"),
            ("-----BEGIN PRIVATE KEY-----\n", "certificate or a key"),
            ("", "empty"),
            ("\n", "empty"),
            (&format!(" {whole}"), "something else"),
            (&whole.to_uppercase(), "something else"),
        ] {
            let violation = read(content, 0o600).expect_err("not a token");
            assert!(
                violation.contains("token does not contain an integration token (53 characters, starting with ovi_)"),
                "{violation}"
            );
            assert!(violation.contains(found) && !violation.contains(short), "{violation}");
        }
        for mode in [0o640, 0o604, 0o660] {
            assert!(read(whole, mode).expect_err("open to others").contains("other users can read or write it"));
        }
        assert!(read(&"a".repeat(MAX_TOKEN_FILE + 1), 0o600).is_err());
    }
}
