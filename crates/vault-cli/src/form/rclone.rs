//! A remote of rclone (rclone.org: "s3", "azureblob", "googlecloudstorage").

use super::{
    AzureAccess, Form, FormError, FormSubject, S3View, Setting, copied, gather, ini, settings, spelt,
    unusual_blob_endpoint, unusual_google_endpoint, unusual_universe,
};
use vault_core::activation::{AzureShort, GcsShort, ShortData, Vended};
use vault_core::credential::{AzureIdentity, CredentialData, Gcs, SecretText};

const FORM: Form = Form::Rclone;
/// Default name of the remote.
pub(super) const REMOTE: &str = "orgvault";

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let options = options(subject.vended, false)?;
    // Read the values only to check whether the file can express them.
    if let Some((name, _)) = options.iter().find(|(_, value)| !can_store(value.expose())) {
        return Err(FORM.unrepresentable(name, ini::UNQUOTABLE));
    }
    Ok(gather(|sink| {
        sink("[");
        sink(subject.section(REMOTE));
        sink("]\n");
        for (name, value) in &options {
            ini::write_line(name, value.expose(), sink); // The file is for the client that activates.
        }
    }))
}

/// rclone's parser also supports its own quotes, references to other values and continuation lines.
fn can_store(value: &str) -> bool {
    ini::can_store(value) && !value.starts_with(['`', '"']) && !value.contains("%(") && !value.ends_with('\\')
}

/// Returns the options of the remote. rclone has none for the directory of another cloud, but reads
/// `AZURE_AUTHORITY_HOST`. `is_authority_set` states whether that is set for the remote.
pub(super) fn options(vended: &Vended, is_authority_set: bool) -> Result<Vec<Setting>, FormError> {
    if let Some(view) = S3View::of(vended) {
        return Ok(s3(&view));
    }
    match vended {
        Vended::Raw(CredentialData::AzureIdentity(data)) => azure_raw(data, is_authority_set),
        Vended::Short { data: ShortData::AzureIdentity(data), .. } => Ok(azure_short(data)),
        Vended::Raw(CredentialData::Gcs(data)) => Ok(gcs_raw(data)),
        Vended::Short { data: ShortData::Gcs(data), .. } => Ok(gcs_short(data)),
        // Its remote for web servers accepts only a URL without a query, so signed links are not supported.
        other => Err(FORM.not_for_type(other.kind())),
    }
}

fn s3(view: &S3View<'_>) -> Vec<Setting> {
    // With the provider AWS, rclone ignores `force_path_style`. Without an endpoint it uses Amazon in either case.
    let is_aws = view.endpoint.is_none() && view.path_style_access != Some(true);
    settings([
        ("type", copied("s3")),
        ("provider", copied(if is_aws { "AWS" } else { "Other" })),
        ("env_auth", copied("false")),
        ("access_key_id", copied(view.access_key_id)),
        ("secret_access_key", copied(view.secret_access_key)),
        ("session_token", view.session_token.and_then(copied)),
        ("region", view.region.and_then(copied)),
        ("endpoint", view.endpoint.and_then(copied)),
        ("force_path_style", spelt(view.stated_addressing(), "false", "true")),
        ("server_side_encryption", view.sse_kms_key_id.and_then(|_| copied("aws:kms"))),
        ("sse_kms_key_id", view.sse_kms_key_id.and_then(copied)),
        // The bucket exists, and credentials that are limited to it may not be permitted to query it.
        ("no_check_bucket", copied("true")),
    ])
}

fn azure_raw(data: &AzureIdentity, is_authority_set: bool) -> Result<Vec<Setting>, FormError> {
    let connection = &data.connection_string;
    let account = connection.account_name().ok_or(FORM.missing("an account name in the connection string"))?;
    let endpoint = connection.blob_endpoint().ok_or(FORM.missing("an account name in the connection string"))?;
    let access = if is_authority_set { AzureAccess::of(FORM, data) } else { AzureAccess::of_public_cloud(FORM, data) };
    let (key, application) = match access? {
        AzureAccess::Signature(signature) => return Ok(signed(&endpoint, data.container.as_deref(), signature)),
        AzureAccess::Key(key) => (Some(key), None),
        AzureAccess::Application(application, _) => (None, Some(application)),
    };
    Ok(settings([
        ("type", copied("azureblob")),
        ("account", copied(account)),
        ("tenant", application.and_then(|own| copied(own.tenant_id))),
        ("client_id", application.and_then(|own| copied(own.client_id.expose()))),
        ("client_secret", application.and_then(|own| copied(own.client_secret.expose()))),
        ("endpoint", unusual_blob_endpoint(account, endpoint).as_deref().and_then(copied)),
        ("key", key.and_then(copied)),
    ]))
}

fn azure_short(data: &AzureShort) -> Vec<Setting> {
    signed(&data.endpoint, Some(&data.container), data.sas_token.expose()) // Goes where the credential goes.
}

/// Returns a remote for a URL with a signature, of the container or of the account.
fn signed(endpoint: &str, container: Option<&str>, signature: &str) -> Vec<Setting> {
    let url = gather(|sink| {
        sink(endpoint.trim_end_matches('/'));
        sink("/");
        sink(container.unwrap_or_default());
        sink("?");
        sink(signature);
    });
    settings([("type", copied("azureblob")), ("sas_url", Some(url))])
}

fn gcs_raw(data: &Gcs) -> Vec<Setting> {
    let key = data.service_account_key.to_json();
    let endpoint = google_endpoint(unusual_universe(&data.service_account_key));
    settings([
        ("type", copied("google cloud storage")),
        ("project_number", data.service_account_key.project_id().and_then(copied)),
        ("service_account_credentials", std::str::from_utf8(key.expose()).ok().and_then(copied)), // JSON is UTF-8.
        ("endpoint", endpoint.as_deref().and_then(copied)),
        ("no_check_bucket", copied("true")),
    ])
}

fn gcs_short(data: &GcsShort) -> Vec<Setting> {
    settings([
        ("type", copied("google cloud storage")),
        ("access_token", copied(data.access_token.expose())),
        ("endpoint", google_endpoint(data.universe_domain.as_deref()).as_deref().and_then(copied)),
        ("no_check_bucket", copied("true")),
    ])
}

fn google_endpoint(universe: Option<&str>) -> Option<String> {
    unusual_google_endpoint(universe).map(|address| address + "/storage/v1/")
}
