//! The location of the root key.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use vault_cli::failure::Failure;
use vault_pkcs11::TokenUri;
use vault_storage::KmsUri;

/// Environment variable that contains the directory of a systemd service's credentials.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// The value of `--root-key-source`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RootKeySource {
    /// A systemd credential, by name.
    Credential(String),
    /// A key in a PKCS #11 token.
    Token(Box<TokenUri>),
    /// A key in AWS KMS.
    Kms(Box<KmsUri>),
}

/// The location of the root key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RootKeyLocation {
    /// A file.
    File(PathBuf),
    /// A systemd credential, which is a file.
    Credential { name: String, path: PathBuf },
    /// A PKCS #11 token.
    Token(Box<TokenUri>),
    /// AWS KMS.
    Kms(Box<KmsUri>),
}

impl FromStr for RootKeySource {
    type Err = String;

    // Errors do not repeat the value, because a user may have pasted a key.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("credential:") {
            let is_name = !name.is_empty() && name.len() < 256 && name != "." && name != ".." && !name.contains('/');
            return match is_name {
                true => Ok(Self::Credential(name.to_owned())),
                false => Err("credential: needs the name of a credential, such as credential:root.key".to_owned()),
            };
        }
        if text.starts_with("pkcs11:") {
            return text.parse().map(|uri| Self::Token(Box::new(uri))).map_err(|error| format!("pkcs11: {error}"));
        }
        if text.starts_with("aws-kms:") {
            return text.parse().map(|uri| Self::Kms(Box::new(uri))).map_err(|error| format!("aws-kms: {error}"));
        }
        Err("must be credential:NAME, pkcs11:… or aws-kms:…. For a file, use --root-key-file".to_owned())
    }
}

impl RootKeySource {
    /// Returns the location that the source refers to.
    pub(crate) fn place(&self, flag: &str) -> Result<RootKeyLocation, Failure> {
        match self {
            Self::Credential(name) => match credential(name) {
                Some(path) => Ok(RootKeyLocation::Credential { name: name.clone(), path }),
                None => Err(Failure::usage(format!(
                    "{flag}: credential:{name} needs the directory that systemd names in {CREDENTIALS}, and the variable is \
                     not set. Start the service with LoadCredential={name}:/FILE or LoadCredentialEncrypted={name}:/FILE; \
                     for a command outside of it, pass --root-key-file"
                ))),
            },
            Self::Token(uri) => Ok(RootKeyLocation::Token(uri.clone())),
            Self::Kms(uri) => Ok(RootKeyLocation::Kms(uri.clone())),
        }
    }
}

/// Returns the path of a systemd credential, if this process has a credentials directory.
fn credential(name: &str) -> Option<PathBuf> {
    let directory = PathBuf::from(env::var_os(CREDENTIALS)?);
    directory.is_absolute().then(|| directory.join(name))
}

impl RootKeyLocation {
    /// Returns the file that contains the root key, if it is in a file.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Credential { path, .. } => Some(path),
            Self::Token(_) | Self::Kms(_) => None,
        }
    }

    /// Returns the flag that selects this location.
    pub(crate) fn flag(&self) -> String {
        match self {
            Self::File(path) => format!("--root-key-file={}", path.display()),
            other => format!("--root-key-source={other}"),
        }
    }
}

impl fmt::Display for RootKeyLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Credential { name, .. } => write!(f, "credential:{name}"),
            Self::Token(uri) => uri.fmt(f),
            Self::Kms(uri) => uri.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_key_source_is_parsed_and_never_printed() {
        let parse = str::parse::<RootKeySource>;
        assert_eq!(parse("credential:root.key"), Ok(RootKeySource::Credential("root.key".to_owned())));
        let uri = "pkcs11:token=a;id=%01%02%03%04%05%06%07%08?module-path=/m&pin-source=/p";
        let token = parse(uri).unwrap();
        assert_eq!(token.place("").unwrap().flag(), format!("--root-key-source={uri}"));
        let uri =
            "aws-kms:arn:aws:kms:eu-central-1:111122223333:key/one?credentials-file=/c&endpoint=https://kms.example";
        let kms = parse(uri).unwrap();
        assert_eq!(kms.place("").unwrap().flag(), format!("--root-key-source={uri}"));
        let uri =
            "aws-kms:arn:aws:kms:eu-central-1:1:key/one?web-identity-token-file=/t&role-arn=arn:aws:iam::1:role/vault";
        let kms = parse(uri).unwrap();
        assert_eq!(kms.place("").unwrap().flag(), format!("--root-key-source={uri}"));
        for wrong in [
            "",
            "credential:",
            "credential:..",
            "credential:a/b",
            "pkcs11:token=s3cret",
            "aws-kms:s3cret",
            "s3cret",
            "file:/s3cret",
        ] {
            let message = parse(wrong).unwrap_err();
            assert!(!message.contains("s3cret") && !message.is_empty(), "{message}");
        }
    }
}
