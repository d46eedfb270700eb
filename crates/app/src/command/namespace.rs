//! `orgvault namespace …`

use super::target::{Of, Target};
use crate::cli::{NamedNamespace, NamespaceCommand};
use vault_cli::failure::{Doing, Failure, NO_ORGANIZATION, wrong_flag};
use vault_cli::output::{Output, table, warn};
use vault_cli::text::counted;
use vault_client::FrozenNamespace;
use vault_core::namespace::{NAMESPACE_COUNT_LIMIT, Namespace};

pub(crate) fn run(target: &Target<'_>, command: NamespaceCommand, output: Output) -> Result<(), Failure> {
    match command {
        NamespaceCommand::Freeze(namespace) => set(target, &namespace, true, output),
        NamespaceCommand::Thaw(namespace) => set(target, &namespace, false, output),
        NamespaceCommand::List => list(target, output),
    }
}

fn set(target: &Target<'_>, given: &NamedNamespace, frozen: bool, output: Output) -> Result<(), Failure> {
    let namespace = Namespace::parse(&given.name, "NAME").map_err(|error| wrong_flag(&error))?;
    let org = target.organization(given.org.as_deref())?;
    let what = || format!("{} {} of {org}", if frozen { "freeze" } else { "thaw" }, given.name);
    let session = target.place(Some(org)).doing(what)?.session;
    let set = if frozen { session.freeze(namespace.as_str()) } else { session.thaw(namespace.as_str()) };
    let shown = target.done(set, NO_ORGANIZATION).doing(what)?;
    let FrozenNamespace { credentials, integrations, changed } = shown;
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
    output.print(&shown, &text)
}

/// Formats a number: `no credentials`, `1 credential`, `2 credentials`, `1000 or more credentials`.
fn number(count: i64, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        NAMESPACE_COUNT_LIMIT.. => format!("{NAMESPACE_COUNT_LIMIT} or more {what}s"),
        count => counted(count.unsigned_abs(), what),
    }
}

/// Lists the frozen namespaces of all organizations that the caller administers.
fn list(target: &Target<'_>, output: Output) -> Result<(), Failure> {
    let mut shown = Vec::new();
    for place in target.places(None)? {
        let namespaces = target.done(place.session.namespaces(), NO_ORGANIZATION)?;
        let frozen = namespaces.into_iter().filter(|namespace| namespace.frozen);
        shown.extend(frozen.map(|object| Of { organization: place.organization.clone(), object }));
    }
    let row = |Of { organization, object }: &Of<vault_client::NamespaceItem>| {
        vec![organization.clone(), object.namespace.clone(), object.frozen_at.clone().unwrap_or_default()]
    };
    let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
    output.print(&shown, &table(&["ORGANIZATION", "NAMESPACE", "FROZEN"], &rows))
}
