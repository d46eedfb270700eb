//! URL and options for `object_store::parse_url_opts`, as JSON. The names of the options are those of its `…ConfigKey`
//! types.

use super::{
    AzureAccess, Form, FormError, FormSubject, S3View, Setting, copied, gather, settings, spelt, unusual_blob_endpoint,
    unusual_google_endpoint, unusual_universe,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;
use url::Url;
use vault_core::activation::{AzureShort, ShortData, Vended};
use vault_core::credential::{Addressing, AzureCloud, AzureIdentity, CredentialData, Gcs, SecretText};
use vault_core::json::{ObjectWriter, write_text};

const FORM: Form = Form::ObjectStore;
/// All characters except letters, digits, `-._~` and the slash.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let (url, options) = store(subject.vended)?;
    Ok(gather(|sink| {
        let mut object = ObjectWriter::new(sink);
        write_text(&url, object.member("url"));
        let mut inner = ObjectWriter::new(object.member("options"));
        for (name, value) in &options {
            write_text(value.expose(), inner.member(name)); // The options are for the client that activates.
        }
        inner.end();
        object.end();
        sink("\n");
    }))
}

fn store(vended: &Vended) -> Result<(String, Vec<Setting>), FormError> {
    if let Some(view) = S3View::of(vended) {
        let bucket = FORM.one_bucket(view.buckets)?;
        return Ok((address("s3", "bucket", bucket, view.key_prefix)?, s3(&view, bucket)?));
    }
    match vended {
        Vended::Raw(CredentialData::AzureIdentity(data)) => {
            Ok((container(data.container.as_deref(), data.key_prefix.as_deref())?, azure_raw(data)?))
        }
        Vended::Short { data: ShortData::AzureIdentity(data), .. } => {
            Ok((container(Some(&data.container), data.key_prefix.as_deref())?, azure_short(data)))
        }
        Vended::Raw(CredentialData::Gcs(data)) => {
            Ok((address("gs", "bucket", FORM.one_bucket(&data.bucket)?, data.key_prefix.as_deref())?, gcs(data)))
        }
        Vended::Short { data: ShortData::Gcs(_), .. } => {
            Err(FormError::NotForShort { form: FORM, kind: vended.kind() })
        }
        // Its store for web servers removes the query of a URL, so signed links are not supported.
        other => Err(FORM.not_for_type(other.kind())),
    }
}

fn container(container: Option<&str>, key_prefix: Option<&str>) -> Result<String, FormError> {
    address("az", "container", container.ok_or(FORM.missing("container"))?, key_prefix)
}

/// Returns the URL of bucket and prefix.
fn address(scheme: &str, field: &'static str, bucket: &str, key_prefix: Option<&str>) -> Result<String, FormError> {
    let root = format!("{scheme}://{bucket}");
    // The name of a bucket may contain characters that are not permitted in the host of a URL.
    let kept = Url::parse(&root).is_ok_and(|url| url.host_str() == Some(bucket) && url.port().is_none());
    if !kept {
        let reason = "it becomes the host of a URL, and this name is not a valid host";
        return Err(FORM.unrepresentable(field, reason));
    }
    let Some(prefix) = key_prefix else { return Ok(root) };
    let inner = prefix.strip_suffix('/').unwrap_or(prefix);
    if inner.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        let reason = "object_store refuses paths with an empty segment, `.` or `..`";
        return Err(FORM.unrepresentable("key_prefix", reason));
    }
    if inner.contains(|c: char| c.is_ascii_control()) {
        return Err(FORM.unrepresentable("key_prefix", "object_store refuses paths with control characters"));
    }
    Ok(format!("{root}/{}", utf8_percent_encode(prefix, PATH)))
}

pub(super) fn is_plain_http(address: Option<&str>) -> bool {
    address.is_some_and(|address| address.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://")))
}

fn allow_http(address: Option<&str>) -> Option<SecretText> {
    if is_plain_http(address) { copied("true") } else { None }
}

/// Returns the endpoint with the bucket if it has one host per bucket, because the crate adds the bucket only to the
/// path of others.
fn bucket_endpoint<'a>(view: &S3View<'a>, bucket: &str) -> Result<Option<Cow<'a, str>>, FormError> {
    let Some(endpoint) = view.endpoint_with_domain().filter(|_| view.addressing() == Addressing::Host) else {
        return Ok(view.endpoint_with_domain());
    };
    let with_bucket = || {
        let mut url = Url::parse(&endpoint).ok()?;
        let host = format!("{bucket}.{}", url.host_str()?);
        url.set_host(Some(&host)).ok()?;
        Some(url.as_str().trim_end_matches('/').to_owned())
    };
    let reason = "its host cannot have the bucket in front of it";
    with_bucket().map(|url| Some(Cow::Owned(url))).ok_or(FORM.unrepresentable("endpoint", reason))
}

fn s3(view: &S3View<'_>, bucket: &str) -> Result<Vec<Setting>, FormError> {
    let endpoint = bucket_endpoint(view, bucket)?;
    Ok(settings([
        ("aws_access_key_id", copied(view.access_key_id)),
        ("aws_secret_access_key", copied(view.secret_access_key)),
        ("aws_session_token", view.session_token.and_then(copied)),
        ("aws_region", view.region.and_then(copied)),
        ("aws_endpoint", endpoint.as_deref().and_then(copied)),
        ("aws_server_side_encryption", view.sse_kms_key_id.and_then(|_| copied("aws:kms"))),
        ("aws_sse_kms_key_id", view.sse_kms_key_id.and_then(copied)),
        ("aws_virtual_hosted_style_request", spelt(Some(view.addressing()), "true", "false")),
        ("allow_http", allow_http(view.endpoint)),
    ]))
}

fn azure_raw(data: &AzureIdentity) -> Result<Vec<Setting>, FormError> {
    let connection = &data.connection_string;
    let account = connection.account_name().ok_or(FORM.missing("an account name in the connection string"))?;
    let endpoint = connection.blob_endpoint().and_then(|endpoint| unusual_blob_endpoint(account, endpoint));
    let access = AzureAccess::of(FORM, data)?;
    let (mut key, mut signature, mut application) = (None, None, None);
    match access {
        AzureAccess::Key(value) => key = Some(value),
        AzureAccess::Signature(value) => signature = Some(value),
        AzureAccess::Application(value, cloud) => application = Some((value, cloud)),
    }
    let authority = application.map(|(_, cloud)| cloud).filter(|cloud| *cloud != AzureCloud::Public);
    Ok(settings([
        ("azure_storage_account_name", copied(account)),
        ("azure_storage_tenant_id", application.and_then(|(own, _)| copied(own.tenant_id))),
        ("azure_storage_client_id", application.and_then(|(own, _)| copied(own.client_id.expose()))),
        ("azure_storage_client_secret", application.and_then(|(own, _)| copied(own.client_secret.expose()))),
        ("azure_storage_authority_host", authority.and_then(|cloud| copied(cloud.authority_host()))),
        ("azure_storage_account_key", key.and_then(copied)),
        ("azure_storage_sas_key", signature.and_then(copied)),
        ("azure_storage_endpoint", endpoint.as_deref().and_then(copied)),
        ("allow_http", allow_http(endpoint.as_deref())),
    ]))
}

fn azure_short(data: &AzureShort) -> Vec<Setting> {
    settings([
        ("azure_storage_account_name", copied(&data.account_name)),
        ("azure_storage_sas_key", copied(data.sas_token.expose())),
        ("azure_storage_endpoint", copied(&data.endpoint)),
        ("allow_http", allow_http(Some(&data.endpoint))),
    ])
}

fn gcs(data: &Gcs) -> Vec<Setting> {
    let endpoint = unusual_google_endpoint(unusual_universe(&data.service_account_key));
    let key = data.service_account_key.to_json();
    settings([
        ("google_service_account_key", std::str::from_utf8(key.expose()).ok().and_then(copied)), // JSON is UTF-8.
        ("google_base_url", endpoint.as_deref().and_then(copied)),
    ])
}
