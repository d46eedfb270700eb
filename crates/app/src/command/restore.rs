//! `orgvault restore`: restores the embedded database from a backup, or completes a restore by other tools.

use crate::cli::RestoreArgs;
use crate::command::backup::Bar;
use crate::compose;
use crate::events::ServerEvents;
use crate::root_key;
use crate::settings::Settings;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use vault_cli::failure::Failure;
use vault_cli::output::Output;
use vault_core::maintenance::Settled;
use vault_diesel::{Replayed, SinceCredential, SinceNamed};
use vault_embed::{Error, Present, Restored, newest_backup};

/// Maximum number of printed lines per kind. JSON output contains all.
const LINES: usize = 20;

#[derive(Serialize)]
struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    restored: Option<ShownRestored>,
    instance: String,
    ended: Ended,
    /// Key IDs of signing keys that the restored vault does not use any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retired_signing_keys: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<Kept>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<Lost>,
}

#[derive(Serialize)]
struct ShownRestored {
    backup: String,
    created_at: String,
    database: String,
    rows: u64,
    migrations: Vec<String>,
    /// Path of the replaced database's files.
    replaced: Option<String>,
    /// Reason why the replaced database could not be read.
    replaced_unread: Option<String>,
}

#[derive(Serialize)]
struct Ended {
    sessions: u64,
    recovery_codes: u64,
    activations: u64,
    invitations: u64,
}

/// Security state of the replaced database that was carried over to the restored one.
#[derive(Serialize)]
struct Kept {
    organizations: usize,
    accounts: usize,
    integrations: usize,
    frozen_namespaces: usize,
    invitations: usize,
    disabled_accounts: Vec<Named>,
    disabled_integrations: Vec<Named>,
    issuers: usize,
    receivers: usize,
    removed_issuers: Vec<String>,
    removed_receivers: Vec<Named>,
}

/// Changes in the replaced database that the restored one does not contain.
#[derive(Serialize)]
struct Lost {
    organizations: Vec<String>,
    accounts: Vec<Named>,
    integrations: Vec<Named>,
    credentials_saved: Vec<Credential>,
    credentials_changed: Vec<Credential>,
    credentials_deleted: Vec<Credential>,
}

#[derive(Serialize)]
struct Named {
    organization: String,
    name: String,
    id: String,
}

#[derive(Serialize)]
struct Credential {
    organization: String,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    namespace: String,
}

pub(crate) async fn run(settings: &Settings, args: RestoreArgs, output: Output) -> Result<(), Failure> {
    let Some(backup) = args.backup.filter(|_| !args.after_external) else {
        return settle(settings, output).await;
    };
    if settings.database.file().is_none() {
        return Err(Failure::new(
            "a backup is restored to the embedded database, but --database-url names PostgreSQL. Restore that with \
             pg_restore or from physical backups, then run `orgvault restore --after-external`. Nothing was done",
        ));
    }
    let backup = found(backup)?;
    let root_key = root_key::load(settings).await?;
    let mut bar = Bar::new()?;
    let tell = &mut |progress| bar.tell(progress);
    let anchor = compose::anchor(settings);
    let restored = vault_embed::restore(&backup, root_key, &settings.database, &anchor, args.replace, tell).await;
    let restored = restored.map_err(|error| failure(settings, error))?;
    let document = Document::of(&backup, &restored);
    output.print(&document, &document.text(settings))
}

/// Completes a restore by other tools.
async fn settle(settings: &Settings, output: Output) -> Result<(), Failure> {
    let opening = compose::serve(settings, "restore", &ServerEvents::default()).await?.without_maintenance();
    let vault = opening.await.map_err(|error| compose::failure(settings, error))?;
    let retired = vault.federation().retire_others(&[]).await;
    let settled = vault.operator().finish_restore(0, true).await;
    let anchored = vault.re_anchor(&compose::anchor(settings)).await;
    let closed = vault.close().await;
    let (settled, retired_signing_keys) = (settled?, retired?);
    anchored?;
    closed?;
    let instance = vault.instance().to_string();
    let ended = Ended::of(&settled);
    let document = Document { restored: None, instance, ended, retired_signing_keys, kept: None, lost: None };
    output.print(&document, &document.text(settings))
}

/// Returns the backup. If the path is a directory, returns its newest backup.
fn found(backup: PathBuf) -> Result<PathBuf, Failure> {
    if !backup.is_dir() {
        return Ok(backup);
    }
    let newest = newest_backup(&backup)
        .map_err(|error| Failure::new(format!("cannot read the directory {}: {error}", backup.display())))?;
    newest.ok_or_else(|| {
        Failure::new(format!(
            "the directory {} has no backup: no file is called orgvault-TIME.backup. Name the file. Nothing was done",
            backup.display()
        ))
    })
}

/// Describes why nothing was restored, and the next step.
fn failure(settings: &Settings, error: Error) -> Failure {
    const UNCHANGED: &str = "Nothing was changed";
    match error {
        Error::Exists { database } => Failure::new(format!(
            "a vault exists at {0}. To replace it, pass --replace: its files are then moved to {0}.replaced-TIME, not \
             deleted. To keep it, pass another --data-dir. {UNCHANGED}",
            database
        )),
        Error::NoRootKey(path) => Failure::new(format!(
            "root key {} not found. No backup contains it: copy it there, or pass --root-key. {UNCHANGED}",
            path.display()
        )),
        error @ Error::Lock(_) => compose::failure(settings, error),
        Error::Anchor(_) => Failure::new(format!("{}. {UNCHANGED}", Failure::from(error))),
        Error::OlderBackup { .. } => Failure::new(format!(
            "{}. To restore it and lose all later changes, pass --replace. {UNCHANGED}",
            Failure::from(error)
        )),
        Error::Full(_) => Failure::new(format!(
            "{}. Free space: a restore needs twice the size of the backup. {UNCHANGED}",
            Failure::from(error)
        )),
        error => Failure::new(format!("{}. {UNCHANGED}", compose::failure(settings, error))),
    }
}

impl Document {
    fn of(backup: &std::path::Path, restored: &Restored) -> Self {
        let read = match &restored.present {
            Present::Read(replayed) => Some(replayed),
            Present::None | Present::Unread(_) => None,
        };
        Self {
            instance: restored.instance.to_string(),
            ended: Ended::of(&restored.settled),
            retired_signing_keys: restored.retired_keys.clone(),
            kept: read.map(|replayed| Kept::of(replayed)),
            lost: read.map(|replayed| Lost::of(replayed)),
            restored: Some(ShownRestored {
                backup: backup.display().to_string(),
                created_at: restored.created_at.clone(),
                database: restored.database.display().to_string(),
                rows: restored.rows.iter().map(|table| table.rows).sum(),
                migrations: restored.migrations.clone(),
                replaced: restored.replaced.as_ref().map(|path| path.display().to_string()),
                replaced_unread: match &restored.present {
                    Present::Unread(reason) => Some(reason.clone()),
                    _ => None,
                },
            }),
        }
    }

    fn text(&self, settings: &Settings) -> String {
        let mut text = String::new();
        if let Some(restored) = &self.restored {
            let ShownRestored { backup, created_at, database, rows, migrations, replaced, replaced_unread } = restored;
            let _ = writeln!(
                text,
                "Restored the vault to {database}\n  from {backup}: the state of {created_at}, {rows} rows"
            );
            let _ = writeln!(text, "  under a new database key; root key as before");
            if !migrations.is_empty() {
                let _ = writeln!(text, "  migrations applied: {}", migrations.join(", "));
            }
            if let Some(replaced) = replaced {
                let _ = writeln!(text, "The previous files are in {replaced}");
            }
            if let Some(reason) = replaced_unread {
                let _ = writeln!(
                    text,
                    "They could not be read ({reason}). All changes after the backup are lost, such as disabling, freezing, \
                     revoking or deleting: check accounts, integrations, organizations, namespaces, issuers and receivers"
                );
            }
        }
        let Ended { sessions, recovery_codes, activations, invitations } = self.ended;
        let _ = writeln!(
            text,
            "\nRevoked: {sessions} sessions and every older access token, {recovery_codes} recovery codes, {activations} \
             activations, {invitations} enrolment codes. Passcodes that were shown before now are rejected; wait for the next one."
        );
        if !self.retired_signing_keys.is_empty() {
            let _ = writeln!(
                text,
                "Retired signing keys of keyless storage access, because they may have leaked since the backup: {}. Add a key \
                 with `orgvault federation key add --file PEM`.",
                self.retired_signing_keys.join(", ")
            );
        }
        if let Some(kept) = &self.kept {
            let _ = writeln!(
                text,
                "Kept in their state before the restore: {} organizations, {} accounts, {} integrations; {} frozen \
                 namespaces; {} enrolment codes; {} issuers; {} receivers.",
                kept.organizations,
                kept.accounts,
                kept.integrations,
                kept.frozen_namespaces,
                kept.invitations,
                kept.issuers,
                kept.receivers
            );
            list_named(&mut text, "Restored, but disabled: accounts", &kept.disabled_accounts);
            list_named(&mut text, "Restored, but disabled: integrations", &kept.disabled_integrations);
            list(
                &mut text,
                "Not restored: issuers that were removed or changed since",
                &kept.removed_issuers,
                Clone::clone,
            );
            list_named(
                &mut text,
                "Not restored: receivers that were removed or changed since",
                &kept.removed_receivers,
            );
        }
        if let Some(lost) = &self.lost {
            lost.write(&mut text);
        }
        if self.restored.as_ref().is_some_and(|restored| restored.replaced.is_some()) {
            let _ = writeln!(text, "Audit entries since the backup are in the files that were replaced.");
        }
        let next = match settings.database.file() {
            Some(_) => settings.command_line("serve"),
            // The role of this command owns the tables. That of the service does not.
            None => format!(
                "{}, with the database URL of the service's role",
                settings.command_line_without_database("serve")
            ),
        };
        let _ =
            writeln!(text, "\nNext: {next}\nUsers must create new recovery codes: docs/API.md, \"Your own account\".");
        text
    }
}

impl Lost {
    fn of(replayed: &Replayed) -> Self {
        Self {
            organizations: replayed.new_organizations.clone(),
            accounts: named(&replayed.new_accounts),
            integrations: named(&replayed.new_integrations),
            credentials_saved: credentials(&replayed.saved),
            credentials_changed: credentials(&replayed.changed),
            credentials_deleted: credentials(&replayed.deleted),
        }
    }

    fn write(&self, text: &mut String) {
        let before = text.len();
        if !self.organizations.is_empty() {
            let _ = writeln!(text, "Lost: organizations created since: {}", self.organizations.join(", "));
        }
        list_named(text, "Lost: accounts created since", &self.accounts);
        list_named(text, "Lost: integrations created since", &self.integrations);
        list_credentials(text, "Lost: credentials saved since", &self.credentials_saved);
        list_credentials(text, "Restored to their state in the backup: credentials", &self.credentials_changed);
        list_credentials(text, "Restored although deleted after the backup: credentials", &self.credentials_deleted);
        if text.len() == before {
            let _ = writeln!(text, "Nothing is lost: no organization, account, integration or credential is newer.");
        }
    }
}

impl Kept {
    fn of(replayed: &Replayed) -> Self {
        Self {
            organizations: replayed.organizations.len(),
            accounts: replayed.accounts,
            integrations: replayed.integrations,
            frozen_namespaces: replayed.frozen.len(),
            invitations: replayed.invitations,
            disabled_accounts: named(&replayed.stale_accounts),
            disabled_integrations: named(&replayed.stale_integrations),
            issuers: replayed.issuers,
            receivers: replayed.receivers,
            removed_issuers: replayed.stale_issuers.clone(),
            removed_receivers: named(&replayed.stale_receivers),
        }
    }
}

impl Ended {
    fn of(settled: &Settled) -> Self {
        let Settled { sessions, recovery_codes, activations, invitations } = *settled;
        Self { sessions, recovery_codes, activations, invitations }
    }
}

fn named(rows: &[SinceNamed]) -> Vec<Named> {
    let of =
        |row: &SinceNamed| Named { organization: row.organization.clone(), name: row.name.clone(), id: row.id.clone() };
    rows.iter().map(of).collect()
}

fn credentials(rows: &[SinceCredential]) -> Vec<Credential> {
    let of = |row: &SinceCredential| Credential {
        organization: row.organization.clone(),
        id: row.id.clone(),
        kind: row.kind.clone(),
        namespace: row.namespace.clone(),
    };
    rows.iter().map(of).collect()
}

fn list_named(text: &mut String, heading: &str, rows: &[Named]) {
    list(text, heading, rows, |row| format!("{} ({})", row.name, row.organization));
}

fn list_credentials(text: &mut String, heading: &str, rows: &[Credential]) {
    list(text, heading, rows, |row| format!("{} {} in {} ({})", row.kind, row.id, row.namespace, row.organization));
}

fn list<T>(text: &mut String, heading: &str, rows: &[T], line: impl Fn(&T) -> String) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "{heading} ({}):", rows.len());
    for row in rows.iter().take(LINES) {
        let _ = writeln!(text, "  {}", line(row));
    }
    if rows.len() > LINES {
        let _ = writeln!(text, "  and {} more; --json lists all", rows.len() - LINES);
    }
}
