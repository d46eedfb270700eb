//! Several credentials in one namespace: jobs that do not choose one of them are rejected.

use crate::client::QUICKSTART;
use crate::client::login::failure;
use crate::failure::Failure;
use crate::output::{Output, warn};
use std::io::{self, IsTerminal as _};
use vault_client::{ClientError, IntegrationItem, ListFilter, ProblemCode, Session};
use vault_core::integration::NamespacePatterns;
use vault_core::namespace::Namespace;

/// A namespace that will contain several credentials.
pub(super) struct Several {
    /// Explanation and alternatives.
    pub(super) text: String,
    /// Whether an integration can use the namespace.
    is_used: bool,
}

/// Returns the explanation if `namespace` contains several credentials after `added` ones are saved.
pub(super) fn find(session: &Session, namespace: &str, added: usize) -> Result<Option<Several>, Failure> {
    let filter = ListFilter { namespace: Some(namespace.to_owned()), page_size: Some(1), ..ListFilter::default() };
    let first = match session.list(filter).next().transpose() {
        // The save itself reports an invalid namespace, together with all other errors.
        Err(ClientError::Problem { problem, .. }) if !problem.errors.is_empty() => return Ok(None),
        first => first.map_err(|error| failure(&format!("list credentials in {namespace}"), &error))?,
    };
    let (found, remedy) = match first {
        Some(other) => (
            format!("{namespace} already has a credential ({}, {}).", other.id, other.kind),
            format!(". To replace the key of jobs, run `orgvault credential replace {}` instead", other.id),
        ),
        None if added > 1 => (format!("{namespace} gets {added} credentials."), String::new()),
        None => return Ok(None),
    };
    let users = users_of(session, namespace)?;
    let used = match &users {
        Some(users) if users.is_empty() => String::new(),
        Some(users) => format!(" Used by: {}.", users.join(", ")),
        None => " Only admins see which integrations use it.".to_owned(),
    };
    let text = format!(
        "{found}{used} Jobs that do not choose one are refused once there are several. They choose with --type, --bucket \
         or --id, or use each under a name with --name{remedy}"
    );
    Ok(Some(Several { text, is_used: users.is_none_or(|users| !users.is_empty()) }))
}

impl Several {
    /// Asks `question` if an integration can use the namespace, otherwise warns. Without a terminal, rejects the save.
    pub(super) fn confirm(&self, question: &str, output: Output) -> Result<(), Failure> {
        let text = &self.text;
        match (self.is_used, io::stdin().is_terminal()) {
            (true, true) => output.confirm(&format!("{text}. {question}"), "yes"),
            (true, false) => Err(Failure::new(format!("{text}. To save another one, pass --allow-several"))),
            (false, _) => {
                warn(text);
                Ok(())
            }
        }
    }
}

/// Returns the integrations, other than that of `quickstart`, that can use the namespace, or `None` if this account
/// cannot list them.
fn users_of(session: &Session, namespace: &str) -> Result<Option<Vec<String>>, Failure> {
    let integrations = match session.integrations() {
        Err(error) if error.code() == Some(ProblemCode::InsufficientRole) => return Ok(None),
        integrations => integrations.map_err(|error| failure("list integrations", &error))?,
    };
    let namespace = Namespace::parse(namespace, "").map_err(|error| Failure::new(error.detail.into_owned()))?;
    let uses = |item: &IntegrationItem| {
        item.name != QUICKSTART
            && NamespacePatterns::parse(&item.namespaces, "").is_ok_and(|patterns| patterns.allow(&namespace))
    };
    Ok(Some(integrations.into_iter().filter(uses).map(|item| item.name).collect()))
}
