//! The credentials of a command, in the places that its tools read: variables, files and the endpoint.

use super::aws_settings::AwsSettings;
use super::choice::Chosen;
use super::endpoint::{Endpoint, Served};
use super::no_proxy;
use super::opened::Opened;
use super::private_files::PrivateDirectory;
use crate::failure::Failure;
use crate::form::{
    Assignment, CredentialEndpoint, EndpointAnswer, EnvironmentVariables, FormName, FormSubject, PrivateFile,
};
use crate::output::warn;
use secrecy::ExposeSecret as _;
use std::env;
use tokio::process::Command;
use vault_core::credential::SecretText;
use vault_core::id::CredentialId;
use vault_core::time::Timestamp;

/// The credentials of a command. Its files are removed on drop.
pub(crate) struct Supply {
    credentials: Vec<Supplied>,
    endpoint: Option<(Endpoint, CredentialEndpoint)>,
    /// Settings from the user's AWS configuration, to append to the command's.
    settings: AwsSettings,
    files: PrivateDirectory,
}

/// One credential.
struct Supplied {
    id: CredentialId,
    name: Option<FormName>,
    /// Variables that the command was started with.
    variables: Vec<Assignment>,
    /// Expiry time of the credential that the command has.
    ends_at: Timestamp,
    /// Reason why the last renewal did not replace the credential.
    violation: Option<&'static str>,
}

/// Returns whether the tools get these credentials from the endpoint. This requires a single credential with the
/// standard variable names.
pub(crate) fn is_served(opened: &Opened, chosen: &[Chosen]) -> bool {
    matches!(chosen, [(index, None)] if EndpointAnswer::is_had_by(&opened.credentials[*index].vended))
}

impl Supply {
    /// Passes the credentials `chosen` to `command`: its variables, files in `files`, and the first response of
    /// `endpoint`.
    pub(crate) fn give(
        command: &mut Command,
        opened: &Opened,
        chosen: Vec<Chosen>,
        endpoint: Option<Endpoint>,
        files: PrivateDirectory,
    ) -> Result<Self, Failure> {
        let endpoint = endpoint.map(|endpoint| open_to(endpoint, &files)).transpose()?;
        let mut environments = Vec::with_capacity(chosen.len());
        for (index, name) in &chosen {
            let subject = opened.subject(*index, name.as_ref());
            let environment = render(&subject, endpoint.as_ref().map(|(_, reported)| reported));
            environments.push(
                environment.map_err(|violation| Failure::new(format!("credential {}: {violation}", subject.id)))?,
            );
        }
        for (name, _) in env::vars_os() {
            let known = name.to_str().unwrap_or_default();
            if environments.iter().any(|environment| environment.displaces(known)) {
                command.env_remove(&name);
            }
        }
        if endpoint.is_some() {
            command.envs(no_proxy::variables(|name| env::var_os(name)));
        }
        let is_configured = environments.iter().any(|environment| environment.files.iter().any(is_aws_config));
        let settings = if is_configured { AwsSettings::of_user() } else { AwsSettings::default() };
        let mut supply = Self { credentials: Vec::with_capacity(chosen.len()), endpoint, settings, files };
        for ((index, name), environment) in chosen.into_iter().zip(environments) {
            for set in &environment.variables {
                command.env(&set.name, set.value.expose()); // for the command of this activation
            }
            for (variable, path) in supply.write(supply.credentials.len(), &environment)? {
                command.env(variable, path);
            }
            let subject = opened.subject(index, name.as_ref());
            let (id, ends_at) = (subject.id, subject.ends_at());
            let EnvironmentVariables { variables, answer, .. } = environment;
            supply.serve(answer, ends_at);
            supply.credentials.push(Supplied { id, name, variables, ends_at, violation: None });
        }
        Ok(supply)
    }

    /// Passes renewed credentials to the command's tools. A credential that the running command cannot switch to stays
    /// unchanged.
    pub(crate) fn take(&mut self, opened: &Opened) -> Result<(), Failure> {
        for number in 0..self.credentials.len() {
            let violation = self.take_one(number, opened)?;
            let credential = &mut self.credentials[number];
            if let Some(violation) = violation.filter(|violation| credential.violation != Some(violation)) {
                warn(&format!("credential {} {violation}. The command keeps the previous values", credential.id));
            }
            credential.violation = violation;
        }
        Ok(())
    }

    fn take_one(&mut self, number: usize, opened: &Opened) -> Result<Option<&'static str>, Failure> {
        let Supplied { id, name, variables, .. } = &self.credentials[number];
        let Some(index) = opened.credentials.iter().position(|one| one.id == *id) else {
            return Ok(Some("is no longer in the namespace"));
        };
        let subject = opened.subject(index, name.as_ref());
        let Ok(environment) = render(&subject, self.endpoint.as_ref().map(|(_, reported)| reported)) else {
            return Ok(Some("now has a value that variables and files cannot contain"));
        };
        // These variables do not contain the key, but the location where it is used.
        if environment.answer.is_some() && !are_same(variables, &environment.variables) {
            return Ok(Some(
                "now has another endpoint, region, bucket, prefix or role. A running command cannot get them",
            ));
        }
        let ends_at = subject.ends_at();
        self.write(number, &environment)?;
        self.serve(environment.answer, ends_at);
        self.credentials[number].ends_at = ends_at;
        Ok(None)
    }

    /// Returns the earliest expiry of the activation and the credentials, except those that a renewal cannot replace.
    pub(crate) fn ends_at(&self, activation: Timestamp) -> Timestamp {
        let renewed = self.credentials.iter().filter(|credential| credential.violation.is_none());
        renewed.map(|credential| credential.ends_at).fold(activation, Timestamp::min)
    }

    pub(crate) fn files(&self) -> &PrivateDirectory {
        &self.files
    }

    pub(crate) fn remove(self) -> Result<(), Failure> {
        self.files.remove()
    }

    /// Writes the files of the credential with this number. Returns their variables and paths.
    fn write(
        &self,
        number: usize,
        environment: &EnvironmentVariables,
    ) -> Result<Vec<(String, std::path::PathBuf)>, Failure> {
        let has_region = environment.variables.iter().any(|set| set.name.ends_with("AWS_REGION"));
        let written = environment.files.iter().map(|file| {
            let name = format!("{number}-{}", file.file_name);
            let content = file.content.expose(); // for the command
            let path = if is_aws_config(file) {
                let lines = self.settings.lines(!has_region, environment.limits_checksums);
                self.files.write(&name, &[content, lines.as_bytes()].concat())?
            } else {
                self.files.write(&name, content)?
            };
            Ok((file.variable.clone(), path))
        });
        written.collect()
    }

    fn serve(&self, answer: Option<EndpointAnswer>, expires_at: Timestamp) {
        if let (Some((endpoint, _)), Some(answer)) = (&self.endpoint, answer) {
            endpoint.serve(Served { answer, expires_at });
        }
    }
}

fn is_aws_config(file: &PrivateFile) -> bool {
    file.file_name == EnvironmentVariables::AWS_CONFIG
}

/// Stores the endpoint's token and returns the endpoint with the parameters for the command's tools.
fn open_to(endpoint: Endpoint, files: &PrivateDirectory) -> Result<(Endpoint, CredentialEndpoint), Failure> {
    let token = endpoint.token().expose_secret(); // for the command's variables and files
    let path = files.write("endpoint-token", token.as_bytes())?;
    let reported = CredentialEndpoint {
        url: endpoint.url(),
        token_url: endpoint.token_url(),
        token: SecretText::from(token),
        token_file: path.to_string_lossy().into_owned(),
    };
    Ok((endpoint, reported))
}

fn render(
    subject: &FormSubject<'_>,
    endpoint: Option<&CredentialEndpoint>,
) -> Result<EnvironmentVariables, crate::form::FormError> {
    match endpoint {
        Some(endpoint) => EnvironmentVariables::for_served_command(subject, endpoint),
        None => EnvironmentVariables::for_command(subject),
    }
}

fn are_same(some: &[Assignment], others: &[Assignment]) -> bool {
    // The values are only compared with each other.
    let same =
        |(one, other): (&Assignment, &Assignment)| one.name == other.name && one.value.expose() == other.value.expose();
    some.len() == others.len() && some.iter().zip(others).all(same)
}
