//! The way to the listener of activations, and the token.

use super::args::DoorArgs;
use crate::failure::Failure;
use crate::secret_file;
use secrecy::SecretString;
use std::path::Path;
use vault_client::{ActivationClient, ActivationSettings, ClientIdentity};
use vault_core::integration::IntegrationToken;

/// The longest file with a token that is read, in bytes: the token and white space around it.
const MAX_TOKEN_FILE: usize = 256;
/// The longest file with a key that is read, in bytes.
const MAX_KEY_FILE: usize = 64 * 1024;

/// A client as the flags say. Nothing is sent yet.
pub(crate) fn open(args: &DoorArgs, base_path: Option<&str>) -> Result<ActivationClient, Failure> {
    let token = token("--token-file", &args.token_file)?;
    let mut settings = ActivationSettings { ca_file: args.ca_file.clone(), ..ActivationSettings::default() };
    if let Some(base_path) = base_path {
        base_path.clone_into(&mut settings.base_path);
    }
    if let (Some(chain), Some(key)) = (&args.client_cert_file, &args.client_key_file) {
        let unreadable =
            |error| Failure::new(format!("--client-cert-file: {} cannot be read: {error}", chain.display()));
        let chain = std::fs::read(chain).map_err(unreadable)?;
        let key = secret_file::read("--client-key-file", key, MAX_KEY_FILE)?;
        settings.identity = Some(ClientIdentity::from_pem(&chain, &key)?);
    }
    Ok(ActivationClient::new(&args.activation_url, token, &settings)?)
}

/// The token in `path`, without the line end that editors put after it. What is not a whole token is never sent.
fn token(flag: &str, path: &Path) -> Result<SecretString, Failure> {
    let bytes = secret_file::read(flag, path, MAX_TOKEN_FILE)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default().trim_end_matches(['\r', '\n']);
    let token = SecretString::from(text);
    match IntegrationToken::read(&token) {
        Some(_) => Ok(token),
        None => Err(Failure::new(format!(
            "{flag}: {} does not hold an integration token: copy it whole, from ovi_ to its last character",
            path.display()
        ))),
    }
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
    fn a_token_is_whole_and_its_file_private() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        let read = |content: &str, mode| {
            fs::write(&path, content).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            token("--token-file", &path).map(|token| token.expose_secret().to_owned()).map_err(|flaw| flaw.to_string())
        };
        let whole = IntegrationToken::generate(&Same).expect("a token");
        let whole = whole.text().expose_secret();
        for content in [whole.to_owned(), format!("{whole}\n"), format!("{whole}\r\n")] {
            assert_eq!(read(&content, 0o600).as_deref(), Ok(whole));
        }
        let short = &whole[..whole.len() - 1];
        for content in ["", "\n", short, &format!("{whole} "), &format!(" {whole}"), &whole.to_uppercase()] {
            let flaw = read(content, 0o600).expect_err("not a token");
            assert!(flaw.contains("copy it whole") && !flaw.contains(short), "{flaw}");
        }
        for mode in [0o640, 0o604, 0o660] {
            assert!(read(whole, mode).expect_err("open to others").contains("chmod 600"));
        }
        assert!(read(&"a".repeat(MAX_TOKEN_FILE + 1), 0o600).expect_err("too large").contains("too large"));
    }
}
