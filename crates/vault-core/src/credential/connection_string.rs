//! Connection strings of Azure storage: `key=value` segments between semicolons.

use super::shape::{is_domain, is_token, web_address};
use super::spec::FieldClass;
use super::value::{FieldAt, FieldValue};
use super::violation::Violation;
use super::{AzureCloud, SecretText, hygiene, instant};
use crate::field::{FieldCode, FieldError};
use crate::json::{Node, write_text};
use crate::time::Timestamp;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode_str;
use std::collections::HashSet;
use zeroize::Zeroizing;

const ACCOUNT_KEY: &str = "AccountKey";
const ACCOUNT_NAME: &str = "AccountName";
const ENDPOINT_SUFFIX: &str = "EndpointSuffix";
const SIGNATURE: &str = "SharedAccessSignature";
/// Services of an account, as they appear in host names.
const SERVICES: [&str; 6] = ["blob", "dfs", "file", "queue", "table", "web"];
/// Suffixes of the account in its other host names: second region, routing and address families.
const VARIANTS: [&str; 6] =
    ["-secondary-dualstack", "-secondary", "-microsoftrouting", "-internetrouting", "-ipv6", "-dualstack"];

/// As lenient as the programs that read the key.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A connection string, stored as entered.
#[derive(Debug)]
pub struct ConnectionString(SecretText);

impl ConnectionString {
    /// Returns the whole string. Every call states in a comment why it needs it.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Returns the storage account's name: 3 to 24 lower-case letters and digits, so that the value cannot contain a
    /// secret. Read from `AccountName`, otherwise from the host of an endpoint.
    pub fn account_name(&self) -> Option<&str> {
        // Only the public part is returned.
        let text = self.expose();
        part(text, ACCOUNT_NAME)
            .or_else(|| endpoints(text).find_map(|address| AccountHost::of(address).map(|host| host.account)))
            .filter(|name| {
                name.len() >= 3 && is_token(name, 24, b"") && !name.contains(|c: char| c.is_ascii_uppercase())
            })
    }

    /// Returns the endpoint suffix of the account's cloud, in lower case, such as `core.windows.net`. Returns `None` if
    /// the endpoints are custom domains without an `EndpointSuffix`, or belong to different clouds.
    pub fn endpoint_suffix(&self) -> Option<String> {
        let text = self.expose(); // A suffix is not secret.
        let suffixes = suffixes(text);
        let Some((first, rest)) = suffixes.split_first() else {
            let is_custom = endpoints(text).next().is_some();
            return (!is_custom).then(|| AzureCloud::Public.endpoint_suffix().to_owned());
        };
        rest.iter().all(|other| same_cloud(first, other)).then(|| first.clone())
    }

    /// Returns the cloud of the account, or `None` if its directory is unknown.
    pub fn cloud(&self) -> Option<AzureCloud> {
        AzureCloud::of_suffix(&self.endpoint_suffix()?)
    }

    /// Returns the address of the account's blobs, if it is stated.
    pub fn stated_blob_endpoint(&self) -> Option<&str> {
        // An address is not secret.
        part(self.expose(), "BlobEndpoint").filter(|address| web_address(address).is_some())
    }

    /// Returns the account key, which gives access to the whole account. Every call states in a comment why it needs
    /// it.
    pub fn account_key(&self) -> Option<&str> {
        part(self.expose(), ACCOUNT_KEY) // The caller states the reason.
    }

    /// Returns the shared access signature as the query of an address. Every call states in a comment why it needs it.
    pub fn shared_access_signature(&self) -> Option<&str> {
        part(self.expose(), SIGNATURE).map(|signature| signature.trim_start_matches('?')) // The caller states the reason.
    }

    /// Returns the address of the account's blobs: the stated one, or the default for this account name in the cloud of
    /// its other endpoints.
    pub fn blob_endpoint(&self) -> Option<String> {
        let text = self.expose(); // Only parts that are not secret are returned.
        if let Some(stated) = self.stated_blob_endpoint() {
            return Some(stated.trim_end_matches('/').to_owned());
        }
        if let Some(host) = endpoints(text).find_map(AccountHost::of) {
            return Some(format!("{}blob.{}", host.before, host.after));
        }
        let name = self.account_name()?;
        let suffix = self.endpoint_suffix()?;
        let scheme = part(text, "DefaultEndpointsProtocol").unwrap_or("https");
        let address = format!("{scheme}://{name}.blob.{suffix}");
        web_address(&address).map(|_| address)
    }

    /// Returns the expiry of the shared access signature, if it contains one.
    pub fn signature_expiry(&self) -> Option<Timestamp> {
        let signature = self.shared_access_signature()?; // Only a time is returned.
        let mut ends = signature.split('&').filter_map(|pair| pair.strip_prefix("se="));
        let end = ends.next().filter(|_| ends.next().is_none())?;
        let end = percent_decode_str(end).decode_utf8().ok()?;
        instant::parse(&end)
    }

    /// Returns whether the string contains an account key, which gives access to the whole account.
    pub fn has_account_key(&self) -> bool {
        part(self.expose(), ACCOUNT_KEY).is_some() // Only its presence is returned.
    }

    /// Returns whether the string contains a shared access signature.
    pub fn has_signature(&self) -> bool {
        part(self.expose(), SIGNATURE).is_some() // Only its presence is returned.
    }
}

/// Returns the key, if any, and the value of each segment.
fn segments(text: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    text.strip_suffix(';').unwrap_or(text).split(';').map(|segment| match segment.split_once('=') {
        Some((key, value)) => (Some(key), value),
        None => (None, segment),
    })
}

fn part<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    segments(text).find(|(key, _)| key.is_some_and(|key| key.eq_ignore_ascii_case(name))).map(|(_, value)| value)
}

fn is_endpoint(key: &str) -> bool {
    key.to_ascii_lowercase().ends_with("endpoint")
}

/// Returns the addresses of the account's services, those of blobs first.
fn endpoints(text: &str) -> impl Iterator<Item = &str> {
    let first = ["BlobEndpoint", "DfsEndpoint"];
    let rest = segments(text).filter_map(move |(key, value)| {
        let key = key.filter(|key| is_endpoint(key))?;
        (!first.iter().any(|name| name.eq_ignore_ascii_case(key))).then_some(value)
    });
    first.into_iter().filter_map(move |name| part(text, name)).chain(rest)
}

/// Returns the endpoint suffixes in the string, in lower case.
fn suffixes(text: &str) -> Vec<String> {
    let of_endpoints = endpoints(text).filter_map(AccountHost::of).map(|host| host.suffix);
    part(text, ENDPOINT_SUFFIX).into_iter().chain(of_endpoints).map(str::to_ascii_lowercase).collect()
}

/// Parts of an address that Azure assigns to an account, such as `https://account.blob.core.windows.net`,
/// `https://account.z07.blob.storage.azure.net` or `https://account-secondary.privatelink.blob.core.windows.net`.
struct AccountHost<'a> {
    account: &'a str,
    /// Part before the service, with the scheme.
    before: &'a str,
    /// Part after the service, with a port.
    after: &'a str,
    /// Part after the service, without a port.
    suffix: &'a str,
}

impl<'a> AccountHost<'a> {
    fn of(address: &'a str) -> Option<Self> {
        web_address(address)?;
        let scheme = address.find("://")? + "://".len();
        let end = address.get(scheme..)?.find(['/', '?', '#']).map_or(address.len(), |length| scheme + length);
        let (label, mut rest) = address.get(scheme..end)?.split_once('.')?;
        loop {
            let before = address.get(..end - rest.len())?;
            let (service, after) = rest.split_once('.')?;
            if SERVICES.iter().any(|name| name.eq_ignore_ascii_case(service)) {
                let account = VARIANTS.iter().find_map(|variant| label.strip_suffix(variant)).unwrap_or(label);
                let suffix = after.split(':').next()?.trim_end_matches('.');
                return Some(Self { account, before, after, suffix });
            }
            if !is_between(service) {
                return None;
            }
            rest = after;
        }
    }
}

/// Returns whether Azure inserts this label between an account and its service: a DNS zone, or the label of a private
/// endpoint.
fn is_between(label: &str) -> bool {
    let zone = label.strip_prefix(['z', 'Z']);
    let is_zone =
        zone.is_some_and(|digits| (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()));
    is_zone || label.eq_ignore_ascii_case("privatelink")
}

/// Returns whether two endpoint suffixes belong to one cloud.
fn same_cloud(one: &str, other: &str) -> bool {
    one == other || AzureCloud::of_suffix(one).is_some_and(|cloud| AzureCloud::of_suffix(other) == Some(cloud))
}

/// Validates a new connection string, which has passed the checks for all fields.
fn check(text: &str) -> Result<(), Violation> {
    let malformed = |detail: &'static str| Err(Violation::new(FieldCode::Malformed, detail));
    let mut seen = HashSet::new();
    let mut located = false;
    for (key, value) in segments(text) {
        let Some(key) = key.filter(|key| is_token(key, 64, b"")) else {
            return malformed("must consist of key=value pairs separated by semicolons");
        };
        if !seen.insert(key.to_ascii_lowercase()) {
            return malformed("must not repeat a key");
        }
        if key.eq_ignore_ascii_case(ACCOUNT_KEY) {
            hygiene::check(value, FieldClass::Secret).map_err(|violation| violation.of("its AccountKey"))?;
            if BASE64.decode(value).map(Zeroizing::new).is_err() {
                return malformed("has an AccountKey that is not base64");
            }
        } else if key.eq_ignore_ascii_case(SIGNATURE) {
            hygiene::check(value, FieldClass::Secret).map_err(|violation| violation.of("its SharedAccessSignature"))?;
            check_signature(value)?;
        } else {
            hygiene::check(value, FieldClass::Location).map_err(|violation| violation.of("one of its values"))?;
        }
        if is_endpoint(key) {
            if web_address(value).is_none() {
                return malformed("has an endpoint that does not begin with https:// or http://");
            }
            located = true;
        }
        located |= key.eq_ignore_ascii_case(ACCOUNT_NAME);
    }
    if part(text, ENDPOINT_SUFFIX).is_some_and(|suffix| !is_domain(&suffix.to_ascii_lowercase())) {
        return malformed("has an EndpointSuffix that is not a domain such as core.windows.net");
    }
    let mut clouds = suffixes(text).into_iter().filter_map(|suffix| AzureCloud::of_suffix(&suffix));
    if let Some(first) = clouds.next()
        && clouds.any(|cloud| cloud != first)
    {
        return malformed("must not name endpoints of different clouds");
    }
    if !located {
        return malformed(
            "must contain AccountName or an endpoint; the local emulator (UseDevelopmentStorage) is not supported",
        );
    }
    Ok(())
}

/// Checks that a shared access signature can be the query of an address unchanged: base64 and times contain no percent
/// sign, and a plus sign would be a space.
fn check_signature(query: &str) -> Result<(), Violation> {
    let malformed = |detail| Err(Violation::new(FieldCode::Malformed, detail));
    if query.contains("%25") {
        return malformed("has a SharedAccessSignature that is percent-encoded twice: decode it once");
    }
    let signature = query.split(['?', '&']).find_map(|pair| pair.strip_prefix("sig="));
    if signature.is_some_and(|signature| signature.contains('+')) {
        return malformed(
            "has a SharedAccessSignature that is not percent-encoded: write + as %2B, / as %2F, = as %3D",
        );
    }
    Ok(())
}

impl FieldValue for ConnectionString {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        let text = field.text(node)?;
        field.validate(|| check(text.expose()))?; // The result contains only fixed text.
        Ok(Self(text))
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        write_text(self.expose(), sink); // The caller's sink determines the destination.
    }

    fn texts(&self, each: &mut dyn FnMut(&str)) {
        // For comparison with the fields that are not secret.
        let text = self.expose();
        each(text);
        [ACCOUNT_KEY, SIGNATURE].into_iter().filter_map(|name| part(text, name)).for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_the_usual_forms() {
        for text in [
            "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=c2VjcmV0;EndpointSuffix=core.windows.net",
            "AccountName=acct;AccountKey=c2VjcmV0Pw==;",
            "BlobEndpoint=https://acct.blob.core.windows.net/;SharedAccessSignature=sv=2024-01-01&sig=abc%3D",
            "AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;",
        ] {
            assert!(check(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn unparsable_text_is_refused() {
        for (text, code) in [
            ("nonsense", FieldCode::Malformed),
            ("AccountKey=c2VjcmV0", FieldCode::Malformed),
            ("UseDevelopmentStorage=true", FieldCode::Malformed),
            ("AccountName=acct;;AccountKey=c2VjcmV0", FieldCode::Malformed),
            ("AccountName=acct;accountname=acct", FieldCode::Malformed),
            ("AccountName=acct;AccountKey=not/base64!", FieldCode::Malformed),
            ("AccountName=acct;AccountKey=", FieldCode::Blank),
            ("AccountName=acct;AccountKey=***", FieldCode::Masked),
            ("AccountName=acct;AccountKey=<your-key>", FieldCode::Placeholder),
            ("AccountName= acct", FieldCode::Surrounded),
            ("BlobEndpoint=acct.blob.core.windows.net", FieldCode::Malformed),
            ("AccountName=acct;EndpointSuffix=.core.windows.net", FieldCode::Malformed),
            ("AccountName=acct;EndpointSuffix=https://core.windows.net", FieldCode::Malformed),
            (
                "BlobEndpoint=https://acct.blob.core.windows.net;EndpointSuffix=core.usgovcloudapi.net",
                FieldCode::Malformed,
            ),
            ("BlobEndpoint=https://a.example;SharedAccessSignature=sv=2024-11-04&sig=a/b+c=", FieldCode::Malformed),
            ("BlobEndpoint=https://a.example;SharedAccessSignature=sv=2024-11-04%26sig=a%252Bc", FieldCode::Malformed),
        ] {
            assert_eq!(check(text).err().map(|violation| violation.code), Some(code), "{text}");
        }
    }

    #[test]
    fn account_is_parsed_in_exact_form_only() {
        let name = |text: &str| ConnectionString(text.into()).account_name().map(str::to_owned);
        for text in [
            "AccountName=acct1",
            "BlobEndpoint=https://acct1.blob.core.windows.net",
            "blobendpoint=HTTPS://acct1.blob.core.chinacloudapi.cn:443/",
            "DfsEndpoint=https://acct1.dfs.core.usgovcloudapi.net/",
            "BlobEndpoint=https://acct1.z07.blob.storage.azure.net/",
            "BlobEndpoint=https://acct1-secondary.z7.blob.storage.azure.net/",
            "BlobEndpoint=https://acct1-secondary.blob.core.windows.net/",
            "BlobEndpoint=https://acct1.privatelink.blob.core.windows.net/",
            "BlobEndpoint=https://acct1.blob.local.azurestack.external/",
            "BlobEndpoint=https://data.example.com;QueueEndpoint=https://acct1.queue.core.windows.net",
        ] {
            assert_eq!(name(text).as_deref(), Some("acct1"), "{text}");
        }
        for text in [
            "AccountName=Not-An-Account",
            "AccountName=c2VjcmV0Pw==",
            "BlobEndpoint=https://token.example.com",
            "BlobEndpoint=https://data.web1.blob.example.com",
            "BlobEndpoint=https://blob.example.com",
            "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1",
            "",
        ] {
            assert_eq!(name(text), None, "{text}");
        }
    }

    #[test]
    fn cloud_follows_from_suffix_or_endpoints() {
        let read = |text: &str| {
            let connection = ConnectionString(text.into());
            (connection.endpoint_suffix(), connection.cloud())
        };
        for (text, suffix, cloud) in [
            ("AccountName=acct", "core.windows.net", Some(AzureCloud::Public)),
            ("BlobEndpoint=https://a.z07.blob.storage.azure.net/", "storage.azure.net", Some(AzureCloud::Public)),
            (
                "BlobEndpoint=https://acct.blob.core.usgovcloudapi.net",
                "core.usgovcloudapi.net",
                Some(AzureCloud::UsGovernment),
            ),
            ("AccountName=acct;ENDPOINTSUFFIX=Core.ChinaCloudApi.cn", "core.chinacloudapi.cn", Some(AzureCloud::China)),
            ("DfsEndpoint=https://acct.dfs.core.cloudapi.de", "core.cloudapi.de", Some(AzureCloud::Germany)),
            (
                "BlobEndpoint=https://data.example.com;EndpointSuffix=core.windows.net",
                "core.windows.net",
                Some(AzureCloud::Public),
            ),
            ("AccountName=acct;EndpointSuffix=local.azurestack.external", "local.azurestack.external", None),
        ] {
            assert_eq!(read(text), (Some(suffix.to_owned()), cloud), "{text}");
        }
        for text in [
            "BlobEndpoint=https://data.example.com",
            "AccountName=acct;BlobEndpoint=http://127.0.0.1:10000/acct",
            "BlobEndpoint=https://acct.blob.core.windows.net;DfsEndpoint=https://acct.dfs.core.usgovcloudapi.net",
        ] {
            assert_eq!(read(text), (None, None), "{text}");
        }
    }

    #[test]
    fn blob_endpoint_is_in_cloud_of_account() {
        let endpoint = |text: &str| ConnectionString(text.into()).blob_endpoint();
        for (text, address) in [
            ("AccountName=acct", "https://acct.blob.core.windows.net"),
            ("AccountName=acct;EndpointSuffix=core.chinacloudapi.cn", "https://acct.blob.core.chinacloudapi.cn"),
            ("DfsEndpoint=https://acct.dfs.core.usgovcloudapi.net/", "https://acct.blob.core.usgovcloudapi.net"),
            (
                "QueueEndpoint=http://acct.z1.queue.storage.azure.net:8080/",
                "http://acct.z1.blob.storage.azure.net:8080",
            ),
            ("AccountName=acct;BlobEndpoint=https://data.example.com/", "https://data.example.com"),
        ] {
            assert_eq!(endpoint(text).as_deref(), Some(address), "{text}");
        }
        assert_eq!(endpoint("AccountName=acct;TableEndpoint=https://tables.example.com"), None);
    }
}
