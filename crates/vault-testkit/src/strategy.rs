//! Strategies for property tests, whose values are all valid.
//!
//! Each strategy also generates values at the limits. Invalid values, each with the expected error, are in [`refused`].
//! Every type of `vault-core` that is parsed from text or from a number within bounds has a strategy here.

pub mod refused;

use crate::clock::SeededEntropy;
use crate::storage::short;
use proptest::collection::vec;
use proptest::collection::{btree_map, hash_set};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::string::string_regex;
use secrecy::{ExposeSecret, SecretString};
use vault_core::account::AccountState;
use vault_core::activation::{ActivationTtl, Purpose, VendMode, VendRule, Vended, VendedForm};
use vault_core::audit::AuditAction;
use vault_core::check::StorageOperation;
use vault_core::credential::{
    CredentialData, CredentialType, Description, HealthState, Information, LabelFilter, LabelPatch, Labels, Metadata,
};
use vault_core::cursor::ListFilter;
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::enrolment::EnrolmentCode;
#[cfg(doc)]
use vault_core::federation::FederationIssuer;
use vault_core::id::*;
#[cfg(doc)]
use vault_core::identity::TrustRequest;
use vault_core::identity::{ClaimPattern, ClaimPointer, IssuerName, Trust, TrustId, Trusts};
use vault_core::integration::{
    IntegrationName, IntegrationState, IntegrationToken, ManagedBy, NamespacePattern, NamespacePatterns, Overlap,
};
use vault_core::json::{self, Document, Limits};
use vault_core::namespace::Namespace;
use vault_core::network::Network;
use vault_core::notice::NoticeCode;
use vault_core::organization::{OrganizationName, OrganizationState};
use vault_core::receiver::{Channel, DeliveryFailure, DeliveryState, EventKind, EventKinds, ReceiverState};
use vault_core::role::Role;
use vault_core::sealed::{InstanceKeyPurpose, KeyState};
use vault_core::time::{Timestamp, Ttl};
use vault_core::usecase::IdempotencyKey;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $type:ident = $all:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name() -> impl Strategy<Value = $type> {
            select($all.to_vec())
        }
    )*};
}

names! {
    /// All actions of the audit log.
    audit_action: AuditAction = AuditAction::ALL;
    /// All roles.
    role: Role = Role::ALL;
    /// All credential types.
    credential_type: CredentialType = CredentialType::ALL;
    /// All health states.
    health_state: HealthState = HealthState::ALL;
    /// All operations that a check tries.
    storage_operation: StorageOperation = StorageOperation::ALL;
    /// All vend modes.
    vend_mode: VendMode = VendMode::ALL;
    /// All forms in which a credential is returned.
    vended_form: VendedForm = [VendedForm::Raw, VendedForm::Short];
    /// All vend rules.
    vend_rule: VendRule = [VendRule::Any, VendRule::Short];
    /// All account states.
    account_state: AccountState =
        [AccountState::Active, AccountState::Disabled, AccountState::ReEnrolling, AccountState::Invited];
    /// All organization states.
    organization_state: OrganizationState = [OrganizationState::Active, OrganizationState::Disabled];
    /// All integration states.
    integration_state: IntegrationState = [IntegrationState::Active, IntegrationState::Disabled];
    /// All stored notices, except those about colleagues.
    notice_code: NoticeCode = NoticeCode::STORED;
    /// All purposes of an instance-wide key.
    instance_key_purpose: InstanceKeyPurpose = InstanceKeyPurpose::ALL;
    /// All channels of receivers.
    channel: Channel = [Channel::Webhook, Channel::Email];
    /// All receiver states.
    receiver_state: ReceiverState = [ReceiverState::Active, ReceiverState::Disabled];
    /// All delivery states.
    delivery_state: DeliveryState = [DeliveryState::Waiting, DeliveryState::Delivered, DeliveryState::Failed];
    /// All reasons for a failed delivery.
    delivery_failure: DeliveryFailure = DeliveryFailure::ALL;
    /// All events.
    event_kind: EventKind = EventKind::ALL;
    /// All key states.
    key_state: KeyState = [KeyState::Active, KeyState::Retiring];
}

macro_rules! ids {
    ($($name:ident: $type:ident;)*) => {$(
        #[doc = concat!("Any [`", stringify!($type), "`].")]
        pub fn $name() -> impl Strategy<Value = $type> {
            any::<[u8; 16]>().prop_map($type::from_bytes)
        }
    )*};
}

ids! {
    instance_id: InstanceId;
    organization_id: OrganizationId;
    account_id: AccountId;
    session_id: SessionId;
    credential_id: CredentialId;
    version_id: VersionId;
    audit_id: AuditId;
    key_id: KeyId;
    seed_id: SeedId;
    password_id: PasswordId;
    integration_id: IntegrationId;
    issuer_id: IssuerId;
    activation_id: ActivationId;
    receiver_id: ReceiverId;
    event_id: EventId;
}

/// Generates events to which a receiver of an organization, or of the instance, is subscribed.
pub fn event_kinds() -> impl Strategy<Value = EventKinds> {
    any::<bool>().prop_flat_map(|organization| {
        let all: Vec<_> = EventKinds::all(organization).iter().map(|kind| kind.as_str().to_owned()).collect();
        let names = proptest::sample::subsequence(all.clone(), 1..=all.len());
        names
            .prop_map(move |names| EventKinds::parse(&names, organization, "").unwrap_or(EventKinds::all(organization)))
    })
}

/// Generates e-mail addresses in canonical form.
pub fn email() -> impl Strategy<Value = EmailAddress> {
    let local =
        prop_oneof!["[a-z0-9]{1,12}", "[a-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}", "[a-z]{1,8}(\\.[a-z0-9+]{1,8}){1,3}"];
    let domain = prop_oneof!["[a-z]{1,12}\\.example", "([a-z][a-z0-9]{0,9}\\.){1,4}(example|test)", "bücher\\.example"];
    (local, domain).prop_map(|(local, domain)| EmailAddress::parse(&format!("{local}@{domain}")).unwrap())
}

/// Generates namespaces, from one character to the maximum length.
pub fn namespace() -> impl Strategy<Value = Namespace> {
    prop_oneof!["[A-Za-z0-9]", "[A-Za-z0-9][A-Za-z0-9._/-]{0,30}", "[A-Za-z0-9][A-Za-z0-9._/-]{127}"]
        .prop_map(|text| Namespace::parse(&text, "").unwrap())
}

/// Generates names of organizations, including names that are difficult for databases.
pub fn organization_name() -> impl Strategy<Value = OrganizationName> {
    prop_oneof!["[A-Za-z0-9]{1,100}", "[A-Z][a-z]{1,20} (& Co|AG|'; --|%|_)", "[äöüßÄÖÜΩж界😀]{1,100}"]
        .prop_map(|text| OrganizationName::parse(&text).unwrap())
}

/// Generates digests.
pub fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest::from_bytes)
}

/// Generates networks of both address families.
pub fn network() -> impl Strategy<Value = Network> {
    prop_oneof![any::<[u8; 3]>().prop_map(Network::V4), any::<[u8; 7]>().prop_map(Network::V6)]
}

/// Generates times between 2000 and 2100.
pub fn timestamp() -> impl Strategy<Value = Timestamp> {
    (946_684_800_000_i64..4_102_444_800_000).prop_map(Timestamp::from_millis)
}

/// Generates all combinations of list filters.
pub fn list_filter() -> impl Strategy<Value = ListFilter> {
    let labels = vec(label_filter(), 0..3);
    (
        option::of(namespace()),
        option::of(credential_type()),
        labels,
        option::of(health_state()),
        option::of(timestamp()),
    )
        .prop_map(|(namespace, kind, labels, health, expires_before)| ListFilter {
            namespace,
            kind,
            labels,
            health,
            expires_before,
        })
}

/// Generates a credential type with data of that type as JSON text, as a client may send it.
pub fn credential_json() -> impl Strategy<Value = (CredentialType, String)> {
    credential_members().prop_map(|(kind, members)| (kind, object(&members)))
}

/// Fields of a JSON object: names, and values as JSON.
type Members = Vec<(&'static str, String)>;

fn credential_members() -> impl Strategy<Value = (CredentialType, Members)> {
    credential_type().prop_flat_map(|kind| (Just(kind), data_members(kind)))
}

fn object<N: AsRef<str>>(members: &[(N, String)]) -> String {
    let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{}\":{value}", name.as_ref())).collect();
    format!("{{{}}}", members.join(","))
}

/// Returns text as JSON. The text must not contain characters that JSON escapes.
fn quoted(text: impl AsRef<str>) -> String {
    format!("\"{}\"", text.as_ref())
}

/// Generates data of each credential type.
pub fn credential_data() -> impl Strategy<Value = CredentialData> {
    credential_json().prop_map(|(kind, json)| CredentialData::from_canonical_json(kind, json.as_bytes()).unwrap())
}

/// Generates namespace patterns: one namespace, or all below it.
pub fn namespace_pattern() -> impl Strategy<Value = NamespacePattern> {
    (namespace(), any::<bool>()).prop_map(|(namespace, below)| {
        if below { NamespacePattern::Below(namespace) } else { NamespacePattern::Exact(namespace) }
    })
}

/// Generates 1 to 8 namespace patterns, rarely the maximum number.
pub fn namespace_patterns() -> impl Strategy<Value = NamespacePatterns> {
    let most = NamespacePatterns::MAX;
    prop_oneof![15 => vec(namespace_pattern(), 1..=8), 1 => vec(namespace_pattern(), most..=most)].prop_map(
        |patterns| {
            let texts: Vec<_> = patterns.iter().map(ToString::to_string).collect();
            NamespacePatterns::parse(&texts, "").unwrap()
        },
    )
}

/// Generates names of integrations, including names that are difficult for databases.
pub fn integration_name() -> impl Strategy<Value = IntegrationName> {
    prop_oneof!["[A-Za-z0-9]{1,64}", "[A-Z][a-z]{1,20} (& Co|AG|'; --|%|_)", "[äöüßÄÖÜΩж界😀]{1,64}"]
        .prop_map(|text| IntegrationName::parse(&text, "").unwrap())
}

/// Generates names of document sets.
pub fn managed_by() -> impl Strategy<Value = ManagedBy> {
    "[A-Za-z0-9._-]{1,63}".prop_map(|text| ManagedBy::parse(&text, "").unwrap())
}

/// Generates trusts, up to the maximum number per integration. Each [`TrustRequest`] has its [`TrustId`], names its
/// [`IssuerName`], and has a [`ClaimPattern`] for each [`ClaimPointer`].
pub fn trusts() -> impl Strategy<Value = Trusts> {
    let claim = ("/[a-z_]{1,16}(/[a-z.]{1,16}|/a~1b)?", "[a-z]{1,8}:[a-z0-9-]{1,8}(/[a-z]{1,8}/\\*)?");
    let name = "[a-z0-9._-]{1,63}";
    let trust = (any::<u128>(), name, issuer_id(), btree_map(claim.0, claim.1, 0..=15), 60..=86_400_u32);
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

/// Generates returned credentials: each type in each form that it has.
pub fn vended() -> impl Strategy<Value = Vended> {
    (credential_data(), option::of(timestamp())).prop_map(|(data, expires_at)| match (short(&data), expires_at) {
        (Some(data), Some(expires_at)) => Vended::Short { data, expires_at },
        _ => Vended::Raw(data),
    })
}

/// Generates text of 1 to `most` printable characters.
fn printable(most: usize) -> impl Strategy<Value = String> {
    let middle = most / 2;
    prop_oneof![
        "[A-Za-z0-9]",
        string_regex(&format!("[A-Za-z0-9][ -~]{{0,{middle}}}[A-Za-z0-9]")).unwrap(),
        string_regex(&format!("[äöüßÄÖÜΩж界😀]{{{most}}}")).unwrap(),
    ]
}

/// Generates purposes of activations.
pub fn purpose() -> impl Strategy<Value = Purpose> {
    printable(Purpose::MAX_LENGTH).prop_map(|text| Purpose::parse(&text, "").unwrap())
}

/// Generates descriptions of credentials.
pub fn description() -> impl Strategy<Value = Description> {
    printable(Description::MAX_LENGTH).prop_map(|text| Description::parse(&text, "").unwrap())
}

const LABEL: &str = "[a-z0-9._/-]{1,63}";
const LABEL_VALUE: &str = "[A-Za-z0-9._-]{0,63}";

/// Generates labels, from none to the maximum number.
pub fn labels() -> impl Strategy<Value = Labels> {
    prop_oneof![btree_map("[a-c]{1,2}", "[A-C]{0,2}", 0..4), btree_map(LABEL, LABEL_VALUE, 0..=Labels::MAX)].prop_map(
        |labels| {
            let labels: Vec<_> = labels.into_iter().map(|(name, value)| (name, quoted(value))).collect();
            Labels::parse(parsed(&object(&labels)).root, "").unwrap()
        },
    )
}

/// Generates merge patches of labels.
pub fn label_patch() -> impl Strategy<Value = LabelPatch> {
    let value = prop_oneof![3 => LABEL_VALUE.prop_map(quoted), 1 => Just("null".to_owned())];
    let some = btree_map(prop_oneof!["[a-c]{1,2}", LABEL], value, 0..8)
        .prop_map(|changes| object(&changes.into_iter().collect::<Vec<_>>()));
    prop_oneof![9 => some, 1 => Just("null".to_owned())]
        .prop_map(|text| LabelPatch::parse(parsed(&text).root, "").unwrap())
}

/// Generates label filters of lists.
pub fn label_filter() -> impl Strategy<Value = LabelFilter> {
    prop_oneof![("[a-c]{1,2}", "[A-C]{0,2}"), (LABEL, LABEL_VALUE)]
        .prop_map(|(name, value)| LabelFilter::parse(&format!("{name}:{value}"), "").unwrap())
}

/// Generates metadata of credentials.
pub fn metadata() -> impl Strategy<Value = Metadata> {
    (labels(), option::of(description()), btree_map(1_i64..6, timestamp(), 0..3)).prop_map(
        |(labels, description, expires)| {
            let mut metadata = Metadata::default();
            metadata.labels = labels;
            metadata.description = description;
            expires.into_iter().for_each(|(version, at)| metadata.set_expires_at(version, Some(at)));
            metadata
        },
    )
}

/// Generates stored information of credentials.
pub fn information() -> impl Strategy<Value = Information> {
    btree_map("[a-z_]{1,12}", "[A-Za-z0-9 ]{0,20}".prop_map(quoted), 0..5)
        .prop_map(|members| Information::from_json(object(&members.into_iter().collect::<Vec<_>>())).unwrap())
}

/// Generates the text of a [`FederationIssuer`].
pub fn federation_issuer() -> impl Strategy<Value = String> {
    prop_oneof![
        "https://[a-z]{1,12}(\\.[a-z]{2,10}){0,3}",
        "https://[a-z0-9]{1,12}\\.example(/[A-Za-z0-9._~-]{1,20}[a-z]){1,3}",
        "https://vault\\.example\\.com/[a-z]{229}"
    ]
}

/// Generates idempotency keys.
pub fn idempotency_key() -> impl Strategy<Value = IdempotencyKey> {
    prop_oneof!["[!-~]", "[!-~]{1,40}", "[!-~]{255}"].prop_map(|text| IdempotencyKey::parse(&text).unwrap())
}

/// Generates lifetimes of access tokens.
pub fn ttl() -> impl Strategy<Value = Ttl> {
    prop_oneof![Just(Ttl::MIN), Just(Ttl::MAX), Ttl::MIN..=Ttl::MAX]
        .prop_map(|seconds| Ttl::parse(Some(seconds.into()), Ttl::MAX).unwrap())
}

/// Generates lifetimes of activations.
pub fn activation_ttl() -> impl Strategy<Value = ActivationTtl> {
    prop_oneof![Just(ActivationTtl::MIN), Just(ActivationTtl::MAX), ActivationTtl::MIN..=ActivationTtl::MAX]
        .prop_map(|seconds| ActivationTtl::parse(Some(seconds.into())).unwrap())
}

/// Generates overlaps: how long a previous token remains valid.
pub fn overlap() -> impl Strategy<Value = Overlap> {
    let most = vault_core::integration::MAX_OVERLAP_SECONDS;
    prop_oneof![Just(0), Just(most), 0..=most].prop_map(|seconds| Overlap::parse(Some(seconds), "").unwrap())
}

/// Generates the text of an [`IntegrationToken`].
pub fn integration_token() -> impl Strategy<Value = String> {
    let generate = |seed| IntegrationToken::generate(&SeededEntropy::seeded(seed)).unwrap();
    any::<u64>().prop_map(move |seed| generate(seed).text().expose_secret().to_owned())
}

/// Generates the text of an [`EnrolmentCode`].
pub fn enrolment_code() -> impl Strategy<Value = String> {
    let generate = |seed| EnrolmentCode::generate(&SeededEntropy::seeded(seed)).unwrap();
    any::<u64>().prop_map(move |seed| generate(seed).text().expose_secret().to_owned())
}

/// Generates passwords that are valid for any account: none is common, and none starts like an address of [`email`] or
/// a name of [`organization_name`].
pub fn password() -> impl Strategy<Value = SecretString> {
    prop_oneof!["~\\PC{7}", "~[ -~]{7,40}", "~[a-z]{1023}", "~[пароль 🔐]{7,60}"].prop_map(SecretString::from)
}

fn parsed(text: &str) -> Document {
    json::parse(text.as_bytes(), Limits::STORED).unwrap()
}

fn data_members(kind: CredentialType) -> BoxedStrategy<Members> {
    match kind {
        CredentialType::S3 => s3().boxed(),
        CredentialType::AzureIdentity => azure_identity().boxed(),
        CredentialType::Gcs => gcs().boxed(),
        CredentialType::DirectLink => direct_link().boxed(),
        CredentialType::S3Federated => s3_federated().boxed(),
        CredentialType::AzureFederated => azure_federated().boxed(),
        CredentialType::GcsFederated => gcs_federated().boxed(),
    }
}

const BUCKET: &str = "[a-z0-9][a-z0-9-]{1,30}[a-z0-9]";
/// Random enough that no rule treats it as a placeholder.
const SECRET: &str = "k[0-9]{2}[A-Za-z0-9/+]{30,60}z";

/// Generates a bucket, or a list of several, as canonical JSON.
fn buckets() -> impl Strategy<Value = String> {
    let several = hash_set(BUCKET, 2..4).prop_map(|names| {
        let names: Vec<String> = names.into_iter().map(quoted).collect();
        format!("[{}]", names.join(","))
    });
    prop_oneof![3 => BUCKET.prop_map(quoted), 1 => several]
}

fn s3_federated() -> impl Strategy<Value = Members> {
    let optional = (
        option::of("(eu|us)-(west|east)-[1-9]"),
        option::of(prop_oneof![
            "https://s3\\.(eu|us)-(west|east)-[1-9]\\.amazonaws\\.com",
            "https://s3\\.[a-z]{3,9}\\.example(:[1-9][0-9]{3})?"
        ]),
        option::of("backup/[a-z0-9]{1,20}"),
        option::of(any::<bool>()),
    );
    ("arn:aws:iam::[0-9]{12}:role/[a-z]{1,20}", buckets(), optional).prop_map(|(role, bucket, optional)| {
        let (region, endpoint, prefix, path_style) = optional;
        let text = |name, value: Option<String>| value.map(|value| (name, quoted(value)));
        [("role_arn", quoted(role)), ("bucket", bucket)]
            .into_iter()
            .chain(text("region", region))
            .chain(text("endpoint", endpoint))
            .chain(text("key_prefix", prefix))
            .chain(path_style.map(|flag| ("path_style_access", flag.to_string())))
            .collect()
    })
}

fn azure_federated() -> impl Strategy<Value = Members> {
    let guid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    let cloud = option::of(select(vec!["public", "china", "us-government"]));
    (guid, guid, "[a-z0-9]{3,24}", BUCKET, option::of("in/[a-z0-9]{1,20}"), cloud).prop_map(
        |(tenant, client, account, container, prefix, cloud)| {
            let text = |name, value: Option<String>| value.map(|value| (name, value));
            [("tenant_id", tenant), ("client_id", client), ("account_name", account), ("container", container)]
                .into_iter()
                .chain(text("key_prefix", prefix))
                .chain(text("cloud", cloud.map(str::to_owned)))
                .map(|(name, value)| (name, quoted(value)))
                .collect()
        },
    )
}

fn gcs_federated() -> impl Strategy<Value = Members> {
    let provider = "//iam\\.googleapis\\.com/projects/[1-9][0-9]{11}/locations/global/workloadIdentityPools/[a-z0-9-]{4,32}/providers/[a-z0-9-]{4,32}";
    let account = "[a-z][a-z0-9-]{4,20}[a-z0-9]@[a-z][a-z0-9-]{4,20}[a-z0-9]\\.iam\\.gserviceaccount\\.com";
    (provider, account, buckets(), option::of("in/[a-z0-9]{1,20}")).prop_map(|(provider, account, bucket, prefix)| {
        [("provider", quoted(provider)), ("service_account", quoted(account)), ("bucket", bucket)]
            .into_iter()
            .chain(prefix.map(|prefix| ("key_prefix", quoted(prefix))))
            .collect()
    })
}

fn s3() -> impl Strategy<Value = Members> {
    let optional = (
        option::of("(eu|us)-(west|east)-[1-9]"),
        option::of("https://s3\\.[a-z]{3,9}\\.example(:[1-9][0-9]{3})?"),
        option::of("backup/[a-z0-9]{1,20}"),
        option::of(any::<bool>()),
        option::of(SECRET),
    );
    ("AKIA[A-Z2-7]{16}", SECRET, buckets(), optional).prop_map(|(id, secret, bucket, optional)| {
        let (region, endpoint, prefix, path_style, token) = optional;
        let mut members =
            vec![("access_key_id", quoted(id)), ("secret_access_key", quoted(secret)), ("bucket", bucket)];
        let texts = [("region", region), ("endpoint", endpoint), ("key_prefix", prefix), ("session_token", token)];
        members.extend(texts.into_iter().filter_map(|(name, text)| text.map(|text| (name, quoted(text)))));
        members.extend(path_style.map(|flag| ("path_style_access", flag.to_string())));
        members
    })
}

fn azure_identity() -> impl Strategy<Value = Members> {
    const GUID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
    const SUFFIX: &str = "core\\.(windows\\.net|chinacloudapi\\.cn|usgovcloudapi\\.net)";
    let application = option::weighted(0.8, (GUID, GUID, SECRET));
    (application, "[a-z][a-z0-9]{2,22}", "[A-Za-z0-9+/]{86}==", SUFFIX, option::of(BUCKET)).prop_map(
        |(application, account, key, suffix, container)| {
            let connection = format!(
                "DefaultEndpointsProtocol=https;AccountName={account};AccountKey={key};EndpointSuffix={suffix}"
            );
            let mut members = vec![("connection_string", quoted(connection))];
            if let Some((tenant, client, secret)) = application {
                members.extend([
                    ("tenant_id", quoted(tenant)),
                    ("client_id", quoted(client)),
                    ("client_secret", quoted(secret)),
                ]);
            }
            members.extend(container.map(|container| ("container", quoted(container))));
            members
        },
    )
}

fn gcs() -> impl Strategy<Value = Members> {
    let name = "[a-z][a-z0-9-]{4,20}[a-z0-9]";
    ("[a-z][a-z0-9]{4,20}", name, "[0-9a-f]{40}", vec("[A-Za-z0-9+/]{64}", 2..12), buckets()).prop_map(
        |(project, account, key_id, lines, bucket)| {
            let pem = format!("-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n", lines.join("\\n"));
            let email = format!("{account}@{project}.iam.gserviceaccount.com");
            let file = format!(
                r#"{{"type":"service_account","project_id":"{project}","private_key_id":"{key_id}","private_key":"{pem}","client_email":"{email}","client_id":"118029847561029384756","token_uri":"https://oauth2.googleapis.com/token"}}"#
            );
            vec![("service_account_key", file), ("bucket", bucket)]
        },
    )
}

fn direct_link() -> impl Strategy<Value = Members> {
    let url = "https://[a-z]{3,12}\\.example/[a-z0-9]{1,20}/[a-z0-9]{1,20}\\.bin\\?sig=q[0-9]{2}[A-Za-z0-9]{20,40}";
    (url, option::of("Bearer w[0-9]{2}[A-Za-z0-9]{20,40}")).prop_map(|(url, authorization)| {
        let mut members = vec![("url", quoted(url))];
        members.extend(authorization.map(|value| ("headers", format!(r#"{{"Authorization":"{value}"}}"#))));
        members
    })
}

/// One step in a history of a vault. Numbers select accounts, sessions, credentials and so on, modulo the number of
/// existing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum VaultCommand {
    /// Advances the clock by milliseconds; may be negative.
    Pass(i64),
    /// Reserves an attempt for an account from a network.
    Reserve(usize, usize),
    /// Reserves an attempt for an unknown address.
    ReserveUnknown,
    /// Records a wrong passcode of an account.
    WrongPasscode(usize),
    /// Logs an account in with a time step, counted from the first, from a network.
    LogInByStep(usize, i64, usize),
    /// Logs an account in with a recovery code from a network.
    LogInByRecoveryCode(usize, usize, usize),
    /// Ends a session.
    EndSession(usize),
    /// Sets an account's role and whether it is active.
    Grant(usize, Role, bool),
    /// Requires re-enrolment of an account, and completes it immediately if the flag is set.
    ReEnrol(usize, bool),
    /// Unlocks an account.
    Unlock(usize),
    /// Enables or disables the organization.
    SetOrganization(bool),
    /// Saves one of a few bodies in a namespace, as a session or an embedder, with an idempotency key or none.
    Save(usize, usize, Option<usize>, usize),
    /// Lists a page of one or all namespaces, as a session or an embedder, after a credential or from the beginning.
    List(usize, Option<usize>, Option<usize>, usize),
    /// Shows a credential, as a session or an embedder.
    Show(usize, usize),
    /// Deletes a credential, as a session or an embedder.
    Delete(usize, usize),
    /// Replaces the organization's key.
    ReplaceKey,
    /// Reserves uses of the first key, starting at a multiple of the block.
    TakeUses(i64),
    /// Runs a command about integrations, as a session or the operator.
    Activator(usize, ActivatorCommand),
}

/// One step in a history of integrations, with numbers as in [`VaultCommand`]. The tokens of an integration represent
/// its state when they were issued or when it was last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum ActivatorCommand {
    /// Creates an integration with a name.
    Create(usize),
    /// Rotates an integration's token.
    Rotate(usize),
    /// Enables or disables an integration.
    SetState(usize, bool),
    /// Deletes an integration.
    Delete(usize),
    /// Freezes or unfreezes a namespace.
    Freeze(usize, bool),
    /// Reads a namespace's credentials with a token, for an activation or a dry run.
    Take(usize, usize, bool),
    /// Lists the active activations with a token.
    List(usize),
    /// Ends an activation with a token.
    End(usize, usize),
    /// Requests the credentials of an activation with a token.
    IssueCredentials(usize, usize),
    /// Renews an activation with a token.
    Renew(usize, usize),
    /// Aborts an activation.
    Abort(usize),
}

/// Generates commands in proportions that keep long histories interesting.
pub(crate) fn vault_command() -> impl Strategy<Value = VaultCommand> {
    use VaultCommand as Command;
    let few = || 0_usize..4;
    let many = || 0_usize..64;
    prop_oneof![
        3 => (-5_000_i64..120_000).prop_map(Command::Pass),
        1 => (3_000_000_i64..100_000_000).prop_map(Command::Pass),
        // Many attempts for few accounts, so that lockouts occur.
        12 => (0_usize..2, few()).prop_map(|(account, network)| Command::Reserve(account, network)),
        1 => Just(Command::ReserveUnknown),
        2 => few().prop_map(Command::WrongPasscode),
        6 => (few(), 0_i64..200, few()).prop_map(|(account, step, from)| Command::LogInByStep(account, step, from)),
        2 => (few(), few(), few()).prop_map(|(account, code, from)| Command::LogInByRecoveryCode(account, code, from)),
        2 => many().prop_map(Command::EndSession),
        1 => (few(), role(), proptest::bool::weighted(0.8)).prop_map(|(who, role, on)| Command::Grant(who, role, on)),
        1 => (few(), any::<bool>()).prop_map(|(account, confirmed)| Command::ReEnrol(account, confirmed)),
        1 => few().prop_map(Command::Unlock),
        1 => proptest::bool::weighted(0.8).prop_map(Command::SetOrganization),
        12 => (many(), few(), option::of(few()), few())
            .prop_map(|(who, namespace, key, body)| Command::Save(who, namespace, key, body)),
        5 => (many(), option::of(few()), option::of(many()), 1_usize..6)
            .prop_map(|(who, namespace, after, limit)| Command::List(who, namespace, after, limit)),
        2 => (many(), many()).prop_map(|(who, credential)| Command::Show(who, credential)),
        4 => (many(), many()).prop_map(|(who, credential)| Command::Delete(who, credential)),
        1 => Just(Command::ReplaceKey),
        1 => (0_i64..3).prop_map(Command::TakeUses),
        24 => (many(), activator_command()).prop_map(|(who, command)| Command::Activator(who, command)),
    ]
}

fn activator_command() -> impl Strategy<Value = ActivatorCommand> {
    use ActivatorCommand as Command;
    let few = || 0_usize..4;
    let many = || 0_usize..64;
    let mostly = || proptest::bool::weighted(0.8);
    prop_oneof![
        4 => few().prop_map(Command::Create),
        2 => many().prop_map(Command::Rotate),
        1 => (many(), mostly()).prop_map(|(which, active)| Command::SetState(which, active)),
        1 => many().prop_map(Command::Delete),
        2 => (few(), proptest::bool::weighted(0.3)).prop_map(|(namespace, frozen)| Command::Freeze(namespace, frozen)),
        12 => (many(), few(), proptest::bool::weighted(0.2))
            .prop_map(|(token, namespace, dry)| Command::Take(token, namespace, dry)),
        3 => many().prop_map(Command::List),
        3 => (many(), many()).prop_map(|(token, activation)| Command::End(token, activation)),
        4 => (many(), many()).prop_map(|(token, activation)| Command::IssueCredentials(token, activation)),
        3 => (many(), many()).prop_map(|(token, activation)| Command::Renew(token, activation)),
        1 => many().prop_map(Command::Abort),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_core::json::{self, Limits};

    proptest! {
        #[test]
        fn values_are_valid(
            _ in (email(), namespace(), organization_name(), list_filter(), network(), timestamp(), metadata()),
            _ in (namespace_patterns(), integration_name(), purpose(), idempotency_key(), information()),
            _ in (label_patch(), ttl(), activation_ttl(), overlap(), vended(), (trusts(), managed_by())),
        ) {}

        #[test]
        fn data_passes_the_rules_for_new_data((kind, text) in credential_json()) {
            let document = json::parse(text.as_bytes(), Limits::STORED).unwrap();
            let data = CredentialData::parse(kind, document.root, "");
            prop_assert!(data.is_ok(), "{:?}", data);
            prop_assert_eq!(data.unwrap().kind(), kind);
        }
    }
}
