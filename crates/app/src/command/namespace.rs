//! `orgvault namespace …`

use super::organization::{Organizations, organization_id};
use super::target::Target;
use crate::cli::{NamedNamespace, NamespaceCommand};
use serde::Serialize;
use vault_cli::failure::{Doing, Failure, NO_ORGANIZATION, wrong_flag};
use vault_cli::output::{Output, table, warn};
use vault_cli::text::{counted, rfc3339};
use vault_client::NamespaceItem;
use vault_core::namespace::Namespace;
use vault_core::namespace::{Freezing, NAMESPACE_COUNT_LIMIT};
use vault_core::port::NamePosition;
use vault_core::principal::{Principal, Scope};
use vault_embed::OpenVault;

/// Page size of lists.
const PAGE: usize = 1_000;

/// The result for a namespace in JSON output.
#[derive(Serialize)]
struct Changed {
    organization: String,
    namespace: String,
    frozen: bool,
    /// Set if this command changed the state.
    changed: bool,
    /// Number of credentials in the namespace, at most 1,000.
    credentials: i64,
    /// Number of integrations that may activate the namespace.
    integrations: i64,
}

/// A frozen namespace in JSON output.
#[derive(Serialize)]
struct Shown {
    organization: String,
    namespace: String,
    frozen_at: String,
}

pub(crate) async fn run(target: &Target<'_>, command: NamespaceCommand, output: Output) -> Result<(), Failure> {
    match command {
        NamespaceCommand::Freeze(namespace) => set(target, namespace, true, output).await,
        NamespaceCommand::Thaw(namespace) => set(target, namespace, false, output).await,
        NamespaceCommand::List => list(target, output).await,
    }
}

async fn set(target: &Target<'_>, given: NamedNamespace, frozen: bool, output: Output) -> Result<(), Failure> {
    let namespace = Namespace::parse(&given.name, "NAME").map_err(|error| wrong_flag(&error))?;
    let org = target.organization(given.org.as_deref())?.to_owned();
    let what = format!("{} {} of {org}", if frozen { "freeze" } else { "thaw" }, given.name);
    let Freezing { changed, credentials, integrations } = match target {
        Target::Database(_, vault) => {
            let (integrations, operator) = (vault.integrations(), Principal::Operator);
            let organization = organization_id(vault, &org).await?;
            let freezing = match frozen {
                true => integrations.freeze(&operator, organization, namespace).await,
                false => integrations.thaw(&operator, organization, namespace).await,
            };
            freezing.doing(|| what)?
        }
        Target::Server(remote) => {
            let set = match frozen {
                true => remote.session.freeze(namespace.as_str()),
                false => remote.session.thaw(namespace.as_str()),
            };
            let vault_client::FrozenNamespace { credentials, integrations, changed } =
                remote.done(set, NO_ORGANIZATION).doing(|| what)?;
            Freezing { changed, credentials, integrations }
        }
    };
    let (held, covered) = (number(credentials, "credential"), number(integrations, "integration"));
    let place = format!("{} of {org} ({held}, {covered})", given.name);
    let text = match (frozen, changed) {
        (true, true) => format!(
            "Froze {place}. New activations are refused. Credentials already issued still work: revoke them at the \
             storage provider."
        ),
        (true, false) => format!("{place} was already frozen."),
        (false, true) => format!("Thawed {place}. Activations are allowed again."),
        (false, false) => format!("{place} was not frozen."),
    };
    if credentials == 0 {
        warn(&format!("{} has no credentials in {org}. Check the spelling.", given.name));
    }
    let (organization, namespace) = (org, given.name);
    output.print(&Changed { organization, namespace, frozen, changed, credentials, integrations }, &text)
}

/// Formats a number: `no credentials`, `1 credential`, `2 credentials`, `1000 or more credentials`.
fn number(count: i64, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        NAMESPACE_COUNT_LIMIT.. => format!("{NAMESPACE_COUNT_LIMIT} or more {what}s"),
        count => counted(count.unsigned_abs(), what),
    }
}

async fn list(target: &Target<'_>, output: Output) -> Result<(), Failure> {
    let shown = match target {
        Target::Database(_, vault) => frozen(vault).await?,
        Target::Server(remote) => {
            let namespaces = remote.done(remote.session.namespaces(), NO_ORGANIZATION)?;
            let shown = |namespace: NamespaceItem| {
                let frozen_at = namespace.frozen_at?;
                let organization = remote.account.organization.clone();
                Some(Shown { organization, namespace: namespace.namespace, frozen_at })
            };
            namespaces.into_iter().filter_map(shown).collect()
        }
    };
    let rows: Vec<Vec<String>> =
        shown.iter().map(|row| vec![row.organization.clone(), row.namespace.clone(), row.frozen_at.clone()]).collect();
    output.print(&shown, &table(&["ORGANIZATION", "NAMESPACE", "FROZEN"], &rows))
}

/// Returns the frozen namespaces of all organizations.
async fn frozen(vault: &OpenVault) -> Result<Vec<Shown>, Failure> {
    let organizations = Organizations::of(vault).await?;
    let (mut shown, mut after) = (Vec::new(), None);
    loop {
        let page = vault.integrations().list_frozen(&Principal::Operator, Scope::All, after, PAGE).await?;
        shown.extend(page.iter().map(|row| Shown {
            organization: organizations.name_of(row.organization),
            namespace: row.namespace.to_string(),
            frozen_at: rfc3339(row.frozen_at),
        }));
        let Some(last) = page.last().filter(|_| page.len() == PAGE) else { return Ok(shown) };
        after = Some(NamePosition { organization: last.organization, name: last.namespace.as_str().to_owned() });
    }
}
