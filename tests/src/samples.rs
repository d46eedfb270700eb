//! Sample credentials of every type, in the form that storage providers issue.

use serde_json::{Value, json};

/// A credential with its visible and its secret parts.
pub struct Sample {
    /// Body of the save request.
    pub request: Value,
    /// Information in lists, without the fingerprint.
    pub information: Value,
    /// Secrets that no response may contain.
    pub secrets: Vec<&'static str>,
}

/// Returns the body of a small credential in `namespace` that is unique for each `number`.
pub fn small(namespace: &str, number: usize) -> Value {
    json!({
        "type": "s3",
        "namespace": namespace,
        "data": {
            "access_key_id": format!("AKIAQ3EGRIYLK{number:07}"),
            "secret_access_key": format!("7sGh+Wm0y5RkPzXvB/Lq9eTcUj2NdFa{number:09}"),
            "bucket": format!("exports-{number}"),
        },
    })
}

/// Returns one sample of each type, with all fields of the type.
pub fn every_type() -> Vec<Sample> {
    vec![s3(), azure_identity(), gcs(), direct_link()]
}

/// Returns an S3 credential.
pub fn s3() -> Sample {
    Sample {
        request: json!({
            "type": "s3",
            "namespace": "imports/nightly",
            "data": {
                "access_key_id": "AKIAQ3EGRIYLKZ7WMX4T",
                "secret_access_key": "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",
                "bucket": "acme-imports",
                "region": "eu-central-1",
                "endpoint": "https://s3.eu-central-1.amazonaws.com",
                "key_prefix": "nightly/2026/",
                "path_style_access": true,
                "role_arn": "arn:aws:iam::123456789012:role/batch/importer",
                "session_token": "IQoJb3JpZ2luX2VjEJr//////////wEaDGV1LWNlbnRyYWwtMSJHMEUCIQDx",
                "external_id": "acme-batch-5f0c7d21",
            },
        }),
        information: json!({
            "bucket": "acme-imports",
            "region": "eu-central-1",
            "endpoint": "https://s3.eu-central-1.amazonaws.com",
            "key_prefix": "nightly/2026/",
            "path_style_access": true,
            "role_arn": "arn:aws:iam::123456789012:role/batch/importer",
            "access_key_id": "…MX4T",
            "secrets": ["secret_access_key", "session_token", "external_id"],
        }),
        secrets: vec![
            "AKIAQ3EGRIYLKZ7WMX4T",
            "pN7s0+vQyTd3/Rk8WzLhXcB5uJf1gMaE6oCqYiKt",
            "IQoJb3JpZ2luX2VjEJr//////////wEaDGV1LWNlbnRyYWwtMSJHMEUCIQDx",
            "acme-batch-5f0c7d21",
        ],
    }
}

/// Returns an Azure credential.
pub fn azure_identity() -> Sample {
    Sample {
        request: json!({
            "type": "azure_identity",
            "namespace": "imports/nightly",
            "data": {
                "tenant_id": "72f988bf-86f1-41af-91ab-2d7cd011db47",
                "client_id": "8d6b8c1e-33a5-4a7e-9a0b-5d2b1c0f4f2a",
                "client_secret": "Qx~8Q~vN3w.Yk2-rT0sLzUaHbJ5cD7eF9gM_oPqR",
                "connection_string": "DefaultEndpointsProtocol=https;AccountName=acmeimports;AccountKey=R2VoZWltZXJLb250b1NjaGx1ZXNzZWwwMTIzNDU2Nzg5QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=;EndpointSuffix=core.windows.net",
                "container": "nightly",
                "key_prefix": "in/",
            },
        }),
        information: json!({
            "tenant_id": "72f988bf-86f1-41af-91ab-2d7cd011db47",
            "client_id": "…4f2a",
            "container": "nightly",
            "key_prefix": "in/",
            "account_name": "acmeimports",
            "has_account_key": true,
            "secrets": ["client_secret", "connection_string"],
        }),
        secrets: vec![
            "8d6b8c1e-33a5",
            "Qx~8Q~vN3w.Yk2-rT0sLzUaHbJ5cD7eF9gM_oPqR",
            "R2VoZWltZXJLb250b1NjaGx1ZXNzZWwwMTIzNDU2Nzg5QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=",
            "AccountKey=",
        ],
    }
}

/// Returns a Google Cloud Storage credential with a service account's key file.
pub fn gcs() -> Sample {
    Sample {
        request: json!({
            "type": "gcs",
            "namespace": "exports.daily",
            "data": {
                "service_account_key": {
                    "type": "service_account",
                    "project_id": "acme-data-314159",
                    "private_key_id": "9b2f4c6d8e0a1b3c5d7e9f0a2b4c6d8e0f1a3b5c",
                    "private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu\n-----END PRIVATE KEY-----\n",
                    "client_email": "batch-import@acme-data-314159.iam.gserviceaccount.com",
                    "client_id": "108273645546372819201",
                    "auth_uri": "https://accounts.google.com/o/oauth2/auth",
                    "token_uri": "https://oauth2.googleapis.com/token",
                    "universe_domain": "googleapis.com",
                },
                "bucket": "acme-exports",
                "key_prefix": "daily/",
            },
        }),
        information: json!({
            "bucket": "acme-exports",
            "key_prefix": "daily/",
            "client_email": "batch-import@acme-data-314159.iam.gserviceaccount.com",
            "project_id": "acme-data-314159",
            "private_key_id": "…3b5c",
            "secrets": ["service_account_key"],
        }),
        secrets: vec![
            "9b2f4c6d8e0a1b3c5d7e9f0a2b4c6d8e0f1a3b5c",
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
            "MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu",
            "PRIVATE KEY",
        ],
    }
}

/// Returns a direct link with an expiring signature and header fields.
pub fn direct_link() -> Sample {
    Sample {
        request: json!({
            "type": "direct-link",
            "namespace": "imports/partner-7",
            "data": {
                "url": "https://acme-drop.s3.eu-west-1.amazonaws.com/secret-folder/file.csv?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAZ5QWERTY%2F20261120%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Date=20261120T110000Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature=1f2e3d4c5b6a79880716253443526170",
                "headers": {"Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.cGFydG5lcjc", "x-partner-key": "k7-Zt4mWq9"},
            },
        }),
        information: json!({
            "scheme": "https",
            "host": "acme-drop.s3.eu-west-1.amazonaws.com",
            "expires_at": "2026-11-20T12:00:00Z",
            "secrets": ["url", "headers"],
        }),
        secrets: vec![
            "secret-folder",
            "1f2e3d4c5b6a79880716253443526170",
            "AKIAZ5QWERTY",
            "eyJhbGciOiJIUzI1NiJ9.cGFydG5lcjc",
            "k7-Zt4mWq9",
        ],
    }
}
