//! Strategies for property tests, whose values are all valid.

use proptest::collection::{btree_map, hash_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use vault_core::credential::{CredentialData, CredentialType};
#[cfg(doc)]
use vault_core::federation::FederationIssuer;
use vault_core::field::FieldError;
use vault_core::id::IssuerId;
#[cfg(doc)]
use vault_core::identity::TrustRequest;
use vault_core::identity::{ClaimPattern, ClaimPointer, IssuerName, Trust, TrustId, Trusts};
use vault_core::json::{Limits, parse};
use vault_core::receiver::EventKinds;

/// Generates events to which a receiver of an organization, or of the instance, is subscribed.
pub fn event_kinds() -> impl Strategy<Value = EventKinds> {
    any::<bool>().prop_flat_map(|organization| {
        let all: Vec<_> = EventKinds::all(organization).iter().map(|kind| kind.as_str().to_owned()).collect();
        let names = proptest::sample::subsequence(all.clone(), 1..=all.len());
        names
            .prop_map(move |names| EventKinds::parse(&names, organization, "").unwrap_or(EventKinds::all(organization)))
    })
}

/// Generates trusts, up to the maximum number per integration. Each [`TrustRequest`] has its [`TrustId`], names its
/// [`IssuerName`], and has a [`ClaimPattern`] for each [`ClaimPointer`].
pub fn trusts() -> impl Strategy<Value = Trusts> {
    let claim = ("/[a-z_]{1,16}(/[a-z.]{1,16}|/a~1b)?", "[a-z]{1,8}:[a-z0-9-]{1,8}(/[a-z]{1,8}/\\*)?");
    let name = "[a-z0-9._-]{1,63}";
    let trust = (
        any::<u128>(),
        name,
        any::<[u8; 16]>().prop_map(IssuerId::from_bytes),
        btree_map(claim.0, claim.1, 0..=15),
        60..=86_400_u32,
    );
    let trust = trust.prop_map(|(id, issuer, issuer_id, mut claims, lifetime)| {
        claims.insert(ClaimPointer::SUBJECT.to_owned(), "repo:example/data:ref:refs/heads/main".to_owned());
        let claims = claims.into_iter().map(|(pointer, value)| {
            let pattern = ClaimPattern::parse(&value.into(), "").unwrap();
            (ClaimPointer::parse(&pointer, "").unwrap(), pattern)
        });
        let (id, issuer) = (TrustId::from_uuid(uuid::Uuid::from_u128(id)), IssuerName::parse(&issuer, "").unwrap());
        Trust { id, issuer, issuer_id, claims: claims.collect(), max_lifetime: lifetime.into() }
    });
    vec(trust, 0..=10).prop_map(|trusts| Trusts::new(trusts, "").unwrap())
}

/// Generates the text of a [`FederationIssuer`].
pub fn federation_issuer() -> impl Strategy<Value = String> {
    prop_oneof![
        "https://[a-z]{1,12}(\\.[a-z]{2,10}){0,3}",
        "https://[a-z0-9]{1,12}\\.example(/[A-Za-z0-9._~-]{1,20}[a-z]){1,3}",
        "https://vault\\.example\\.com/[a-z]{229}"
    ]
}

/// Generates secrets like those that stores issue and users choose.
pub const ANY_SECRET: &str = "[A-Za-z][A-Za-z0-9/+=_.~!@^&|,:-]{18,60}[A-Za-z0-9=]";
/// Secrets of characters that no other part of a generated credential has, so that none can appear by chance.
pub const UPPER_SECRET: &str = "[B-SU-Y]{20,60}";

/// A valid credential.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The type.
    pub kind: CredentialType,
    /// The fields, in the order of the text.
    pub members: Vec<(&'static str, Value)>,
}

impl Sample {
    /// Returns the data as JSON, with the fields in this order.
    pub fn text(&self) -> String {
        let members: Vec<_> = self.members.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Returns the value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.iter().find(|(member, _)| *member == name).map(|(_, value)| value)
    }

    /// Returns the credential with another value of `name`.
    #[must_use]
    pub fn with(&self, name: &'static str, value: Value) -> Self {
        let mut sample = self.clone();
        sample.members.retain(|(member, _)| *member != name);
        sample.members.push((name, value));
        sample
    }

    /// Returns the credential without `name`.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut sample = self.clone();
        sample.members.retain(|(member, _)| *member != name);
        sample
    }

    /// Parses the credential as the `/data` of a request.
    ///
    /// # Errors
    /// Returns the violations.
    pub fn parse(&self) -> Result<CredentialData, Vec<FieldError>> {
        read(self.kind, &self.text())
    }
}

/// Parses `text` as the `/data` of a request.
///
/// # Errors
/// Returns the violations.
pub fn read(kind: CredentialType, text: &str) -> Result<CredentialData, Vec<FieldError>> {
    let document = parse(text.as_bytes(), Limits::REQUEST).unwrap();
    assert!(document.duplicates.is_empty());
    CredentialData::parse(kind, document.root, "/data")
}

/// Generates a credential type with data of that type as JSON text, as a client may send it.
pub fn credential_json() -> impl Strategy<Value = (CredentialType, String)> {
    prop_oneof![4 => samples(ANY_SECRET).boxed(), 3 => keyless().boxed()]
        .prop_map(|sample| (sample.kind, sample.text()))
}

/// Generates a credential of any type whose secrets match `secret`, with some of its optional fields, in any order.
pub fn samples(secret: &'static str) -> impl Strategy<Value = Sample> {
    let complete = prop_oneof![s3(secret), azure_identity(secret), gcs(secret), direct_link(secret)];
    (complete, vec(any::<bool>(), 17))
        .prop_map(|(mut sample, keep)| {
            let mut keep = keep.into_iter();
            let required = |name: &str| sample.kind.fields().iter().any(|field| field.name == name && field.required);
            // The fields of an application are set together.
            let application = keep.next().unwrap();
            sample.members.retain(|(name, _)| match *name {
                "tenant_id" | "client_id" | "client_secret" => application,
                name => keep.next().unwrap() || required(name),
            });
            sample
        })
        .prop_flat_map(|sample| {
            let kind = sample.kind;
            Just(sample.members).prop_shuffle().prop_map(move |members| Sample { kind, members })
        })
}

fn s3(secret: &'static str) -> impl Strategy<Value = Sample> {
    let places = (
        "[a-z][a-z0-9.-]{2,40}[a-z0-9]",
        "[a-z]{2}-[a-z]{4,9}-[0-9]",
        "https?://[a-z]{1,20}(\\.[a-z]{2,10})?(:[1-9][0-9]{3})?(/[a-z]{1,8})?",
        prefixes(),
        any::<bool>(),
        "arn:aws:iam::[0-9]{12}:role/[a-z]{1,20}",
        "https://sts\\.[a-z]{1,20}\\.example",
        "alias/[a-z]{1,20}",
    );
    ("[0-9a-z]{1,30}", secret, places, secret, secret).prop_map(|(id, key, places, token, external)| {
        let (bucket, region, endpoint, prefix, path_style, role, sts_endpoint, kms_key) = places;
        let members = vec![
            ("access_key_id", json!(id)),
            ("secret_access_key", json!(key)),
            ("bucket", json!(bucket)),
            ("region", json!(region)),
            ("endpoint", json!(endpoint)),
            ("sts_endpoint", json!(sts_endpoint)),
            ("key_prefix", json!(prefix)),
            ("path_style_access", json!(path_style)),
            ("role_arn", json!(role)),
            ("sse_kms_key_id", json!(kms_key)),
            ("session_token", json!(token)),
            ("external_id", json!(external)),
        ];
        Sample { kind: CredentialType::S3, members }
    })
}

fn azure_identity(secret: &'static str) -> impl Strategy<Value = Sample> {
    let guid = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}";
    let tenant = prop_oneof![guid, "[a-z]{3,12}\\.onmicrosoft\\.com"];
    let connection = ("[a-z0-9]{3,24}", "([B-SU-Y]{4}){5,22}", any::<bool>()).prop_map(|(name, key, with_key)| {
        if with_key {
            format!(
                "DefaultEndpointsProtocol=https;AccountName={name};AccountKey={key};EndpointSuffix=core.windows.net"
            )
        } else {
            format!("BlobEndpoint=https://{name}.blob.core.windows.net/;SharedAccessSignature=sv=2024-01-01&sig={key}")
        }
    });
    (tenant, guid, secret, connection, "\\$?[a-z][a-z0-9-]{1,60}[a-z0-9]", prefixes()).prop_map(
        |(tenant, client, secret, connection, container, prefix)| {
            let members = vec![
                ("tenant_id", json!(tenant)),
                ("client_id", json!(client)),
                ("client_secret", json!(secret)),
                ("connection_string", json!(connection)),
                ("container", json!(container)),
                ("key_prefix", json!(prefix)),
            ];
            Sample { kind: CredentialType::AzureIdentity, members }
        },
    )
}

/// Generates Google key files, with some unknown fields.
pub fn key_files() -> impl Strategy<Value = Value> {
    let later =
        prop_oneof![Just(json!(null)), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from), {
            "[ -~]{0,20}".prop_map(Value::from)
        }];
    let later = prop_oneof![later.clone(), vec(later, 0..4).prop_map(Value::from)];
    (
        "[a-z][a-z0-9-]{4,28}[a-z0-9]",
        "[0-9a-f]{40}",
        "[a-z][a-z0-9-]{4,28}",
        vec("[B-SU-Y]{64}", 1..20),
        any::<bool>(),
        { btree_map("later_[a-z]{1,8}", later, 0..4) },
    )
        .prop_map(|(project, id, name, lines, rsa, later)| {
            let label = if rsa { "RSA PRIVATE KEY" } else { "PRIVATE KEY" };
            let pem = format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"));
            let mut file = json!({
                "type": "service_account",
                "project_id": project,
                "private_key_id": id,
                "private_key": pem,
                "client_email": format!("{name}@{project}.iam.gserviceaccount.com"),
                "client_id": "100000000000000000001",
                "token_uri": "https://oauth2.googleapis.com/token",
            });
            file.as_object_mut().unwrap().extend(later);
            file
        })
}

fn gcs(_: &'static str) -> impl Strategy<Value = Sample> {
    (key_files(), any::<bool>(), "[a-z][a-z0-9._-]{1,60}[a-z0-9]", prefixes()).prop_map(
        |(file, as_text, bucket, prefix)| {
            let file = if as_text { json!(serde_json::to_string_pretty(&file).unwrap() + "\n") } else { file };
            let members = vec![("service_account_key", file), ("bucket", json!(bucket)), ("key_prefix", json!(prefix))];
            Sample { kind: CredentialType::Gcs, members }
        },
    )
}

fn direct_link(secret: &'static str) -> impl Strategy<Value = Sample> {
    let host = "[a-z]{1,20}\\.[a-z]{2,10}(:[1-9][0-9]{3})?";
    let user = proptest::option::of(UPPER_SECRET);
    let expiry = prop_oneof![
        Just(""),
        Just("&X-Amz-Date=20261120T110000Z&X-Amz-Expires=3600"),
        Just("&Expires=1795176000&Signature=x"),
        Just("&se=2026-11-20T12%3A00%3A00Z"),
    ];
    let headers = btree_map("x-[a-z]{1,12}", secret, 1..5);
    (host, user, UPPER_SECRET, UPPER_SECRET, expiry, headers).prop_map(|(host, user, path, sig, expiry, headers)| {
        let user = user.map(|user| format!("user:{user}@")).unwrap_or_default();
        let members =
            vec![("url", json!(format!("https://{user}{host}/{path}?sig={sig}{expiry}"))), ("headers", json!(headers))];
        Sample { kind: CredentialType::DirectLink, members }
    })
}

fn prefixes() -> impl Strategy<Value = String> {
    "[a-zäöü0-9]{1,12}(/[a-z0-9 ._-]{1,12}){0,3}/"
}

/// Generates a keyless credential of any type.
fn keyless() -> impl Strategy<Value = Sample> {
    const NAME: &str = "[a-z][a-z0-9-]{4,20}[a-z0-9]";
    let buckets =
        || prop_oneof![3 => NAME.prop_map(Value::from), 1 => hash_set(NAME, 2..4).prop_map(|names| json!(names))];
    let endpoint = prop_oneof![
        "https://s3\\.(eu|us)-(west|east)-[1-9]\\.amazonaws\\.com",
        "https://s3\\.[a-z]{3,9}\\.example(:[1-9][0-9]{3})?"
    ];
    let s3 = ("arn:aws:iam::[0-9]{12}:role/[a-z]{1,20}", buckets(), option::of(endpoint), option::of(any::<bool>()))
        .prop_map(|(role, bucket, endpoint, path_style)| {
            let mut members = vec![("role_arn", json!(role)), ("bucket", bucket)];
            members.extend(endpoint.map(|endpoint| ("endpoint", json!(endpoint))));
            members.extend(path_style.map(|flag| ("path_style_access", json!(flag))));
            Sample { kind: CredentialType::S3Federated, members }
        });
    let guid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    let cloud = option::of(select(vec!["public", "china", "us-government"]));
    let azure = (guid, guid, "[a-z0-9]{3,24}", NAME, cloud).prop_map(|(tenant, client, account, container, cloud)| {
        let mut members = vec![("tenant_id", json!(tenant)), ("client_id", json!(client))];
        members.extend([("account_name", json!(account)), ("container", json!(container))]);
        members.extend(cloud.map(|cloud| ("cloud", json!(cloud))));
        Sample { kind: CredentialType::AzureFederated, members }
    });
    let provider = "//iam\\.googleapis\\.com/projects/[1-9][0-9]{11}/locations/global/workloadIdentityPools/[a-z0-9-]{4,32}/providers/[a-z0-9-]{4,32}";
    let account = "[a-z][a-z0-9-]{4,20}[a-z0-9]@[a-z][a-z0-9-]{4,20}[a-z0-9]\\.iam\\.gserviceaccount\\.com";
    let google =
        (provider, account, buckets(), option::of(prefixes())).prop_map(|(provider, account, bucket, prefix)| {
            let mut members =
                vec![("provider", json!(provider)), ("service_account", json!(account)), ("bucket", bucket)];
            members.extend(prefix.map(|prefix| ("key_prefix", json!(prefix))));
            Sample { kind: CredentialType::GcsFederated, members }
        });
    prop_oneof![s3, azure, google]
}
