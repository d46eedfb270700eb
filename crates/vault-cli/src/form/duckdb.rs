//! A statement that creates a secret of DuckDB (duckdb.org: "S3 API Support", "Azure Extension", "Secrets Manager").

use super::{
    AzureAccess, Form, FormError, FormSubject, S3View, Setting, copied, gather, is_plain_http, settings, spelt,
    unusual_blob_endpoint,
};
use vault_core::activation::{AzureShort, ShortData, Vended};
use vault_core::credential::{AzureIdentity, CredentialData, SecretText};

const FORM: Form = Form::Duckdb;

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let (kind, provider, parts) = secret(subject.vended)?;
    statement(subject, kind, provider, &parts)
}

/// Returns a statement whose secret has no key: DuckDB requests the key where the AWS tools do, again after an error.
pub(super) fn fetching(subject: &FormSubject<'_>, view: &S3View<'_>) -> Result<SecretText, FormError> {
    let of_key = |name: &str| ["KEY_ID", "SECRET", "SESSION_TOKEN"].contains(&name);
    let place: Vec<_> = s3(view).into_iter().filter(|(name, _)| !of_key(name)).collect();
    statement(subject, "s3", "credential_chain, REFRESH auto", &place)
}

fn statement(
    subject: &FormSubject<'_>,
    kind: &str,
    provider: &str,
    parts: &[Setting],
) -> Result<SecretText, FormError> {
    let scopes = scopes(subject.vended);
    let with_nul = parts.iter().find(|(_, value)| value.expose().contains('\0')).map(|(name, _)| *name);
    let scope_with_nul = scopes.iter().any(|scope| scope.contains('\0')).then_some("SCOPE");
    if let Some(name) = with_nul.or(scope_with_nul) {
        return Err(FORM.unrepresentable(name, "a statement cannot contain a NUL character"));
    }
    Ok(gather(|sink| {
        sink("CREATE OR REPLACE SECRET \"");
        sink(subject.section("orgvault"));
        sink("\" (TYPE ");
        sink(kind);
        sink(", PROVIDER ");
        sink(provider);
        for (name, value) in parts {
            sink(", ");
            sink(name);
            sink(" ");
            quote(value.expose(), sink); // The statement contains the credential.
        }
        match scopes.as_slice() {
            [] => {}
            [scope] => {
                sink(", SCOPE ");
                quote(scope, sink);
            }
            scopes => {
                for (index, scope) in scopes.iter().enumerate() {
                    sink(if index == 0 { ", SCOPE [" } else { ", " });
                    quote(scope, sink);
                }
                sink("]");
            }
        }
        sink(");\n");
    }))
}

/// Writes a string of SQL.
fn quote(text: &str, sink: &mut dyn FnMut(&str)) {
    sink("'");
    let mut pieces = text.split('\'');
    pieces.next().into_iter().for_each(&mut *sink);
    for piece in pieces {
        sink("''");
        sink(piece);
    }
    sink("'");
}

/// The addresses that the secret is for, if it is not for all.
fn scopes(vended: &Vended) -> Vec<String> {
    let Some(view) = S3View::of(vended) else { return Vec::new() };
    view.buckets.iter().map(|bucket| format!("s3://{bucket}/{}", view.key_prefix.unwrap_or_default())).collect()
}

/// Returns the type of the secret, its provider and its settings.
fn secret(vended: &Vended) -> Result<(&'static str, &'static str, Vec<Setting>), FormError> {
    if let Some(view) = S3View::of(vended) {
        return Ok(("s3", "config", s3(&view)));
    }
    match vended {
        Vended::Raw(CredentialData::AzureIdentity(data)) => azure_raw(data),
        Vended::Short { data: ShortData::AzureIdentity(data), .. } => Ok(("azure", "config", azure_short(data))),
        // DuckDB's secrets for Google require interoperability keys, and those for web servers do not support queries
        // in URLs.
        other => Err(FORM.not_for_type(other.kind())),
    }
}

fn s3(view: &S3View<'_>) -> Vec<Setting> {
    let endpoint = view.endpoint_with_domain();
    let endpoint = endpoint.as_deref();
    let host = endpoint.map(|endpoint| endpoint.split_once("://").map_or(endpoint, |(_, host)| host));
    let host = host.map(|host| host.trim_end_matches('/'));
    let use_ssl = endpoint.map(|_| if is_plain_http(endpoint) { "false" } else { "true" });
    settings([
        ("KEY_ID", copied(view.access_key_id)),
        ("SECRET", copied(view.secret_access_key)),
        ("SESSION_TOKEN", view.session_token.and_then(copied)),
        ("REGION", view.region.and_then(copied)),
        ("ENDPOINT", host.and_then(copied)),
        ("USE_SSL", use_ssl.and_then(copied)),
        ("URL_STYLE", spelt(view.stated_addressing(), "vhost", "path")),
        ("KMS_KEY_ID", view.sse_kms_key_id.and_then(copied)),
    ])
}

fn azure_raw(data: &AzureIdentity) -> Result<(&'static str, &'static str, Vec<Setting>), FormError> {
    let connection = &data.connection_string;
    let AzureAccess::Application(application, _) = AzureAccess::of_public_cloud(FORM, data)? else {
        // Goes where the credential goes.
        return Ok(("azure", "config", settings([("CONNECTION_STRING", copied(connection.expose()))])));
    };
    let account = connection.account_name().ok_or(FORM.missing("an account name in the connection string"))?;
    if connection.blob_endpoint().and_then(|endpoint| unusual_blob_endpoint(account, endpoint)).is_some() {
        let reason = "DuckDB expects an application's account at NAME.blob.core.windows.net";
        return Err(FORM.unrepresentable("connection_string", reason));
    }
    let identity = settings([
        ("ACCOUNT_NAME", copied(account)),
        ("TENANT_ID", copied(application.tenant_id)),
        ("CLIENT_ID", copied(application.client_id.expose())),
        ("CLIENT_SECRET", copied(application.client_secret.expose())),
    ]);
    Ok(("azure", "service_principal", identity))
}

fn azure_short(data: &AzureShort) -> Vec<Setting> {
    let connection = gather(|sink| {
        sink("BlobEndpoint=");
        sink(&data.endpoint);
        sink(";SharedAccessSignature=");
        sink(data.sas_token.expose()); // Goes where the credential goes.
    });
    settings([("CONNECTION_STRING", Some(connection))])
}
