//! Variables for a command whose credential is renewed while it runs. Instead of a key or an access token, they contain
//! the address from which the tools fetch it repeatedly (AWS SDKs and Tools Reference Guide, "Container credential
//! provider"; Google's AIP-4117, "external account").

use super::env::{Assignment, DUCKDB_SECRET, EnvironmentVariables, PrivateFile};
use super::{FormError, FormSubject, S3View, duckdb, gather};
use vault_core::activation::{GcsShort, ShortData, Vended};
use vault_core::credential::{SecretBytes, SecretText};
use vault_core::json::{ObjectWriter, write_text};

/// Variables that would have priority over the address.
const KEYS: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
const ACCESS_TOKENS: [&str; 2] = ["CLOUDSDK_AUTH_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN"];
/// The same for rclone's remote.
const REMOTE_KEYS: [&str; 3] = ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"];

/// Endpoint from which the tools of a command fetch its credential.
#[derive(Debug)]
pub struct CredentialEndpoint {
    /// Address of an S3 credential: `http` on this host.
    pub url: String,
    /// Address that exchanges the token for a Google access token (RFC 8693).
    pub token_url: String,
    /// Token that they present: as `Authorization`, or as the token to exchange.
    pub token: SecretText,
    /// Path of the file that contains the token.
    pub token_file: String,
}

/// Response of the endpoint.
#[derive(Debug)]
pub enum EndpointAnswer {
    /// A key, at [`CredentialEndpoint::url`].
    Key {
        /// Document of the container credential provider.
        document: SecretText,
        /// Whether the key has a session token. Without one, the document contains `null`: botocore requires the member, and
        /// sends an empty text as a token in signed URLs.
        has_session_token: bool,
    },
    /// A Google access token, at [`CredentialEndpoint::token_url`].
    AccessToken(SecretText),
}

impl EndpointAnswer {
    /// Returns whether the tools of a credential can fetch it from an endpoint.
    pub fn is_had_by(vended: &Vended) -> bool {
        S3View::of(vended).is_some() || matches!(vended, Vended::Short { data: ShortData::Gcs(_), .. })
    }
}

impl EnvironmentVariables {
    /// Creates the environment like [`EnvironmentVariables::for_command`], but without the S3 credential or Google
    /// access token. The variables and the tools' files refer to `endpoint` instead, whose response is
    /// [`EnvironmentVariables::answer`].
    ///
    /// # Errors
    /// A value cannot be stored in a variable.
    pub fn for_served_command(subject: &FormSubject<'_>, endpoint: &CredentialEndpoint) -> Result<Self, FormError> {
        let mut environment = Self::for_command(subject)?;
        match subject.vended {
            Vended::Short { data: ShortData::Gcs(data), .. } => environment.exchange_token(data, endpoint),
            vended => {
                if let Some(view) = S3View::of(vended) {
                    environment.fetch_key(endpoint);
                    let statement = duckdb::fetching(subject, &view)?;
                    let statement = SecretBytes::from(statement.expose().as_bytes().to_vec()); // contains no key
                    if let Some(file) = environment.files.iter_mut().find(|file| file.variable == DUCKDB_SECRET) {
                        file.content = statement;
                    }
                    let has_session_token = view.session_token.is_some();
                    let document = document(subject, &view);
                    environment.answer = Some(EndpointAnswer::Key { document, has_session_token });
                }
            }
        }
        Ok(environment)
    }

    /// Removes variables, and options of rclone's remote. Its option `env_auth` makes it fetch the credential like the
    /// other tools.
    fn leave_out(&mut self, variables: &[&str], options: &[&str]) {
        let prefix = &self.remote_prefix;
        let of_remote =
            |name: &str, options: &[&str]| name.strip_prefix(&**prefix).is_some_and(|option| options.contains(&option));
        self.variables.retain(|set| {
            !variables.contains(&&*set.name) && !of_remote(&set.name, options) && !of_remote(&set.name, &["ENV_AUTH"])
        });
        if self.variables.iter().any(|set| of_remote(&set.name, &["TYPE"])) {
            let name = format!("{prefix}ENV_AUTH");
            self.variables.push(Assignment { name, value: SecretText::from("true") });
        }
    }

    fn fetch_key(&mut self, endpoint: &CredentialEndpoint) {
        self.leave_out(&KEYS, &REMOTE_KEYS);
        let token = endpoint.token.expose(); // The command presents it to the endpoint.
        self.variables.extend(
            [("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*endpoint.url), ("AWS_CONTAINER_AUTHORIZATION_TOKEN", token)]
                .map(|(name, value)| Assignment { name: name.to_owned(), value: SecretText::from(value) }),
        );
        // Keys in the user's own files would also have priority over the address. botocore also reads `~/.boto`.
        self.files.extend(
            [
                ("AWS_SHARED_CREDENTIALS_FILE", "aws-credentials", String::new()),
                ("BOTO_CONFIG", "boto", String::new()),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "aws-token", token.to_owned()),
            ]
            .map(|(variable, file_name, content)| private_file(variable, file_name, content)),
        );
    }

    fn exchange_token(&mut self, data: &GcsShort, endpoint: &CredentialEndpoint) {
        self.leave_out(&ACCESS_TOKENS, &["ACCESS_TOKEN"]);
        let configuration = gather(|sink| {
            let mut object = ObjectWriter::new(sink);
            write_text("external_account", object.member("type"));
            write_text("//orgvault", object.member("audience"));
            if let Some(domain) = &data.universe_domain {
                write_text(domain, object.member("universe_domain"));
            }
            write_text("urn:ietf:params:oauth:token-type:jwt", object.member("subject_token_type"));
            write_text(&endpoint.token_url, object.member("token_url"));
            let source = object.member("credential_source");
            let mut source = ObjectWriter::new(source);
            write_text(&endpoint.token_file, source.member("file"));
            source.end();
            object.end();
        });
        let configuration = configuration.expose(); // It names the file with the endpoint's token.
        for variable in ["GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE"] {
            self.files.push(private_file(variable, "gcp-endpoint.json", configuration.to_owned()));
        }
        self.answer = Some(EndpointAnswer::AccessToken(SecretText::from(data.access_token.expose()))); // for its tools
    }
}

fn private_file(variable: &str, file_name: &'static str, content: String) -> PrivateFile {
    PrivateFile { variable: variable.to_owned(), file_name, content: SecretBytes::from(content.into_bytes()) }
}

fn document(subject: &FormSubject<'_>, view: &S3View<'_>) -> SecretText {
    // Without an expiry, tools would never fetch it again.
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
