//! Properties for Spark and its Hadoop file systems ("Hadoop-AWS: S3A", "Hadoop Azure: ABFS"), as `spark-submit
//! --properties-file` reads them. Those for S3 apply only to the credential's buckets.

use super::{AzureAccess, Form, FormError, FormSubject, S3View, copied, gather, is_plain_http, spelt};
use url::Url;
use vault_core::activation::{AzureShort, ShortData, Vended};
use vault_core::credential::{AzureIdentity, CredentialData, SecretText};

const FORM: Form = Form::Hadoop;
const PROVIDERS: &str = "org.apache.hadoop.fs.s3a.";

/// Name and value of a property.
type Property = (String, SecretText);

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let properties = properties(subject.vended)?;
    // Spark trims values.
    let is_cut = |value: &str| value.starts_with(|c| c <= ' ') || value.ends_with(|c| c <= ' ');
    if properties.iter().any(|(_, value)| is_cut(value.expose())) {
        return Err(FORM.unrepresentable("value", "it starts or ends with a space"));
    }
    Ok(gather(|sink| {
        for (name, value) in &properties {
            sink("spark.hadoop.");
            escape(name, ":= #!", sink);
            sink("=");
            escape(value.expose(), "", sink); // The properties are for the client that activates.
            sink("\n");
        }
    }))
}

/// Escapes text for `java.util.Properties`. `meant` contains the special characters in this position.
fn escape(text: &str, meant: &str, sink: &mut dyn FnMut(&str)) {
    for c in text.chars() {
        match c {
            '\\' => sink("\\\\"),
            c if meant.contains(c) => {
                sink("\\");
                sink(c.encode_utf8(&mut [0; 4]));
            }
            ' '..='~' => sink(c.encode_utf8(&mut [0; 4])),
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| sink(&format!("\\u{unit:04x}"))),
        }
    }
}

fn properties(vended: &Vended) -> Result<Vec<Property>, FormError> {
    if let Some(view) = S3View::of(vended) {
        return Ok(view.buckets.iter().flat_map(|bucket| s3(&view, bucket)).collect());
    }
    match vended {
        Vended::Raw(CredentialData::AzureIdentity(data)) => azure_raw(data),
        Vended::Short { data: ShortData::AzureIdentity(data), .. } => azure_short(data),
        // Google's connector requires a key in a file (`gcp-key-file`), and does not support access tokens.
        other => Err(FORM.not_for_type(other.kind())),
    }
}

/// Returns the properties that have a value, with the prefix `prefix`.
fn named<'a>(prefix: &str, all: impl IntoIterator<Item = (&'a str, Option<SecretText>)>) -> Vec<Property> {
    all.into_iter().filter_map(|(name, value)| Some((format!("{prefix}{name}"), value?))).collect()
}

fn s3(view: &S3View<'_>, bucket: &str) -> Vec<Property> {
    let provider = if view.session_token.is_some() { "Temporary" } else { "Simple" };
    let is_plain = is_plain_http(view.endpoint);
    named(
        &format!("fs.s3a.bucket.{bucket}."),
        [
            ("aws.credentials.provider", copied(&format!("{PROVIDERS}{provider}AWSCredentialsProvider"))),
            ("access.key", copied(view.access_key_id)),
            ("secret.key", copied(view.secret_access_key)),
            ("session.token", view.session_token.and_then(copied)),
            ("endpoint.region", view.region.and_then(copied)),
            ("endpoint", view.endpoint.and_then(copied)),
            ("connection.ssl.enabled", if is_plain { copied("false") } else { None }),
            ("path.style.access", spelt(view.stated_addressing(), "false", "true")),
            ("encryption.algorithm", view.sse_kms_key_id.and_then(|_| copied("SSE-KMS"))),
            ("encryption.key", view.sse_kms_key_id.and_then(copied)),
        ],
    )
}

/// Returns the host of an account's files, derived from the URL of its blobs.
fn files_host(endpoint: &str) -> Result<String, FormError> {
    let host = Url::parse(endpoint).ok().and_then(|url| url.host_str().map(str::to_owned));
    let of_azure = host.and_then(|host| host.split_once(".blob.").map(|(name, domain)| format!("{name}.dfs.{domain}")));
    of_azure.ok_or(
        FORM.unrepresentable("connection_string", "ABFS needs an account at a host such as NAME.blob.core.windows.net"),
    )
}

fn azure_raw(data: &AzureIdentity) -> Result<Vec<Property>, FormError> {
    let connection = &data.connection_string;
    let endpoint = connection.blob_endpoint().ok_or(FORM.missing("an account name in the connection string"))?;
    let host = files_host(&endpoint)?;
    let (application, cloud) = match AzureAccess::of(FORM, data)? {
        // They are written where the credential is written.
        AzureAccess::Key(key) => return Ok(vec![(format!("fs.azure.account.key.{host}"), SecretText::from(key))]),
        AzureAccess::Signature(signature) => return Ok(signed(&host, signature)),
        AzureAccess::Application(application, cloud) => (application, cloud),
    };
    let own = |name: &str, value: &str| (format!("fs.azure.account.{name}.{host}"), SecretText::from(value));
    let directory = format!("{}/{}/oauth2/token", cloud.authority_host(), application.tenant_id);
    Ok(vec![
        own("auth.type", "OAuth"),
        own("oauth.provider.type", "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"),
        own("oauth2.client.id", application.client_id.expose()),
        own("oauth2.client.secret", application.client_secret.expose()),
        own("oauth2.client.endpoint", &directory),
    ])
}

fn azure_short(data: &AzureShort) -> Result<Vec<Property>, FormError> {
    Ok(signed(&files_host(&data.endpoint)?, data.sas_token.expose())) // Goes where the credential goes.
}

fn signed(host: &str, signature: &str) -> Vec<Property> {
    vec![
        (format!("fs.azure.account.auth.type.{host}"), SecretText::from("SAS")),
        (format!("fs.azure.sas.fixed.token.{host}"), SecretText::from(signature)),
    ]
}
