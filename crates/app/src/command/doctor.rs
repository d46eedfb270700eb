//! `orgvault doctor`: checks the environment of a vault and, with `--deep`, all stored data. Reports problems and
//! remedies, and changes nothing.

mod deep;
mod federation;
mod spread;

use crate::backups;
use crate::cli::DoctorArgs;
use crate::compose;
use crate::egress;
use crate::settings::Settings;
use serde::Serialize;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;
use vault_cli::failure::Failure;
use vault_cli::output::{Output, table};
use vault_cli::text::counted;
use vault_core::organization::KEY_REPLACED_AT;
use vault_core::usecase::{DeliveryProgress, MAX_SKEW};
use vault_embed::OpenVault;

/// File that exists if systemd-timesyncd has synchronized the clock.
const SYNCHRONIZED: &str = "/run/systemd/timesync/synchronized";

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Passed,
    Warning,
    Failed,
    /// The check is not possible on this host.
    Skipped,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

macro_rules! checks {
    ($($name:ident = $text:literal, $passes:literal;)*) => {
        /// The checks. The second text of each is its condition, for the reference.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "kebab-case")]
        enum CheckName {
            $($name,)*
        }

        impl CheckName {
            #[cfg(test)]
            const CONDITIONS: &[(&str, &str)] = &[$(($text, $passes)),*];

            const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

checks! {
    Vault = "vault", "The root key opens the vault, and the schema is current";
    Directory = "directory", "Other users cannot read the data directory";
    RootKey = "root-key", "The root key is neither in the data directory nor on the disk of the embedded database";
    EgressProxy = "egress-proxy", "With `--egress-proxy`: the proxy accepts connections, and its certificate is trusted";
    Clock = "clock",
        "The clock differs from PostgreSQL's by less than 2 s. Embedded database: systemd-timesyncd has synchronized it";
    Keys = "keys", "No organization key is near its use limit";
    Federation = "federation",
        "With `--federation-issuer`: a signing key is current, published and at most 180 days old";
    AuditSink = "audit-sink", "The position of the delivery to `--audit-sink` was not modified";
    Backups = "backups", "With `--backup-every`: the newest scheduled backup is not overdue";
    Tables = "tables", "On Citus: the tables are distributed, and every worker has the metadata of the cluster";
    Transactions = "transactions", "On Citus: no prepared transaction is older than two minutes";
    Pages = "pages",
        "With `--deep`, embedded database: every page of the file is unchanged since the service wrote it";
    Audit = "audit", "With `--deep`: the audit log is unchanged up to the checkpoint of the anchor";
    Rows = "rows",
        "With `--deep`: all stored data can be decrypted in its row, and no protected row was changed, moved, restored \
         or deleted outside the service";
}

#[derive(Debug, Serialize)]
struct Check {
    check: CheckName,
    result: Outcome,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    fn passed(check: CheckName, found: impl Into<String>) -> Self {
        Self { check, result: Outcome::Passed, found: found.into(), remedy: None }
    }

    fn other(check: CheckName, result: Outcome, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, result, found: found.into(), remedy: Some(remedy.into()) }
    }
}

#[derive(Serialize)]
struct Report {
    checks: Vec<Check>,
    /// The first 10,000 findings of `--deep`, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<String>>,
}

/// Runs all checks. Fails if one of them fails.
pub(crate) async fn run(settings: &Settings, args: &DoctorArgs, output: Output) -> Result<(), Failure> {
    let mut findings = None;
    let mut checks = vec![directory(settings), root_key(settings)];
    checks.extend(egress_proxy(settings).await);
    let opened = match args.deep {
        true => compose::open_with_opener(settings).await.map(|(vault, opener)| (vault, Some(opener))),
        false => compose::open(settings).await.map(|vault| (vault, None)),
    };
    match opened {
        Ok((vault, opener)) => {
            let found = format!("instance {} can be decrypted with root key {}", vault.instance(), vault.root_key());
            checks.insert(0, Check::passed(CheckName::Vault, found));
            checks.push(clock(&vault).await);
            checks.push(keys(&vault).await);
            checks.extend(federation::keys(settings, &vault).await);
            checks.push(audit_sink(&vault).await);
            checks.push(backups(settings, &vault));
            checks.extend(spread::tables(&vault).await);
            if let Some(opener) = opener {
                let found = findings.insert(Vec::new());
                checks.extend(deep::pages(&vault, found).await);
                let audit = deep::audit(settings, &vault, found).await;
                checks.push(audit.unwrap_or_else(|failure| deep::unreadable(CheckName::Audit, &failure)));
                let rows = deep::rows(&vault, opener, found).await;
                checks.push(rows.unwrap_or_else(|failure| deep::unreadable(CheckName::Rows, &failure)));
            }
            vault.close().await?;
        }
        Err(failure) => {
            let found = format!("it cannot be opened: {failure}");
            checks.insert(0, Check { check: CheckName::Vault, result: Outcome::Failed, found, remedy: None });
        }
    }
    let failed = checks.iter().filter(|check| check.result == Outcome::Failed).count();
    let text = text(&checks, findings.as_deref().unwrap_or_default());
    output.print(&Report { checks, findings }, &text)?;
    match failed {
        0 => Ok(()),
        1 => Err(Failure::new("1 check failed")),
        count => Err(Failure::new(format!("{count} checks failed"))),
    }
}

fn text(checks: &[Check], findings: &[String]) -> String {
    let mut text = String::new();
    let rows: Vec<Vec<String>> = checks
        .iter()
        .map(|check| vec![check.check.as_str().to_owned(), check.result.as_str().to_owned(), check.found.clone()])
        .collect();
    text += &table(&["CHECK", "RESULT", "FOUND"], &rows);
    let remedies = checks.iter().filter_map(|check| Some((check.check.as_str(), check.remedy.as_ref()?)));
    for (number, (check, remedy)) in remedies.enumerate() {
        text += if number == 0 { "\nWhat to do:\n" } else { "" };
        text += &format!("  {check}: {remedy}\n");
    }
    for (number, finding) in findings.iter().enumerate() {
        text += if number == 0 { "\nFound:\n" } else { "" };
        text += &format!("  {finding}\n");
    }
    text
}

fn directory(settings: &Settings) -> Check {
    let path = settings.data_dir.display();
    match compose::open_mode(&settings.data_dir) {
        Some(mode) => {
            let found = format!("{path} has mode {mode:04o}, so other users can read it");
            Check::other(CheckName::Directory, Outcome::Failed, found, format!("Run chmod 700 {path}"))
        }
        None => Check::passed(CheckName::Directory, format!("other users have no access to {path}")),
    }
}

fn root_key(settings: &Settings) -> Check {
    let Some(path) = settings.root_key.file() else {
        return Check::passed(CheckName::RootKey, format!("{} is not in a file", settings.root_key));
    };
    let Some(database) = settings.database.file() else {
        return Check::passed(
            CheckName::RootKey,
            format!("{} is on this host, the database is on a server", path.display()),
        );
    };
    let remedy = "A stolen or copied disk exposes both. Store the root key elsewhere, for example as a systemd \
                  credential, and set --root-key (docs/operate/root-key.md).";
    let device = |path: &Path| path.metadata().map(|found| found.dev()).ok();
    if path.parent() == database.parent() {
        let found = format!("{} is in the directory of the database", path.display());
        return Check::other(CheckName::RootKey, Outcome::Warning, found, remedy);
    }
    if device(&path).is_some() && device(&path) == device(database) {
        let found = format!("{} is on the disk of the database", path.display());
        return Check::other(CheckName::RootKey, Outcome::Warning, found, remedy);
    }
    Check::passed(CheckName::RootKey, format!("{} is not on the disk of the database", path.display()))
}

/// Checks the age of the newest scheduled backup.
fn backups(settings: &Settings, vault: &OpenVault) -> Check {
    let server = &settings.server;
    let (Some(every), Some(directory)) = (server.backup_every, &server.backup_to) else {
        let found = "no backup schedule in the settings of this command";
        let remedy = match settings.database.file() {
            Some(_) => "Set --backup-every and --backup-to, or schedule `orgvault backup` and watch its age.",
            None => "PostgreSQL is backed up with its own tools. Watch the age of their backups.",
        };
        return Check::other(CheckName::Backups, Outcome::Skipped, found, remedy);
    };
    let remedy = "Search the log of the server for `backup`, or run `orgvault backup`.";
    let shown = directory.display();
    match backups::newest(directory, vault) {
        Err(error) => {
            Check::other(CheckName::Backups, Outcome::Skipped, format!("{shown} cannot be read: {error}"), remedy)
        }
        Ok(None) => Check::other(
            CheckName::Backups,
            Outcome::Warning,
            format!("{shown} has no scheduled backup of this vault"),
            remedy,
        ),
        Ok(Some(made)) => {
            let age = backups::age(made);
            let found = format!("the newest in {shown} is {} old", hours(age));
            match backups::is_overdue(age, Duration::from_secs(every.unsigned_abs())) {
                true => Check::other(CheckName::Backups, Outcome::Warning, found, remedy),
                false => Check::passed(CheckName::Backups, found),
            }
        }
    }
}

fn hours(age: Duration) -> String {
    let minutes = age.as_secs() / 60;
    if minutes < 120 { format!("{minutes} minutes") } else { format!("{} hours", minutes / 60) }
}

/// Checks the clock against the database's. Passcodes depend on the time, and replicas must agree on the expiry of
/// tokens.
async fn clock(vault: &OpenVault) -> Check {
    let remedy = "Synchronize the clocks of this host and of the database server, for example with chrony.";
    match vault.operator().check_store().await {
        Err(error) => {
            Check::other(CheckName::Clock, Outcome::Failed, format!("the database does not respond: {error}"), remedy)
        }
        Ok(Some(skew)) if skew.abs() > MAX_SKEW => {
            let found = format!(
                "the clocks of this host and the database differ by {skew} ms; above {MAX_SKEW} ms a server is not ready"
            );
            Check::other(CheckName::Clock, Outcome::Failed, found, remedy)
        }
        Ok(Some(skew)) => {
            Check::passed(CheckName::Clock, format!("the clocks of this host and the database differ by {skew} ms"))
        }
        Ok(None) if Path::new(SYNCHRONIZED).exists() => {
            Check::passed(CheckName::Clock, "synchronized by systemd-timesyncd")
        }
        Ok(None) => {
            let remedy =
                "Passcodes change every 30 s: see that the clock is synchronized, for example with `timedatectl`.";
            Check::other(
                CheckName::Clock,
                Outcome::Skipped,
                "cannot determine whether the clock is synchronized",
                remedy,
            )
        }
    }
}

/// Checks whether the recorded delivery progress of the audit log was modified.
async fn audit_sink(vault: &OpenVault) -> Check {
    let remedy = "The table audit_delivery was modified. A server with --audit-sink then delivers all stored entries \
                  again. Find out who can write to the database, and compare the sink with `orgvault audit list --json-lines`.";
    match vault.operator().delivery_progress().await {
        Err(error) => {
            let found = format!("the delivery state of the audit log cannot be read: {error}");
            Check::other(CheckName::AuditSink, Outcome::Failed, found, "See the log of the server and of the database.")
        }
        Ok(None) => Check::passed(CheckName::AuditSink, "no audit sink is configured"),
        Ok(Some(DeliveryProgress { breach: Some(breach), .. })) => {
            Check::other(CheckName::AuditSink, Outcome::Failed, breach.to_string(), remedy)
        }
        Ok(Some(DeliveryProgress { waiting, .. })) => {
            let waiting = counted(waiting.unsigned_abs(), "checkpoint");
            Check::passed(
                CheckName::AuditSink,
                format!("the MAC of the position verifies; {waiting} not delivered yet"),
            )
        }
    }
}

/// Checks whether the outgoing proxy accepts connections. Returns `None` without a proxy.
async fn egress_proxy(settings: &Settings) -> Option<Check> {
    const CHECK: CheckName = CheckName::EgressProxy;
    let url = settings.server.egress_proxy.as_ref()?;
    let egress = match egress::of(settings) {
        Ok(egress) => egress,
        Err(failure) => {
            let remedy = "Correct the value, or the owner or mode of its file.";
            return Some(Check::other(CHECK, Outcome::Failed, failure.to_string(), remedy));
        }
    };
    Some(match egress.proxy()?.check().await {
        Ok(()) if egress::sends_password_unencrypted(settings) => {
            let found = format!("{url} accepts connections, and gets its password unencrypted");
            Check::other(CHECK, Outcome::Warning, found, "Use an https:// URL for --egress-proxy.")
        }
        Ok(()) => Check::passed(CHECK, format!("{url} accepts connections")),
        Err(_) => {
            let remedy = "Check --egress-proxy, the firewall, and for an https proxy --ca-file.";
            Check::other(CHECK, Outcome::Failed, format!("no connection to {url}"), remedy)
        }
    })
}

/// Checks how close the organizations' keys are to their usage limits.
async fn keys(vault: &OpenVault) -> Check {
    let organizations = match vault.keys().overview().await {
        Ok(overview) => overview.organizations,
        Err(error) => {
            let found = format!("the keys cannot be read: {error}");
            return Check::other(
                CheckName::Keys,
                Outcome::Failed,
                found,
                "See the log of the server and of the database.",
            );
        }
    };
    let Some(most) = organizations.iter().map(|keys| keys.uses).max() else {
        return Check::passed(CheckName::Keys, "there is no organization yet");
    };
    let replace_at = KEY_REPLACED_AT;
    let number = u64::try_from(organizations.len()).unwrap_or(u64::MAX);
    let found = format!("{}; the most used key has {most} of {replace_at} uses", counted(number, "organization"));
    if most < replace_at.saturating_mul(2) {
        return Check::passed(CheckName::Keys, found);
    }
    let remedy = format!("Servers replace keys at {replace_at} uses. See the server's log for the reason.");
    Check::other(CheckName::Keys, Outcome::Warning, found, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// `ORGVAULT_UPDATE=1` regenerates the page.
    #[test]
    fn check_reference_matches_declarations() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate/doctor.md");
        let rows = CheckName::CONDITIONS.iter().fold(String::new(), |mut rows, (name, passes)| {
            let _ = writeln!(rows, "| `{name}` | {passes} |");
            rows
        });
        vault_testkit::page::assert_table(&path, "| Check | Passes if |\n|---|---|\n", &rows);
    }

    #[test]
    fn doctor_prints_remedies_after_table() {
        let checks = [
            Check::passed(CheckName::Vault, "it opens"),
            Check::other(CheckName::Backups, Outcome::Warning, "one day old", "Back up."),
            Check::other(CheckName::Clock, Outcome::Skipped, "unknown", "See timedatectl."),
        ];
        assert_eq!(
            text(&checks, &["row 1 of table accounts has a MAC that does not verify".to_owned()]),
            "CHECK    RESULT   FOUND\nvault    passed   it opens\nbackups  warning  one day old\nclock    skipped  unknown\n\n\
             What to do:\n  backups: Back up.\n  clock: See timedatectl.\n\n\
             Found:\n  row 1 of table accounts has a MAC that does not verify\n"
        );
    }
}
