//! S3, STS, IAM and KMS: moto's server, from PyPI.

use super::http::{encode, form, have};
use super::process::Server;

/// The server.
#[derive(Debug)]
pub struct Moto(Server);

/// An access key of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKey {
    /// ID.
    pub id: String,
    /// Its secret.
    pub secret: String,
}

/// Until signatures are checked, only the service in them matters.
fn credentials_of(service: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=0"
    )
}

impl Moto {
    /// Starts one, which believes everybody everything until [`Moto::evaluate`].
    ///
    /// # Panics
    ///
    /// Moto is not installed or does not start.
    pub fn start() -> Self {
        let variables = [("INITIAL_NO_AUTH_ACTION_COUNT", "inf"), ("MOTO_ALLOW_NONEXISTENT_REGION", "true")];
        Self(Server::start("moto_server", &variables, |port, _| {
            ["-H", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned).to_vec()
        }))
    }

    /// Returns the address: `http://127.0.0.1:port`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.0.address())
    }

    /// Creates a bucket.
    pub fn create_bucket(&self, bucket: &str) {
        have(self.0.address(), "PUT", &format!("/{bucket}"), &[("Authorization", &credentials_of("s3"))], b"");
    }

    /// Uploads an object to a bucket.
    pub fn put(&self, bucket: &str, name: &str, content: &[u8]) {
        let name = encode(name).replace("%2F", "/");
        have(
            self.0.address(),
            "PUT",
            &format!("/{bucket}/{name}"),
            &[("Authorization", &credentials_of("s3"))],
            content,
        );
    }

    /// Returns the list of a bucket's objects, as XML. Works only before [`Moto::evaluate`].
    pub fn list(&self, bucket: &str) -> String {
        have(
            self.0.address(),
            "GET",
            &format!("/{bucket}?list-type=2"),
            &[("Authorization", &credentials_of("s3"))],
            b"",
        )
        .body
    }

    /// Creates a user with the rights in `policy` (JSON), and an access key for it.
    pub fn create_user(&self, name: &str, policy: &str) -> AccessKey {
        self.identity(&[("Action", "CreateUser"), ("UserName", name)]);
        self.identity(&[
            ("Action", "PutUserPolicy"),
            ("UserName", name),
            ("PolicyName", "rights"),
            ("PolicyDocument", policy),
        ]);
        let reply = self.identity(&[("Action", "CreateAccessKey"), ("UserName", name)]);
        AccessKey { id: reply.element("AccessKeyId").to_owned(), secret: reply.element("SecretAccessKey").to_owned() }
    }

    /// Creates a role with the policy `policy` that every user with the right to assume it may assume. Returns its ARN.
    pub fn create_role(&self, name: &str, policy: &str) -> String {
        let trust = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole"}]}"#;
        let reply = self.identity(&[("Action", "CreateRole"), ("RoleName", name), ("AssumeRolePolicyDocument", trust)]);
        self.identity(&[
            ("Action", "PutRolePolicy"),
            ("RoleName", name),
            ("PolicyName", "rights"),
            ("PolicyDocument", policy),
        ]);
        reply.element("Arn").to_owned()
    }

    /// Enables the check of signatures and rights.
    pub fn evaluate(&self) {
        have(self.0.address(), "POST", "/moto-api/reset-auth", &[], b"0");
    }

    /// Disables the check of signatures and rights.
    pub fn believe(&self) {
        have(self.0.address(), "POST", "/moto-api/reset-auth", &[], b"inf");
    }

    fn identity(&self, pairs: &[(&str, &str)]) -> super::Reply {
        let body = form(&[pairs, &[("Version", "2010-05-08")]].concat());
        let fields =
            [("Authorization", &*credentials_of("iam")), ("Content-Type", "application/x-www-form-urlencoded")];
        have(self.0.address(), "POST", "/", &fields, body.as_bytes())
    }
}
