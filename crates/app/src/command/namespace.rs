//! `orgvault namespace …`

use super::organization::Organizations;
use crate::cli::{NamedNamespace, NamespaceCommand};
use crate::failure::{Doing, Failure};
use crate::output::{Output, table};
use crate::text::rfc3339;
use serde::Serialize;
use vault_core::namespace::Namespace;
use vault_core::port::IntegrationScope;
use vault_core::usecase::Administrator;
use vault_embed::OpenVault;

/// The outcome for a namespace, as scripts read it.
#[derive(Serialize)]
struct Changed {
    organization: String,
    namespace: String,
    frozen: bool,
    /// Whether this command changed it.
    changed: bool,
}

/// A frozen namespace, as scripts read it.
#[derive(Serialize)]
struct Shown {
    organization: String,
    namespace: String,
    frozen_at: String,
}

/// Carries the command out.
pub(crate) async fn run(vault: &OpenVault, command: NamespaceCommand, output: Output) -> Result<(), Failure> {
    match command {
        NamespaceCommand::Freeze(namespace) => set(vault, namespace, true, output).await,
        NamespaceCommand::Thaw(namespace) => set(vault, namespace, false, output).await,
        NamespaceCommand::List => list(vault, output).await,
    }
}

async fn set(vault: &OpenVault, given: NamedNamespace, frozen: bool, output: Output) -> Result<(), Failure> {
    let namespace = Namespace::parse(&given.name, "NAME")
        .map_err(|error| Failure::usage(format!("{}: {}", error.pointer, error.detail)))?;
    let (use_case, operator) = (vault.freeze_namespace(), Administrator::Operator(given.org.clone()));
    let what = format!("{} {} of {}", if frozen { "freeze" } else { "thaw" }, given.name, given.org);
    let changed =
        if frozen { use_case.freeze(operator, namespace).await } else { use_case.thaw(operator, namespace).await };
    let changed = changed.doing(|| what)?;
    let place = format!("{} of {}", given.name, given.org);
    let text = match (frozen, changed) {
        (true, true) => format!(
            "Froze {place}. New activations are refused. Credentials already issued still work: revoke them at the \
             storage provider."
        ),
        (true, false) => format!("{place} was already frozen."),
        (false, true) => format!("Thawed {place}. Activations are allowed again."),
        (false, false) => format!("{place} was not frozen."),
    };
    output.print(&Changed { organization: given.org, namespace: given.name, frozen, changed }, &text)
}

async fn list(vault: &OpenVault, output: Output) -> Result<(), Failure> {
    let organizations = Organizations::of(vault).await?;
    let frozen = vault.freeze_namespace().list(IntegrationScope::Everywhere).await?;
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
