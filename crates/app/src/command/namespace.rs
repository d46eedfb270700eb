//! `orgvault namespace …`

use super::organization::{Organizations, organization_id};
use crate::cli::{NamedNamespace, NamespaceCommand};
use crate::failure::{Doing, Failure, wrong_flag};
use crate::output::{Output, table, warn};
use crate::text::{counted, rfc3339};
use serde::Serialize;
use vault_core::namespace::Namespace;
use vault_core::port::{Freezing, FrozenNamespace, NAMESPACE_COUNT_LIMIT, NamePosition};
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

pub(crate) async fn run(vault: &OpenVault, command: NamespaceCommand, output: Output) -> Result<(), Failure> {
    match command {
        NamespaceCommand::Freeze(namespace) => set(vault, namespace, true, output).await,
        NamespaceCommand::Thaw(namespace) => set(vault, namespace, false, output).await,
        NamespaceCommand::List => list(vault, output).await,
    }
}

async fn set(vault: &OpenVault, given: NamedNamespace, frozen: bool, output: Output) -> Result<(), Failure> {
    let namespace = Namespace::parse(&given.name, "NAME").map_err(|error| wrong_flag(&error))?;
    let (integrations, operator) = (vault.integrations(), Principal::Operator);
    let organization = organization_id(vault, &given.org).await?;
    let what = format!("{} {} of {}", if frozen { "freeze" } else { "thaw" }, given.name, given.org);
    let freezing = match frozen {
        true => integrations.freeze(&operator, organization, namespace).await,
        false => integrations.thaw(&operator, organization, namespace).await,
    };
    let Freezing { changed, credentials, integrations } = freezing.doing(|| what)?;
    let (held, covered) = (number(credentials, "credential"), number(integrations, "integration"));
    let place = format!("{} of {} ({held}, {covered})", given.name, given.org);
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
        warn(&format!("{} has no credentials in {}. Check the spelling.", given.name, given.org));
    }
    let (organization, namespace) = (given.org, given.name);
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

async fn list(vault: &OpenVault, output: Output) -> Result<(), Failure> {
    let organizations = Organizations::of(vault).await?;
    let integrations = vault.integrations();
    let mut frozen: Vec<FrozenNamespace> = Vec::new();
    loop {
        let after = frozen
            .last()
            .map(|last| NamePosition { organization: last.organization, name: last.namespace.as_str().to_owned() });
        let page = integrations.list_frozen(&Principal::Operator, Scope::All, after, PAGE).await?;
        let last = page.len() < PAGE;
        frozen.extend(page);
        if last {
            break;
        }
    }
    let shown: Vec<Shown> = frozen
        .iter()
        .map(|row| Shown {
            organization: organizations.name_of(row.organization),
            namespace: row.namespace.to_string(),
            frozen_at: rfc3339(row.frozen_at),
        })
        .collect();
    let rows: Vec<Vec<String>> =
        shown.iter().map(|row| vec![row.organization.clone(), row.namespace.clone(), row.frozen_at.clone()]).collect();
    output.print(&shown, &table(&["ORGANIZATION", "NAMESPACE", "FROZEN"], &rows))
}
