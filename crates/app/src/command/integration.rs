//! `orgvault integration …`

use super::organization::{Organizations, organization_id};
use crate::cli::{IntegrationCommand as Asked, NamedIntegration, TokenOutput};
use crate::failure::{Doing, Failure, NO_INTEGRATION, flag_of, refused, rejected, wrong_flag};
use crate::output::{Output, table};
use crate::secret_file::NewSecretFile;
use crate::settings::Settings;
use crate::text::{program, quoted, rfc3339};
use secrecy::ExposeSecret;
use serde::Serialize;
use std::path::PathBuf;
use vault_core::Error;
use vault_core::cursor::PageRequest;
use vault_core::field::FieldError;
use vault_core::id::OrganizationId;
use vault_core::identity::{Trust, audience};
use vault_core::integration::{Integration, IntegrationState, IntegrationToken, Overlap, StoredIntegration};
use vault_core::principal::{Principal, Scope};
use vault_core::time::Timestamp;
use vault_core::usecase::integrations::{
    ChangedIntegration, CreateIntegrationRequest, IntegrationEdit, IntegrationRef,
};
use vault_embed::OpenVault;

/// Page size of lists.
const PAGE: usize = 1_000;

/// An integration and its new token in JSON output.
#[derive(Serialize)]
struct ShownToken<'a> {
    id: String,
    name: String,
    namespaces: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trusts: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

/// An integration in JSON output.
#[derive(Serialize)]
struct Shown {
    id: String,
    organization: String,
    name: String,
    namespaces: Vec<String>,
    state: &'static str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Time of the last use of the current token, rounded to the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
    /// Expiry time of the previous token, if it is still valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_token_until: Option<String>,
    /// Audience that identity tokens for this integration must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trusts: Vec<serde_json::Value>,
}

pub(crate) async fn run(settings: &Settings, vault: &OpenVault, command: Asked, output: Output) -> Result<(), Failure> {
    match command {
        Asked::Create { integration, namespace, expires, trust, no_token, token } => {
            if no_token && token.output.is_some() {
                return Err(Failure::usage("--output needs a token: leave out --no-token"));
            }
            let file = token_file(&token)?;
            let expires_at = expires.map(|moment| moment.from(vault.ports().environment.now()));
            let NamedIntegration { org, name } = integration;
            let what = format!("create integration {name} in {org}");
            let done = format!("Created integration {name} in {org}.");
            let request = CreateIntegrationRequest {
                name,
                namespaces: namespace.clone(),
                expires_at,
                token: !no_token,
                trusts: trust,
                managed_by: None,
            };
            let organization = organization_id(vault, &org).await?;
            let created = vault.integrations().create(&Principal::Operator, organization, request).await;
            let created = created.map_err(|error| match error {
                Error::Invalid(errors) => wrong_flags(&errors, &namespace),
                error => error.into(),
            });
            let created = created.doing(|| what)?;
            match &created.token {
                Some(token) => print_token(settings, &created.integration, token, file, &done, output),
                None => {
                    let document = issued(&created.integration, None);
                    output.print(&document, &format!("{done}\n\n{}", workloads(settings, &created.integration)))
                }
            }
        }
        Asked::Show(integration) => {
            let stored = find(vault, &integration).await?;
            let mut shown = shown(&stored, integration.org.clone(), vault.integrations().now());
            shown.audience = Some(audience(stored.integration.id));
            let expires = shown.expires_at.clone().unwrap_or_else(|| "never".to_owned());
            let text = format!(
                "  integration id  {}\n  state           {}\n  namespaces      {}\n  expires         {expires}\n\n{}",
                shown.id,
                shown.state,
                shown.namespaces.join(", "),
                workloads(settings, &stored.integration)
            );
            output.print(&shown, &text)
        }
        Asked::Trust { integration, trust } => {
            let (organization, meant) = place(vault, &integration).await?;
            let trusted = vault.integrations().trust(&Principal::Operator, organization, &meant, &trust).await;
            let trusted = trusted.map_err(|error| refused(error, NO_INTEGRATION));
            let trusted = trusted.doing(|| format!("trust a workload for integration {}", integration.name))?;
            let stored = find(vault, &integration).await?;
            let text = format!("Added trust {}.\n\n{}", trusted.id, workloads(settings, &stored.integration));
            output.print(&trusted.to_value(), &text)
        }
        Asked::Distrust { integration, trust } => {
            let id = trust.parse().map_err(|_| Failure::usage("--trust: must be the id of a trust"))?;
            let (organization, meant) = place(vault, &integration).await?;
            let ended = vault.integrations().distrust(&Principal::Operator, organization, &meant, id).await;
            let ended = ended.map_err(|error| refused(error, "no such integration or trust"));
            ended.doing(|| format!("remove trust {trust} from integration {}", integration.name))?;
            let text =
                format!("Removed trust {trust} from integration {}. Its workloads are now rejected.", integration.name);
            output.print(&serde_json::json!({"id": trust}), &text)
        }
        Asked::List { org } => list(vault, org, output).await,
        Asked::Rotate { integration, overlap, token } => {
            let file = token_file(&token)?;
            let overlap = Overlap::parse(overlap, "--overlap").map_err(|error| wrong_flag(&error))?;
            let changed = change(vault, &integration, Deed::Rotate(overlap), "rotate the token of").await?;
            let Some(token) = changed.token else { return Ok(()) };
            let changed = changed.integration.integration;
            let old = match changed.previous {
                Some(previous) => format!("The old one stays valid until {}.", rfc3339(previous.until)),
                None => "The old one is revoked.".to_owned(),
            };
            let done = format!("Issued a new token for {}. {old}", changed.name);
            print_token(settings, &changed, &token, file, &done, output)
        }
        Asked::Disable(integration) => {
            let texts = ("disable", "Disabled", "Its tokens do not work.");
            print_changed(vault, &integration, Deed::Set(IntegrationState::Disabled), texts, output).await
        }
        Asked::Enable(integration) => {
            let texts = ("enable", "Enabled", "Its tokens work again.");
            print_changed(vault, &integration, Deed::Set(IntegrationState::Active), texts, output).await
        }
        Asked::Delete { integration, yes } => {
            if !yes {
                let question = format!("This deletes integration {} of {}.", integration.name, integration.org);
                output.confirm(&question, &integration.name)?;
            }
            let texts = ("delete", "Deleted", "Its activations have ended.");
            print_changed(vault, &integration, Deed::Delete, texts, output).await
        }
    }
}

/// Returns one error that lists all invalid flags.
fn wrong_flags(errors: &[FieldError], namespaces: &[String]) -> Failure {
    let flag = |pointer: &str| match pointer.strip_prefix("/namespaces/").map(str::parse::<usize>) {
        Some(Ok(index)) => format!("--namespace {}", namespaces.get(index).map_or("", String::as_str)),
        _ if pointer == "/expires_at" => "--expires".to_owned(),
        _ => flag_of(pointer),
    };
    Failure::new(rejected(errors.iter().map(|error| (flag(&error.pointer), &*error.detail))))
}

/// A change of an integration.
enum Deed {
    Rotate(Overlap),
    Set(IntegrationState),
    Delete,
}

async fn change(
    vault: &OpenVault,
    integration: &NamedIntegration,
    deed: Deed,
    doing: &str,
) -> Result<ChangedIntegration, Failure> {
    let (integrations, operator) = (vault.integrations(), Principal::Operator);
    let organization = organization_id(vault, &integration.org).await?;
    let meant = IntegrationRef::Name(integration.name.clone());
    let changed = match deed {
        Deed::Rotate(overlap) => integrations.rotate(&operator, organization, &meant, overlap).await,
        Deed::Set(state) => {
            let edit = IntegrationEdit { state: Some(state), ..IntegrationEdit::default() };
            integrations.change(&operator, organization, &meant, edit).await
        }
        Deed::Delete => integrations.delete(&operator, organization, &meant).await,
    };
    let changed = changed.map_err(|error| refused(error, NO_INTEGRATION));
    changed.doing(|| format!("{doing} integration {} of {}", integration.name, integration.org))
}

async fn print_changed(
    vault: &OpenVault,
    integration: &NamedIntegration,
    deed: Deed,
    (doing, past, consequence): (&str, &str, &str),
    output: Output,
) -> Result<(), Failure> {
    let changed = change(vault, integration, deed, doing).await?.integration;
    let text = format!("{past} integration {} of {}. {consequence}\n", changed.integration.name, integration.org);
    output.print(&shown(&changed, integration.org.clone(), vault.integrations().now()), &text)
}

/// Creates the file for the token, if it is not printed. Called before the token is issued, which may replace another
/// one.
fn token_file(token: &TokenOutput) -> Result<Option<(NewSecretFile, PathBuf)>, Failure> {
    let Some(path) = &token.output else { return Ok(None) };
    let path = std::path::absolute(path)?;
    Ok(Some((NewSecretFile::create("--output", &path)?, path)))
}

fn print_token(
    settings: &Settings,
    integration: &Integration,
    token: &IntegrationToken,
    file: Option<(NewSecretFile, PathBuf)>,
    done: &str,
    output: Output,
) -> Result<(), Failure> {
    let namespaces = patterns(integration);
    let token = token.text().expose_secret(); // written or printed once, for the integration
    let expires = integration.expires_at.map_or_else(|| "never".to_owned(), rfc3339);
    let facts = format!(
        "  namespaces      {}\n  expires         {expires}\n  integration id  {}",
        namespaces.join(", "),
        integration.id
    );
    let Some((file, path)) = file else {
        let lines = job_lines(settings, integration, &namespaces, None);
        let text = format!(
            "{done} Copy the token now; it is not shown again:\n\n  token           {token}\n{facts}\n\n{lines}"
        );
        return output.print(&issued(integration, Some(token)), &text);
    };
    file.write(token)?;
    let shown = path.display().to_string();
    let lines = job_lines(settings, integration, &namespaces, Some(&shown));
    output.print(&issued(integration, None), &format!("{done}\n\n  token file      {shown}\n{facts}\n\n{lines}"))
}

fn issued<'a>(integration: &Integration, token: Option<&'a str>) -> ShownToken<'a> {
    ShownToken {
        id: integration.id.to_string(),
        name: integration.name.to_string(),
        namespaces: patterns(integration),
        token,
        audience: (!integration.trusts.is_empty()).then(|| audience(integration.id)),
        trusts: integration.trusts.iter().map(Trust::to_value).collect(),
        expires_at: integration.expires_at.map(rfc3339),
    }
}

/// Describes the workloads that the integration trusts, and the settings that their jobs need.
fn workloads(settings: &Settings, integration: &Integration) -> String {
    let mut text = format!("  audience        {}\n", audience(integration.id));
    for trust in integration.trusts.iter() {
        text.push_str(&format!("  trust {}  {}\n", trust.id, trust.issuer));
        for (pointer, pattern) in &trust.claims {
            text.push_str(&format!("    {pointer} = {}\n", pattern.to_value()));
        }
    }
    if !integration.trusts.is_empty() {
        let url = settings.server.activation_url().unwrap_or_else(|| "https://HOST:PORT/v1".to_owned());
        text.push_str(&format!(
            "\nA job requests an identity token with this audience from its platform. Set its environment variables:\n\n  \
             ORGVAULT_ACTIVATION_URL={url}\n  ORGVAULT_INTEGRATION_ID={}\n",
            integration.id
        ));
    }
    text
}

async fn place(vault: &OpenVault, integration: &NamedIntegration) -> Result<(OrganizationId, IntegrationRef), Failure> {
    let organization = organization_id(vault, &integration.org).await?;
    Ok((organization, IntegrationRef::Name(integration.name.clone())))
}

async fn find(vault: &OpenVault, integration: &NamedIntegration) -> Result<StoredIntegration, Failure> {
    let (organization, meant) = place(vault, integration).await?;
    let found = vault.integrations().find(&Principal::Operator, organization, &meant).await;
    found.map_err(|error| refused(error, NO_INTEGRATION))
}

/// Returns shell commands for the job's host: they save the token to a file, test the namespace and start the job. The
/// first one prompts for the token, which therefore does not appear in the shell's history.
fn job_lines(settings: &Settings, integration: &Integration, namespaces: &[String], file: Option<&str>) -> String {
    let name: String = integration.name.to_string().to_lowercase();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let (file, save) = match file {
        Some(file) => (quoted(file), String::new()),
        None => {
            let file = format!("{}.token", name.trim_matches('-'));
            let save = format!(
                "As the job's user, save the token in a file, in bash or zsh; paste it when asked:\n\n\
                 (umask 077; printf 'Token: '; IFS= read -rs token; echo; printf '%s\\n' \"$token\" > {file})\n\n"
            );
            (file, save)
        }
    };
    let pattern = namespaces.first().map_or("", String::as_str);
    let (namespace, hint) = match pattern.strip_suffix('*') {
        Some(prefix) => (format!("{prefix}NAME"), ", with the namespace instead of NAME"),
        None => (pattern.to_owned(), ""),
    };
    let (url, missing) = match settings.server.activation_url() {
        Some(url) => (format!("--activation-url {} ", quoted(&url)), ""),
        None => (
            String::new(),
            "The settings of this command have no --activation-listen. Set ORGVAULT_ACTIVATION_URL to the address of the \
             server's\nactivation listener (unix:/PATH or https://HOST:PORT/v1), then:\n\n",
        ),
    };
    let flags = format!("{url}--token-file {file} --namespace {}", quoted(&namespace));
    format!(
        "{save}{missing}Test the credentials, then run the job{hint}:\n\n\
         {0} activate {flags} --check\n\
         {0} exec {flags} -- COMMAND\n",
        program()
    )
}

async fn list(vault: &OpenVault, org: Option<String>, output: Output) -> Result<(), Failure> {
    let organizations = Organizations::of(vault).await?;
    let scope = match &org {
        None => Scope::All,
        Some(name) => Scope::One(organization_id(vault, name).await?),
    };
    let integrations = vault.integrations();
    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = integrations.list(&Principal::Operator, scope, PageRequest { limit: PAGE, cursor }).await?;
        listed.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let now = integrations.now();
    let shown: Vec<Shown> =
        listed.iter().map(|row| shown(row, organizations.name_of(row.integration.organization), now)).collect();
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|row| {
            let expires = row.expires_at.clone().unwrap_or_else(|| "never".to_owned());
            let used = row.last_used_at.clone().unwrap_or_else(|| "never".to_owned());
            let previous = row.previous_token_until.clone().unwrap_or_default();
            let (organization, name) = (row.organization.clone(), row.name.clone());
            vec![organization, name, row.state.to_owned(), expires, used, previous, row.namespaces.join(" ")]
        })
        .collect();
    let heading = ["ORGANIZATION", "NAME", "STATE", "EXPIRES", "TOKEN LAST USED", "PREVIOUS TOKEN UNTIL", "NAMESPACES"];
    output.print(&shown, &table(&heading, &rows))
}

fn shown(stored: &StoredIntegration, organization: String, now: Timestamp) -> Shown {
    let integration = &stored.integration;
    Shown {
        id: integration.id.to_string(),
        organization,
        name: integration.name.to_string(),
        namespaces: patterns(integration),
        state: integration.state_at(now),
        created_at: rfc3339(integration.created_at),
        expires_at: integration.expires_at.map(rfc3339),
        last_used_at: stored.last_used_at.map(rfc3339),
        previous_token_until: integration.previous.map(|previous| rfc3339(previous.until)),
        audience: (!integration.trusts.is_empty()).then(|| audience(integration.id)),
        trusts: integration.trusts.iter().map(Trust::to_value).collect(),
    }
}

fn patterns(integration: &Integration) -> Vec<String> {
    integration.patterns.iter().map(ToString::to_string).collect()
}
