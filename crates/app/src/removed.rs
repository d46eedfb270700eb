//! Names of earlier builds: their errors name what replaces them.

/// Removed commands and their replacements. An empty text is none.
const COMMANDS: &[(&str, &str)] = &[
    ("account disable", "`account set --state disabled`"),
    ("account enable", "`account set --state enabled`"),
    ("account passcode", "`account re-enrol`"),
    ("account reset-passcode", "`account re-enrol`"),
    ("account set-password", "`account re-enrol`"),
    ("audit export", "`audit list --json-lines`"),
    ("credential describe", "`credential set`"),
    ("credential label", "`credential set --label`"),
    ("credential match", "`credential find`"),
    ("credential trust", "`credential show --trust`"),
    ("credential uses", "`credential show --uses`"),
    ("credential versions", "`credential show --versions`"),
    ("database", ""),
    ("federation check", "`federation status`"),
    ("federation key confirm", "`federation key promote --now`"),
    ("federation rotate", "`federation key promote`, and `federation key remove` after a leak"),
    ("integration disable", "`integration set --state disabled`"),
    ("integration enable", "`integration set --state enabled`"),
    ("issuer show", "`issuer list NAME`"),
    ("key prune", "`key rotate --instance`, which also destroys replaced keys"),
    ("man-pages", ""),
    ("org disable", "`org set --state disabled`"),
    ("org enable", "`org set --state enabled`"),
    ("plan", "`apply --dry-run`"),
    ("receiver events", "`receiver add --help`"),
    ("receiver resend", "the console"),
];

/// Removed flags and their replacements. A flag that other commands keep follows the name of its command.
const FLAGS: &[(&str, &str)] = &[
    ("activate --base-path", "ORGVAULT_BASE_PATH"),
    ("activate --ca-file", "ORGVAULT_ACTIVATION_CA_FILE"),
    ("exec --base-path", "ORGVAULT_BASE_PATH"),
    ("exec --ca-file", "ORGVAULT_ACTIVATION_CA_FILE"),
    ("enrol --base-path", "ORGVAULT_BASE_PATH"),
    ("--client-cert-file", "ORGVAULT_ACTIVATION_CLIENT_CERT_FILE"),
    ("--client-key-file", "ORGVAULT_ACTIVATION_CLIENT_KEY_FILE"),
    ("--complete", "null as the value of each field to remove"),
    ("--idempotency-key", ""),
    ("--integration-id", "ORGVAULT_INTEGRATION_ID"),
    ("--max-deletes", "`apply --dry-run`"),
    ("--new-root-key-file", "`--new-root-key`"),
    ("--new-root-key-source", "`--new-root-key`"),
    ("--older", "--replace"),
    ("--server-ca-file", "ORGVAULT_SERVER_CA_FILE"),
    ("--set", "the set of the documents"),
    ("--workers", ""),
];

/// Removed settings and their replacements, without the `--` of flags. They are also variables and keys of the file.
const SETTINGS: &[(&str, &str)] = &[
    ("activation-burst", "activation-rate: the burst is ten times the rate"),
    ("activation-socket-mode", ""),
    ("allow-egress-host", "allow-egress, which accepts host names too"),
    ("allow-http-exports", ""),
    ("allow-http-links", "direct links with https"),
    ("audit-sink-token-file", "ORGVAULT_AUDIT_SINK_TOKEN_FILE, or the setting audit-sink-token"),
    ("database-url-file", "ORGVAULT_DATABASE_URL_FILE"),
    ("egress-proxy-ca-file", "ca-file"),
    (
        "egress-proxy-credentials-file",
        "ORGVAULT_EGRESS_PROXY_CREDENTIALS_FILE, or the setting egress-proxy-credentials",
    ),
    ("expiring-within", ""),
    ("inspect-every", ""),
    ("login-burst", "login-rate: the burst is ten times the rate"),
    ("otlp-headers-file", "ORGVAULT_OTLP_HEADERS_FILE, or the setting otlp-headers"),
    ("page-cache", ""),
    ("receiver-ca-file", "ca-file"),
    ("require-disk-encryption", ""),
    ("root-key-file", "root-key=file:PATH"),
    ("root-key-source", "root-key=credential:NAME or root-key=command:COMMAND"),
    ("smtp-password-file", "ORGVAULT_SMTP_PASSWORD_FILE, or the setting smtp-password"),
    ("storage-ca-file", "ca-file"),
    ("verify-on-save", ""),
];

/// Returns the error for a removed command, such as `key prune`.
pub(crate) fn command(name: &str) -> Option<String> {
    message(COMMANDS, name, name)
}

/// Returns the error for a removed flag of `command`, such as `--until`.
pub(crate) fn flag(command: &str, flag: &str) -> Option<String> {
    let setting = || message(SETTINGS, flag.strip_prefix("--")?, flag);
    message(FLAGS, &format!("{command} {flag}"), flag).or_else(|| message(FLAGS, flag, flag)).or_else(setting)
}

/// Returns the error for a removed key of the settings file.
pub(crate) fn key(name: &str) -> Option<String> {
    message(SETTINGS, name, name)
}

/// Returns the error for a removed environment variable.
pub(crate) fn variable(name: &str) -> Option<String> {
    let setting = name.strip_prefix("ORGVAULT_")?.replace('_', "-").to_lowercase();
    message(SETTINGS, &setting, name)
}

fn message(table: &[(&str, &str)], name: &str, shown: &str) -> Option<String> {
    match table.iter().find(|(old, _)| *old == name)?.1 {
        "" => Some(format!("`{shown}` was removed")),
        new => Some(format!("`{shown}` was replaced by {new}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_names_are_not_declared() {
        let declared = crate::cli::command();
        for (name, _) in COMMANDS {
            let mut words = name.split(' ');
            assert!(words.try_fold(&declared, |found, word| found.find_subcommand(word)).is_none(), "{name}");
        }
        for setting in crate::settings::vault_flags().into_iter().chain(crate::settings::server_flags()) {
            assert_eq!(key(setting.get_long().unwrap_or_default()), None);
        }
    }
}
