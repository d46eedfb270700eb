//! What the tests of all stores share.

#![allow(unreachable_pub, reason = "tests are nowhere reached from")]

pub mod tls;

use async_trait::async_trait;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use uuid::Uuid;
use vault_core::activation::ShortData;
use vault_core::check::{CheckReport, StorageOperation};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use vault_core::port::{ProbeRequest, StorageProbe, VendOrder};
use vault_core::time::Timestamp;
use vault_storage::{Egress, EgressPolicy, Places, Resolve, Storage, StorageSettings};
use vault_testkit::clock::SequentialIds;

pub const ALL: [StorageOperation; 3] = StorageOperation::ALL;

/// Permits connections to this machine. Also trusts the CA in `ca_file`.
pub fn local(ca_file: Option<PathBuf>) -> Egress {
    let policy = EgressPolicy::allowing(vec!["127.0.0.0/8".parse().unwrap()]);
    Egress::from(policy).trusting(ca_file.as_deref()).unwrap()
}

/// Reaches servers of this machine.
pub fn storage(places: Places, ca_file: Option<PathBuf>) -> Storage {
    let settings = StorageSettings { egress: local(ca_file), places, ..StorageSettings::default() };
    Storage::new(settings, Arc::new(SequentialIds::default())).unwrap()
}

/// A resolver that records names: those in `here` are this machine's, all others do not exist.
pub struct Names {
    here: &'static [&'static str],
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub fn new(here: &'static [&'static str]) -> Arc<Self> {
        Arc::new(Self { here, asked: Mutex::default() })
    }

    /// The names that were resolved since the last call.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// Reaches servers of this machine by names.
    pub fn storage(self: &Arc<Self>, ca_file: Option<PathBuf>) -> Storage {
        let settings = StorageSettings { egress: local(ca_file), ..StorageSettings::default() };
        Storage::with_resolver(settings, Arc::new(SequentialIds::default()), Arc::clone(self) as _).unwrap()
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        if self.here.contains(&host) {
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

/// Now, by the clock that the stores' own signatures are made by.
#[expect(clippy::disallowed_methods, reason = "the servers judge by the time of day")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(since.as_millis().try_into().unwrap())
}

/// Data of type `kind`, from JSON.
pub fn data(kind: CredentialType, json: &serde_json::Value) -> CredentialData {
    CredentialData::from_canonical_json(kind, json.to_string().as_bytes()).unwrap()
}

/// An order for something that lasts `seconds`.
pub fn order(seconds: i64) -> VendOrder {
    let now = now();
    VendOrder {
        organization: OrganizationId::from_uuid(Uuid::from_u128(5)),
        integration: Some(IntegrationId::from_uuid(Uuid::from_u128(6))),
        namespace: "imports/nightly".parse().unwrap(),
        activation: Some(ActivationId::from_uuid(Uuid::from_u128(7))),
        credential: CredentialId::from_uuid(Uuid::from_u128(8)),
        now,
        expires_at: now.plus_seconds(seconds),
    }
}

/// A report as lines: `check result reason bucket`.
pub fn lines(report: &CheckReport) -> Vec<String> {
    let line = |check: &vault_core::check::Check| {
        let reason = check.result.reason().map(|reason| format!(" {}", reason.as_str())).unwrap_or_default();
        let bucket = check.bucket.iter().map(|bucket| format!(" {bucket}")).collect::<String>();
        format!("{} {}{reason}{bucket}", check.kind.as_str(), check.result.as_str())
    };
    report.checks.iter().map(line).collect()
}

/// The lines of a check.
pub async fn check(storage: &Storage, data: &CredentialData, operations: &[StorageOperation]) -> Vec<String> {
    let request = ProbeRequest { short: None, operations: operations.to_vec(), until: None, now: now() };
    lines(&storage.check(data, request).await)
}

/// The lines of a check of something short-lived that was made from `data`.
pub async fn check_short(
    storage: &Storage,
    data: &CredentialData,
    short: ShortData,
    operations: &[StorageOperation],
) -> Vec<String> {
    let request = ProbeRequest { short: Some(short), operations: operations.to_vec(), until: None, now: now() };
    lines(&storage.check(data, request).await)
}
