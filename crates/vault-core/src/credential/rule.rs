//! Formats of each kind of text.

use super::shape::{is_domain, is_token, web_address};
use super::spec::{FieldClass, FieldSpec, ValueKind};
use super::violation::Violation;
use super::{AzureCloud, hygiene};
use crate::field::FieldCode;

fn malformed(detail: &'static str) -> Result<(), Violation> {
    Err(Violation::new(FieldCode::Malformed, detail))
}

impl FieldSpec {
    /// Validates a new value of this field. Kinds with their own type have additional rules there.
    pub(super) fn check(&self, text: &str) -> Result<(), Violation> {
        hygiene::check(text, self.class)?;
        if self.class == FieldClass::Location && names_user(text) {
            return Err(Violation::new(
                FieldCode::NotAllowed,
                "must not contain a user name or password: this field is shown in lists",
            ));
        }
        match self.kind {
            ValueKind::Secret | ValueKind::Flag => Ok(()),
            ValueKind::ConnectionString | ValueKind::Headers | ValueKind::KeyFile | ValueKind::Link => Ok(()),
            ValueKind::AccessKeyId => access_key_id(text),
            ValueKind::Bucket => bucket(text),
            ValueKind::Container => bucket(text.strip_prefix('$').unwrap_or(text)),
            ValueKind::Region => region(text),
            ValueKind::Endpoint => endpoint(text),
            ValueKind::KeyPrefix => key_prefix(text),
            ValueKind::RoleArn => role_arn(text),
            ValueKind::KmsKeyId => kms_key_id(text),
            ValueKind::Tenant => tenant(text),
            ValueKind::ClientId => client_id(text),
            ValueKind::AccountName => account_name(text),
            ValueKind::AzureCloud => azure_cloud(text),
            ValueKind::WorkloadProvider => workload_provider(text),
            ValueKind::ServiceAccount => service_account(text),
        }
    }
}

fn names_user(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| rest.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@')))
}

fn access_key_id(text: &str) -> Result<(), Violation> {
    if text.len() <= 255 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    malformed("must be at most 255 printable ASCII characters without white space")
}

fn bucket(text: &str) -> Result<(), Violation> {
    if let Some(resource) = resource_of_arn(text) {
        // Tools for other storages, and checks, support only plain names.
        return malformed(if resource.ends_with(".mrap") {
            "must be a bucket's name: multi-Region access points are not supported"
        } else if resource.contains("accesspoint") {
            "must be a bucket's name: use the alias of the access point (such as NAME-…-s3alias) instead of its ARN"
        } else {
            "must be a bucket's name: use the last part of the ARN, after :::"
        });
    }
    // Wider than any single storage permits, because S3-compatible storages have different rules.
    if is_token(text, 255, b"._:-") && text.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(());
    }
    malformed("must be a name of 1 to 255 letters, digits, '.', '_', ':' and '-'; a path belongs in key_prefix")
}

/// Returns the last part of an Amazon resource name: `arn:<partition>:<service>:<region>:<account>:<resource>`.
fn resource_of_arn(text: &str) -> Option<&str> {
    let mut parts = text.splitn(6, ':');
    let is_arn = parts.next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("arn"));
    parts.nth(4).filter(|_| is_arn)
}

fn region(text: &str) -> Result<(), Violation> {
    if is_token(text, 64, b"._-") {
        return Ok(());
    }
    malformed("must be 1 to 64 letters, digits, '.', '_' and '-'")
}

fn endpoint(text: &str) -> Result<(), Violation> {
    if text.len() > 2_048 {
        return Err(Violation::new(FieldCode::TooLong, "must be at most 2,048 bytes"));
    }
    let Some(("http" | "https", url)) = web_address(text) else {
        return malformed("must be a URL that begins with https:// or http://");
    };
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(Violation::new(FieldCode::NotAllowed, "must not contain a user, password, query or fragment"));
    }
    Ok(())
}

fn key_prefix(text: &str) -> Result<(), Violation> {
    if text.len() <= 1_024 {
        return Ok(());
    }
    Err(Violation::new(FieldCode::TooLong, "must be at most 1,024 bytes"))
}

fn role_arn(text: &str) -> Result<(), Violation> {
    let parts = text.bytes().filter(|byte| *byte == b':').count();
    if text.starts_with("arn:") && parts >= 5 && is_token(text, 2_048, b":/_+=,.@-") {
        return Ok(());
    }
    malformed("must be the ARN of a role: arn:<partition>:iam:<region>:<account>:role/<name>")
}

fn kms_key_id(text: &str) -> Result<(), Violation> {
    if is_token(text, 2_048, b":/_-") {
        return Ok(());
    }
    malformed("must be a KMS key: arn:<partition>:kms:<region>:<account>:key/<id>, its id, or alias/<name>")
}

fn tenant(text: &str) -> Result<(), Violation> {
    if is_token(text, 255, b".-") {
        return Ok(());
    }
    malformed("must be a GUID or a domain name")
}

fn client_id(text: &str) -> Result<(), Violation> {
    if is_token(text, 255, b"._-") {
        return Ok(());
    }
    malformed("must be an application (client) id, usually a GUID")
}

fn account_name(text: &str) -> Result<(), Violation> {
    if text.len() >= 3 && is_lower_token(text, 24, b"") {
        return Ok(());
    }
    malformed("must be the name of a storage account: 3 to 24 lower-case letters and digits")
}

fn azure_cloud(text: &str) -> Result<(), Violation> {
    if AzureCloud::of_name(text).is_some() {
        return Ok(());
    }
    Err(Violation::new(FieldCode::OutOfRange, "must be public, china or us-government"))
}

/// <https://cloud.google.com/iam/docs/reference/rest/v1/projects.locations.workloadIdentityPools/create>
fn workload_provider(text: &str) -> Result<(), Violation> {
    let is_id = |id: &str| id.len() >= 4 && is_lower_token(id, 32, b"-");
    let parts: Vec<&str> = text.split('/').collect();
    if let [
        "",
        "",
        "iam.googleapis.com",
        "projects",
        number,
        "locations",
        "global",
        "workloadIdentityPools",
        pool,
        "providers",
        provider,
    ] = *parts.as_slice()
        && (1..=20).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && is_id(pool)
        && is_id(provider)
    {
        return Ok(());
    }
    malformed(
        "must be //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER",
    )
}

fn service_account(text: &str) -> Result<(), Violation> {
    if let Some((name, domain)) = text.split_once('@')
        && is_lower_token(name, 63, b"-")
        && domain.strip_suffix(".iam.gserviceaccount.com").is_some_and(|project| !project.is_empty())
        && is_domain(domain)
    {
        return Ok(());
    }
    malformed("must be the e-mail address of a service account: NAME@PROJECT.iam.gserviceaccount.com")
}

/// Returns whether `text` consists of 1 to `max` lower-case ASCII letters, digits and bytes of `others`.
fn is_lower_token(text: &str, max: usize, others: &[u8]) -> bool {
    is_token(text, max, others) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        for text in
            ["https://s3.example.com", "http://127.0.0.1:9000", "http://[::1]:9000/", "https://h/base", "HTTPS://h"]
        {
            assert!(endpoint(text).is_ok(), "{text}");
        }
        for text in [
            "s3.example.com",
            "ftp://h",
            "https://",
            "https:///h",
            "https:h",
            "https://u@h",
            "https://h?x",
            "https://h#x",
            "https://h\\x",
            "https://a b/",
            "https://h:99999",
        ] {
            assert!(endpoint(text).is_err(), "{text}");
        }
    }

    #[test]
    fn buckets() {
        for text in ["b", "my-bucket", "example.com", "tenant:bucket", "A_b"] {
            assert!(bucket(text).is_ok(), "{text}");
        }
        for text in ["a/b", "a b", "..", "-", "a\\b", "bücket", "s3://b", &"b".repeat(256)] {
            assert!(bucket(text).is_err(), "{text}");
        }
    }

    #[test]
    fn users_in_addresses() {
        assert!(names_user("s3://user:pass@host/x"));
        assert!(!names_user("a@b"));
        assert!(!names_user("s3://host/user@x"));
    }

    #[test]
    fn names_have_their_lengths_and_characters() {
        type Check = fn(&str) -> Result<(), Violation>;
        let checks: [(&str, Check, usize, &str); 5] = [
            ("access key id", access_key_id, 255, "a b"),
            ("region", region, 64, "eu/1"),
            ("tenant", tenant, 255, "a_b"),
            ("client id", client_id, 255, "a:b"),
            ("key prefix", key_prefix, 1_024, &"ä".repeat(513)),
        ];
        for (name, check, longest, wrong) in checks {
            assert!(check(&"a".repeat(longest)).is_ok(), "{name}");
            assert!(check(&"a".repeat(longest + 1)).is_err(), "{name}");
            assert!(check(wrong).is_err(), "{name}");
        }
        assert!(access_key_id("schlüssel").is_err());
        let url = |length: usize| format!("https://h/{}", "a".repeat(length - "https://h/".len()));
        assert!(endpoint(&url(2_048)).is_ok());
        for length in [2_049, 2_050] {
            assert!(endpoint(&url(length)).is_err_and(|violation| violation.code == FieldCode::TooLong));
        }
    }

    #[test]
    fn kms_keys() {
        for text in ["arn:aws:kms:eu-west-1:123456789012:key/mrk-1234", "1234abcd-12ab", "alias/batch_2"] {
            assert!(kms_key_id(text).is_ok(), "{text}");
        }
        for text in ["a b", "key?x", &"a".repeat(2_049)] {
            assert!(kms_key_id(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keyless_locations() {
        type Check = fn(&str) -> Result<(), Violation>;
        let provider = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/prov-1";
        let valid: [(Check, &[&str]); 4] = [
            (account_name, &["abc", "a1b2", &"a".repeat(24)]),
            (azure_cloud, &["public", "china", "us-government"]),
            (workload_provider, &[provider]),
            (service_account, &["a-b1@my-project.iam.gserviceaccount.com", "a@p.example.com.iam.gserviceaccount.com"]),
        ];
        for (check, texts) in valid {
            for text in texts {
                assert!(check(text).is_ok(), "{text}");
            }
        }
        let other = |from: &str, to: &str| provider.replace(from, to);
        let providers = [
            other("//", "https://"),
            other("googleapis.com", "googleapis.com.evil.example"),
            other("/1/", "/a/"),
            other("/1/", "//"),
            other("global", "eu"),
            other("pool/", "po/"),
            other("prov-1", "Prov-1"),
            format!("{provider}/"),
            format!("{provider}/../x"),
        ];
        let providers: Vec<&str> = providers.iter().map(String::as_str).collect();
        let invalid: [(Check, &[&str]); 4] = [
            (account_name, &["ab", "Abc", "a.b", "a/b", "evil.example/", &"a".repeat(25)]),
            (azure_cloud, &["", "Public", "germany", "core.windows.net"]),
            (workload_provider, &providers),
            (
                service_account,
                &[
                    "a@b.example",
                    "a@.iam.gserviceaccount.com",
                    "@p.iam.gserviceaccount.com",
                    "a/b@p.iam.gserviceaccount.com",
                    "a@b@p.iam.gserviceaccount.com",
                    "a@p/x.iam.gserviceaccount.com",
                ],
            ),
        ];
        for (check, texts) in invalid {
            for text in texts {
                assert!(check(text).is_err(), "{text}");
            }
        }
    }

    #[test]
    fn role_names() {
        assert!(role_arn("arn:aws:iam::123456789012:role/path/name").is_ok());
        for text in ["role/name", "arn:aws:iam", "arn:aws:iam::1:role/a b"] {
            assert!(role_arn(text).is_err(), "{text}");
        }
    }
}
