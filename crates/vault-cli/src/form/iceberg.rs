//! Properties with which an Iceberg catalog accesses its files (iceberg.apache.org: "AWS", "Azure", "GCP";
//! py.iceberg.apache.org: "Configuration"), as JSON. If Java and Python use different names of a property, both are
//! included.

use super::{
    AzureAccess, Form, FormError, FormSubject, S3View, copied, gather, spelt, unusual_blob_endpoint,
    unusual_google_endpoint,
};
use url::Url;
use vault_core::activation::{AzureShort, ShortData, Vended};
use vault_core::credential::{AzureCloud, AzureIdentity, CredentialData, SecretText};
use vault_core::json::{ObjectWriter, write_text};

const FORM: Form = Form::Iceberg;

type Property = (String, SecretText);

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let properties = properties(subject)?;
    Ok(gather(|sink| {
        let mut object = ObjectWriter::new(sink);
        for (name, value) in &properties {
            write_text(value.expose(), object.member(name)); // The properties are for the client that activates.
        }
        object.end();
        sink("\n");
    }))
}

fn properties(subject: &FormSubject<'_>) -> Result<Vec<Property>, FormError> {
    if let Some(view) = S3View::of(subject.vended) {
        return Ok(s3(&view));
    }
    match subject.vended {
        Vended::Raw(CredentialData::AzureIdentity(data)) => azure_raw(data),
        Vended::Short { data: ShortData::AzureIdentity(data), .. } => azure_short(data),
        Vended::Raw(CredentialData::Gcs(_)) => {
            let reason = "Iceberg requires an access token: activate with --vend short";
            Err(FORM.unrepresentable("service_account_key", reason))
        }
        Vended::Short { data: ShortData::Gcs(data), .. } => Ok(named([
            ("gcs.oauth2.token", copied(data.access_token.expose())),
            ("gcs.service.host", unusual_google_endpoint(data.universe_domain.as_deref()).as_deref().and_then(copied)),
            ("gcs.oauth2.token-expires-at", copied(&subject.ends_at().as_millis().to_string())),
        ])),
        other => Err(FORM.not_for_type(other.kind())),
    }
}

fn named<'a>(all: impl IntoIterator<Item = (&'a str, Option<SecretText>)>) -> Vec<Property> {
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn s3(view: &S3View<'_>) -> Vec<Property> {
    let addressing = view.stated_addressing();
    named([
        ("s3.access-key-id", copied(view.access_key_id)),
        ("s3.secret-access-key", copied(view.secret_access_key)),
        ("s3.session-token", view.session_token.and_then(copied)),
        ("s3.region", view.region.and_then(copied)),
        ("client.region", view.region.and_then(copied)),
        ("s3.endpoint", view.endpoint.and_then(copied)),
        ("s3.path-style-access", spelt(addressing, "false", "true")),
        ("s3.force-virtual-addressing", spelt(addressing, "true", "false")),
        ("s3.sse.type", view.sse_kms_key_id.and_then(|_| copied("kms"))),
        ("s3.sse.key", view.sse_kms_key_id.and_then(copied)),
    ])
}

fn azure_raw(data: &AzureIdentity) -> Result<Vec<Property>, FormError> {
    let connection = &data.connection_string;
    let account = connection.account_name().ok_or(FORM.missing("an account name in the connection string"))?;
    let application = match AzureAccess::of_public_cloud(FORM, data)? {
        AzureAccess::Application(application, _) => application,
        access => {
            let key = if let AzureAccess::Key(key) = access { Some(key) } else { None };
            return Ok(named([
                ("adls.account-name", copied(account)),
                ("adls.connection-string", copied(connection.expose())), // Goes where the credential goes.
                ("adls.auth.shared-key.account.name", key.and_then(|_| copied(account))),
                ("adls.auth.shared-key.account.key", key.and_then(copied)),
            ]));
        }
    };
    let host = connection.blob_endpoint().map(|endpoint| account_host(account, endpoint)).transpose()?.flatten();
    Ok(named([
        ("adls.account-name", copied(account)),
        ("adls.account-host", host.as_deref().and_then(copied)),
        ("adls.tenant-id", copied(application.tenant_id)),
        ("adls.client-id", copied(application.client_id.expose())),
        ("adls.client-secret", copied(application.client_secret.expose())),
    ]))
}

/// Returns the host of an account's blobs, unless it is the default.
fn account_host(account: &str, endpoint: String) -> Result<Option<String>, FormError> {
    let Some(endpoint) = unusual_blob_endpoint(account, endpoint) else { return Ok(None) };
    let url =
        Url::parse(&endpoint).ok().filter(|url| url.scheme() == "https" && url.port().is_none() && url.path() == "/");
    let host = url.and_then(|url| url.host_str().map(str::to_owned));
    let reason = "Iceberg supports an account only at https://HOST, without a port or path";
    host.map(Some).ok_or(FORM.unrepresentable("connection_string", reason))
}

/// Returns the host under which Java looks up a signature: that of the account's files.
fn files_host(account: &str, host: Option<&str>) -> String {
    let host = host.map(|host| host.replacen(".blob.", ".dfs.", 1));
    host.unwrap_or_else(|| format!("{account}.dfs.{}", AzureCloud::Public.endpoint_suffix()))
}

fn azure_short(data: &AzureShort) -> Result<Vec<Property>, FormError> {
    let token = || copied(data.sas_token.expose()); // Goes where the credential goes.
    let host = account_host(&data.account_name, data.endpoint.trim_end_matches('/').to_owned())?;
    let mut properties = named([
        ("adls.account-name", copied(&data.account_name)),
        ("adls.account-host", host.as_deref().and_then(copied)),
        ("adls.sas-token", token()),
    ]);
    let of_java = format!("adls.sas-token.{}", files_host(&data.account_name, host.as_deref()));
    properties.extend(token().map(|token| (of_java, token)));
    Ok(properties)
}
