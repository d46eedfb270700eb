//! `orgvault integration …`

use super::organization::Organizations;
use crate::cli::{IntegrationCommand as Asked, NamedIntegration};
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::text::{moment, rfc3339};
use secrecy::ExposeSecret;
use serde::Serialize;
use vault_core::field::FieldError;
use vault_core::integration::{Integration, IntegrationToken, Overlap};
use vault_core::port::IntegrationScope;
use vault_core::usecase::{
    Administrator, CreateIntegrationError, CreateIntegrationRequest, IntegrationCommand, IntegrationRef,
};
use vault_embed::OpenVault;

/// An integration and its new token, as scripts read it.
#[derive(Serialize)]
struct ShownToken<'a> {
    integration_id: String,
    name: String,
    namespaces: Vec<String>,
    token: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

/// An integration, as scripts read it.
#[derive(Serialize)]
struct Shown {
    integration_id: String,
    organization: String,
    name: String,
    namespaces: Vec<String>,
    state: &'static str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Until when the token before the current one works.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_token_until: Option<String>,
}

/// Carries the command out.
pub(crate) async fn run(vault: &OpenVault, command: Asked, output: Output) -> Result<(), Failure> {
    match command {
        Asked::Create { integration, namespace, expires } => {
            let expires_at = expires.as_deref().map(|text| moment("--expires", text)).transpose()?;
            let NamedIntegration { org, name } = integration;
            let request = CreateIntegrationRequest { name, namespaces: namespace, expires_at };
            let made = vault.create_integration().run(Administrator::Operator(org), request).await;
            let made = made.map_err(|error| match error {
                CreateIntegrationError::Fields(errors) => refused(&errors),
                error => error.into(),
            })?;
            print_token(&made.integration, &made.token, "is there", output)
        }
        Asked::List { org } => list(vault, org, output).await,
        Asked::Rotate { integration, overlap } => {
            let overlap = Overlap::parse(overlap, "--overlap")
                .map_err(|error| Failure::usage(format!("{}: {}", error.pointer, error.detail)))?;
            let (changed, token) = change(vault, &integration, IntegrationCommand::Rotate(overlap)).await?;
            let Some(token) = token else { return Ok(()) };
            let done = match overlap.as_seconds() {
                0 => "has a new token; the one before has ended".to_owned(),
                seconds => format!("has a new token; the one before works for {seconds} seconds more"),
            };
            print_token(&changed, &token, &done, output)
        }
        Asked::Disable(integration) => {
            let done = "is disabled: its tokens do not work, and its activations are refused";
            print_changed(vault, &integration, IntegrationCommand::Disable, done, output).await
        }
        Asked::Enable(integration) => {
            print_changed(vault, &integration, IntegrationCommand::Enable, "is enabled", output).await
        }
        Asked::Delete { integration, yes } => {
            if !yes {
                let question = format!("This deletes integration {} of {}.", integration.name, integration.org);
                output.confirm(&question, &integration.name)?;
            }
            print_changed(vault, &integration, IntegrationCommand::Delete, "is deleted", output).await
        }
    }
}

/// What is wrong with each field, all at once.
fn refused(errors: &[FieldError]) -> Failure {
    let flaws: Vec<String> =
        errors.iter().map(|error| format!("{}: {}", error.pointer.trim_start_matches('/'), error.detail)).collect();
    Failure::new(flaws.join("; "))
}

async fn change(
    vault: &OpenVault,
    integration: &NamedIntegration,
    command: IntegrationCommand,
) -> Result<(Integration, Option<IntegrationToken>), Failure> {
    let operator = Administrator::Operator(integration.org.clone());
    let meant = IntegrationRef::Name(integration.name.clone());
    let changed = vault.change_integration().run(operator, meant, command).await?;
    Ok((changed.integration, changed.token))
}

async fn print_changed(
    vault: &OpenVault,
    integration: &NamedIntegration,
    command: IntegrationCommand,
    done: &str,
    output: Output,
) -> Result<(), Failure> {
    let (changed, _) = change(vault, integration, command).await?;
    let text = format!("integration {} {done}\n", changed.name);
    output.print(&shown(vault, &changed, integration.org.clone()), &text)
}

fn print_token(integration: &Integration, token: &IntegrationToken, done: &str, output: Output) -> Result<(), Failure> {
    let namespaces = patterns(integration);
    let token = token.text().expose_secret(); // printed for its integration, once
    let expires = integration.expires_at.map_or_else(|| "never".to_owned(), rfc3339);
    let text = format!(
        "Integration {} ({}) {done}. It needs the token; it is shown this once:\n\n  token       {token}\n  activates   {}\n  expires     {expires}\n\n\
         Put the token into a file that only the integration's user can read, and name that file:\n\n  \
         orgvault exec --token-file FILE --namespace NAME -- COMMAND\n",
        integration.name,
        integration.id,
        namespaces.join(", "),
    );
    let document = ShownToken {
        integration_id: integration.id.to_string(),
        name: integration.name.to_string(),
        namespaces,
        token,
        expires_at: integration.expires_at.map(rfc3339),
    };
    output.print(&document, &text)
}

async fn list(vault: &OpenVault, org: Option<String>, output: Output) -> Result<(), Failure> {
    let organizations = Organizations::of(vault).await?;
    let scope = match &org {
        None => IntegrationScope::Everywhere,
        Some(name) => IntegrationScope::Organization(organizations.id_of(name)?),
    };
    let listed = vault.list_integrations().run(scope).await?;
    let shown: Vec<Shown> = listed
        .iter()
        .map(|row| shown(vault, &row.integration, organizations.name_of(row.integration.organization)))
        .collect();
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|row| {
            let expires = row.expires_at.clone().unwrap_or_else(|| "never".to_owned());
            vec![row.organization.clone(), row.name.clone(), row.state.to_owned(), expires, row.namespaces.join(" ")]
        })
        .collect();
    output.print(&shown, &table(&["ORGANIZATION", "NAME", "STATE", "EXPIRES", "NAMESPACES"], &rows))
}

fn shown(vault: &OpenVault, integration: &Integration, organization: String) -> Shown {
    let now = vault.ports().ambient.now();
    Shown {
        integration_id: integration.id.to_string(),
        organization,
        name: integration.name.to_string(),
        namespaces: patterns(integration),
        state: integration.state.as_str(),
        created_at: rfc3339(integration.created_at),
        expires_at: integration.expires_at.map(rfc3339),
        earlier_token_until: integration.earlier.map(|token| token.until).filter(|until| now < *until).map(rfc3339),
    }
}

fn patterns(integration: &Integration) -> Vec<String> {
    integration.patterns.iter().map(ToString::to_string).collect()
}
