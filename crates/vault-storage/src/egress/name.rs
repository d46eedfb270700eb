//! Names of destinations: their canonical form, patterns in settings, and the names that users may use behind a proxy.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Maximum length of a host name in bytes (RFC 1035, 2.3.4, without the final dot).
const MAX_NAME: usize = 253;
/// Maximum length of a label in bytes.
const MAX_LABEL: usize = 63;

/// Last labels of names that have a special or local use (RFC 6761, RFC 6762, RFC 9476, and names that are common in
/// internal networks). One of them is `metadata.google.internal`.
const LOCAL_LABELS: [&str; 11] =
    ["localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "arpa", "test", "invalid"];

/// Names that users may use behind a proxy without a setting: services below [`AWS_DOMAINS`], where `*` is one label.
const AWS_SERVICES: [&str; 16] = [
    "s3",
    "s3.*",
    "s3-fips.*",
    "s3.dualstack.*",
    "s3-fips.dualstack.*",
    "s3-accelerate",
    "*.s3",
    "*.s3.*",
    "*.s3-fips.*",
    "*.s3.dualstack.*",
    "*.s3-fips.dualstack.*",
    "*.s3-accelerate",
    "sts",
    "sts.*",
    "sts-fips.*",
    "*.sts.*.vpce",
];
const AWS_DOMAINS: [&str; 2] = ["amazonaws.com", "amazonaws.com.cn"];

/// The other names that users may use behind a proxy without a setting, where `*` is one label.
const BUILT_IN: [&str; 10] = [
    "*.blob.core.windows.net",
    "*.blob.core.chinacloudapi.cn",
    "*.blob.core.usgovcloudapi.net",
    "login.microsoftonline.com",
    "login.chinacloudapi.cn",
    "login.microsoftonline.us",
    "storage.googleapis.com",
    "oauth2.googleapis.com",
    "sts.googleapis.com",
    "iamcredentials.googleapis.com",
];

/// A destination in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// An IP address instead of a name.
    Address(IpAddr),
    /// Lower-case A-labels without a final dot.
    Name(String),
}

impl Host {
    /// Parses the host of a URL, with or without brackets around an IPv6 address. Returns `None` for text that is
    /// neither an address nor a host name. Such text includes names whose last label is numeric (`127.1`, `0x7f.1`),
    /// because resolvers interpret them as IPv4 addresses.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Some(Self::Address(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_label = |label: &str| {
            let is_permitted = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
            (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_permitted)
        };
        let is_name = name.len() <= MAX_NAME && name.split('.').all(is_label);
        (is_name && !is_numeric(last_label(&name))).then_some(Self::Name(name))
    }
}

fn last_label(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

/// Returns whether URL parsers and resolvers read the label as the last part of an IPv4 address.
fn is_numeric(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Returns whether the name has a special or local use, so that only an entry that equals it permits it.
pub(crate) fn is_local(name: &str) -> bool {
    !name.contains('.') || LOCAL_LABELS.contains(&last_label(name))
}

/// A pattern of host names in a setting: `HOST`, `*.SUFFIX` or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// Exactly this name.
    Exact(String),
    /// One or more labels before this suffix.
    Below(String),
    /// Every name.
    Any,
}

/// An error in a host pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a host name, or *.SUFFIX for all names below a suffix")]
pub struct InvalidHostPattern;

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        // The URL parser converts names to A-labels (UTS 46).
        let name = |text: &str| match url::Host::parse(text).ok().map(|host| Host::parse(&host.to_string())) {
            Some(Some(Host::Name(name))) => Ok(name),
            _ => Err(InvalidHostPattern),
        };
        match text.strip_prefix("*.") {
            _ if text == "*" => Ok(Self::Any),
            Some(suffix) => name(suffix).map(Self::Below),
            None => name(text).map(Self::Exact),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(suffix) => write!(f, "*.{suffix}"),
            Self::Any => f.write_str("*"),
        }
    }
}

impl HostPattern {
    /// Returns whether the pattern is a wildcard that matches only names with a special or local use. Such a pattern
    /// permits nothing behind a proxy.
    pub fn is_local_wildcard(&self) -> bool {
        matches!(self, Self::Below(suffix) if LOCAL_LABELS.contains(&last_label(suffix)))
    }

    /// Returns whether the pattern matches a canonical name.
    pub(crate) fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Below(suffix) => name
                .strip_suffix(suffix.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|rest| !rest.is_empty()),
            Self::Any => true,
        }
    }
}

/// Returns whether users may name this host behind a proxy. `name` is canonical.
pub(crate) fn permits_name(name: &str, allowed: &[HostPattern]) -> bool {
    let is_listed = || allowed.iter().any(|pattern| pattern.matches(name));
    let equals_entry = || allowed.iter().any(|pattern| matches!(pattern, HostPattern::Exact(exact) if exact == name));
    if is_local(name) { equals_entry() } else { is_built_in(name) || is_listed() }
}

fn is_built_in(name: &str) -> bool {
    let of_aws = AWS_DOMAINS.iter().any(|domain| {
        let service = name.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.'));
        service.is_some_and(|service| AWS_SERVICES.iter().any(|pattern| matches_labels(pattern, service)))
    });
    of_aws || BUILT_IN.iter().any(|pattern| matches_labels(pattern, name))
}

/// Returns whether the labels of a name are those of a pattern, where `*` is one label.
fn matches_labels(pattern: &str, name: &str) -> bool {
    let (mut expected, mut found) = (pattern.split('.'), name.split('.'));
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return true,
            (Some(expected), Some(found)) if expected == "*" || expected == found => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn patterns(texts: &[&str]) -> Vec<HostPattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn name(text: &str) -> Option<String> {
        match Host::parse(text) {
            Some(Host::Name(name)) => Some(name),
            _ => None,
        }
    }

    #[test]
    fn services_of_the_supported_clouds_need_no_entry() {
        for text in [
            "s3.amazonaws.com",
            "s3.eu-central-1.amazonaws.com",
            "exports.s3.amazonaws.com",
            "exports.s3.eu-central-1.amazonaws.com",
            "exports.s3.dualstack.eu-central-1.amazonaws.com",
            "exports.s3-fips.us-gov-west-1.amazonaws.com",
            "exports.s3-accelerate.amazonaws.com",
            "s3.cn-north-1.amazonaws.com.cn",
            "sts.amazonaws.com",
            "sts.eu-central-1.amazonaws.com",
            "sts-fips.us-east-1.amazonaws.com",
            "vpce-1-2.sts.eu-central-1.vpce.amazonaws.com",
            "acme.blob.core.windows.net",
            "login.microsoftonline.com",
            "storage.googleapis.com",
            "oauth2.googleapis.com",
        ] {
            assert!(permits_name(text, &[]), "{text}");
        }
        for text in [
            "amazonaws.com",
            "ec2.eu-central-1.amazonaws.com",
            "a.b.s3.amazonaws.com",
            "s3.amazonaws.com.example",
            "xs3.amazonaws.com",
            "blob.core.windows.net",
            "a.b.blob.core.windows.net",
            "googleapis.com",
            "compute.googleapis.com",
            "metadata.google.internal",
            "example.com",
        ] {
            assert!(!permits_name(text, &[]), "{text}");
        }
    }

    #[test]
    fn wildcard_matches_no_local_name() {
        let all = patterns(&["*", "*.example.com", "metadata.example.internal", "minio"]);
        for (text, permitted) in [
            ("example.com", true),
            ("metadata.example.internal", true),
            ("metadata.google.internal", false),
            ("minio", true),
            ("vault", false),
            ("a.localhost", false),
            ("a.corp", false),
        ] {
            assert_eq!(permits_name(text, &all), permitted, "{text}");
        }
        let below = patterns(&["*.example.com"]);
        for (text, permitted) in [("a.example.com", true), ("a.b.example.com", true), ("example.com", false)] {
            assert_eq!(permits_name(text, &below), permitted, "{text}");
        }
        assert!(!permits_name("aexample.com", &below));
    }

    #[test]
    fn names_are_compared_in_canonical_form() {
        assert_eq!(name("S3.AmazonAWS.com."), Some("s3.amazonaws.com".to_owned()));
        for refused in [
            "",
            ".",
            "a..b",
            "a.com..",
            "127.1",
            "0x7f.1",
            "0x7f",
            "a.0x",
            "1.2.3.4.",
            "2130706433",
            "a b",
            "ü.example",
            "%31.example",
        ] {
            assert_eq!(Host::parse(refused), None, "{refused}");
        }
        assert_eq!(Host::parse("[::1]"), Some(Host::Address("::1".parse().unwrap())));
        assert_eq!("Bücher.Example".parse(), Ok(HostPattern::Exact("xn--bcher-kva.example".to_owned())));
        assert_eq!("*.Bücher.example.".parse(), Ok(HostPattern::Below("xn--bcher-kva.example".to_owned())));
        for refused in ["", "*.", "**", "a.*.b", "127.0.0.1", "*.0.0.1", "[::1]", "https://a.example", "a:80"] {
            assert_eq!(refused.parse::<HostPattern>(), Err(InvalidHostPattern), "{refused}");
        }
    }

    fn label() -> impl Strategy<Value = String> {
        let words =
            [&LOCAL_LABELS[..], &["s3", "sts", "vpce", "dualstack", "amazonaws", "com", "cn", "blob", "core"]].concat();
        prop_oneof![
            3 => proptest::sample::select(words).prop_map(str::to_owned),
            2 => "[a-c0]{1,2}",
            1 => "0x[0-9a-f]{0,2}",
        ]
    }

    fn names() -> impl Strategy<Value = String> {
        let built_in = BUILT_IN.iter().map(|pattern| (*pattern).to_owned());
        let of_aws = AWS_SERVICES.iter().flat_map(|service| AWS_DOMAINS.map(|domain| format!("{service}.{domain}")));
        let patterns: Vec<String> = built_in.chain(of_aws).collect();
        let filled =
            (proptest::sample::select(patterns), label()).prop_map(|(pattern, label)| pattern.replace('*', &label));
        prop_oneof![proptest::collection::vec(label(), 1..5).prop_map(|labels| labels.join(".")), filled]
    }

    fn pattern() -> impl Strategy<Value = HostPattern> {
        prop_oneof![names().prop_map(HostPattern::Exact), names().prop_map(HostPattern::Below), Just(HostPattern::Any)]
    }

    /// The rule as the documentation states it, over lists of labels.
    fn reference(name: &str, allowed: &[HostPattern]) -> bool {
        let labels: Vec<&str> = name.split('.').collect();
        if labels.len() == 1 || LOCAL_LABELS.contains(labels.last().unwrap()) {
            return allowed.contains(&HostPattern::Exact(name.to_owned()));
        }
        let built_in = BUILT_IN.iter().map(|pattern| (*pattern).to_owned());
        let of_aws = AWS_SERVICES.iter().flat_map(|service| AWS_DOMAINS.map(|domain| format!("{service}.{domain}")));
        let is_built_in = built_in.chain(of_aws).any(|pattern| {
            let expected: Vec<&str> = pattern.split('.').collect();
            expected.len() == labels.len() && expected.iter().zip(&labels).all(|(a, b)| *a == "*" || a == b)
        });
        is_built_in
            || allowed.iter().any(|pattern| match pattern {
                HostPattern::Exact(exact) => exact == name,
                HostPattern::Below(suffix) => {
                    let suffix: Vec<&str> = suffix.split('.').collect();
                    labels.len() > suffix.len() && labels[labels.len() - suffix.len()..] == suffix
                }
                HostPattern::Any => true,
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn name_rule_matches_reference(
            name in names(), allowed in proptest::collection::vec(pattern(), 0..4)
        ) {
            prop_assert_eq!(permits_name(&name, &allowed), reference(&name, &allowed), "{}", name);
        }

        #[test]
        fn numeric_names_are_refused(text in names()) {
            if matches!(url::Host::parse(&text), Ok(url::Host::Ipv4(_)) | Err(_)) {
                prop_assert_eq!(name(&text), None);
            }
        }

        #[test]
        fn canonical_form_is_stable(text in "[a-zA-Z0-9._-]{0,12}") {
            if let Some(found) = name(&text) {
                prop_assert_eq!(name(&found), Some(found.clone()));
                prop_assert_eq!(name(&format!("{}.", found.to_ascii_uppercase())), Some(found));
            }
        }

        #[test]
        fn pattern_round_trips(pattern in pattern()) {
            if let Ok(parsed) = pattern.to_string().parse::<HostPattern>() {
                prop_assert_eq!(parsed, pattern);
            }
        }
    }
}
