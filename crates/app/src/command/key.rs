//! `orgvault key …`

mod root;

pub(crate) use root::rotate as rotate_root;

use crate::cli::{KeyCommand, RotateArgs};
use crate::progress;
use indicatif::ProgressBar;
use serde::Serialize;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use vault_cli::failure::{Doing, Failure, NO_ORGANIZATION, refused};
use vault_cli::output::{Output, note, table};
use vault_cli::text::{counted, rfc3339};
use vault_core::error::ErrorKind;
use vault_core::id::KeyId;
use vault_core::keyring::KeyringEntry;
use vault_core::organization::Organization;
use vault_core::sealed::KeyState;
use vault_core::usecase::{
    InstanceRotation, KeyOverview, OrganizationKeyOverview, OrganizationRotation, PurposeKeyOverview, RetiringInstance,
    RotationEnd,
};
use vault_embed::OpenVault;

/// Number of retries of a step while the database is unavailable, and the pause before each.
const TRIES: u32 = 60;
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Serialize)]
struct Overview {
    instance: String,
    root_key: String,
    /// Other root keys under which the database key is still wrapped, if a replacement was interrupted.
    other_root_keys: Vec<String>,
    instance_key: String,
    /// Replaced instance keys that are not destroyed yet.
    retiring_instance_keys: Vec<ShownRetiringInstance>,
    /// Keys of tokens, the audit log, receivers and lookups.
    purpose_keys: Vec<ShownPurposeKey>,
    organizations: Vec<ShownKeys>,
}

#[derive(Serialize)]
struct ShownKeys {
    organization: String,
    name: String,
    active_key: String,
    created_at: String,
    uses: i64,
    replaced_at_uses: i64,
    retiring: Vec<ShownRetiring>,
}

#[derive(Serialize)]
struct ShownRetiring {
    key: String,
    created_at: String,
    credentials: i64,
}

#[derive(Serialize)]
struct ShownRetiringInstance {
    key: String,
    retired_at: String,
    rows: i64,
}

#[derive(Serialize)]
struct ShownPurposeKey {
    purpose: &'static str,
    key: String,
    state: &'static str,
    since: String,
    /// Number of rows that still need a retiring key.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<i64>,
}

#[derive(Serialize)]
struct Rotated {
    #[serde(flatten)]
    subject: Subject,
    active_key: String,
    /// Set if this run created the key. Otherwise, it completed an earlier rotation.
    new_key: bool,
    moved: u64,
    destroyed: Vec<String>,
    kept: Vec<Kept>,
}

/// The owner of the rotated key.
#[derive(Clone, Serialize)]
#[serde(untagged)]
enum Subject {
    Organization { organization: String, name: String },
    Instance { instance: String },
}

#[derive(Serialize)]
struct Kept {
    key: String,
    damaged: i64,
}

pub(crate) async fn run(vault: &OpenVault, command: KeyCommand, output: Output) -> Result<(), Failure> {
    match command {
        KeyCommand::Status => status(vault, output).await,
        KeyCommand::Rotate(args) if args.instance => rotate_instance(vault, output).await,
        KeyCommand::Rotate(args) => rotate(vault, args, output).await,
    }
}

async fn status(vault: &OpenVault, output: Output) -> Result<(), Failure> {
    let overview = vault.keys().overview().await?;
    let KeyOverview { instance, root_key, instance_key, retiring, purposes, organizations } = overview;
    let others = vault.database_root_keys()?.into_iter().filter(|key| *key != root_key);
    let shown = Overview {
        instance: instance.to_string(),
        root_key: root_key.to_string(),
        other_root_keys: others.map(|key| key.to_string()).collect(),
        instance_key: instance_key.to_string(),
        retiring_instance_keys: retiring.into_iter().map(ShownRetiringInstance::from).collect(),
        purpose_keys: purposes.into_iter().map(ShownPurposeKey::from).collect(),
        organizations: organizations.into_iter().map(ShownKeys::from).collect(),
    };
    let mut rows = Vec::new();
    for keys in &shown.organizations {
        let uses = format!("{} of {}", keys.uses, keys.replaced_at_uses);
        rows.push([&keys.name, "active", &keys.active_key, &keys.created_at, &uses].map(str::to_owned).to_vec());
        for key in &keys.retiring {
            let left = format!("{} credentials left", key.credentials);
            rows.push([&keys.name, "retiring", &key.key, &key.created_at, &left].map(str::to_owned).to_vec());
        }
    }
    let Overview { root_key, other_root_keys, instance_key, retiring_instance_keys, .. } = &shown;
    let replaced = |key: &ShownRetiringInstance| {
        let ShownRetiringInstance { key, retired_at, rows } = key;
        format!(
            "\n              {key} was replaced at {retired_at}, {rows} rows left. Run `orgvault key rotate --instance` again"
        )
    };
    let replaced: String = retiring_instance_keys.iter().map(replaced).collect();
    let unfinished = match &other_root_keys[..] {
        [] => String::new(),
        others => format!(
            "\n              A replacement was interrupted: the database key is wrapped under {} too. Run `orgvault key rotate \
             --root` again",
            others.join(", ")
        ),
    };
    let text = format!(
        "Root key      {root_key}{unfinished}\nInstance key  {instance_key}{replaced}\n\n{}\n{}",
        purpose_table(&shown.purpose_keys),
        table(&["ORGANIZATION", "STATE", "KEY", "CREATED", "USES"], &rows)
    );
    output.print(&shown, &text)
}

fn purpose_table(keys: &[ShownPurposeKey]) -> String {
    let left = |key: &ShownPurposeKey| match (key.rows, key.purpose) {
        (None, _) => String::new(),
        (Some(rows), "token") => format!("{rows} sessions"),
        (Some(rows), "audit") => format!("{rows} entries"),
        (Some(rows), "lookup") => format!("{rows} requests and deliveries, and rows that the next rotation rekeys"),
        (Some(rows), _) => format!("{rows} rows"),
    };
    let row = |key: &ShownPurposeKey| {
        vec![key.purpose.to_owned(), key.state.to_owned(), key.key.clone(), key.since.clone(), left(key)]
    };
    table(&["PURPOSE", "STATE", "KEY", "SINCE", "NEEDED BY"], &keys.iter().map(row).collect::<Vec<_>>())
}

/// Destroys replaced keys that no row needs, and removes retired signing keys. Before it destroys a lookup key, it moves
/// all rows to the new one.
async fn prune(vault: &OpenVault) -> Result<(), Failure> {
    let bar = progress::bar("{msg} {pos} rows {per_sec}")?;
    bar.set_message("moving digests to the new lookup key");
    let mut seen = |rows| bar.set_position(rows);
    let destroyed = vault.keys().destroy_replaced(&mut seen).await.doing(|| "destroy replaced keys".to_owned())?.len();
    bar.finish_and_clear();
    let count = u64::try_from(destroyed)?;
    if count > 0 {
        note(&format!("destroyed {} that nothing needs", counted(count, "replaced key")));
    }
    Ok(())
}

impl From<PurposeKeyOverview> for ShownPurposeKey {
    fn from(key: PurposeKeyOverview) -> Self {
        let PurposeKeyOverview { entry: KeyringEntry { purpose, id, state, since }, rows } = key;
        Self {
            purpose: purpose.as_str(),
            key: id.to_string(),
            state: state.as_str(),
            since: rfc3339(since),
            rows: (state == KeyState::Retiring).then_some(rows),
        }
    }
}

impl From<RetiringInstance> for ShownRetiringInstance {
    fn from(key: RetiringInstance) -> Self {
        Self { key: key.key.to_string(), retired_at: rfc3339(key.retired_at), rows: key.rows }
    }
}

impl From<OrganizationKeyOverview> for ShownKeys {
    fn from(keys: OrganizationKeyOverview) -> Self {
        let retiring = keys.retiring.into_iter().map(|key| ShownRetiring {
            key: key.key.to_string(),
            created_at: rfc3339(key.created_at),
            credentials: key.credentials,
        });
        Self {
            organization: keys.organization.id.to_string(),
            name: keys.organization.name.to_string(),
            active_key: keys.active.to_string(),
            created_at: rfc3339(keys.created_at),
            uses: keys.uses,
            replaced_at_uses: KeyOverview::REPLACED_AT,
            retiring: retiring.collect(),
        }
    }
}

async fn rotate(vault: &OpenVault, args: RotateArgs, output: Output) -> Result<(), Failure> {
    let organizations = match &args.organization {
        Some(name) => {
            let organization = vault.operator().organization(name).await;
            let organization = organization.map_err(|error| refused(error, NO_ORGANIZATION));
            vec![organization.doing(|| format!("rotate the key of organization {name}"))?]
        }
        None => vault.operator().organizations().await?,
    };
    let mut rotated = Vec::new();
    for organization in &organizations {
        let started = begin(vault, organization).await;
        let subject = Subject::from(organization);
        let rotated_one = match started {
            Ok(rotation) => carry_out(rotation, subject).await,
            Err(stopped) => Err(stopped),
        };
        match rotated_one {
            Ok(one) => rotated.push(one),
            // The organization was deleted in the meantime.
            Err(Stopped::Gone) if args.all => {}
            Err(Stopped::Gone) => return Err(Failure::new(NO_ORGANIZATION)),
            Err(Stopped::Failed(failure)) => {
                return Err(failure).doing(|| format!("rotate the key of organization {}", organization.name));
            }
        }
    }
    let texts: Vec<String> = rotated.iter().map(Rotated::text).collect();
    output.print(&rotated, &texts.join("\n"))?;
    match rotated.iter().find(|one| !one.kept.is_empty()) {
        Some(one) => Err(Failure::new(format!(
            "organization {} has damaged rows, so its old key was kept. The log names the rows: delete or replace these \
             credentials, then run the command again",
            one.subject.name()
        ))),
        None => Ok(()),
    }
}

/// The reason why a rotation stopped.
enum Stopped {
    /// The organization no longer exists.
    Gone,
    Failed(Failure),
}

impl From<vault_core::Error> for Stopped {
    fn from(error: vault_core::Error) -> Self {
        use vault_core::principal::Denial;
        use vault_core::{Error, Refusal};
        match error {
            Error::Refused(Refusal::NoOrganization) | Error::Denied(Denial::OrganizationDisabled) => Self::Gone,
            error if error.kind() == ErrorKind::Retry => Self::Failed(
                Failure::from(error).noting("no data is lost. Run the command again: it continues where it stopped"),
            ),
            error => Self::Failed(error.into()),
        }
    }
}

async fn rotate_instance(vault: &OpenVault, output: Output) -> Result<(), Failure> {
    let subject = Subject::Instance { instance: vault.instance().to_string() };
    prune(vault).await?;
    let rotated = match vault.keys().rotate_instance().await {
        Ok(rotation) => carry_out(Rotation::Instance(Box::new(rotation)), subject).await,
        Err(error) => Err(error.into()),
    };
    let rotated = match rotated {
        Ok(rotated) => rotated,
        Err(Stopped::Gone) => return Err(Failure::new("the vault has no instance key")),
        Err(Stopped::Failed(failure)) => return Err(failure).doing(|| "rotate the instance key".to_owned()),
    };
    output.print(&rotated, &rotated.text())?;
    if rotated.kept.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        "the vault has damaged rows, so its old instance key was kept. The log names the rows: restore these rows, or reset or delete the \
         accounts and integrations (invitations expire after 72 hours), then run the command again",
    ))
}

/// A rotation in progress.
enum Rotation {
    Organization(Box<OrganizationRotation>),
    Instance(Box<InstanceRotation>),
}

impl Rotation {
    fn key(&self) -> KeyId {
        match self {
            Self::Organization(rotation) => rotation.key(),
            Self::Instance(rotation) => rotation.key(),
        }
    }

    fn is_new(&self) -> bool {
        match self {
            Self::Organization(rotation) => rotation.is_new(),
            Self::Instance(rotation) => rotation.is_new(),
        }
    }

    fn rows(&self) -> i64 {
        match self {
            Self::Organization(rotation) => rotation.rows(),
            Self::Instance(rotation) => rotation.rows(),
        }
    }

    async fn step(&self) -> Result<Option<usize>, vault_core::Error> {
        match self {
            Self::Organization(rotation) => rotation.step().await,
            Self::Instance(rotation) => rotation.step().await,
        }
    }

    async fn finish(&self) -> Result<Option<RotationEnd>, vault_core::Error> {
        match self {
            Self::Organization(rotation) => rotation.finish().await,
            Self::Instance(rotation) => rotation.finish().await,
        }
    }
}

impl From<&Organization> for Subject {
    fn from(organization: &Organization) -> Self {
        Self::Organization { organization: organization.id.to_string(), name: organization.name.to_string() }
    }
}

impl Subject {
    /// Returns the name for the log and the progress bar.
    fn name(&self) -> &str {
        match self {
            Self::Organization { name, .. } => name,
            Self::Instance { .. } => "instance key",
        }
    }
}

async fn begin(vault: &OpenVault, organization: &Organization) -> Result<Rotation, Stopped> {
    Ok(Rotation::Organization(Box::new(vault.keys().rotate_organization(organization.id).await?)))
}

/// Moves all rows to the new key and destroys the old keys.
async fn carry_out(rotation: Rotation, subject: Subject) -> Result<Rotated, Stopped> {
    let rotation = Arc::new(rotation);
    let progress = Arc::new(Progress::new(subject.name(), &rotation)?);
    let RotationEnd { destroyed, kept } = loop {
        let mut running = JoinSet::new();
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            running.spawn(work(Arc::clone(&rotation), Arc::clone(&progress)));
        }
        while let Some(worked) = running.join_next().await {
            worked.map_err(|error| Stopped::Failed(error.into()))??;
        }
        // Repeat until no row remains: rows that moved in the meantime may have been skipped.
        if let Some(end) = rotation.finish().await? {
            break end;
        }
    };
    let kept = kept.into_iter().map(|(key, damaged)| Kept { key: key.to_string(), damaged });
    Ok(Rotated {
        subject,
        active_key: rotation.key().to_string(),
        new_key: rotation.is_new(),
        moved: progress.moved.load(Ordering::Relaxed),
        destroyed: destroyed.iter().map(ToString::to_string).collect(),
        kept: kept.collect(),
    })
}

/// Moves batches of rows until none remains.
async fn work(rotation: Arc<Rotation>, progress: Arc<Progress>) -> Result<(), vault_core::Error> {
    let mut tries = 0;
    loop {
        match rotation.step().await {
            Ok(Some(moved)) => {
                tries = 0;
                progress.add(moved);
            }
            Ok(None) => return Ok(()),
            // The database is restarting or overloaded.
            Err(error) if error.kind() == ErrorKind::Retry && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The progress of a rotation: a bar on a terminal, otherwise a log line per tenth.
struct Progress {
    bar: ProgressBar,
    name: String,
    moved: AtomicU64,
    total: u64,
    began: Instant,
}

impl Progress {
    fn new(name: &str, rotation: &Rotation) -> Result<Self, Stopped> {
        let total = u64::try_from(rotation.rows()).unwrap_or_default();
        let bar = progress::bar("{msg} {bar:30} {pos}/{len} rows {per_sec} {eta}").map_err(Stopped::Failed)?;
        bar.set_length(total);
        let name = name.to_owned();
        bar.set_message(name.clone());
        if !rotation.is_new() {
            bar.suspend(|| tracing::info!("{name}: completing an earlier rotation: {total} rows remain"));
        }
        let began = Instant::now();
        Ok(Self { bar, name, moved: AtomicU64::new(0), total, began })
    }

    fn add(&self, moved: usize) {
        let moved = u64::try_from(moved).unwrap_or_default();
        let before = self.moved.fetch_add(moved, Ordering::Relaxed);
        self.bar.inc(moved);
        let tenth = |rows: u64| rows * 10 / self.total.max(1);
        if self.bar.is_hidden() && tenth(before) != tenth(before + moved) {
            let seconds = self.began.elapsed().as_secs_f64().max(0.001);
            #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
            let rate = ((before + moved) as f64 / seconds).round();
            let (done, total) = (before + moved, self.total);
            tracing::info!("{}: moved {done} of {total} rows, {rate} rows/s", self.name);
        }
    }
}

impl Rotated {
    fn text(&self) -> String {
        let Self { subject, active_key, new_key, moved, destroyed, .. } = self;
        let started = match (subject, new_key) {
            (Subject::Organization { name, .. }, true) => {
                format!("Rotated the key of organization {name}: new key {active_key}")
            }
            (Subject::Organization { name, .. }, false) => {
                format!(
                    "Completed the rotation of organization {name} to key {active_key}, which an earlier run started"
                )
            }
            (Subject::Instance { .. }, true) => format!("Rotated the instance key: new key {active_key}"),
            (Subject::Instance { .. }, false) => {
                format!("Completed the rotation of the instance key to {active_key}, which an earlier run started")
            }
        };
        let destroyed = match destroyed.len() {
            0 => "no key destroyed".to_owned(),
            1 => "1 old key destroyed".to_owned(),
            count => format!("{count} old keys destroyed"),
        };
        let next = if *new_key { "" } else { " Run the command again to replace that key too." };
        format!("{started}, {moved} rows moved, {destroyed}.{next}")
    }
}
