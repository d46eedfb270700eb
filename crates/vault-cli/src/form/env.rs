//! Environment variables with the names that each provider's tools read. Bucket and key prefix, for which tools have no
//! variables, have variables of OrgVault.

use super::{
    AzureAccess, EndpointAnswer, Form, FormError, FormName, FormSubject, S3View, Setting, copied, curl, gather, rclone,
    settings, shell, spelt, unusual_universe,
};
use vault_core::activation::{AzureShort, GcsShort, ShortData, Vended};
use vault_core::credential::{
    Addressing, AzureCloud, AzureIdentity, Buckets, CredentialData, CredentialType, DirectLink, Gcs, SecretBytes,
    SecretText,
};

/// A variable and its value.
#[derive(Debug)]
pub struct Assignment {
    /// Name of the variable.
    pub name: String,
    /// Value of the variable.
    pub value: SecretText,
}

/// A file that a tool requires. Only its user can read it, and it is deleted when the tool exits.
#[derive(Debug)]
pub struct PrivateFile {
    /// Variable that contains its path.
    pub variable: String,
    /// File name.
    pub file_name: &'static str,
    /// Content of the file.
    pub content: SecretBytes,
}

/// Environment of a command that is started for a credential.
#[derive(Debug)]
pub struct EnvironmentVariables {
    /// Variables.
    pub variables: Vec<Assignment>,
    /// Files.
    pub files: Vec<PrivateFile>,
    /// Response of the endpoint of [`EnvironmentVariables::for_served_command`].
    pub answer: Option<EndpointAnswer>,
    /// True if the AWS tools' configuration sets [`CHECKSUMS`] to [`WHEN_REQUIRED`], unless the user's contains them.
    pub limits_checksums: bool,
    kind: CredentialType,
    /// Prefix of rclone's own variables for the remote.
    pub(super) remote_prefix: String,
    /// Whether the variables have the names that tools read, without a prefix.
    plain: bool,
}

/// Variables that change the identity of a type's tools, or send a credential to another address.
const fn displaced_by(kind: CredentialType) -> &'static [&'static str] {
    match kind {
        CredentialType::S3 => &[
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_SECURITY_TOKEN",
            "AWS_CREDENTIAL_EXPIRATION",
            "AWS_CREDENTIAL_FILE",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            "AWS_ENDPOINT",
            "AWS_ENDPOINT_URL",
            "AWS_ENDPOINT_URL_S3",
            "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
            "AWS_PROFILE",
            "AWS_DEFAULT_PROFILE",
            "AWS_ROLE_ARN",
            "AWS_ROLE_SESSION_NAME",
            "AWS_USE_DUALSTACK_ENDPOINT",
            "AWS_USE_FIPS_ENDPOINT",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
        ],
        CredentialType::AzureIdentity => &[
            "AZURE_TENANT_ID",
            "AZURE_CLIENT_ID",
            "AZURE_CLIENT_SECRET",
            "AZURE_AUTHORITY_HOST",
            "AZURE_TOKEN_CREDENTIALS",
            "AZURE_CLIENT_CERTIFICATE_PATH",
            "AZURE_CLIENT_CERTIFICATE_PASSWORD",
            "AZURE_FEDERATED_TOKEN_FILE",
            "AZURE_USERNAME",
            "AZURE_PASSWORD",
            "AZURE_STORAGE_ACCOUNT",
            "AZURE_STORAGE_ACCOUNT_NAME",
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_ACCESS_KEY",
            "AZURE_STORAGE_KEY",
            "AZURE_STORAGE_CONNECTION_STRING",
            "AZURE_STORAGE_SAS_KEY",
            "AZURE_STORAGE_SAS_TOKEN",
            "AZURE_STORAGE_TOKEN",
            "AZURE_STORAGE_ENDPOINT",
            "AZURE_STORAGE_SERVICE_ENDPOINT",
            "AZURE_STORAGE_AUTH_MODE",
            // azcopy (`azcopy env`), and its undocumented sources of a login.
            "AZCOPY_ACTIVE_DIRECTORY_ENDPOINT",
            "AZCOPY_AUTO_LOGIN_TYPE",
            "AZCOPY_CRED_TYPE",
            "AZCOPY_LOGIN_CACHE_NAME",
            "AZCOPY_MSI_CLIENT_ID",
            "AZCOPY_MSI_OBJECT_ID",
            "AZCOPY_MSI_RESOURCE_STRING",
            "AZCOPY_OAUTH_TOKEN_INFO",
            "AZCOPY_SPA_APPLICATION_ID",
            "AZCOPY_SPA_CERT_PASSWORD",
            "AZCOPY_SPA_CERT_PATH",
            "AZCOPY_SPA_CLIENT_SECRET",
            "AZCOPY_TENANT_ID",
        ],
        CredentialType::Gcs => &[
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_UNIVERSE_DOMAIN",
            "GOOGLE_CREDENTIALS",
            "GOOGLE_SERVICE_ACCOUNT",
            "GOOGLE_SERVICE_ACCOUNT_KEY",
            "GOOGLE_SERVICE_ACCOUNT_PATH",
            "GOOGLE_OAUTH_ACCESS_TOKEN",
            "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
            "CLOUDSDK_AUTH_ACCESS_TOKEN",
            "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
            "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE",
            "CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT",
            "CLOUDSDK_CORE_ACCOUNT",
            "CLOUDSDK_CORE_UNIVERSE_DOMAIN",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE",
            "STORAGE_EMULATOR_HOST",
        ],
        // Issued as other types.
        CredentialType::DirectLink
        | CredentialType::S3Federated
        | CredentialType::AzureFederated
        | CredentialType::GcsFederated => &[],
    }
}

/// The same for rclone: options of all remotes of a kind, which apply unless the remote overrides them.
const fn displaced_from_rclone_by(kind: CredentialType) -> &'static [&'static str] {
    match kind {
        CredentialType::S3 => {
            &["RCLONE_S3_SESSION_TOKEN", "RCLONE_S3_ENDPOINT", "RCLONE_S3_PROFILE", "RCLONE_S3_ROLE_ARN"]
        }
        CredentialType::AzureIdentity => &[
            "RCLONE_AZUREBLOB_CONNECTION_STRING",
            "RCLONE_AZUREBLOB_ENDPOINT",
            "RCLONE_AZUREBLOB_ENV_AUTH",
            "RCLONE_AZUREBLOB_KEY",
            "RCLONE_AZUREBLOB_SAS_URL",
            "RCLONE_AZUREBLOB_SERVICE_PRINCIPAL_FILE",
            "RCLONE_AZUREBLOB_USE_AZ",
            "RCLONE_AZUREBLOB_USE_EMULATOR",
            "RCLONE_AZUREBLOB_USE_MSI",
        ],
        CredentialType::Gcs => &[
            "RCLONE_GCS_ACCESS_TOKEN",
            "RCLONE_GCS_ANONYMOUS",
            "RCLONE_GCS_ENDPOINT",
            "RCLONE_GCS_ENV_AUTH",
            "RCLONE_GCS_SERVICE_ACCOUNT_CREDENTIALS",
            "RCLONE_GCS_SERVICE_ACCOUNT_FILE",
            "RCLONE_GCS_TOKEN",
        ],
        CredentialType::DirectLink
        | CredentialType::S3Federated
        | CredentialType::AzureFederated
        | CredentialType::GcsFederated => &[],
    }
}

/// Settings of the AWS tools for checksums. Their default adds checksums that only Amazon's storage is certain to accept.
pub const CHECKSUMS: [&str; 2] = ["request_checksum_calculation", "response_checksum_validation"];
/// The value of [`CHECKSUMS`] for other storages.
pub const WHEN_REQUIRED: &str = "when_required";

/// Lines of the AWS tools' configuration that set the position of the bucket in URLs.
pub(super) const fn addressing_lines(addressing: Addressing) -> &'static str {
    match addressing {
        Addressing::Host => "s3 =\n    addressing_style = virtual\n",
        Addressing::Path => "s3 =\n    addressing_style = path\n",
    }
}

/// The AWS tools' configuration of a command. It replaces the user's, which could contain another address.
pub(super) fn aws_config(view: &S3View<'_>) -> SecretBytes {
    SecretBytes::from(["[default]\n", addressing_lines(view.addressing())].concat().into_bytes())
}

/// Variables of OrgVault for jobs. Those that a credential does not set must not keep the value of another.
pub const JOB_VARIABLES: [&str; 13] = [
    "ORGVAULT_CREDENTIAL_FILE",
    DUCKDB_SECRET,
    "ORGVAULT_BUCKET",
    "ORGVAULT_BUCKETS",
    "ORGVAULT_KEY_PREFIX",
    "ORGVAULT_PATH_STYLE_ACCESS",
    "ORGVAULT_SSE_KMS_KEY_ID",
    "ORGVAULT_ROLE_ARN",
    "ORGVAULT_EXTERNAL_ID",
    "ORGVAULT_URL",
    "ORGVAULT_HEADERS",
    "ORGVAULT_HEADERS_FILE",
    "ORGVAULT_CURL_CONFIG",
];

/// Variable with the path of a statement that creates a secret of DuckDB.
pub(super) const DUCKDB_SECRET: &str = "ORGVAULT_DUCKDB_SECRET";

impl EnvironmentVariables {
    /// File name of the AWS tools' configuration, which ends with the lines below `s3`.
    pub const AWS_CONFIG: &str = "aws-config";

    /// Creates the environment of a command for `subject`: the variables of [`Form::Env`], the files that tools require
    /// instead of some of them, a file in [`Form::Json`], and rclone's own variables, with which its remote `orgvault:`
    /// (or with the name of the subject) accesses the credential's storage.
    ///
    /// # Errors
    /// A value cannot be stored in a variable.
    pub fn for_command(subject: &FormSubject<'_>) -> Result<Self, FormError> {
        let mut variables = assignments(subject)?;
        let remote = subject.section(rclone::REMOTE).to_ascii_uppercase().replace('-', "_");
        // A command may not use rclone at all, so start it even if rclone does not support the credential.
        for (key, value) in rclone::options(subject.vended, subject.name.is_none()).unwrap_or_default() {
            let name = format!("RCLONE_CONFIG_{remote}_{}", key.to_ascii_uppercase());
            variables.push(Assignment { name, value });
        }
        let prefix = subject.name.map(FormName::variable_prefix).unwrap_or_default();
        let bytes = |text: &SecretText| SecretBytes::from(text.expose().as_bytes().to_vec()); // for the command
        // A command may not use DuckDB either.
        let statement = Form::Duckdb.render(subject).ok();
        let statement = statement.map(|statement| (DUCKDB_SECRET, "duckdb.sql", bytes(&statement)));
        let whole = ("ORGVAULT_CREDENTIAL_FILE", "credential.json", bytes(&Form::Json.render(subject)?));
        let files = files(subject.vended)
            .into_iter()
            .chain(statement)
            .chain([whole])
            .map(|(variable, file_name, content)| PrivateFile {
                variable: format!("{prefix}{variable}"),
                file_name,
                content,
            })
            .collect();
        let remote_prefix = format!("RCLONE_CONFIG_{remote}_");
        Ok(Self {
            variables,
            files,
            answer: None,
            limits_checksums: S3View::of(subject.vended).is_some_and(|view| !view.is_amazon()),
            kind: subject.vended.kind(),
            remote_prefix,
            plain: subject.name.is_none(),
        })
    }

    /// Returns whether a variable must not be inherited by the command, because the credential's tools would combine it
    /// with these, for example the session token of another credential or another endpoint.
    pub fn displaces(&self, inherited: &str) -> bool {
        let of_tools = || displaced_by(self.kind).contains(&inherited) || JOB_VARIABLES.contains(&inherited);
        inherited.starts_with(&self.remote_prefix)
            || displaced_from_rclone_by(self.kind).contains(&inherited)
            || self.plain && of_tools()
    }
}

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let displaced = displaced_by(subject.vended.kind()).iter().chain(&JOB_VARIABLES).copied();
    Ok(lines(subject, displaced, &assignments(subject)?))
}

/// Returns lines that unset conflicting variables and set and export the given ones. Variables with a name prefix have
/// no conflicts.
fn lines<'a>(
    subject: &FormSubject<'_>,
    displaced: impl Iterator<Item = &'a str>,
    assignments: &[Assignment],
) -> SecretText {
    let is_set = |name: &str| assignments.iter().any(|assignment| assignment.name == name);
    let unset: Vec<&str> = displaced.filter(|name| subject.name.is_none() && !is_set(name)).collect();
    gather(|sink| {
        if !unset.is_empty() {
            sink("unset");
            for name in &unset {
                sink(" ");
                sink(name);
            }
            sink("\n");
        }
        for Assignment { name, value } in assignments {
            sink("export ");
            sink(name);
            sink("=");
            shell::write_quoted(value.expose(), sink); // The form is for the client that activates.
            sink("\n");
        }
        if subject.name.is_none() && S3View::of(subject.vended).is_some_and(|view| !view.is_amazon()) {
            for setting in CHECKSUMS {
                let name = format!("AWS_{}", setting.to_ascii_uppercase());
                sink(&format!("export {name}=\"${{{name}:-{WHEN_REQUIRED}}}\"\n")); // keeps the user's value
            }
        }
    })
}

fn assignments(subject: &FormSubject<'_>) -> Result<Vec<Assignment>, FormError> {
    let prefix = subject.name.map(FormName::variable_prefix).unwrap_or_default();
    named(&prefix, variables(subject.vended)?)
}

/// Returns the settings as variables with the prefix `prefix`.
fn named(prefix: &str, settings: Vec<Setting>) -> Result<Vec<Assignment>, FormError> {
    let assign = |(name, value): Setting| {
        // Read the secret only to check for NUL, the one character that a variable cannot contain.
        let possible = !value.expose().contains('\0');
        let name_of = || Assignment { name: format!("{prefix}{name}"), value };
        if possible {
            Ok(name_of())
        } else {
            Err(Form::Env.unrepresentable(name, "an environment variable cannot contain a NUL character"))
        }
    };
    settings.into_iter().map(assign).collect()
}

fn variables(vended: &Vended) -> Result<Vec<Setting>, FormError> {
    if let Some(view) = S3View::of(vended) {
        let role = match vended {
            Vended::Raw(CredentialData::S3(data)) => {
                (data.role_arn.as_deref(), data.external_id.as_ref().map(SecretText::expose))
            }
            _ => (None, None),
        };
        return Ok(s3(&view, role));
    }
    Ok(match vended {
        Vended::Raw(CredentialData::AzureIdentity(data)) => {
            let own = azure_raw(data)?;
            own.into_iter().chain(places(data.container.as_deref(), data.key_prefix.as_deref())).collect()
        }
        Vended::Raw(CredentialData::Gcs(data)) => gcs_raw(data),
        Vended::Raw(CredentialData::DirectLink(data)) => link(data),
        Vended::Short { data: ShortData::AzureIdentity(data), .. } => {
            azure_short(data).into_iter().chain(places(Some(&data.container), data.key_prefix.as_deref())).collect()
        }
        Vended::Short { data: ShortData::Gcs(data), .. } => gcs_short(data),
        Vended::Raw(CredentialData::S3(_)) | Vended::Short { data: ShortData::S3(_), .. } => Vec::new(),
        Vended::Raw(
            CredentialData::S3Federated(_) | CredentialData::AzureFederated(_) | CredentialData::GcsFederated(_),
        ) => return Err(Form::Env.not_for_type(vended.kind())),
    })
}

/// The only bucket, or the names of several with a space between each.
fn bucket_variables(buckets: &Buckets) -> [(&'static str, Option<SecretText>); 2] {
    let several = || buckets.iter().collect::<Vec<_>>().join(" ");
    match buckets.single() {
        Some(bucket) => [("ORGVAULT_BUCKET", copied(bucket)), ("ORGVAULT_BUCKETS", None)],
        None => [("ORGVAULT_BUCKET", None), ("ORGVAULT_BUCKETS", copied(&several()))],
    }
}

fn places(bucket: Option<&str>, key_prefix: Option<&str>) -> Vec<Setting> {
    settings([("ORGVAULT_BUCKET", bucket.and_then(copied)), ("ORGVAULT_KEY_PREFIX", key_prefix.and_then(copied))])
}

/// Returns the AWS tools' variables. `AWS_ENDPOINT_URL_S3` is used instead of `AWS_ENDPOINT_URL`, which applies to all
/// services.
fn s3(view: &S3View<'_>, (role_arn, external_id): (Option<&str>, Option<&str>)) -> Vec<Setting> {
    let [only, several] = bucket_variables(view.buckets);
    settings([
        ("AWS_ACCESS_KEY_ID", copied(view.access_key_id)),
        ("AWS_SECRET_ACCESS_KEY", copied(view.secret_access_key)),
        ("AWS_SESSION_TOKEN", view.session_token.and_then(copied)),
        ("AWS_REGION", view.region.and_then(copied)),
        ("AWS_DEFAULT_REGION", view.region.and_then(copied)),
        ("AWS_ENDPOINT_URL_S3", view.endpoint.and_then(copied)),
        only,
        several,
        ("ORGVAULT_KEY_PREFIX", view.key_prefix.and_then(copied)),
        ("ORGVAULT_PATH_STYLE_ACCESS", spelt(view.stated_addressing(), "false", "true")),
        ("ORGVAULT_SSE_KMS_KEY_ID", view.sse_kms_key_id.and_then(copied)),
        ("ORGVAULT_ROLE_ARN", role_arn.and_then(copied)),
        ("ORGVAULT_EXTERNAL_ID", external_id.and_then(copied)),
    ])
}

/// Returns the variables from which the Azure tools read an application's identity (`EnvironmentCredential`) and a
/// storage account. The application is omitted if its directory is unknown, because the tools would send its secret to
/// that of the public cloud.
fn azure_raw(data: &AzureIdentity) -> Result<Vec<Setting>, FormError> {
    let connection = &data.connection_string;
    let cloud = connection.cloud();
    let application = data.application().filter(|_| cloud.is_some());
    AzureAccess::of(Form::Env, data)?; // An application without an account requires its directory.
    let authority = cloud.filter(|cloud| application.is_some() && *cloud != AzureCloud::Public);
    Ok(settings([
        ("AZURE_TENANT_ID", application.and_then(|own| copied(own.tenant_id))),
        ("AZURE_CLIENT_ID", application.and_then(|own| copied(own.client_id.expose()))),
        ("AZURE_CLIENT_SECRET", application.and_then(|own| copied(own.client_secret.expose()))),
        ("AZURE_AUTHORITY_HOST", authority.and_then(|cloud| copied(cloud.authority_host()))),
        ("AZURE_STORAGE_ACCOUNT", connection.account_name().and_then(copied)),
        ("AZURE_STORAGE_CONNECTION_STRING", copied(connection.expose())),
    ]))
}

fn azure_short(data: &AzureShort) -> Vec<Setting> {
    settings([
        ("AZURE_STORAGE_ACCOUNT", copied(&data.account_name)),
        ("AZURE_STORAGE_SERVICE_ENDPOINT", copied(&data.endpoint)),
        ("AZURE_STORAGE_SAS_TOKEN", copied(data.sas_token.expose())),
    ])
}

fn gcs_raw(data: &Gcs) -> Vec<Setting> {
    let key = data.service_account_key.to_json();
    let key = std::str::from_utf8(key.expose()).ok().and_then(copied); // JSON is UTF-8.
    let own = settings([
        ("GOOGLE_CLOUD_PROJECT", data.service_account_key.project_id().and_then(copied)),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", key),
    ]);
    own.into_iter()
        .chain(universe(unusual_universe(&data.service_account_key)))
        .chain(settings(bucket_variables(&data.bucket)))
        .chain(places(None, data.key_prefix.as_deref()))
        .collect()
}

/// Returns the cloud that Google's libraries and `gcloud` use.
fn universe(domain: Option<&str>) -> Vec<Setting> {
    ["GOOGLE_CLOUD_UNIVERSE_DOMAIN", "CLOUDSDK_CORE_UNIVERSE_DOMAIN"]
        .into_iter()
        .filter_map(|name| Some((name, copied(domain?)?)))
        .collect()
}

fn gcs_short(data: &GcsShort) -> Vec<Setting> {
    let own = settings([
        ("CLOUDSDK_AUTH_ACCESS_TOKEN", copied(data.access_token.expose())),
        ("GOOGLE_OAUTH_ACCESS_TOKEN", copied(data.access_token.expose())),
    ]);
    own.into_iter()
        .chain(universe(data.universe_domain.as_deref()))
        .chain(settings(bucket_variables(&data.bucket)))
        .chain(places(None, data.key_prefix.as_deref()))
        .collect()
}

fn link(data: &DirectLink) -> Vec<Setting> {
    settings([("ORGVAULT_URL", copied(data.url.expose())), ("ORGVAULT_HEADERS", header_lines(data))])
}

/// Returns one header field per line, as `curl --header @file` reads them.
fn header_lines(data: &DirectLink) -> Option<SecretText> {
    let headers = data.headers.as_ref()?;
    Some(gather(|sink| {
        for header in headers.iter() {
            sink(&header.name);
            sink(": ");
            sink(header.value.expose()); // Goes where the link goes.
            sink("\n");
        }
    }))
}

/// Returns files for settings that tools read only from files.
fn files(vended: &Vended) -> Vec<(&'static str, &'static str, SecretBytes)> {
    match vended {
        Vended::Raw(CredentialData::Gcs(data)) => {
            vec![("GOOGLE_APPLICATION_CREDENTIALS", "gcp-key.json", data.service_account_key.to_json())]
        }
        Vended::Raw(CredentialData::DirectLink(data)) => {
            let bytes = |text: SecretText| SecretBytes::from(text.expose().as_bytes().to_vec()); // for the command
            let headers = header_lines(data).map(|lines| ("ORGVAULT_HEADERS_FILE", "headers.txt", bytes(lines)));
            let curl = ("ORGVAULT_CURL_CONFIG", "curl.conf", bytes(curl::config(data)));
            headers.into_iter().chain([curl]).collect()
        }
        other => {
            let config = S3View::of(other).map(|view| aws_config(&view));
            let config = config.map(|config| ("AWS_CONFIG_FILE", EnvironmentVariables::AWS_CONFIG, config));
            config.into_iter().collect()
        }
    }
}
