//! A validated response of the activation listener.

use super::listener::Received;
use crate::failure::Failure;
use crate::form::{FormName, FormSubject};
use secrecy::ExposeSecret;
use vault_client::VendedCredential;
use vault_core::activation::{Vended, VendedForm};
use vault_core::credential::CredentialType;
use vault_core::id::CredentialId;
use vault_core::namespace::Namespace;
use vault_core::time::Timestamp;

/// The credentials of an activated namespace.
#[derive(Debug)]
pub(crate) struct Opened {
    /// ID of the activation.
    pub activation: String,
    pub namespace: Namespace,
    /// Expiry time of the activation.
    pub expires_at: Timestamp,
    /// Credentials, oldest first.
    pub credentials: Vec<OpenedCredential>,
}

/// A credential of the activation. `Debug` does not print its data.
#[derive(Debug)]
pub(crate) struct OpenedCredential {
    pub id: CredentialId,
    version: i64,
    pub(crate) vended: Vended,
}

/// Fields by which a credential of the activation is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub id: CredentialId,
    pub kind: CredentialType,
    /// Names of its buckets or container, for messages.
    pub(crate) buckets: String,
}

impl Opened {
    /// Validates a response. Its times are converted to this host's clock, with which tools compare them.
    pub(crate) fn read(answer: Received) -> Result<Self, Failure> {
        let Received { activation: answer, clock_ahead } = answer;
        let moment = |text: &str| moment(text, clock_ahead);
        let expires_at = moment(&answer.expires_at)?;
        let namespace = Namespace::parse(&answer.namespace, "").map_err(|violation| {
            Failure::new(format!("the listener's response has an invalid namespace: {}", violation.detail))
        })?;
        let read = |credential| OpenedCredential::read(credential, moment);
        let credentials = answer.credentials.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { activation: answer.id, namespace, expires_at, credentials })
    }

    /// Returns the fields by which credentials are selected.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let candidate = |OpenedCredential { id, vended, .. }: &OpenedCredential| Candidate {
            id: *id,
            kind: vended.kind(),
            buckets: vended.buckets().join(", "),
        };
        self.credentials.iter().map(candidate).collect()
    }

    /// Returns the credential at `index` for rendering under `name`.
    pub(crate) fn subject<'a>(&'a self, index: usize, name: Option<&'a FormName>) -> FormSubject<'a> {
        let OpenedCredential { id, version, vended } = &self.credentials[index];
        FormSubject { id: *id, version: *version, vended, expires_at: self.expires_at, name }
    }
}

impl OpenedCredential {
    fn read(answer: VendedCredential, moment: impl Fn(&str) -> Result<Timestamp, Failure>) -> Result<Self, Failure> {
        let younger = || {
            Failure::new(format!(
                "credential {} has an unsupported type or form. This program is older than the server: update it",
                answer.id
            ))
        };
        let kind = CredentialType::parse(&answer.kind).ok_or_else(younger)?;
        let form = VendedForm::parse(&answer.form).ok_or_else(younger)?;
        let id = answer.id.parse()?;
        let expires_at = answer.expires_at.as_deref().map(moment).transpose()?;
        let data = answer.data.into_secret();
        // Rendered only for the client that activated it.
        let vended = Vended::from_json(kind, form, expires_at, data.expose_secret().as_bytes())?;
        Ok(Self { id, version: answer.version, vended })
    }
}

fn moment(text: &str, clock_ahead: i64) -> Result<Timestamp, Failure> {
    let time =
        Timestamp::from_rfc3339(text).ok_or_else(|| Failure::new("the listener's response has an invalid time"))?;
    Ok(Timestamp::from_millis(time.as_millis().saturating_add(clock_ahead)))
}
