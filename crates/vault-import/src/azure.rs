//! Azure connection strings, built from the account and cloud that an entry names.

use crate::Violation;
use crate::reading::{Fields, Sorted};
use crate::table::{normal, table};

const PUBLIC: &str = "core.windows.net";

/// The account and the cloud suffix from an address, a host or a cloud's suffix.
#[derive(Default)]
struct Address {
    account: Option<String>,
    suffix: Option<String>,
    url: Option<String>,
}

impl Address {
    fn parse(given: &str) -> Option<Self> {
        let lower = given.to_ascii_lowercase();
        let (scheme, rest) = match lower.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (Some(scheme), rest),
            Some(_) => return None,
            None => (None, &*lower),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
        let (host, port) = authority.split_once(':').map_or((authority, ""), |(host, port)| (host, port));
        let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let is_host = !host.is_empty() && host.split('.').all(is_name);
        if !is_host || !is_name(path) || !port.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let url = Some(format!("{}://{rest}", scheme.unwrap_or("https")));
        if table().azure_clouds.contains_key(host) {
            return Some(Self { suffix: Some(host.to_owned()), ..Self::default() });
        }
        let labels: Vec<&str> = host.split('.').collect();
        let service = labels.iter().position(|label| table().azure_services.iter().any(|name| name == label));
        let account = labels.first().map(|label| (*label).to_owned());
        Some(match (service, scheme) {
            (Some(0), _) => Self { suffix: Some(labels[1..].join(".")), ..Self::default() },
            (Some(1), _) => Self { account, suffix: Some(labels[2..].join(".")), url },
            (Some(_), _) => Self { account, suffix: None, url },
            (None, None) if labels.len() == 1 && port.is_empty() => Self { account, ..Self::default() },
            (None, Some(_)) => Self { url, ..Self::default() },
            (None, None) => Self { suffix: Some(host.to_owned()), ..Self::default() },
        })
    }
}

/// Returns the cloud suffix of a connection string, or an empty string if it is not recognized.
fn suffix_of(connection: &str) -> String {
    let segments = || connection.split(';').filter_map(|segment| segment.split_once('='));
    let find = |wanted: &dyn Fn(&str) -> bool| {
        segments().find(|(name, _)| wanted(&name.trim().to_ascii_lowercase())).map(|(_, value)| value.trim())
    };
    match (find(&|name| name == "endpointsuffix"), find(&|name| name.ends_with("endpoint"))) {
        (Some(suffix), _) => suffix.to_ascii_lowercase(),
        (None, Some(endpoint)) => Address::parse(endpoint).and_then(|address| address.suffix).unwrap_or_default(),
        (None, None) => PUBLIC.to_owned(),
    }
}

/// Returns the suffix of a cloud, given any of its names.
fn cloud(named: &str) -> Option<&'static str> {
    let lower = named.to_ascii_lowercase();
    let host = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://")).unwrap_or(&lower);
    let name = normal(host);
    let mut clouds = table().azure_clouds.iter();
    clouds.find(|(suffix, names)| **suffix == lower || names.contains(&name)).map(|(suffix, _)| suffix.as_str())
}

pub(crate) fn read(sorted: &Sorted, fields: &mut Fields) -> Result<(), Violation> {
    let named = sorted.text("cloud");
    let cloud = cloud(&named);
    if !named.is_empty() && cloud.is_none() {
        return Err(sorted.violation("cloud", "cloud"));
    }
    let given = sorted.text("address");
    let location = if given.is_empty() { Some(Address::default()) } else { Address::parse(&given) };
    let Some(mut location) = location else { return Err(sorted.violation("address", "address")) };
    let key = sorted.text("account_key");
    let sas = sorted.text("sas");
    // Airflow accepts a whole URL as `sas_token`.
    let is_url = ["https://", "http://"].iter().any(|scheme| sas.to_ascii_lowercase().starts_with(scheme));
    let (url, sas, url_field) = match is_url {
        true => (sas, String::new(), "sas"),
        false => (sorted.text("sas_url"), sas.trim_start_matches('?').to_owned(), "sas_url"),
    };
    let mut account = sorted.text("account").to_lowercase();
    if account.contains('.') {
        let whole = Address::parse(&account).unwrap_or_default();
        location.suffix = location.suffix.or(whole.suffix);
        account = whole.account.ok_or_else(|| sorted.violation("account", "address"))?;
    }
    if let Some(other) = &location.account {
        if !account.is_empty() && *other != account {
            return Err(sorted.violation("address", "other-account"));
        }
        account.clone_from(other);
    }
    if cloud.is_some() && location.suffix.as_deref().is_some_and(|suffix| Some(suffix) != cloud) {
        return Err(sorted.violation("cloud", "other-cloud"));
    }
    sorted.copy("container", fields);
    sorted.copy("key_prefix", fields);
    let opens_by_key = !account.is_empty() && !key.is_empty();
    let mut connection = None;
    if !url.is_empty() && !opens_by_key {
        let signed = url.split_once('?').filter(|(_, signature)| !signature.is_empty());
        let Some((address, signature)) = signed else { return Err(sorted.violation(url_field, "sas")) };
        let (scheme, rest) = address.split_once("://").unwrap_or_default();
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !matches!(&*scheme.to_ascii_lowercase(), "http" | "https") || host.is_empty() {
            return Err(sorted.violation(url_field, "sas"));
        }
        let container = path.split('/').next().unwrap_or_default();
        if !container.is_empty() && !sorted.has("container") {
            fields.set("container", container, sorted.line(url_field), sorted.called(url_field));
        }
        connection = Some((format!("BlobEndpoint={scheme}://{host};SharedAccessSignature={signature}"), url_field));
    } else if sorted.has("connection_string") && !opens_by_key {
        let text = sorted.text("connection_string");
        let own = suffix_of(&text);
        if cloud.is_some_and(|cloud| cloud != own) {
            return Err(sorted.violation("cloud", "other-cloud"));
        }
        if location.suffix.is_some_and(|suffix| suffix != own) {
            return Err(sorted.violation("address", "other-cloud"));
        }
        connection = Some((text, "connection_string"));
    } else if !account.is_empty() {
        let suffix = location.suffix.as_deref().filter(|suffix| !suffix.is_empty()).or(cloud).unwrap_or(PUBLIC);
        let has_own_address = location.url.is_some() && location.suffix.is_none();
        let is_known = table().azure_clouds.contains_key(suffix) && !has_own_address;
        let blob = location.url.as_ref().filter(|_| !is_known).cloned();
        let blob = blob.unwrap_or_else(|| format!("https://{account}.blob.{suffix}"));
        let end = if is_known { format!("EndpointSuffix={suffix}") } else { format!("BlobEndpoint={blob}") };
        let field = ["account_key", "sas", "account", "address"].into_iter().find(|field| sorted.has(field));
        let text = if !sas.is_empty() && key.is_empty() {
            format!("BlobEndpoint={blob};SharedAccessSignature={sas}")
        } else {
            let key = if key.is_empty() { String::new() } else { format!("AccountKey={key};") };
            format!("DefaultEndpointsProtocol=https;AccountName={account};{key}{end}")
        };
        connection = Some((text, field.unwrap_or("account")));
    } else if !given.is_empty() {
        return Err(sorted.violation("address", "account-needed"));
    }
    let opens = connection.as_ref().is_some_and(|(text, _)| {
        let keys = ["accountkey=", "sharedaccesssignature="];
        text.to_ascii_lowercase().split(';').any(|segment| keys.iter().any(|key| segment.trim().starts_with(key)))
    });
    let identity = ["tenant_id", "client_id", "client_secret"].map(|field| (field, sorted.has(field)));
    let is_complete = identity.iter().all(|(_, has)| *has);
    for (field, _) in identity.into_iter().filter(|(_, has)| *has) {
        if !opens || is_complete {
            sorted.copy(field, fields);
        } else {
            fields.left_out.push(sorted.called(field).to_owned());
        }
    }
    match connection {
        Some((text, field)) => fields.set("connection_string", text, sorted.line(field), sorted.called(field)),
        None if sorted.has("cloud") => fields.needs = Some(sorted.violation("cloud", "account-needed")),
        None => fields.needs = Some(Violation::of(sorted.line, "account_name", "account-needed")),
    }
    Ok(())
}
