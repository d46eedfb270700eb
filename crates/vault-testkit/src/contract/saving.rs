//! Saves and changes of credentials that a case can copy and modify: operations contain secrets, which are not copied.

use crate::crypto::FakeDigester;
use vault_core::activation::VendRule;
use vault_core::credential::{
    ChangeCredential, CredentialData, CredentialEdit, CredentialType, LabelPatch, Labels, LastCheck, MatchCredential,
    Metadata, NewData, SaveCredential, VersionLimits,
};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, OrganizationId, VersionId};
use vault_core::json::{Member, Node};
use vault_core::namespace::Namespace;
use vault_core::port::Idempotency;
use vault_core::time::Timestamp;

/// Save of a credential. See [`SaveCredential`].
#[allow(missing_docs, reason = "the fields of the operation")]
#[derive(Clone, Debug)]
pub struct Saving {
    pub organization: OrganizationId,
    pub id: CredentialId,
    pub namespace: Namespace,
    pub vend: VendRule,
    pub labels: Vec<&'static str>,
    pub expires_at: Option<Timestamp>,
    pub new: NewVersionOf,
    pub limit: i64,
}

/// Data of a version to create. See [`NewData`].
#[allow(missing_docs, reason = "the fields of the operation")]
#[derive(Clone, Debug)]
pub struct NewVersionOf {
    pub id: VersionId,
    pub kind: CredentialType,
    pub check: Option<LastCheck>,
    pub idempotency: Option<Idempotency>,
}

/// Change of a credential. See [`ChangeCredential`].
#[allow(missing_docs, reason = "the fields of the operation")]
#[derive(Clone, Debug)]
pub struct Changing {
    pub organization: OrganizationId,
    pub id: CredentialId,
    pub revision: Option<i64>,
    pub edit: CredentialEdit,
    pub new: Option<NewVersionOf>,
    pub limits: VersionLimits,
}

impl From<Saving> for SaveCredential {
    fn from(save: Saving) -> Self {
        let Saving { organization, id, namespace, vend, labels: names, expires_at, new, limit } = save;
        let mut metadata = Metadata::default();
        metadata.labels = labels(&names);
        metadata.set_expires_at(1, expires_at);
        Self { organization, id, namespace, vend, metadata, new: new.into(), limit }
    }
}

impl From<Changing> for ChangeCredential {
    fn from(Changing { organization, id, revision, edit, new, limits }: Changing) -> Self {
        Self { organization, id, revision, edit, new: new.map(Into::into), limits }
    }
}

impl From<NewVersionOf> for NewData {
    fn from(NewVersionOf { id, kind, check, idempotency }: NewVersionOf) -> Self {
        let data = data(kind, id);
        Self { id, json: data.to_canonical_json(), data, check, idempotency }
    }
}

/// Returns data of a type that contains an ID. Where the type has one, it has a short-lived form.
pub(super) fn data(kind: CredentialType, id: VersionId) -> CredentialData {
    const ROLE: &str = "arn:aws:iam::123456789012:role/reader";
    const TENANT: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
    const GUID: &str = "6f1c7b52-1d4e-4c8a-9a57-2f6a1c9e4b10";
    let json = match kind {
        CredentialType::S3 => format!(
            r#"{{"access_key_id":"AKIACONTRACT","secret_access_key":"{id}","bucket":"reports","region":"eu-west-1","role_arn":"{ROLE}"}}"#
        ),
        CredentialType::AzureIdentity => format!(
            r#"{{"tenant_id":"{TENANT}","client_id":"{GUID}","client_secret":"{id}","container":"reports","connection_string":"BlobEndpoint=https://reports.blob.core.windows.net/"}}"#
        ),
        CredentialType::Gcs => {
            let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
            let file = format!(
                r#"{{"type":"service_account","project_id":"reports","private_key_id":"{}","private_key":"-----BEGIN PRIVATE KEY-----\n{line}\n-----END PRIVATE KEY-----\n","client_email":"reader@reports.iam.gserviceaccount.com","client_id":"1","token_uri":"https://oauth2.googleapis.com/token"}}"#,
                id.to_string().replace('-', "")
            );
            format!(r#"{{"service_account_key":{file},"bucket":"reports"}}"#)
        }
        CredentialType::DirectLink => format!(r#"{{"url":"https://files.example/{id}"}}"#),
        CredentialType::S3Federated => format!(r#"{{"role_arn":"{ROLE}","bucket":"reports","key_prefix":"{id}/"}}"#),
        CredentialType::AzureFederated => format!(
            r#"{{"tenant_id":"{TENANT}","client_id":"{GUID}","account_name":"reports","container":"reports","key_prefix":"{id}/"}}"#
        ),
        CredentialType::GcsFederated => format!(
            r#"{{"provider":"//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/orgvault/providers/orgvault","service_account":"reader@reports.iam.gserviceaccount.com","bucket":"reports","key_prefix":"{id}/"}}"#
        ),
    };
    CredentialData::from_json(kind, json.as_bytes()).unwrap()
}

fn label(name: &str) -> Member {
    Member { name: name.to_owned(), value: Node::String("yes".into()) }
}

fn labels(names: &[&str]) -> Labels {
    Labels::parse(Node::Object(names.iter().map(|name| label(name)).collect()), "").unwrap()
}

/// Returns a comparison of a credential with other data.
pub(super) fn comparison(organization: OrganizationId, id: CredentialId) -> MatchCredential {
    let kind = CredentialType::S3;
    MatchCredential { organization, id, kind, data: data(kind, VersionId::from_bytes([1; 16])).to_canonical_json() }
}

/// Returns the patch that adds one label and removes another.
pub(super) fn label_patch(added: &str, removed: &str) -> LabelPatch {
    let removed = Member { name: removed.to_owned(), value: Node::Null };
    LabelPatch::parse(Node::Object(vec![label(added), removed]), "").unwrap()
}

/// Returns the lookup digest of a label.
pub(super) fn label_digest(organization: OrganizationId, name: &str) -> Digest {
    labels(&[name]).digests(&FakeDigester::default(), organization).remove(0)
}
