//! Fake storage providers.

use crate::clock::lock;
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::Mutex;
use vault_core::activation::{AzureShort, GcsShort, S3Short, ShortData, VendedForm, allows_short};
use vault_core::check::{Check, CheckKind, CheckReason, CheckReport, StorageOperation};
use vault_core::credential::CredentialData;
use vault_core::federation::{FederationSubject, TrustTarget};
use vault_core::id::CredentialId;
use vault_core::port::{CredentialVendor, ProbeRequest, ProviderTrust, ShortLived, StorageProbe, VendOrder};
use vault_core::time::Timestamp;

/// Issues made-up credentials and records the activations. Reports every credential as usable unless a test changes
/// that.
#[derive(Debug, Default)]
pub struct FakeStorage(Mutex<Reported>);

#[derive(Debug, Default)]
struct Reported {
    refusals: HashMap<CredentialId, CheckReason>,
    failure: Option<CheckReason>,
    trust: Option<CheckReason>,
    trusts: Vec<(TrustTarget, FederationSubject)>,
    vended: Vec<VendOrder>,
    probed: Vec<Probed>,
}

/// The parameters of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The checked form.
    pub form: VendedForm,
    /// The operations.
    pub operations: Vec<StorageOperation>,
    /// The expected end of the job, if it was given.
    pub until: Option<Timestamp>,
}

impl FakeStorage {
    /// Makes the following requests for short-lived credentials of this credential fail.
    pub fn refuse(&self, credential: CredentialId, reason: CheckReason) {
        lock(&self.0).refusals.insert(credential, reason);
    }

    /// Makes the following checks fail with `reason`, or succeed.
    pub fn fail(&self, reason: Option<CheckReason>) {
        lock(&self.0).failure = reason;
    }

    /// Makes the following trust checks fail with `reason`, or find closed trusts.
    pub fn open_trusts(&self, reason: Option<CheckReason>) {
        lock(&self.0).trust = reason;
    }

    /// Returns the targets and subjects of the trust checks.
    pub fn trust_checks(&self) -> Vec<(TrustTarget, FederationSubject)> {
        lock(&self.0).trusts.clone()
    }

    /// Returns the recorded orders.
    pub fn vended(&self) -> Vec<VendOrder> {
        lock(&self.0).vended.clone()
    }

    /// Returns the recorded checks.
    pub fn probed(&self) -> Vec<Probed> {
        lock(&self.0).probed.clone()
    }
}

#[async_trait]
impl CredentialVendor for FakeStorage {
    async fn vend(&self, data: &CredentialData, order: VendOrder) -> Result<ShortLived, CheckReason> {
        let mut reported = lock(&self.0);
        if let Some(reason) = reported.refusals.get(&order.credential) {
            return Err(*reason);
        }
        allows_short(data)?;
        let data = short(data).ok_or(CheckReason::Unexpected)?;
        let expires_at = order.expires_at;
        reported.vended.push(order);
        Ok(ShortLived { data, expires_at })
    }
}

#[async_trait]
impl ProviderTrust for FakeStorage {
    async fn check_trust(
        &self,
        data: &CredentialData,
        subject: &FederationSubject,
        _now: Timestamp,
    ) -> Result<(), CheckReason> {
        let mut reported = lock(&self.0);
        reported.trusts.push((data.trust_target().ok_or(CheckReason::Unexpected)?, *subject));
        reported.trust.map_or(Ok(()), Err)
    }
}

#[async_trait]
impl StorageProbe for FakeStorage {
    async fn check(&self, _data: &CredentialData, request: ProbeRequest) -> CheckReport {
        let mut reported = lock(&self.0);
        let form = if request.short.is_some() { VendedForm::Short } else { VendedForm::Raw };
        reported.probed.push(Probed { form, operations: request.operations.clone(), until: request.until });
        let operations = request.operations.into_iter().map(CheckKind::Operation);
        let checks = match reported.failure {
            None => std::iter::once(CheckKind::Authenticate).chain(operations).map(Check::passed).collect(),
            Some(reason) => std::iter::once(Check::failed(CheckKind::Authenticate, reason))
                .chain(operations.map(|kind| Check::skipped(kind, CheckReason::EarlierFailed)))
                .collect(),
        };
        CheckReport { checks }
    }
}

/// Returns short-lived credentials, if the type supports them.
pub fn short(data: &CredentialData) -> Option<ShortData> {
    Some(match data {
        CredentialData::S3(data) => ShortData::S3(S3Short {
            access_key_id: "ASIASHORTLIVED".into(),
            secret_access_key: "short-lived secret".into(),
            session_token: "short-lived token".into(),
            bucket: data.bucket.clone(),
            region: data.region.clone(),
            endpoint: data.endpoint.clone(),
            key_prefix: data.key_prefix.clone(),
            path_style_access: data.path_style_access,
            sse_kms_key_id: data.sse_kms_key_id.clone(),
        }),
        CredentialData::AzureIdentity(data) => ShortData::AzureIdentity(AzureShort {
            endpoint: data.connection_string.blob_endpoint()?,
            account_name: data.connection_string.account_name()?.to_owned(),
            container: data.container.clone()?,
            key_prefix: data.key_prefix.clone(),
            sas_token: "sv=2024-11-04&sr=c&sig=short".into(),
        }),
        CredentialData::Gcs(data) => ShortData::Gcs(GcsShort {
            access_token: "ya29.short-lived".into(),
            bucket: data.bucket.clone(),
            key_prefix: data.key_prefix.clone(),
            universe_domain: data.universe_domain(),
        }),
        CredentialData::S3Federated(data) => ShortData::S3(S3Short {
            access_key_id: "ASIASHORTLIVED".into(),
            secret_access_key: "short-lived secret".into(),
            session_token: "short-lived token".into(),
            bucket: data.bucket.clone(),
            region: data.region.clone(),
            endpoint: data.endpoint.clone(),
            key_prefix: data.key_prefix.clone(),
            path_style_access: data.path_style_access,
            sse_kms_key_id: data.sse_kms_key_id.clone(),
        }),
        CredentialData::AzureFederated(data) => ShortData::AzureIdentity(AzureShort {
            endpoint: data.endpoint()?,
            account_name: data.account_name.clone(),
            container: data.container.clone(),
            key_prefix: data.key_prefix.clone(),
            sas_token: "sv=2024-11-04&sr=c&sig=short".into(),
        }),
        CredentialData::GcsFederated(data) => ShortData::Gcs(GcsShort {
            access_token: "ya29.short-lived".into(),
            bucket: data.bucket.clone(),
            key_prefix: data.key_prefix.clone(),
            universe_domain: None,
        }),
        CredentialData::DirectLink(_) => return None,
    })
}
