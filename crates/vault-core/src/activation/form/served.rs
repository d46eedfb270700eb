//! Variables for a command whose S3-style credential is renewed while it runs: in place of a key, the address at which the AWS
//! tools ask for it again and again (AWS SDKs and Tools Reference Guide, "Container credential provider").

use super::env::{ADDRESSING, Assignment, EnvironmentVariables, PrivateFile};
use super::{FormError, FormSubject, S3View, gather};
use crate::credential::{SecretBytes, SecretText};
use crate::json::{ObjectWriter, write_text};

/// Variables that would come before the address.
const KEYS: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
/// The same of rclone's remote.
const REMOTE_KEYS: [&str; 3] = ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"];

/// Where the AWS tools ask for a command's credential.
#[derive(Debug)]
pub struct CredentialEndpoint {
    /// Its address: `http` on this machine.
    pub url: String,
    /// What they show as `Authorization`.
    pub token: SecretText,
}

impl EnvironmentVariables {
    /// As [`EnvironmentVariables::for_command`], but an S3-style credential is not in the variables: they and the tools'
    /// files lead to `endpoint`, and [`EnvironmentVariables::document`] is what that answers.
    ///
    /// # Errors
    /// A value cannot stand in a variable.
    pub fn for_served_command(subject: &FormSubject<'_>, endpoint: &CredentialEndpoint) -> Result<Self, FormError> {
        let mut environment = Self::for_command(subject)?;
        let Some(view) = S3View::of(subject.vended) else { return Ok(environment) };
        let remote_prefix = environment.remote_prefix.clone();
        let of_remote = |name: &str, options: &[&str]| {
            name.strip_prefix(&remote_prefix).is_some_and(|option| options.contains(&option))
        };
        environment.variables.retain(|set| !KEYS.contains(&&*set.name) && !of_remote(&set.name, &REMOTE_KEYS));
        for set in environment.variables.iter_mut().filter(|set| of_remote(&set.name, &["ENV_AUTH"])) {
            set.value = SecretText::from("true");
        }
        let token = endpoint.token.expose(); // The command shows it to the endpoint.
        environment.variables.extend(
            [("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*endpoint.url), ("AWS_CONTAINER_AUTHORIZATION_TOKEN", token)]
                .map(|(name, value)| Assignment { name: name.to_owned(), value: SecretText::from(value) }),
        );
        // Keys in the user's own files would come before the address, too.
        let addressing = if view.path_style_access == Some(true) { ADDRESSING } else { "" };
        environment.files.retain(|file| file.variable != "AWS_CONFIG_FILE");
        environment.files.extend(
            [
                ("AWS_CONFIG_FILE", "aws-config", ["[default]\n", addressing].concat()),
                ("AWS_SHARED_CREDENTIALS_FILE", "aws-credentials", String::new()),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "aws-token", token.to_owned()),
            ]
            .map(|(variable, file_name, content)| PrivateFile {
                variable: variable.to_owned(),
                file_name,
                content: SecretBytes::from(content.into_bytes()),
            }),
        );
        environment.document = Some(document(subject, &view));
        Ok(environment)
    }
}

fn document(subject: &FormSubject<'_>, view: &S3View<'_>) -> SecretText {
    // Without it, tools would never ask again.
    let end = subject.ends_at().to_rfc3339();
    gather(|sink| {
        let mut object = ObjectWriter::new(sink);
        write_text(view.access_key_id, object.member("AccessKeyId"));
        write_text(view.secret_access_key, object.member("SecretAccessKey"));
        match view.session_token {
            Some(token) => write_text(token, object.member("Token")),
            None => object.member("Token")("null"),
        }
        if let Some(end) = &end {
            write_text(end, object.member("Expiration"));
        }
        object.end();
    })
}
