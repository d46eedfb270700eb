//! URIs of keys in AWS KMS.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Default profile of a credentials file.
const DEFAULT_PROFILE: &str = "default";

/// The URI of a key in AWS KMS, and of the credentials for it: `aws-kms:arn:aws:kms:REGION:ACCOUNT:key/ID?` with
/// `credentials-file=/FILE` and optionally `&profile=NAME`, or with `web-identity-token-file=/FILE&role-arn=ARN` and
/// optionally `&sts-endpoint=URL`. Both accept `&endpoint=URL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KmsUri {
    pub(super) arn: String,
    pub(super) region: String,
    pub(super) account: String,
    pub(super) key: String,
    endpoint: Option<String>,
    access: KmsAccess,
}

/// Credentials for AWS KMS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KmsAccess {
    /// Keys in a file in the format of the AWS tools.
    Keys {
        /// Path of the file.
        file: PathBuf,
        /// Section of the file.
        profile: String,
    },
    /// A role that is assumed with an identity token, which the platform issues and replaces.
    WebIdentity {
        /// Path of the file with the token.
        file: PathBuf,
        /// ARN of the role.
        role: String,
        /// URL of the security token service. If absent, that of AWS in the Region of the key.
        sts_endpoint: Option<String>,
    },
}

/// An error in the URI. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidKmsUri(&'static str);

impl KmsUri {
    /// Returns the credentials.
    pub const fn access(&self) -> &KmsAccess {
        &self.access
    }

    pub(super) fn endpoint(&self) -> String {
        self.endpoint.clone().unwrap_or_else(|| self.regional("kms"))
    }

    /// Returns the address of a service of AWS in the Region of the key.
    pub(super) fn regional(&self, service: &str) -> String {
        let domain = if self.arn.starts_with("arn:aws-cn:") { "amazonaws.com.cn" } else { "amazonaws.com" };
        format!("https://{service}.{}.{domain}", self.region)
    }
}

impl FromStr for KmsUri {
    type Err = InvalidKmsUri;

    fn from_str(text: &str) -> Result<Self, InvalidKmsUri> {
        let rest = text.strip_prefix("aws-kms:").ok_or(InvalidKmsUri("must begin with aws-kms:"))?;
        let (arn, query) = rest.split_once('?').unwrap_or((rest, ""));
        let parts: Vec<&str> = arn.split(':').collect();
        let ["arn", "aws" | "aws-cn" | "aws-us-gov", "kms", region, account, key] = parts[..] else {
            return Err(InvalidKmsUri("needs the key's ARN: arn:aws:kms:REGION:ACCOUNT:key/ID"));
        };
        // Reject aliases, because an alias may be reassigned to another key.
        if !key.strip_prefix("key/").is_some_and(is_name) {
            return Err(InvalidKmsUri("needs the ARN of a key (…:key/ID), not of an alias"));
        }
        if !is_name(region) || !is_name(account) {
            return Err(InvalidKmsUri("needs region and account in the key's ARN"));
        }
        let mut parameters = Parameters::default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            parameters.read(part)?;
        }
        let endpoint = parameters.endpoint.map(str::to_owned);
        Ok(Self {
            arn: arn.to_owned(),
            region: region.to_owned(),
            account: account.to_owned(),
            key: key.to_owned(),
            endpoint,
            access: parameters.access()?,
        })
    }
}

/// The parameters of a URI.
#[derive(Default)]
struct Parameters<'a> {
    credentials: Option<&'a str>,
    profile: Option<&'a str>,
    token: Option<&'a str>,
    role: Option<&'a str>,
    sts_endpoint: Option<&'a str>,
    endpoint: Option<&'a str>,
}

impl<'a> Parameters<'a> {
    fn read(&mut self, part: &'a str) -> Result<(), InvalidKmsUri> {
        let (parameter, value) = match part.split_once('=') {
            Some(("credentials-file", value)) if value.starts_with('/') => (&mut self.credentials, value),
            Some(("credentials-file", _)) => return Err(InvalidKmsUri("credentials-file= needs an absolute path")),
            Some(("profile", value)) if is_name(value) => (&mut self.profile, value),
            Some(("web-identity-token-file", value)) if value.starts_with('/') => (&mut self.token, value),
            Some(("web-identity-token-file", _)) => {
                return Err(InvalidKmsUri("web-identity-token-file= needs an absolute path"));
            }
            Some(("role-arn", value)) if is_role(value) => (&mut self.role, value),
            Some(("role-arn", _)) => {
                return Err(InvalidKmsUri("role-arn= needs the ARN of a role: arn:aws:iam::ACCOUNT:role/NAME"));
            }
            Some(("sts-endpoint", value)) if is_endpoint(value) => {
                (&mut self.sts_endpoint, value.trim_end_matches('/'))
            }
            Some(("endpoint", value)) if is_endpoint(value) => (&mut self.endpoint, value.trim_end_matches('/')),
            Some(("endpoint" | "sts-endpoint", _)) => {
                return Err(InvalidKmsUri(
                    "endpoint= and sts-endpoint= need an https URL without path, or an http one of this host",
                ));
            }
            _ => {
                return Err(InvalidKmsUri(
                    "supports credentials-file and profile, or web-identity-token-file, role-arn and sts-endpoint, and \
                     endpoint after the ?",
                ));
            }
        };
        match parameter.replace(value) {
            None => Ok(()),
            Some(_) => Err(InvalidKmsUri("names something twice")),
        }
    }

    fn access(&self) -> Result<KmsAccess, InvalidKmsUri> {
        match (self.credentials, self.token, self.role) {
            (Some(file), None, None) if self.sts_endpoint.is_none() => {
                let profile = self.profile.unwrap_or(DEFAULT_PROFILE).to_owned();
                Ok(KmsAccess::Keys { file: file.into(), profile })
            }
            (None, Some(file), Some(role)) if self.profile.is_none() => {
                let sts_endpoint = self.sts_endpoint.map(str::to_owned);
                Ok(KmsAccess::WebIdentity { file: file.into(), role: role.to_owned(), sts_endpoint })
            }
            (None, Some(_), None) => Err(InvalidKmsUri("web-identity-token-file= needs role-arn=")),
            (None, None, _) => Err(InvalidKmsUri(
                "needs the file of the credentials: ?credentials-file=/FILE or ?web-identity-token-file=/FILE&role-arn=ARN",
            )),
            _ => Err(InvalidKmsUri(
                "credentials-file and profile exclude web-identity-token-file, role-arn and sts-endpoint",
            )),
        }
    }
}

/// Returns whether `text` may be a region, an account, a key ID or a profile.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte))
}

/// Roles may have a path (`role/path/NAME`).
fn is_role(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let ["arn", "aws" | "aws-cn" | "aws-us-gov", "iam", "", account, role] = parts[..] else { return false };
    let is_role_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@+=,/".contains(&byte))
    };
    is_name(account) && role.strip_prefix("role/").is_some_and(is_role_name)
}

fn is_endpoint(text: &str) -> bool {
    let Ok(url) = url::Url::parse(text) else { return false };
    let is_local = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let has_user = !url.username().is_empty() || url.password().is_some();
    (url.scheme() == "https" || url.scheme() == "http" && is_local) && is_bare && !has_user
}

impl fmt::Display for KmsUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arn, access, endpoint, .. } = self;
        match access {
            KmsAccess::Keys { file, profile } => {
                write!(f, "aws-kms:{arn}?credentials-file={}", file.display())?;
                if profile != DEFAULT_PROFILE {
                    write!(f, "&profile={profile}")?;
                }
            }
            KmsAccess::WebIdentity { file, role, sts_endpoint } => {
                write!(f, "aws-kms:{arn}?web-identity-token-file={}&role-arn={role}", file.display())?;
                sts_endpoint.as_ref().map_or(Ok(()), |endpoint| write!(f, "&sts-endpoint={endpoint}"))?;
            }
        }
        endpoint.as_ref().map_or(Ok(()), |endpoint| write!(f, "&endpoint={endpoint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_of_aws_are_in_the_region_of_the_key() {
        for (partition, region, domain) in
            [("aws", "eu-central-1", "amazonaws.com"), ("aws-cn", "cn-north-1", "amazonaws.com.cn")]
        {
            let uri =
                format!("aws-kms:arn:{partition}:kms:{region}:1:key/x?credentials-file=/c").parse::<KmsUri>().unwrap();
            assert_eq!(uri.regional("sts"), format!("https://sts.{region}.{domain}"));
            assert_eq!(uri.endpoint(), format!("https://kms.{region}.{domain}"));
        }
    }
}
