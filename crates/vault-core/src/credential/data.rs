//! Data of a credential of any type.

use super::information::{Fact, assemble};
use super::placeholder::is_example_key;
use super::reader::{Entry, FieldReader};
use super::value::Checks;
use super::{
    AzureFederated, AzureIdentity, CredentialType, DirectLink, Fingerprint, Gcs, GcsFederated, Information, KeyFile,
    S3, S3Federated, SecretBytes,
};
use crate::error::Error;
use crate::federation::TrustTarget;
use crate::field::{FieldCode, FieldError};
use crate::json::{self, Limits, Node, ObjectReader, ObjectWriter, SyntaxError};
use crate::time::Timestamp;
use serde_json::{Map, Value};

/// The data of a credential.
#[derive(Debug)]
pub enum CredentialData {
    /// `s3`
    S3(S3),
    /// `azure_identity`
    AzureIdentity(AzureIdentity),
    /// `gcs`
    Gcs(Gcs),
    /// `direct-link`
    DirectLink(DirectLink),
    /// `s3-federated`
    S3Federated(S3Federated),
    /// `azure-federated`
    AzureFederated(AzureFederated),
    /// `gcs-federated`
    GcsFederated(GcsFederated),
}

/// The decrypted data does not have the format of the type that its row names. The error contains positions, never
/// values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoredDataError {
    /// The data is not JSON.
    #[error("stored data {0}")]
    Syntax(SyntaxError),
    /// The data does not have the format of its type.
    #[error("stored data does not match its type ({} violations)", .0.len())]
    Shape(Vec<FieldError>),
}

impl CredentialData {
    /// Parses the data in the body of a request: one JSON text (RFC 8259) within [`Limits::REQUEST`], validated with
    /// all rules for new data. The caller must limit its length.
    ///
    /// ```
    /// use vault_core::credential::{CredentialData, CredentialType};
    ///
    /// let body = br#"{"url": "http://files.example/a", "url": "https://files.example/b", "color": "red"}"#;
    /// let error = CredentialData::from_json(CredentialType::DirectLink, body).unwrap_err();
    /// assert_eq!(error.kind(), vault_core::ErrorKind::Invalid);
    /// let vault_core::Error::Invalid(violations) = error else { panic!("{error}") };
    /// let violations: Vec<_> = violations.iter().map(|violation| (violation.pointer.as_str(), violation.code.as_str())).collect();
    /// assert_eq!(violations, [("/url", "duplicate"), ("/url", "not-allowed"), ("/color", "unknown")]);
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] with all violations: of syntax, repeated members, format and values.
    pub fn from_json(kind: CredentialType, bytes: &[u8]) -> Result<Self, Error> {
        let malformed = |error: SyntaxError| FieldError::new("", FieldCode::Malformed, error.to_string());
        let json::Document { root, duplicates: mut violations } =
            json::parse(bytes, Limits::REQUEST).map_err(malformed)?;
        match Self::parse(kind, root, "") {
            Ok(data) if violations.is_empty() => Ok(data),
            Ok(_) => Err(Error::Invalid(violations)),
            Err(errors) => {
                violations.extend(errors);
                Err(Error::Invalid(violations))
            }
        }
    }

    /// Parses the data in `node`, whose position in the request is `pointer`. Repeated members are reported only by
    /// [`Document::duplicates`](json::Document::duplicates). [`CredentialData::from_json`] checks both.
    ///
    /// # Errors
    /// All violations of format and values.
    pub fn parse(kind: CredentialType, node: Node, pointer: &str) -> Result<Self, Vec<FieldError>> {
        Self::read(kind, node, pointer, Checks::New)
    }

    /// Returns the fields that contain an example key of the AWS documentation. A service accepts them only to be tried out.
    pub fn example_keys(&self) -> Vec<&'static str> {
        let is_example = |entry: &Entry<'_>| {
            let mut found = false;
            entry.value.texts(&mut |text| found |= is_example_key(text));
            found
        };
        self.entries().iter().filter(|entry| is_example(entry)).map(|entry| entry.spec.name).collect()
    }

    /// Parses data that [`CredentialData::to_canonical_json`] wrote. Checks the format but not the values, so that data
    /// which was once accepted can always be decrypted.
    ///
    /// # Errors
    /// The bytes are not data of this type.
    pub fn from_canonical_json(kind: CredentialType, bytes: &[u8]) -> Result<Self, StoredDataError> {
        let document = json::parse(bytes, Limits::STORED).map_err(StoredDataError::Syntax)?;
        if !document.duplicates.is_empty() {
            return Err(StoredDataError::Shape(document.duplicates));
        }
        Self::read(kind, document.root, "", Checks::Stored).map_err(StoredDataError::Shape)
    }

    /// Reads the data of a keyless credential back from the information that lists show. It contains all fields, because
    /// none is secret. Returns `None` for other types and for damaged information.
    pub fn from_information(kind: CredentialType, information: &Information) -> Option<Self> {
        let mut shown: Map<String, Value> = serde_json::from_str(information.as_json()).ok()?;
        shown.retain(|name, _| kind.fields().iter().any(|field| field.name == name));
        let text = Value::Object(shown).to_string();
        kind.is_keyless().then(|| Self::from_canonical_json(kind, text.as_bytes()).ok())?
    }

    /// Returns the target of a keyless credential at its provider. Returns `None` for other types, and if no token may be
    /// sent to the target.
    pub fn trust_target(&self) -> Option<TrustTarget> {
        let ((recipient, audience), identity) = match self {
            Self::S3Federated(data) => (data.recipient()?, data.role_arn.clone()),
            Self::AzureFederated(data) => (data.recipient()?, data.client_id.clone()),
            Self::GcsFederated(data) => (data.recipient(), data.service_account.clone()),
            Self::S3(_) | Self::AzureIdentity(_) | Self::Gcs(_) | Self::DirectLink(_) => return None,
        };
        Some(TrustTarget { kind: self.kind(), recipient, audience, identity })
    }

    fn read(kind: CredentialType, node: Node, pointer: &str, checks: Checks) -> Result<Self, Vec<FieldError>> {
        let object = ObjectReader::new(node, pointer).map_err(|error| vec![error])?;
        let mut source = FieldReader::new(object, checks);
        let data = match kind {
            CredentialType::S3 => S3::read(&mut source).map(Self::S3),
            CredentialType::AzureIdentity => AzureIdentity::read(&mut source).map(Self::AzureIdentity),
            CredentialType::Gcs => Gcs::read(&mut source).map(Self::Gcs),
            CredentialType::DirectLink => DirectLink::read(&mut source).map(Self::DirectLink),
            CredentialType::S3Federated => S3Federated::read(&mut source).map(Self::S3Federated),
            CredentialType::AzureFederated => AzureFederated::read(&mut source).map(Self::AzureFederated),
            CredentialType::GcsFederated => GcsFederated::read(&mut source).map(Self::GcsFederated),
        };
        match &data {
            Some(Self::AzureIdentity(data)) => data.check_together(&mut source),
            Some(Self::S3(data)) => data.check_together(&mut source),
            Some(Self::S3Federated(data)) => data.check_together(&mut source),
            Some(Self::GcsFederated(data)) => data.check_together(&mut source),
            Some(Self::Gcs(_) | Self::DirectLink(_) | Self::AzureFederated(_)) | None => {}
        }
        match (data, source.finish()) {
            (Some(data), errors) if errors.is_empty() => Ok(data),
            (_, errors) => Err(errors),
        }
    }

    /// Returns the type of the credential.
    pub fn kind(&self) -> CredentialType {
        match self {
            Self::S3(_) => CredentialType::S3,
            Self::AzureIdentity(_) => CredentialType::AzureIdentity,
            Self::Gcs(_) => CredentialType::Gcs,
            Self::DirectLink(_) => CredentialType::DirectLink,
            Self::S3Federated(_) => CredentialType::S3Federated,
            Self::AzureFederated(_) => CredentialType::AzureFederated,
            Self::GcsFederated(_) => CredentialType::GcsFederated,
        }
    }

    /// Returns the canonical encoding that is sealed and fingerprinted: no white space, sorted members, absent ones
    /// omitted.
    pub fn to_canonical_json(&self) -> SecretBytes {
        // Compute the length first: a buffer that grows would leave copies of secrets in memory.
        let mut length = 0;
        self.write(&mut |piece| length += piece.len());
        let mut bytes = Vec::with_capacity(length);
        self.write(&mut |piece| bytes.extend_from_slice(piece.as_bytes()));
        SecretBytes::from(bytes)
    }

    /// Returns a name for its storage, which limits the number of concurrent requests to one storage.
    pub fn storage(&self) -> String {
        match self {
            Self::S3(data) => data.endpoint.clone().or_else(|| data.region.clone()).unwrap_or_default(),
            Self::AzureIdentity(data) => data.connection_string.account_name().unwrap_or_default().to_owned(),
            Self::Gcs(data) => data.service_account_key.universe_domain().to_owned(),
            Self::DirectLink(data) => data.url.origin().map(|origin| origin.host).unwrap_or_default(),
            Self::S3Federated(data) => data.endpoint.clone().or_else(|| data.region.clone()).unwrap_or_default(),
            Self::AzureFederated(data) => data.account_name.clone(),
            Self::GcsFederated(_) => KeyFile::GOOGLE.to_owned(),
        }
    }

    /// Returns the expiry that the data contains, in a signed link or in the signature of a connection string.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::AzureIdentity(data) => data.connection_string.signature_expiry(),
            Self::DirectLink(data) => data.url.expiry(),
            Self::S3(_) | Self::Gcs(_) | Self::S3Federated(_) | Self::AzureFederated(_) | Self::GcsFederated(_) => None,
        }
    }

    /// Returns the part of the data that lists show.
    pub fn information(&self, fingerprint: Fingerprint) -> Information {
        assemble(&self.entries(), &self.facts(), fingerprint)
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        let mut entries = self.entries();
        entries.sort_by_key(|entry| entry.spec.name);
        let mut object = ObjectWriter::new(sink);
        for entry in entries {
            entry.value.write(object.member(entry.spec.name));
        }
        object.end();
    }

    fn entries(&self) -> Vec<Entry<'_>> {
        match self {
            Self::S3(data) => data.entries(),
            Self::AzureIdentity(data) => data.entries(),
            Self::Gcs(data) => data.entries(),
            Self::DirectLink(data) => data.entries(),
            Self::S3Federated(data) => data.entries(),
            Self::AzureFederated(data) => data.entries(),
            Self::GcsFederated(data) => data.entries(),
        }
    }

    fn facts(&self) -> Vec<Fact> {
        match self {
            Self::S3(data) => data.facts(),
            Self::AzureIdentity(data) => data.facts(),
            Self::Gcs(data) => data.facts(),
            Self::DirectLink(data) => data.facts(),
            Self::S3Federated(_) | Self::AzureFederated(_) | Self::GcsFederated(_) => Vec::new(),
        }
    }
}
