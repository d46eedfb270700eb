//! Instructions for the administrator of a provider, which the command line and the console show.

use super::{FederationAudience, FederationIssuer, FederationSubject};
use crate::credential::{AzureFederated, CredentialData, GcsFederated, S3Federated};
use crate::id::{CredentialId, OrganizationId};
use serde_json::{Value, json};

/// The trust that a provider needs, and the steps to configure it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustInstructions {
    /// Issuer of the tokens.
    pub issuer: FederationIssuer,
    /// Subject of the credential.
    pub subject: FederationSubject,
    /// Audience of the tokens.
    pub audience: FederationAudience,
    /// Steps in their order.
    pub steps: Vec<TrustStep>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustStep {
    /// Description of the step.
    pub title: String,
    /// Language of the text: `sh`, `json` or `text`.
    pub language: &'static str,
    /// Command, document or values.
    pub text: String,
}

impl TrustStep {
    fn new(language: &'static str, title: impl Into<String>, text: impl Into<String>) -> Self {
        Self { title: title.into(), language, text: text.into() }
    }
}

impl FederationIssuer {
    /// Returns the instructions for a keyless credential. Returns `None` for other types, and if no token may be sent to
    /// the target.
    pub fn instructions(
        &self,
        data: &CredentialData,
        organization: OrganizationId,
        credential: CredentialId,
    ) -> Option<TrustInstructions> {
        let subject = FederationSubject::new(organization, credential);
        let audience = data.trust_target()?.audience;
        let mut steps = match data {
            CredentialData::S3Federated(data) if audience.is_aws() => self.aws(data, &subject, &audience),
            CredentialData::S3Federated(_) => vec![self.store(&subject, &audience)],
            CredentialData::AzureFederated(data) => self.azure(data, credential, &subject, &audience),
            CredentialData::GcsFederated(data) => self.google(data, organization, &subject),
            _ => return None,
        };
        steps.push(TrustStep::new("sh", "Check the credential", format!("orgvault credential check {credential}")));
        Some(TrustInstructions { issuer: self.clone(), subject, audience, steps })
    }

    fn aws(&self, data: &S3Federated, subject: &FederationSubject, audience: &FederationAudience) -> Vec<TrustStep> {
        // arn:PARTITION:iam::ACCOUNT:role/PATH/NAME
        let mut parts = data.role_arn.split(':').skip(1);
        let partition = parts.next().unwrap_or_default();
        let account = parts.nth(2).unwrap_or_default();
        let role = data.role_arn.rsplit('/').next().unwrap_or_default();
        let provider = self.without_scheme();
        let conditions = json!({
            format!("{provider}:aud"): audience.as_str(),
            format!("{provider}:sub"): subject.to_string(),
        });
        let policy = json!({"Version": "2012-10-17", "Statement": [{
            "Effect": "Allow",
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Principal": {"Federated": format!("arn:{partition}:iam::{account}:oidc-provider/{provider}")},
            "Condition": {"StringEquals": conditions},
        }]});
        vec![
            TrustStep::new(
                "sh",
                "Register the issuer in the AWS account, once for all credentials",
                format!(
                    "aws iam create-open-id-connect-provider --url {} --client-id-list {}",
                    quoted(self),
                    quoted(audience)
                ),
            ),
            TrustStep::new("json", format!("Set this trust policy on role {role}"), pretty(&policy)),
        ]
    }

    fn store(&self, subject: &FederationSubject, audience: &FederationAudience) -> TrustStep {
        let text = format!("issuer    {self}\nsubject   {subject}\naudience  {audience}");
        TrustStep::new(
            "text",
            "Configure the store to accept exactly this issuer, subject and audience for the role. A store that ignores \
             the subject cannot be used",
            text,
        )
    }

    fn azure(
        &self,
        data: &AzureFederated,
        credential: CredentialId,
        subject: &FederationSubject,
        audience: &FederationAudience,
    ) -> Vec<TrustStep> {
        let AzureFederated { client_id, account_name, container, .. } = data;
        let parameters = json!({
            "name": format!("orgvault-{credential}"),
            "issuer": self.as_str(),
            "subject": subject.to_string(),
            "audiences": [audience.as_str()],
        });
        let assign = |role: &str, below: &str| {
            format!(
                "az role assignment create --assignee {} --role {} \
                 --scope \"$(az storage account show --name {} --query id --output tsv)\"{}",
                quoted(client_id),
                quoted(role),
                quoted(account_name),
                quoted(below),
            )
        };
        vec![
            TrustStep::new("json", "Save this as federated-credential.json", pretty(&parameters)),
            TrustStep::new(
                "sh",
                "Add the federated credential to the application. For a managed identity, use the command az identity \
                 federated-credential create with these values",
                format!(
                    "az ad app federated-credential create --id {} --parameters federated-credential.json",
                    quoted(client_id)
                ),
            ),
            TrustStep::new(
                "sh",
                format!("Permit the application to sign for the storage account {account_name}"),
                assign("Storage Blob Delegator", ""),
            ),
            TrustStep::new(
                "sh",
                format!("Permit the application to use the container {container}"),
                assign("Storage Blob Data Contributor", &format!("/blobServices/default/containers/{container}")),
            ),
        ]
    }

    fn google(&self, data: &GcsFederated, organization: OrganizationId, subject: &FederationSubject) -> Vec<TrustStep> {
        // //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER
        let parts: Vec<&str> = data.provider.split('/').collect();
        let part = |index: usize| parts.get(index).copied().unwrap_or_default();
        let (number, pool, provider) = (part(4), part(8), part(10));
        let (_, domain) = data.service_account.split_once('@').unwrap_or_default();
        let project = domain.strip_suffix(".iam.gserviceaccount.com").unwrap_or(domain);
        vec![
            TrustStep::new(
                "sh",
                "Create the workload identity provider, once for all credentials of the organization",
                format!(
                    "gcloud iam workload-identity-pools providers create-oidc {} --project={} --location=global \
                     --workload-identity-pool={} --issuer-uri={} --attribute-mapping=google.subject=assertion.sub \
                     --attribute-condition={}",
                    quoted(provider),
                    quoted(number),
                    quoted(pool),
                    quoted(self),
                    quoted(format!("assertion.sub.startsWith(\"organization:{organization}:\")")),
                ),
            ),
            TrustStep::new(
                "sh",
                format!("Permit the subject to use the service account {}", data.service_account),
                format!(
                    "gcloud iam service-accounts add-iam-policy-binding {} --project={} \
                     --role=roles/iam.workloadIdentityUser --member={}",
                    quoted(&data.service_account),
                    quoted(project),
                    quoted(format!(
                        "principal://iam.googleapis.com/projects/{number}/locations/global/workloadIdentityPools/{pool}/\
                         subject/{subject}"
                    )),
                ),
            ),
        ]
    }
}

/// Returns the value as one word of a shell.
fn quoted(value: impl ToString) -> String {
    format!("'{}'", value.to_string().replace('\'', r"'\''"))
}

fn pretty(document: &Value) -> String {
    serde_json::to_string_pretty(document).unwrap_or_else(|_| document.to_string())
}
