//! The settings that a command keeps from the user's AWS configuration, although it gets its own configuration file:
//! those that are neither an identity nor an address (AWS SDKs and Tools Reference Guide, "Settings reference").
//!
//! The settings are an allowlist, because an unknown setting could select an identity. Lines that cannot be parsed are
//! skipped, because the command may not even use this file.

use crate::form::{CHECKSUMS, WHEN_REQUIRED};
use crate::output::warn;
use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::PathBuf;

/// Maximum number of bytes that are read from a file.
const MAX_FILE: u64 = 1024 * 1024;
/// Settings of a profile. Settings with the prefix `cli_` belong to the AWS command line.
const SETTINGS: [&str; 20] = [
    "auth_scheme_preference",
    "ca_bundle",
    "defaults_mode",
    "disable_host_prefix_injection",
    "disable_request_compression",
    "max_attempts",
    "metadata_service_num_attempts",
    "metadata_service_timeout",
    "output",
    "parameter_validation",
    "proxy_ca_bundle",
    "proxy_client_cert",
    "proxy_use_forwarding_for_https",
    "request_checksum_calculation",
    "request_min_compression_size_bytes",
    "response_checksum_validation",
    "retry_mode",
    "s3_disable_express_session_auth",
    "sdk_ua_app_id",
    "tcp_keepalive",
];
const CLI: &str = "cli_";
/// The region, which is kept only if the credential does not contain one.
const REGION: &str = "region";
const API_VERSIONS: &str = "api_versions";
/// Settings below `s3`. Those that affect addresses, such as `addressing_style`, are not kept.
const S3: &str = "s3";
const S3_SETTINGS: [&str; 14] = [
    "direct_io",
    "disk_throughput",
    "io_chunksize",
    "max_bandwidth",
    "max_concurrent_requests",
    "max_io_queue",
    "max_queue_size",
    "multipart_chunksize",
    "multipart_threshold",
    "payload_signing_enabled",
    "preferred_transfer_client",
    "should_stream",
    "signature_version",
    "target_bandwidth",
];

/// Settings of a profile by section and name. The section is empty for top-level settings.
#[derive(Debug, Default)]
pub(super) struct AwsSettings(BTreeMap<(String, String), String>);

impl AwsSettings {
    /// Returns the settings of the user's profile, from the files that the AWS tools read.
    pub(super) fn of_user() -> Self {
        let text = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let profile = text("AWS_DEFAULT_PROFILE").or_else(|| text("AWS_PROFILE"));
        let profile = profile.unwrap_or_else(|| "default".to_owned());
        let mut settings = Self::default();
        for (variable, file, word) in
            [("AWS_CONFIG_FILE", "config", Some("profile")), ("AWS_SHARED_CREDENTIALS_FILE", "credentials", None)]
        {
            let path = match env::var_os(variable).filter(|path| !path.is_empty()) {
                Some(path) => in_home(PathBuf::from(path)),
                None => in_home(PathBuf::from(format!("~/.aws/{file}"))),
            };
            let mut text = Vec::new();
            match File::open(&path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut text)) {
                Ok(_) => settings.add(&String::from_utf8_lossy(&text), &profile, word),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    warn(&format!("cannot read {}: {error}. Its settings do not reach the command", path.display()))
                }
            }
        }
        settings
    }

    /// Adds the settings of `profile` in a file. In the config file, `word` precedes profile names except the default.
    fn add(&mut self, text: &str, profile: &str, word: Option<&str>) {
        let mut is_profile = false;
        // The last setting of the profile and its indentation. Lines with more indentation are nested below it.
        let mut above: Option<(usize, String)> = None;
        for line in text.lines() {
            let bare = line.trim();
            if bare.is_empty() || bare.starts_with(['#', ';']) {
                continue;
            }
            let indent = line.len() - line.trim_start().len();
            if let Some(title) = bare.strip_prefix('[').filter(|_| indent == 0) {
                let title = title.split(']').next().unwrap_or_default();
                (is_profile, above) = (names(title, profile, word), None);
                continue;
            }
            let setting = bare.split_once(['=', ':']).filter(|_| is_profile);
            let Some((name, value)) = setting.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
            else {
                continue;
            };
            let section = match &above {
                Some((outer, name)) if indent > *outer => name.clone(),
                _ => {
                    above = Some((indent, name.clone()));
                    String::new()
                }
            };
            if is_kept(&section, &name) && !value.is_empty() {
                self.0.insert((section, name), value.to_owned());
            }
        }
    }

    /// Returns lines to append to those of `s3` in the command's configuration. Includes the user's region if
    /// `with_region`, and settings for a storage other than Amazon's if `limits_checksums`. Variables of the user take
    /// precedence over both.
    pub(super) fn lines(&self, with_region: bool, limits_checksums: bool) -> String {
        let below = |section: &str, indent: &str| -> String {
            let settings =
                self.0.iter().filter(|((found, name), _)| found == section && (with_region || name != REGION));
            settings.map(|((_, name), value)| format!("{indent}{name} = {value}\n")).collect()
        };
        let versions = below(API_VERSIONS, "    ");
        let title = if versions.is_empty() { String::new() } else { format!("{API_VERSIONS} =\n") };
        let is_unset = |name: &&str| !self.0.contains_key(&(String::new(), (*name).to_owned()));
        let checksums = CHECKSUMS.into_iter().filter(|name| limits_checksums && is_unset(name));
        let checksums = checksums.map(|name| format!("{name} = {WHEN_REQUIRED}\n")).collect();
        [below(S3, "    "), below("", ""), checksums, title, versions].concat()
    }
}

/// Returns whether `[title]` is the header of the profile: `[default]`, or `[profile name]` with or without quotes. In
/// the credentials file, the word is missing.
fn names(title: &str, profile: &str, word: Option<&str>) -> bool {
    let title = title.trim();
    let name = match word.and_then(|word| title.strip_prefix(word)).filter(|rest| rest.starts_with([' ', '\t'])) {
        Some(rest) => rest.trim(),
        None if word.is_none() || title == "default" => title,
        None => return false,
    };
    let quoted = ['"', '\''].into_iter().find_map(|quote| name.strip_prefix(quote)?.strip_suffix(quote));
    quoted.unwrap_or(name) == profile
}

fn is_kept(section: &str, name: &str) -> bool {
    match section {
        "" => SETTINGS.contains(&name) || name.starts_with(CLI) || name == REGION,
        S3 => S3_SETTINGS.contains(&name),
        section => section == API_VERSIONS,
    }
}

/// Expands a leading `~` to the user's home directory, like the AWS tools.
fn in_home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
# a comment
[default]
region = eu-west-1
Retry_Mode = adaptive
[profile night job]
max_attempts = 9
[profile \"early shift\"]
  ca_bundle = /etc/ssl/house.pem
  max_attempts: 3
  role_arn = arn:aws:iam::1:role/x
  s3 =

      # in between
      addressing_style = path
      max_concurrent_requests = 2
      endpoint_url = https://elsewhere.example
  request_checksum_calculation = when_required
  api_versions =
      s3 = 2006-03-01
[services house]
s3 =
    endpoint_url = https://elsewhere.example
ca_bundle = /elsewhere
";

    fn lines(config: &str, credentials: &str, profile: &str, with_region: bool) -> String {
        let mut settings = AwsSettings::default();
        settings.add(config, profile, Some("profile"));
        settings.add(credentials, profile, None);
        settings.lines(with_region, false)
    }

    #[test]
    fn profile_settings_are_kept_without_identity_and_endpoint() {
        let early = "    max_concurrent_requests = 2\nca_bundle = /etc/ssl/house.pem\nmax_attempts = 3\n\
            request_checksum_calculation = when_required\napi_versions =\n    s3 = 2006-03-01\n";
        assert_eq!(lines(CONFIG, "", "early shift", true), early);
        assert_eq!(lines(CONFIG, "", "night job", true), "max_attempts = 9\n");
        assert_eq!(lines(CONFIG, "", "default", true), "region = eu-west-1\nretry_mode = adaptive\n");
        assert_eq!(lines(CONFIG, "", "default", false), "retry_mode = adaptive\n");
        assert_eq!(lines(CONFIG, "", "other", true), "");
        assert_eq!(lines("[profile default]\nmax_attempts = 4\n", "", "default", true), "max_attempts = 4\n");
        // The credentials file takes precedence.
        assert_eq!(
            lines(CONFIG, "[night job]\naws_access_key_id = AKIA\nmax_attempts = 1\n", "night job", true),
            "max_attempts = 1\n"
        );
        assert_eq!(lines("[night job]\nmax_attempts = 1\n", "", "night job", true), "");
    }

    #[test]
    fn checksums_are_limited_unless_the_user_sets_them() {
        let mut settings = AwsSettings::default();
        let [request, response] = CHECKSUMS;
        assert_eq!(settings.lines(true, true), format!("{request} = when_required\n{response} = when_required\n"));
        settings.add(&format!("[default]\n{request} = when_supported\n"), "default", Some("profile"));
        assert_eq!(settings.lines(true, true), format!("{request} = when_supported\n{response} = when_required\n"));
        assert_eq!(settings.lines(true, false), format!("{request} = when_supported\n"));
    }

    /// Drops all settings that are not on the allowlist: identities, addresses and unknown settings.
    #[test]
    fn unlisted_settings_are_left_out() {
        let unlisted = [
            "account_id_endpoint_mode",
            "aws_access_key_id",
            "aws_account_id",
            "aws_secret_access_key",
            "aws_session_token",
            "aws_security_token",
            "credential_process",
            "credential_source",
            "data_path",
            "duration_seconds",
            "ec2_metadata_service_endpoint",
            "endpoint_discovery_enabled",
            "endpoint_url",
            "external_id",
            "ignore_configured_endpoint_urls",
            "login_session",
            "mfa_serial",
            "role_arn",
            "role_session_name",
            "services",
            "source_profile",
            "sso_account_id",
            "sso_role_name",
            "sso_session",
            "sso_start_url",
            "sts_regional_endpoints",
            "use_dualstack_endpoint",
            "use_fips_endpoint",
            "web_identity_token_file",
            "an_identity_of_tomorrow",
        ];
        let config: String = unlisted.iter().map(|name| format!("{name} = x\n")).collect();
        let nested: String = unlisted.iter().map(|name| format!("  {name} = x\n")).collect();
        assert_eq!(lines(&format!("[default]\n{config}s3 =\n{nested}other =\n{nested}"), "", "default", true), "");
    }
}
