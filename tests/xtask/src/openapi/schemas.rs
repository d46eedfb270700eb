//! Schemas that the wire types do not contain: the shapes of the credential types, and the accepted values.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use vault_core::activation::{Purpose, VendRule};
use vault_core::credential::{CredentialType, Description, FieldClass, HealthState, Labels, ValueKind};
use vault_core::namespace::Namespace;
use vault_core::role::Role;

pub(crate) const S3: CredentialType = CredentialType::S3;

const RULES: [VendRule; 2] = [VendRule::Any, VendRule::Short];
const FORMS: [&str; 3] = ["short", "raw", "prefer-short"];

pub(crate) const NAMESPACE: &str = "^[A-Za-z0-9][A-Za-z0-9._/-]*$";

/// Returns the name of the schema of a type's data.
fn data_name(kind: CredentialType) -> &'static str {
    match kind {
        CredentialType::S3 => "S3Data",
        CredentialType::AzureIdentity => "AzureIdentityData",
        CredentialType::Gcs => "GcsData",
        CredentialType::DirectLink => "DirectLinkData",
        CredentialType::S3Federated => "S3FederatedData",
        CredentialType::AzureFederated => "AzureFederatedData",
        CredentialType::GcsFederated => "GcsFederatedData",
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn any_data() -> Value {
    json!({
        "description": "All data, in the format of the credential's type.",
        "anyOf": CredentialType::ALL.map(|kind| reference(data_name(kind))),
    })
}

/// Returns the schemas of the data of each type, from its table.
pub(crate) fn data() -> Map<String, Value> {
    CredentialType::ALL
        .iter()
        .map(|&kind| {
            let fields = kind.fields().iter().map(|field| {
                let mut schema = value(field.kind);
                if kind == CredentialType::GcsFederated && field.name == "bucket" {
                    schema["anyOf"][1]["maxItems"] = json!(10);
                }
                let shown = match field.class {
                    FieldClass::Secret => "Never shown.",
                    FieldClass::Id => "Shown masked: at most its last four characters.",
                    FieldClass::Location => "Shown in full.",
                };
                let members = schema.as_object_mut().unwrap();
                let said = members.get("description").and_then(Value::as_str).map(|said| format!("{said} {shown}"));
                members.insert("description".to_owned(), json!(said.unwrap_or(shown.to_owned())));
                (field.name.to_owned(), schema)
            });
            let required: Vec<_> =
                kind.fields().iter().filter(|field| field.required).map(|field| field.name).collect();
            let schema = json!({
                "type": "object",
                "description": format!("The data of a credential of type `{kind}`.{}", rule(kind)),
                "properties": fields.collect::<Map<_, _>>(),
                "required": required,
                "additionalProperties": false,
                "examples": [example(kind)],
            });
            (data_name(kind).to_owned(), schema)
        })
        .collect()
}

/// Returns the rule about several fields of a type.
fn rule(kind: CredentialType) -> &'static str {
    match kind {
        CredentialType::AzureIdentity => {
            " tenant_id, client_id and client_secret are required together. All three may be absent if \
             connection_string contains AccountKey or SharedAccessSignature."
        }
        CredentialType::S3Federated => {
            " endpoint and sts_endpoint must be https. If AWS issues the session, endpoint must be absent or an S3 \
             endpoint of AWS."
        }
        CredentialType::S3
        | CredentialType::Gcs
        | CredentialType::DirectLink
        | CredentialType::AzureFederated
        | CredentialType::GcsFederated => "",
    }
}

/// Returns the schema of a field.
fn value(kind: ValueKind) -> Value {
    let text = |description: &str, longest: usize| json!({"type": "string", "minLength": 1, "maxLength": longest, "description": description});
    let secret = |description: &str| json!({"type": "string", "format": "password", "minLength": 1, "maxLength": 16_384, "description": description});
    match kind {
        ValueKind::Secret => secret("A secret."),
        ValueKind::AccessKeyId => text("The access key's id: printable ASCII without white space.", 255),
        ValueKind::Bucket => {
            let name = text("A bucket: letters, digits and `. _ : -`, no ARN.", 255);
            json!({
                "description": "The bucket, or a list of buckets with the same key.",
                "anyOf": [name, {"type": "array", "minItems": 1, "maxItems": 100, "uniqueItems": true, "items": name}],
            })
        }
        ValueKind::Container => text("The container: as a bucket, and may start with `$`.", 255),
        ValueKind::Region => text("The region: letters, digits and `. _ -`.", 64),
        ValueKind::Endpoint => {
            text("The store's address: http or https, without bucket, user, query and fragment.", 2_048)
        }
        ValueKind::KeyPrefix => text("Prefix of object names.", 1_024),
        ValueKind::KmsKeyId => {
            json!({"type": "string", "description": "A key of AWS KMS: an ARN, an id or alias/<name>."})
        }
        ValueKind::RoleArn => text("An Amazon resource name.", 2_048),
        ValueKind::Tenant => text("A GUID or a domain name.", 255),
        ValueKind::ClientId => text("A GUID or another token of letters, digits and `. _ -`.", 255),
        ValueKind::AccountName => {
            json!({"type": "string", "pattern": "^[a-z0-9]{3,24}$", "description": "The storage account's name."})
        }
        ValueKind::AzureCloud => {
            json!({"type": "string", "enum": ["public", "china", "us-government"], "default": "public", "description": "The cloud."})
        }
        ValueKind::WorkloadProvider => text(
            "The workload identity provider: `//iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER`.",
            512,
        ),
        ValueKind::ServiceAccount => text("The service account: `NAME@PROJECT.iam.gserviceaccount.com`.", 320),
        ValueKind::Flag => json!({"type": "boolean"}),
        ValueKind::ConnectionString => secret("A connection string of Azure storage."),
        ValueKind::KeyFile => json!({
            "description": "The key file of a service account: a JSON object, or its text as a string.",
            "anyOf": [{"type": "object"}, {"type": "string", "format": "password"}],
        }),
        ValueKind::Link => secret("The address behind the link: https."),
        ValueKind::Headers => json!({
            "type": "object",
            "description": "Header fields that a request to the link needs.",
            "additionalProperties": {"type": "string", "format": "password"},
        }),
        other => panic!("{other:?} has no schema"),
    }
}

/// Accepted example data, with invalid secrets.
pub(crate) fn example(kind: CredentialType) -> Value {
    match kind {
        CredentialType::S3 => json!({
            "access_key_id": "EXAMPLEKEYID00000000", "secret_access_key": "example/of/a/secret/access/key/0000000000",
            "bucket": "nightly-imports", "region": "eu-central-1"
        }),
        CredentialType::AzureIdentity => json!({
            "tenant_id": "11111111-2222-3333-4444-555555555555", "client_id": "66666666-7777-8888-9999-000000000000",
            "client_secret": "example-of-a-client-secret", "container": "imports",
            "connection_string": "DefaultEndpointsProtocol=https;AccountName=example;AccountKey=ZXhhbXBsZQ==;EndpointSuffix=core.windows.net"
        }),
        CredentialType::Gcs => json!({
            "service_account_key": {
                "type": "service_account", "project_id": "example", "private_key_id": "0123456789abcdef",
                "private_key": "-----BEGIN PRIVATE KEY-----\nZXhhbXBsZQ==\n-----END PRIVATE KEY-----\n",
                "client_email": "import@example.iam.gserviceaccount.com", "client_id": "100000000000000000000",
                "token_uri": "https://oauth2.googleapis.com/token"
            },
            "bucket": "nightly-imports"
        }),
        CredentialType::S3Federated => json!({
            "role_arn": "arn:aws:iam::111122223333:role/nightly-import", "bucket": "nightly-imports",
            "region": "eu-central-1"
        }),
        CredentialType::AzureFederated => json!({
            "tenant_id": "11111111-2222-3333-4444-555555555555", "client_id": "66666666-7777-8888-9999-000000000000",
            "account_name": "example", "container": "imports"
        }),
        CredentialType::GcsFederated => json!({
            "provider": "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/vault/providers/orgvault",
            "service_account": "nightly-import@example-project.iam.gserviceaccount.com", "bucket": "nightly-imports"
        }),
        CredentialType::DirectLink => json!({"url": "https://files.example.com/imports/today.csv?signature=example"}),
    }
}

/// Returns a reference to a request that [`refine`] describes.
fn request(name: &str) -> Schema {
    let Value::Object(members) = reference(name) else { panic!("an object") };
    Schema::from(members)
}

pub(crate) const SAVE: fn(&mut SchemaGenerator) -> Schema = |_| request("SaveRequest");
pub(crate) const REPLACE: fn(&mut SchemaGenerator) -> Schema = |_| request("ReplaceRequest");
pub(crate) const MATCH: fn(&mut SchemaGenerator) -> Schema = |_| request("MatchRequest");
pub(crate) const DESCRIBE: fn(&mut SchemaGenerator) -> Schema = |_| request("DescribeRequest");

fn labels(value: Value) -> Value {
    json!({
        "type": "object",
        "description": "Labels: names of a-z 0-9 . _ - /, values of A-Z a-z 0-9 . _ -, each up to 63 characters.",
        "maxProperties": Labels::MAX,
        "propertyNames": {"pattern": "^[a-z0-9._/-]{1,63}$"},
        "additionalProperties": value,
    })
}

const LABEL_VALUE: &str = "^[A-Za-z0-9._-]{0,63}$";

fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

fn vend() -> Value {
    json!({
        "type": "string",
        "enum": RULES.map(VendRule::as_str),
        "description": "`short`: issue only short-lived credentials that are derived from the data. Only an admin can remove this rule.",
    })
}

fn save() -> Value {
    let of = |kind: CredentialType| {
        json!({
            "type": "object",
            "title": format!("Save{}", data_name(kind).trim_end_matches("Data")),
            "description": format!("A credential of type `{kind}`."),
            "properties": {
                "type": {"const": kind.as_str()},
                "namespace": reference("Namespace"),
                "data": reference(data_name(kind)),
                "labels": reference("Labels"),
                "description": {"type": "string", "maxLength": Description::MAX_LENGTH, "description": "Purpose of the credential."},
                "expires_at": time("Time when the issuer's key expires."),
                "vend": vend(),
            },
            "required": ["type", "namespace", "data"],
            "additionalProperties": false,
        })
    };
    json!({"oneOf": CredentialType::ALL.map(of)})
}

fn replace() -> Value {
    json!({
        "type": "object",
        "properties": {
            "data": any_data(),
            "expires_at": time("Time when the data expires."),
            "stage": {"type": "boolean", "default": false, "description": "`true` to stage the new version without promoting it."},
        },
        "required": ["data"],
        "additionalProperties": false,
    })
}

fn matching() -> Value {
    json!({
        "type": "object",
        "properties": {"data": any_data()},
        "required": ["data"],
        "additionalProperties": false,
    })
}

fn describe() -> Value {
    // Two alternatives instead of two types, because client generators support these better.
    let nullable = |schema: Value| json!({"anyOf": [schema, {"type": "null"}]});
    json!({
        "type": "object",
        "description": "A merge patch (RFC 7396): absent fields stay unchanged, null removes a field.",
        "properties": {
            "labels": nullable(reference("LabelPatch")),
            "description": nullable(json!({"type": "string", "maxLength": Description::MAX_LENGTH})),
            "expires_at": nullable(time("Time when the current version's key expires.")),
            "vend": vend(),
        },
        "additionalProperties": false,
    })
}

/// Adds the permitted values of fields that are text in the wire types.
pub(crate) fn refine(schemas: &mut Map<String, Value>) {
    let roles = json!(Role::ALL.map(Role::as_str));
    let kinds = json!(CredentialType::ALL.map(CredentialType::as_str));
    let health = json!(HealthState::ALL.map(HealthState::as_str));
    for (name, member, constraint) in [
        ("LoginRequest", "ttl", json!({"minimum": 60, "maximum": 86_400, "default": 3_600})),
        ("AccountItem", "role", json!({"enum": roles})),
        ("AccountItem", "state", json!({"enum": ["active", "disabled", "re-enrolling", "invited"]})),
        ("OwnAccount", "role", json!({"enum": roles})),
        ("InviteRequest", "role", json!({"enum": roles})),
        ("ChangeAccountRequest", "role", json!({"enum": roles})),
        ("ChangeAccountRequest", "state", json!({"enum": ["active", "disabled"]})),
        ("ChangeIntegrationRequest", "state", json!({"enum": ["active", "disabled"]})),
        ("IntegrationItem", "state", json!({"enum": ["active", "disabled", "expired"]})),
        ("CredentialItem", "type", json!({"enum": kinds})),
        ("CredentialItem", "vend", json!({"enum": RULES.map(VendRule::as_str)})),
        ("HealthItem", "state", json!({"enum": health})),
        ("VersionItem", "state", json!({"enum": ["current", "staged", "previous"]})),
        ("CredentialUse", "form", json!({"enum": ["raw", "short"]})),
        ("VendedCredential", "type", json!({"enum": CredentialType::ISSUED.map(CredentialType::as_str)})),
        ("VendedCredential", "form", json!({"enum": ["raw", "short"]})),
        (
            "ActivateRequest",
            "namespace",
            json!({"pattern": NAMESPACE, "minLength": 1, "maxLength": Namespace::MAX_LENGTH}),
        ),
        ("ActivateRequest", "ttl", json!({"minimum": 60, "maximum": 43_200, "default": 3_600})),
        ("RenewRequest", "ttl", json!({"minimum": 60, "maximum": 43_200, "default": 3_600})),
        ("ActivateRequest", "purpose", json!({"minLength": 1, "maxLength": Purpose::MAX_LENGTH})),
        ("ActivateRequest", "vend", json!({"enum": FORMS})),
        (
            "CheckRequest",
            "namespace",
            json!({"pattern": NAMESPACE, "minLength": 1, "maxLength": Namespace::MAX_LENGTH}),
        ),
        ("CheckRequest", "vend", json!({"enum": FORMS})),
        ("CheckedNamespace", "namespace", json!({})),
        (
            "NamespaceRequest",
            "namespace",
            json!({"pattern": NAMESPACE, "minLength": 1, "maxLength": Namespace::MAX_LENGTH}),
        ),
        ("ChangeIntegrationRequest", "expires_at", json!({"type": ["string", "null"], "format": "date-time"})),
        ("SetAsideRequest", "until", json!({"type": ["string", "null"], "format": "date-time"})),
        ("CreateIntegrationRequest", "expires_at", json!({"format": "date-time"})),
        ("PromoteRequest", "version", json!({"minimum": 1})),
    ] {
        let member =
            schemas[name]["properties"][member].as_object_mut().unwrap_or_else(|| panic!("{name} has no {member}"));
        let Value::Object(constraint) = constraint else { panic!("an object") };
        member.extend(constraint);
    }
    let namespace = json!({
        "type": "string", "pattern": NAMESPACE, "minLength": 1, "maxLength": Namespace::MAX_LENGTH,
        "description": "A namespace, compared exactly. Several credentials may share one.",
    });
    schemas.insert("Namespace".to_owned(), namespace);
    let label = json!({"type": "string", "pattern": LABEL_VALUE});
    schemas.insert("Labels".to_owned(), labels(label.clone()));
    schemas.insert("LabelPatch".to_owned(), labels(json!({"anyOf": [label, {"type": "null"}]})));
    schemas.extend(data());
    for (name, schema) in [
        ("SaveRequest", save()),
        ("ReplaceRequest", replace()),
        ("MatchRequest", matching()),
        ("DescribeRequest", describe()),
    ] {
        schemas.insert(name.to_owned(), schema);
    }
}

/// Adapts the comments of the wire types for readers of JSON, and marks fields that contain times.
pub(crate) fn reword(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                let end =
                    ["`T` is what", "`D` is what", "`L` is what"].iter().filter_map(|aside| text.find(aside)).min();
                text.truncate(end.unwrap_or(text.len()));
                *text = text.replace(['[', ']'], "").split_whitespace().collect::<Vec<_>>().join(" ");
            }
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                for (name, property) in properties {
                    let ends = ["_at", "_until", "_before", "_since"].iter().any(|end| name.ends_with(end));
                    let is_time = ends || ["at", "since", "until"].contains(&name.as_str());
                    if is_time && property["type"] == "string" {
                        property["format"] = json!("date-time");
                    }
                }
            }
            members.values_mut().for_each(reword);
        }
        Value::Array(items) => items.iter_mut().for_each(reword),
        _ => {}
    }
}

/// Fields are absent, never null.
pub(crate) fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|one| one != "null");
                if let [one] = &types[..] {
                    let one = one.clone();
                    members.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
                choices.retain(|choice| *choice != json!({"type": "null"}));
                if let [Value::Object(one)] = &choices[..] {
                    let one = one.clone();
                    members.remove("anyOf");
                    members.extend(one);
                }
            }
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// Returns the parameters of a filter, which are its fields.
pub(crate) fn filter(schema: Schema) -> Vec<Value> {
    let mut schema = schema.to_value();
    without_nulls(&mut schema);
    reword(&mut schema);
    let Value::Object(fields) = schema["properties"].take() else { panic!("a filter has fields") };
    let parameter = |(name, mut field): (String, Value)| {
        let description = field.as_object_mut().unwrap().remove("description");
        json!({"name": name, "in": "query", "description": description, "schema": permitted(&name).unwrap_or(field)})
    };
    fields.into_iter().map(parameter).collect()
}

/// Returns the permitted values of a field of a filter, unless its type has them.
fn permitted(name: &str) -> Option<Value> {
    Some(match name {
        "limit" | "namespace" => parameter(name).0,
        "type" => json!({"type": "string", "enum": CredentialType::ALL.map(CredentialType::as_str)}),
        "label" => {
            json!({"type": "array", "maxItems": Labels::MAX, "items": {"type": "string", "pattern": "^[a-z0-9._/-]{1,63}:[A-Za-z0-9._-]{0,63}$"}})
        }
        "health" => json!({"type": "string", "enum": HealthState::ALL.map(HealthState::as_str)}),
        "action" => json!({"type": "array", "maxItems": 32, "items": short_text()}),
        "outcome" => json!({"type": "string", "enum": ["denied"]}),
        "reads" => json!({"type": "boolean", "default": true}),
        "subject" | "actor" => short_text(),
        "order" => json!({"type": "string", "enum": ["newest", "oldest"], "default": "newest"}),
        _ => return None,
    })
}

fn short_text() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 100})
}

/// Returns the schema of a parameter.
pub(crate) fn parameter(name: &str) -> (Value, &'static str) {
    match name {
        "limit" => (
            json!({"type": "integer", "minimum": 1, "maximum": 1_000, "default": 1_000}),
            "Maximum number of items on a page.",
        ),
        "cursor" => {
            (json!({"type": "string", "minLength": 1}), "Start of the page, from the `Link` of the previous page.")
        }
        "namespace" => (reference("Namespace"), "Only items in this namespace."),
        "since" => (json!({"type": "string", "format": "date-time"}), "Only entries from this time on."),
        "integration" => (short_text(), "Only those of the integration with this ID."),
        "verify" => (
            json!({"type": "boolean", "default": false}),
            "Checks the data at its storage first. 400 if the server does not support it.",
        ),
        "Idempotency-Key" => (
            json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}),
            "Unique name of the request, stored for 24 hours. A repeated request returns the same response without another effect.",
        ),
        "If-Match" => (
            json!({"type": "string", "pattern": "^(\\*|\"[0-9]+\")$"}),
            "The entity tag of the revision that was read. 412 if the credential has changed since.",
        ),
        "id" => (json!({"type": "string", "format": "uuid"}), "The id."),
        "version" => (json!({"type": "integer", "minimum": 1}), "The number of the version."),
        "delivery" => (json!({"type": "string", "format": "uuid"}), "The event, by its id."),
        "trust" => (json!({"type": "string", "format": "uuid"}), "The trust, by its id."),
        other => panic!("{other} is no parameter"),
    }
}
