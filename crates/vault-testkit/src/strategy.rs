//! Values for property tests. All of them are valid; each strategy also draws from the edges of what is.

use crate::storage::short;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use vault_core::activation::Vended;
use vault_core::credential::{CredentialData, CredentialType, HealthState, LabelFilter};
use vault_core::cursor::ListFilter;
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::integration::{IntegrationName, NamespacePatterns};
use vault_core::namespace::Namespace;
use vault_core::network::Network;
use vault_core::organization::OrganizationName;
use vault_core::role::Role;
use vault_core::time::Timestamp;

/// Addresses in their canonical spelling.
pub fn email() -> impl Strategy<Value = EmailAddress> {
    let local =
        prop_oneof!["[a-z0-9]{1,12}", "[a-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}", "[a-z]{1,8}(\\.[a-z0-9+]{1,8}){1,3}"];
    let domain = prop_oneof!["[a-z]{1,12}\\.example", "([a-z][a-z0-9]{0,9}\\.){1,4}(example|test)", "bücher\\.example"];
    (local, domain).prop_map(|(local, domain)| EmailAddress::parse(&format!("{local}@{domain}")).unwrap())
}

/// Namespaces, from one character to the longest.
pub fn namespace() -> impl Strategy<Value = Namespace> {
    prop_oneof!["[A-Za-z0-9]", "[A-Za-z0-9][A-Za-z0-9._/-]{0,30}", "[A-Za-z0-9][A-Za-z0-9._/-]{127}"]
        .prop_map(|text| Namespace::parse(&text, "").unwrap())
}

/// Every role.
pub fn role() -> impl Strategy<Value = Role> {
    proptest::sample::select(Role::ALL.to_vec())
}

/// Names of organizations, those that databases find hard included.
pub fn organization_name() -> impl Strategy<Value = OrganizationName> {
    prop_oneof!["[A-Za-z0-9]{1,100}", "[A-Z][a-z]{1,20} (& Co|AG|'; --|%|_)", "[äöüßÄÖÜΩж界😀]{1,100}"]
        .prop_map(|text| OrganizationName::parse(&text).unwrap())
}

/// Digests.
pub fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest::from_bytes)
}

/// Networks of both families.
pub fn network() -> impl Strategy<Value = Network> {
    prop_oneof![any::<[u8; 3]>().prop_map(Network::V4), any::<[u8; 7]>().prop_map(Network::V6)]
}

/// Points in time between 2000 and 2100.
pub fn timestamp() -> impl Strategy<Value = Timestamp> {
    (946_684_800_000_i64..4_102_444_800_000).prop_map(Timestamp::from_millis)
}

/// Every type of credential.
pub fn credential_type() -> impl Strategy<Value = CredentialType> {
    proptest::sample::select(CredentialType::ALL.to_vec())
}

/// Every combination of filters.
pub fn list_filter() -> impl Strategy<Value = ListFilter> {
    let health = option::of(proptest::sample::select(HealthState::ALL.to_vec()));
    let labels = vec("[a-c]{1,2}:[A-C]{0,2}", 0..3);
    (option::of(namespace()), option::of(credential_type()), labels, health, option::of(timestamp())).prop_map(
        |(namespace, kind, labels, health, expires_before)| ListFilter {
            namespace,
            kind,
            labels: labels.iter().filter_map(|text| LabelFilter::parse(text, "").ok()).collect(),
            health,
            expires_before,
        },
    )
}

/// A type and data of it as JSON text, as a client may send it.
pub fn credential_json() -> impl Strategy<Value = (CredentialType, String)> {
    credential_type().prop_flat_map(|kind| (Just(kind), data_json(kind)))
}

/// Data of each type.
pub fn credential_data() -> impl Strategy<Value = CredentialData> {
    credential_json().prop_map(|(kind, json)| CredentialData::from_canonical_json(kind, json.as_bytes()).unwrap())
}

/// Patterns of namespaces, 1 to 8 of them.
pub fn namespace_patterns() -> impl Strategy<Value = NamespacePatterns> {
    let pattern = (namespace(), any::<bool>())
        .prop_map(|(namespace, below)| if below { format!("{namespace}/*") } else { namespace.to_string() });
    vec(pattern, 1..=8).prop_map(|texts| NamespacePatterns::parse(&texts, "").unwrap())
}

/// Names of integrations, those that databases find hard included.
pub fn integration_name() -> impl Strategy<Value = IntegrationName> {
    prop_oneof!["[A-Za-z0-9]{1,64}", "[A-Z][a-z]{1,20} (& Co|AG|'; --|%|_)", "[äöüßÄÖÜΩж界😀]{1,64}"]
        .prop_map(|text| IntegrationName::parse(&text, "").unwrap())
}

/// What is handed out: credentials of each type in each form that they have.
pub fn vended() -> impl Strategy<Value = Vended> {
    (credential_data(), option::of(timestamp())).prop_map(|(data, expires_at)| match (short(&data), expires_at) {
        (Some(data), Some(expires_at)) => Vended::Short { data, expires_at },
        _ => Vended::Raw(data),
    })
}

fn data_json(kind: CredentialType) -> BoxedStrategy<String> {
    match kind {
        CredentialType::S3 => s3().boxed(),
        CredentialType::AzureIdentity => azure_identity().boxed(),
        CredentialType::Gcs => gcs().boxed(),
        CredentialType::DirectLink => direct_link().boxed(),
    }
}

const BUCKET: &str = "[a-z0-9][a-z0-9-]{1,30}[a-z0-9]";
/// Random enough that no rule takes it for a placeholder.
const SECRET: &str = "k[0-9]{2}[A-Za-z0-9/+]{30,60}z";

fn s3() -> impl Strategy<Value = String> {
    let optional = (
        option::of("(eu|us)-(west|east)-[1-9]"),
        option::of("https://s3\\.[a-z]{3,9}\\.example(:[1-9][0-9]{3})?"),
        option::of("backup/[a-z0-9]{1,20}"),
        option::of(any::<bool>()),
        option::of(SECRET),
    );
    ("AKIA[A-Z2-7]{16}", SECRET, BUCKET, optional).prop_map(|(id, secret, bucket, optional)| {
        let (region, endpoint, prefix, path_style, token) = optional;
        let mut json = format!(r#"{{"access_key_id":"{id}","secret_access_key":"{secret}","bucket":"{bucket}""#);
        for (name, value) in
            [("region", region), ("endpoint", endpoint), ("key_prefix", prefix), ("session_token", token)]
        {
            json.extend(value.map(|value| format!(r#","{name}":"{value}""#)));
        }
        json.extend(path_style.map(|flag| format!(r#","path_style_access":{flag}"#)));
        json + "}"
    })
}

fn azure_identity() -> impl Strategy<Value = String> {
    const GUID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
    (GUID, GUID, SECRET, "[a-z][a-z0-9]{2,22}", "[A-Za-z0-9+/]{86}==", option::of(BUCKET)).prop_map(
        |(tenant, client, secret, account, key, container)| {
            let connection = format!(
                "DefaultEndpointsProtocol=https;AccountName={account};AccountKey={key};EndpointSuffix=core.windows.net"
            );
            let mut json = format!(
                r#"{{"tenant_id":"{tenant}","client_id":"{client}","client_secret":"{secret}","connection_string":"{connection}""#
            );
            json.extend(container.map(|container| format!(r#","container":"{container}""#)));
            json + "}"
        },
    )
}

fn gcs() -> impl Strategy<Value = String> {
    let name = "[a-z][a-z0-9-]{4,20}[a-z0-9]";
    ("[a-z][a-z0-9]{4,20}", name, "[0-9a-f]{40}", vec("[A-Za-z0-9+/]{64}", 2..12), BUCKET).prop_map(
        |(project, account, key_id, lines, bucket)| {
            let pem = format!("-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n", lines.join("\\n"));
            let email = format!("{account}@{project}.iam.gserviceaccount.com");
            format!(
                r#"{{"service_account_key":{{"type":"service_account","project_id":"{project}","private_key_id":"{key_id}","private_key":"{pem}","client_email":"{email}","client_id":"118029847561029384756","token_uri":"https://oauth2.googleapis.com/token"}},"bucket":"{bucket}"}}"#
            )
        },
    )
}

fn direct_link() -> impl Strategy<Value = String> {
    let url = "https://[a-z]{3,12}\\.example/[a-z0-9]{1,20}/[a-z0-9]{1,20}\\.bin\\?sig=q[0-9]{2}[A-Za-z0-9]{20,40}";
    (url, option::of("Bearer w[0-9]{2}[A-Za-z0-9]{20,40}")).prop_map(|(url, authorization)| {
        let mut json = format!(r#"{{"url":"{url}""#);
        json.extend(authorization.map(|value| format!(r#","headers":{{"Authorization":"{value}"}}"#)));
        json + "}"
    })
}

/// One step of a history of a vault, by numbers that stand for accounts, sessions, credentials and so on, to be
/// taken modulo how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum VaultCommand {
    /// Time passes, in milliseconds; it may run backwards.
    Pass(i64),
    /// An attempt is reserved for an account from a network.
    Reserve(usize, usize),
    /// An attempt on an unknown address is reserved.
    ReserveUnknown,
    /// An account's wrong passcode is recorded.
    WrongPasscode(usize),
    /// An account logs in by a step, counted from the first, from a network.
    LogInByStep(usize, i64, usize),
    /// An account logs in by a recovery code from a network.
    LogInByRecoveryCode(usize, usize, usize),
    /// A session is ended.
    EndSession(usize),
    /// An account gets a role, and is active or not.
    Grant(usize, Role, bool),
    /// An account gets another password.
    Password(usize),
    /// An account gets another passcode.
    Passcode(usize),
    /// The account's owner has to enrol again, and does so at once if it says so.
    ReEnrol(usize, bool),
    /// An account is unlocked.
    Unlock(usize),
    /// The organization is in use, or not.
    SetOrganization(bool),
    /// A session or an embedder saves in a namespace, under one idempotency key or none, one of a few bodies.
    Save(usize, usize, Option<usize>, usize),
    /// A session or an embedder lists a page of a namespace or of all, after a credential or from the beginning.
    List(usize, Option<usize>, Option<usize>, usize),
    /// A session or an embedder shows a credential.
    Show(usize, usize),
    /// A session or an embedder deletes a credential.
    Delete(usize, usize),
    /// The organization's key is replaced.
    ReplaceKey,
    /// Uses of the first key are taken, from a multiple of the block.
    TakeUses(i64),
    /// A session or the operator does something about integrations.
    Activator(usize, ActivatorCommand),
}

/// One step of a history that is about integrations, by numbers as those of [`VaultCommand`]. Each integration's
/// tokens stand for it at the time that they were given out, or that it was changed otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum ActivatorCommand {
    /// An integration is made under a name.
    Create(usize),
    /// An integration gets another token; decided on its latest version or on one before.
    Rotate(usize, bool),
    /// An integration is in use, or not.
    SetState(usize, bool),
    /// An integration is deleted.
    Delete(usize),
    /// A namespace is frozen, or thawed.
    Freeze(usize, bool),
    /// The holder of a token takes a namespace's credentials, for an activation or a dry run.
    Take(usize, usize, bool),
    /// The holder of a token lists the live activations.
    List(usize),
    /// The holder of a token ends an activation.
    End(usize, usize),
    /// The holder of a token has what an activation took handed out.
    HandOut(usize, usize),
    /// An activation is taken back.
    Abort(usize),
}

/// Commands in the proportions that make histories long before they make them trivial.
pub(crate) fn vault_command() -> impl Strategy<Value = VaultCommand> {
    use VaultCommand as Command;
    let few = || 0_usize..4;
    let many = || 0_usize..64;
    prop_oneof![
        3 => (-5_000_i64..120_000).prop_map(Command::Pass),
        1 => (3_000_000_i64..100_000_000).prop_map(Command::Pass),
        // Many for few, or nobody would ever wait.
        12 => (0_usize..2, few()).prop_map(|(account, network)| Command::Reserve(account, network)),
        1 => Just(Command::ReserveUnknown),
        2 => few().prop_map(Command::WrongPasscode),
        6 => (few(), 0_i64..200, few()).prop_map(|(account, step, from)| Command::LogInByStep(account, step, from)),
        2 => (few(), few(), few()).prop_map(|(account, code, from)| Command::LogInByRecoveryCode(account, code, from)),
        2 => many().prop_map(Command::EndSession),
        1 => (few(), role(), proptest::bool::weighted(0.8)).prop_map(|(who, role, on)| Command::Grant(who, role, on)),
        1 => few().prop_map(Command::Password),
        1 => few().prop_map(Command::Passcode),
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
        2 => (many(), mostly()).prop_map(|(which, latest)| Command::Rotate(which, latest)),
        1 => (many(), mostly()).prop_map(|(which, active)| Command::SetState(which, active)),
        1 => many().prop_map(Command::Delete),
        2 => (few(), proptest::bool::weighted(0.3)).prop_map(|(namespace, frozen)| Command::Freeze(namespace, frozen)),
        12 => (many(), few(), proptest::bool::weighted(0.2))
            .prop_map(|(token, namespace, dry)| Command::Take(token, namespace, dry)),
        3 => many().prop_map(Command::List),
        3 => (many(), many()).prop_map(|(token, activation)| Command::End(token, activation)),
        4 => (many(), many()).prop_map(|(token, activation)| Command::HandOut(token, activation)),
        1 => many().prop_map(Command::Abort),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_core::credential::DataPolicy;
    use vault_core::json::{self, Limits};

    proptest! {
        #[test]
        fn values_are_valid(_ in (email(), namespace(), organization_name(), list_filter(), network(), timestamp())) {}

        #[test]
        fn data_passes_the_rules_for_new_data((kind, text) in credential_json()) {
            let document = json::parse(text.as_bytes(), Limits::STORED).unwrap();
            let data = CredentialData::parse(kind, document.root, "", DataPolicy { allow_http_links: false });
            prop_assert!(data.is_ok(), "{:?}", data);
            prop_assert_eq!(data.unwrap().kind(), kind);
        }
    }
}
