//! Environment variables with the names that each provider's tools read. Bucket and key prefix, for which no tool has a
//! variable, have variables of OrgVault.

use super::{
    AzureAccess, EndpointAnswer, Form, FormError, FormName, FormSubject, S3View, Setting, copied, curl, gather, rclone,
    settings, shell, spelt, unusual_universe,
};
use crate::activation::{AzureShort, GcsShort, ShortData, Vended};
use crate::credential::{
    Addressing, AzureCloud, AzureIdentity, Buckets, CredentialData, CredentialType, DirectLink, Gcs, SecretBytes,
    SecretText,
};

/// A variable and its value.
#[derive(Debug)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: SecretText,
}

/// A file that a tool needs, readable by its user alone and gone when the tool is done.
#[derive(Debug)]
pub struct PrivateFile {
    /// The variable that holds its path.
    pub variable: String,
    /// A name for it.
    pub file_name: &'static str,
    /// What it holds.
    pub content: SecretBytes,
}

/// All that a command gets that is started for a credential.
#[derive(Debug)]
pub struct EnvironmentVariables {
    /// Variables.
    pub variables: Vec<Assignment>,
    /// Files.
    pub files: Vec<PrivateFile>,
    /// What the endpoint of [`EnvironmentVariables::for_served_command`] answers.
    pub answer: Option<EndpointAnswer>,
    kind: CredentialType,
    /// What rclone's own variables for the remote begin with.
    pub(super) remote_prefix: String,
    /// Whether the variables have the names that tools read, without a prefix.
    plain: bool,
}

/// Variables by which the tools of a type act as somebody else, or send a credential to another address.
pub(super) const fn displaced_by(kind: CredentialType) -> &'static [&'static str] {
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
        CredentialType::DirectLink => &[],
    }
}

/// The same of rclone: options of every remote of a kind, which hold where the remote itself does not say otherwise.
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
        CredentialType::DirectLink => &[],
    }
}

/// The lines of the AWS tools' configuration that say where the bucket appears in a URL.
pub(super) const fn addressing_lines(addressing: Addressing) -> &'static str {
    match addressing {
        Addressing::Host => "s3 =\n    addressing_style = virtual\n",
        Addressing::Path => "s3 =\n    addressing_style = path\n",
    }
}

/// The AWS tools' configuration of a command, which replaces the user's: that may name another address.
pub(super) fn aws_config(view: &S3View<'_>) -> SecretBytes {
    SecretBytes::from(["[default]\n", addressing_lines(view.addressing())].concat().into_bytes())
}

/// Our own variables: those that one credential does not set must not be left of another.
const OWN: [&str; 12] = [
    "ORGVAULT_CREDENTIAL_FILE",
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

impl EnvironmentVariables {
    /// The name of the file that is the AWS tools' configuration. It ends with the lines below `s3`.
    pub const AWS_CONFIG: &str = "aws-config";

    /// What a command gets for `subject`: the variables of [`Form::Env`], the files that tools need in their place, a file of
    /// [`Form::Json`], and rclone's own variables, by which its remote `orgvault:` (or of the subject's name) is the credential.
    ///
    /// # Errors
    /// A value cannot stand in a variable.
    pub fn for_command(subject: &FormSubject<'_>) -> Result<Self, FormError> {
        let mut variables = assignments(subject)?;
        let remote = subject.section(rclone::REMOTE).to_ascii_uppercase().replace('-', "_");
        // What rclone cannot carry is no reason to keep a command from starting.
        for (key, value) in rclone::options(subject.vended, subject.name.is_none()).unwrap_or_default() {
            let name = format!("RCLONE_CONFIG_{remote}_{}", key.to_ascii_uppercase());
            variables.push(Assignment { name, value });
        }
        let prefix = subject.name.map(FormName::variable_prefix).unwrap_or_default();
        let whole = Form::Json.render(subject)?;
        let whole =
            ("ORGVAULT_CREDENTIAL_FILE", "credential.json", SecretBytes::from(whole.expose().as_bytes().to_vec()));
        let files = files(subject.vended)
            .into_iter()
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
            kind: subject.vended.kind(),
            remote_prefix,
            plain: subject.name.is_none(),
        })
    }

    /// Whether a variable that the command would inherit must not reach it, because the credential's tools would mix it
    /// with these: the session token of another credential, say, or another endpoint.
    pub fn displaces(&self, inherited: &str) -> bool {
        let of_tools = || displaced_by(self.kind).contains(&inherited) || OWN.contains(&inherited);
        inherited.starts_with(&self.remote_prefix)
            || displaced_from_rclone_by(self.kind).contains(&inherited)
            || self.plain && of_tools()
    }
}

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let displaced = displaced_by(subject.vended.kind()).iter().chain(&OWN).copied();
    Ok(lines(subject, displaced, &assignments(subject)?))
}

/// Lines that unset what would mix with the variables, which none does under a name of its own, and that set and export
/// them.
pub(super) fn lines<'a>(
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
            shell::write_quoted(value.expose(), sink); // The form is for whoever activates.
            sink("\n");
        }
    })
}

fn assignments(subject: &FormSubject<'_>) -> Result<Vec<Assignment>, FormError> {
    let prefix = subject.name.map(FormName::variable_prefix).unwrap_or_default();
    named(Form::Env, &prefix, variables(subject.vended)?)
}

/// The settings as variables whose names begin with `prefix`.
pub(super) fn named(form: Form, prefix: &str, settings: Vec<Setting>) -> Result<Vec<Assignment>, FormError> {
    let assign = |(name, value): Setting| {
        // Looked at for the one character that no variable can hold.
        let possible = !value.expose().contains('\0');
        let name_of = || Assignment { name: format!("{prefix}{name}"), value };
        if possible {
            Ok(name_of())
        } else {
            Err(form.unrepresentable(name, "an environment variable cannot contain a NUL character"))
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
            let own = azure_raw(Form::Env, data)?;
            own.into_iter().chain(places(data.container.as_deref(), data.key_prefix.as_deref())).collect()
        }
        Vended::Raw(CredentialData::Gcs(data)) => gcs_raw(data),
        Vended::Raw(CredentialData::DirectLink(data)) => link(data),
        Vended::Short { data: ShortData::AzureIdentity(data), .. } => {
            azure_short(data).into_iter().chain(places(Some(&data.container), data.key_prefix.as_deref())).collect()
        }
        Vended::Short { data: ShortData::Gcs(data), .. } => gcs_short(data),
        Vended::Raw(CredentialData::S3(_)) | Vended::Short { data: ShortData::S3(_), .. } => Vec::new(),
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

/// The AWS tools' variables. `AWS_ENDPOINT_URL_S3` rather than `AWS_ENDPOINT_URL`, which holds for every service.
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

/// What the Azure tools read of an application's identity (`EnvironmentCredential`) and of a storage account. The application is
/// left out if its directory is not known: the tools would send its secret to that of the public cloud.
pub(super) fn azure_raw(form: Form, data: &AzureIdentity) -> Result<Vec<Setting>, FormError> {
    let connection = &data.connection_string;
    let cloud = connection.cloud();
    let application = data.application().filter(|_| cloud.is_some());
    AzureAccess::of(form, data)?; // An application alone needs its directory.
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

pub(super) fn azure_short(data: &AzureShort) -> Vec<Setting> {
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

/// The cloud that Google's libraries and `gcloud` use.
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

/// One header field a line, as `curl --header @file` reads them.
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

/// Files for settings that tools read from files only.
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
