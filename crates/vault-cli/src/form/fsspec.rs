//! URL and `storage_options` for fsspec (s3fs, adlfs, gcsfs), as JSON, for pandas, Dask and PyArrow.

use super::{
    AzureAccess, Form, FormError, FormSubject, S3View, gather, unusual_blob_endpoint, unusual_google_endpoint,
    unusual_universe,
};
use url::Url;
use vault_core::activation::{AzureShort, ShortData, Vended};
use vault_core::credential::{Addressing, AzureIdentity, CredentialData, SecretText};
use vault_core::json::{ObjectWriter, write_text};

const FORM: Form = Form::Fsspec;

type Sink<'a> = &'a mut dyn FnMut(&str);

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let url = url(subject.vended)?;
    let azure = match subject.vended {
        Vended::Raw(CredentialData::AzureIdentity(data)) => Some((AzureAccess::of_public_cloud(FORM, data)?, data)),
        _ => None,
    };
    if let Some((AzureAccess::Application(..), data)) = &azure
        && !data.connection_string.blob_endpoint().is_some_and(|endpoint| is_host(&endpoint))
    {
        let reason = "adlfs supports an application's account only at https://HOST, without a port or path";
        return Err(FORM.unrepresentable("connection_string", reason));
    }
    Ok(gather(|sink| {
        let mut object = ObjectWriter::new(sink);
        write_text(&url, object.member("url"));
        options(subject.vended, azure.as_ref(), object.member("storage_options"));
        object.end();
        sink("\n");
    }))
}

/// Returns the URL of the credential's objects.
fn url(vended: &Vended) -> Result<String, FormError> {
    let at = |scheme: &str, bucket: &str, prefix: Option<&str>| {
        format!("{scheme}://{bucket}/{}", prefix.unwrap_or_default())
    };
    if let Some(view) = S3View::of(vended) {
        return Ok(at("s3", FORM.one_bucket(view.buckets)?, view.key_prefix));
    }
    match vended {
        Vended::Raw(CredentialData::AzureIdentity(data)) => {
            let container = data.container.as_deref().ok_or(FORM.missing("container"))?;
            data.connection_string.account_name().ok_or(FORM.missing("an account name in the connection string"))?;
            Ok(at("abfs", container, data.key_prefix.as_deref()))
        }
        Vended::Short { data: ShortData::AzureIdentity(data), .. } => {
            Ok(at("abfs", &data.container, data.key_prefix.as_deref()))
        }
        Vended::Raw(CredentialData::Gcs(data)) => {
            Ok(at("gs", FORM.one_bucket(&data.bucket)?, data.key_prefix.as_deref()))
        }
        Vended::Short { data: ShortData::Gcs(data), .. } => {
            Ok(at("gs", FORM.one_bucket(&data.bucket)?, data.key_prefix.as_deref()))
        }
        other => Err(FORM.not_for_type(other.kind())),
    }
}

/// The options are for the client that activates.
fn options(vended: &Vended, azure: Option<&(AzureAccess<'_>, &AzureIdentity)>, sink: Sink<'_>) {
    let mut object = ObjectWriter::new(sink);
    if let Some(view) = S3View::of(vended) {
        s3(&view, &mut object);
    }
    if let Some((access, data)) = azure {
        azure_raw(access, data, &mut object);
    }
    match vended {
        Vended::Short { data: ShortData::AzureIdentity(data), .. } => azure_short(data, &mut object),
        Vended::Raw(CredentialData::Gcs(data)) => {
            let key = data.service_account_key.to_json();
            object.member("token")(std::str::from_utf8(key.expose()).unwrap_or("null")); // JSON is UTF-8.
            if let Some(endpoint) = unusual_google_endpoint(unusual_universe(&data.service_account_key)) {
                write_text(&endpoint, object.member("endpoint_url"));
            }
        }
        Vended::Short { data: ShortData::Gcs(data), .. } => {
            write_text(data.access_token.expose(), object.member("token"));
            if let Some(endpoint) = unusual_google_endpoint(data.universe_domain.as_deref()) {
                write_text(&endpoint, object.member("endpoint_url"));
            }
        }
        _ => {}
    }
    object.end();
}

fn s3(view: &S3View<'_>, object: &mut ObjectWriter<'_>) {
    write_text(view.access_key_id, object.member("key"));
    write_text(view.secret_access_key, object.member("secret"));
    if let Some(token) = view.session_token {
        write_text(token, object.member("token"));
    }
    let client = [("region_name", view.region), ("endpoint_url", view.endpoint)];
    if client.iter().any(|(_, value)| value.is_some()) {
        let mut inner = ObjectWriter::new(object.member("client_kwargs"));
        for (name, value) in client.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            write_text(value, inner.member(name));
        }
        inner.end();
    }
    match view.stated_addressing() {
        Some(Addressing::Path) => object.member("config_kwargs")(r#"{"s3":{"addressing_style":"path"}}"#),
        Some(Addressing::Host) => object.member("config_kwargs")(r#"{"s3":{"addressing_style":"virtual"}}"#),
        None => {}
    }
    if let Some(key) = view.sse_kms_key_id {
        let mut inner = ObjectWriter::new(object.member("s3_additional_kwargs"));
        write_text("aws:kms", inner.member("ServerSideEncryption"));
        write_text(key, inner.member("SSEKMSKeyId"));
        inner.end();
    }
}

fn azure_raw(access: &AzureAccess<'_>, data: &AzureIdentity, object: &mut ObjectWriter<'_>) {
    let connection = &data.connection_string;
    let account = connection.account_name().unwrap_or_default();
    write_text(account, object.member("account_name"));
    let AzureAccess::Application(application, _) = access else {
        // Goes where the credential goes.
        return write_text(connection.expose(), object.member("connection_string"));
    };
    let endpoint = connection.blob_endpoint().and_then(|endpoint| unusual_blob_endpoint(account, endpoint));
    if let Some(host) = endpoint.as_deref().and_then(host_of) {
        write_text(&host, object.member("account_host"));
    }
    write_text(application.tenant_id, object.member("tenant_id"));
    write_text(application.client_id.expose(), object.member("client_id"));
    write_text(application.client_secret.expose(), object.member("client_secret"));
}

fn host_of(endpoint: &str) -> Option<String> {
    Url::parse(endpoint).ok()?.host_str().map(str::to_owned)
}

fn is_host(endpoint: &str) -> bool {
    let url = Url::parse(endpoint).ok();
    url.is_some_and(|url| url.scheme() == "https" && url.port().is_none() && url.path() == "/")
}

fn azure_short(data: &AzureShort, object: &mut ObjectWriter<'_>) {
    write_text(&data.account_name, object.member("account_name"));
    if let Some(host) = host_of(&data.endpoint) {
        write_text(&host, object.member("account_host"));
    }
    write_text(data.sas_token.expose(), object.member("sas_token"));
}
