//! `orgvault integration …`

use super::organization::{Organizations, organization_id};
use super::target::{Remote, Target};
use crate::cli::{IntegrationCommand as Asked, NamedIntegration, StateArg, TokenOutput};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use vault_cli::failure::{Doing, Failure, NO_INTEGRATION, flag_of, refused, rejected, wrong_flag};
use vault_cli::output::{Output, note, table};
use vault_cli::secret_file::NewSecretFile;
use vault_cli::text::{program, quoted, rfc3339};
use vault_client::{ClientError, IntegrationChange, IntegrationItem, IssuedIntegration, TrustItem, TrustRequest};
use vault_core::cursor::PageRequest;
use vault_core::id::{IntegrationId, OrganizationId};
use vault_core::identity::{self, TrustId, audience};
use vault_core::integration::{IntegrationName, IntegrationState, Overlap};
use vault_core::principal::{Principal, Scope};
use vault_core::usecase::integrations::{CreateIntegrationRequest, IntegrationEdit, IntegrationRef};
use vault_core::{Error, Refusal};
use vault_embed::OpenVault;
use vault_http::items;

/// Page size of lists.
const PAGE: usize = 1_000;

/// An integration and its new token in JSON output.
#[derive(Serialize)]
struct ShownToken {
    #[serde(flatten)]
    issued: IssuedIntegration,
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<String>,
}

impl From<IssuedIntegration> for ShownToken {
    fn from(issued: IssuedIntegration) -> Self {
        let audience = audience_of(&issued.id).filter(|_| !issued.trusts.is_empty());
        Self { issued, audience }
    }
}

/// An integration in JSON output.
#[derive(Serialize)]
struct Shown {
    organization: String,
    #[serde(flatten)]
    integration: IntegrationItem,
    /// Audience that identity tokens for this integration must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<String>,
}

impl Shown {
    fn new(organization: &str, integration: IntegrationItem) -> Self {
        let audience = audience_of(&integration.id).filter(|_| !integration.trusts.is_empty());
        Self { organization: organization.to_owned(), integration, audience }
    }
}

/// Returns the audience of the integration with this ID.
fn audience_of(id: &str) -> Option<String> {
    id.parse::<IntegrationId>().ok().map(audience)
}

pub(crate) async fn run(target: &Target<'_>, command: Asked, output: Output) -> Result<(), Failure> {
    match command {
        Asked::Create { integration, namespace, expires, trust, no_token, token } => {
            if no_token && token.output.is_some() {
                return Err(Failure::usage("--output needs a token: leave out --no-token"));
            }
            let org = target.organization(integration.org.as_deref())?;
            let file = token_file(&token, output)?;
            let name = integration.name;
            let what = format!("create integration {name} in {org}");
            let done = format!("Created integration {name} in {org}.");
            let request = CreateIntegrationRequest {
                name,
                namespaces: namespace,
                expires_at: expires.map(|moment| moment.from(target.now())),
                token: !no_token,
                trusts: trust,
                managed_by: None,
            };
            let issued = create(target, org, request).await.doing(|| what)?;
            if issued.token.is_some() {
                return print_token(target, issued, file, &done, output);
            }
            let workloads = workloads(target, &issued.id, &issued.trusts);
            output.print(&ShownToken::from(issued), &format!("{done}\n\n{workloads}"))
        }
        Asked::Show(integration) => {
            let mut shown = find(target, &integration).await?;
            let found = &shown.integration;
            let expires = found.expires_at.clone().unwrap_or_else(|| "never".to_owned());
            let text = format!(
                "  integration id  {}\n  state           {}\n  namespaces      {}\n  expires         {expires}\n\n{}",
                found.id,
                found.state,
                found.namespaces.join(", "),
                workloads(target, &found.id, &found.trusts)
            );
            shown.audience = audience_of(&found.id);
            output.print(&shown, &text)
        }
        Asked::Trust { integration, trust } => {
            let what = || format!("trust a workload for integration {}", integration.name);
            let trusted = add_trust(target, &integration, &trust).await.doing(what)?;
            let found = find(target, &integration).await?.integration;
            let workloads = workloads(target, &found.id, &found.trusts);
            output.print(&trusted, &format!("Added trust {}.\n\n{workloads}", trusted.id))
        }
        Asked::Distrust { integration, trust } => {
            let id = trust.parse().map_err(|_| Failure::usage("--trust: must be the id of a trust"))?;
            let ended = remove_trust(target, &integration, id).await;
            ended.doing(|| format!("remove trust {trust} from integration {}", integration.name))?;
            let text =
                format!("Removed trust {trust} from integration {}. Its workloads are now rejected.", integration.name);
            output.print(&serde_json::json!({"id": trust}), &text)
        }
        Asked::List { org } => list(target, org.as_deref(), output).await,
        Asked::Rotate { integration, overlap, token } => {
            let parsed = Overlap::parse(overlap, "--overlap").map_err(|error| wrong_flag(&error))?;
            let org = target.organization(integration.org.as_deref())?;
            let file = token_file(&token, output)?;
            let what = || format!("rotate the token of integration {} of {org}", integration.name);
            let (issued, until) = rotate(target, &integration, parsed, overlap).await.doing(what)?;
            let old = match until {
                Some(until) => format!("The old one stays valid until {until}."),
                None => "The old one is revoked.".to_owned(),
            };
            let done = format!("Issued a new token for {}. {old}", issued.name);
            print_token(target, issued, file, &done, output)
        }
        Asked::Set { integration, set } => {
            let (state, texts) = match set.state {
                StateArg::Disabled => (IntegrationState::Disabled, ("disable", "Disabled", "Its tokens do not work.")),
                StateArg::Enabled => (IntegrationState::Active, ("enable", "Enabled", "Its tokens work again.")),
            };
            print_changed(target, &integration, Edit::Set(state), texts, output).await
        }
        Asked::Delete { integration, yes } => {
            if !yes {
                let org = target.organization(integration.org.as_deref())?;
                let question = format!("This deletes integration {} of {org}.", integration.name);
                output.confirm(&question, &integration.name)?;
            }
            let texts = ("delete", "Deleted", "Its activations have ended.");
            print_changed(target, &integration, Edit::Delete, texts, output).await
        }
    }
}

async fn create(
    target: &Target<'_>,
    org: &str,
    request: CreateIntegrationRequest,
) -> Result<IssuedIntegration, Failure> {
    const NAME_TAKEN: &str = "another integration of the organization has this name";
    match target {
        Target::Database(_, vault) => {
            let organization = organization_id(vault, org).await?;
            let namespaces = request.namespaces.clone();
            let created = vault.integrations().create(&Principal::Operator, organization, request).await;
            let created = created.map_err(|error| match error {
                Error::Invalid(errors) => {
                    wrong_flags(errors.iter().map(|error| (&*error.pointer, &*error.detail)), &namespaces)
                }
                Error::Refused(Refusal::NameTaken) => Failure::new(NAME_TAKEN),
                error => error.into(),
            })?;
            Ok(items::issued_integration(&created.integration, created.token.as_ref()))
        }
        Target::Server(remote) => {
            let trusts = request.trusts.iter().enumerate();
            let trusts = trusts.map(|(index, trust)| wire(trust, &format!("/trusts/{index}")));
            let body = vault_client::CreateIntegrationRequest {
                name: request.name,
                namespaces: request.namespaces.clone(),
                expires_at: request.expires_at.map(rfc3339),
                token: Some(request.token),
                trusts: Some(trusts.collect::<Result<Vec<_>, _>>()?).filter(|trusts| !trusts.is_empty()),
                managed_by: request.managed_by,
            };
            let created = remote.session.create_integration(&body);
            if let Err(ClientError::Problem { problem, .. }) = &created
                && !problem.errors.is_empty()
            {
                let errors = problem.errors.iter().map(|error| (&*error.pointer, &*error.detail));
                return Err(wrong_flags(errors, &request.namespaces));
            }
            remote.done(created, NO_INTEGRATION)
        }
    }
}

/// Returns one error that lists all invalid flags, from JSON pointers and details.
fn wrong_flags<'a>(errors: impl Iterator<Item = (&'a str, &'a str)>, namespaces: &[String]) -> Failure {
    let flag = |pointer: &str| match pointer.strip_prefix("/namespaces/").map(str::parse::<usize>) {
        Some(Ok(index)) => format!("--namespace {}", namespaces.get(index).map_or("", String::as_str)),
        _ if pointer == "/expires_at" => "--expires".to_owned(),
        _ => flag_of(pointer),
    };
    Failure::new(rejected(errors.map(|(pointer, detail)| (flag(pointer), detail))))
}

/// Converts a trust to the body of a request. The server ignores nothing in it, so unknown fields are errors.
fn wire(trust: &Value, field: &str) -> Result<TrustRequest, Failure> {
    identity::TrustRequest::parse(trust, field).map_err(|errors| {
        Failure::new(rejected(errors.iter().map(|error| (flag_of(&error.pointer), &*error.detail))))
    })?;
    Ok(serde_json::from_value(trust.clone())?)
}

/// A change of an integration.
#[derive(Clone, Copy)]
enum Edit {
    Set(IntegrationState),
    Delete,
}

async fn print_changed(
    target: &Target<'_>,
    integration: &NamedIntegration,
    edit: Edit,
    (doing, past, consequence): (&str, &str, &str),
    output: Output,
) -> Result<(), Failure> {
    let org = target.organization(integration.org.as_deref())?;
    let what = || format!("{doing} integration {} of {org}", integration.name);
    let changed = change(target, integration, edit).await.doing(what)?;
    let name = changed.as_ref().map_or(&integration.name, |changed| &changed.name);
    let text = format!("{past} integration {name} of {org}. {consequence}\n");
    match changed {
        Some(changed) => output.print(&Shown::new(org, changed), &text),
        None => output.print(&serde_json::json!({"organization": org, "name": name}), &text),
    }
}

/// Returns the changed integration, or the deleted one if it could be read.
async fn change(
    target: &Target<'_>,
    integration: &NamedIntegration,
    edit: Edit,
) -> Result<Option<IntegrationItem>, Failure> {
    match target {
        Target::Database(_, vault) => {
            let (organization, meant) = place(target, vault, integration).await?;
            let (integrations, operator) = (vault.integrations(), Principal::Operator);
            let changed = match edit {
                Edit::Set(state) => {
                    let edit = IntegrationEdit { state: Some(state), ..IntegrationEdit::default() };
                    integrations.change(&operator, organization, &meant, edit).await.map(Some)
                }
                Edit::Delete => {
                    let found = integrations.find(&operator, organization, &meant).await;
                    integrations.delete(&operator, organization, &meant).await.map(|()| found.ok())
                }
            };
            let changed = changed.map_err(|error| refused(error, NO_INTEGRATION))?;
            Ok(changed.map(|changed| items::integration(&changed, integrations.now())))
        }
        Target::Server(remote) => {
            let found = find_remote(remote, &integration.name)?;
            let changed = match edit {
                Edit::Set(state) => {
                    let state = Some(state.as_str().to_owned());
                    let change = IntegrationChange { state, ..IntegrationChange::default() };
                    remote.session.change_integration(&found.id, &change)
                }
                Edit::Delete => remote.session.delete_integration(&found.id).map(|()| found),
            };
            remote.done(changed, NO_INTEGRATION).map(Some)
        }
    }
}

/// Issues a new token. Also returns the time until which the old one stays valid.
async fn rotate(
    target: &Target<'_>,
    integration: &NamedIntegration,
    overlap: Overlap,
    seconds: Option<i64>,
) -> Result<(IssuedIntegration, Option<String>), Failure> {
    match target {
        Target::Database(_, vault) => {
            let (organization, meant) = place(target, vault, integration).await?;
            let rotated = vault.integrations().rotate(&Principal::Operator, organization, &meant, overlap).await;
            let (rotated, token) = rotated.map_err(|error| refused(error, NO_INTEGRATION))?;
            let until = rotated.integration.previous.as_ref().map(|previous| rfc3339(previous.until));
            Ok((items::issued_integration(&rotated, Some(&token)), until))
        }
        Target::Server(remote) => {
            let found = find_remote(remote, &integration.name)?;
            let issued = remote.done(remote.session.rotate_integration(&found.id, seconds), NO_INTEGRATION)?;
            // The new token must be printed, even if this request fails.
            let until = find_remote(remote, &integration.name).ok().and_then(|found| found.previous_token_until);
            Ok((issued, until))
        }
    }
}

async fn add_trust(target: &Target<'_>, integration: &NamedIntegration, trust: &Value) -> Result<TrustItem, Failure> {
    match target {
        Target::Database(_, vault) => {
            let (organization, meant) = place(target, vault, integration).await?;
            let trusted = vault.integrations().trust(&Principal::Operator, organization, &meant, trust).await;
            Ok(items::trust(&trusted.map_err(|error| refused(error, NO_INTEGRATION))?))
        }
        Target::Server(remote) => {
            target.organization(integration.org.as_deref())?;
            let found = find_remote(remote, &integration.name)?;
            remote.done(remote.session.trust(&found.id, &wire(trust, "")?), NO_INTEGRATION)
        }
    }
}

async fn remove_trust(target: &Target<'_>, integration: &NamedIntegration, trust: TrustId) -> Result<(), Failure> {
    const ABSENT: &str = "no such integration or trust";
    match target {
        Target::Database(_, vault) => {
            let (organization, meant) = place(target, vault, integration).await?;
            let ended = vault.integrations().distrust(&Principal::Operator, organization, &meant, trust).await;
            ended.map_err(|error| refused(error, ABSENT)).map(drop)
        }
        Target::Server(remote) => {
            target.organization(integration.org.as_deref())?;
            let found = find_remote(remote, &integration.name).map_err(|_| Failure::new(ABSENT))?;
            remote.done(remote.session.distrust(&found.id, &trust.to_string()), ABSENT)
        }
    }
}

/// Creates the file for the token, if it is not printed. Called before the token is issued, which may replace another
/// one.
fn token_file(token: &TokenOutput, output: Output) -> Result<Option<(NewSecretFile, PathBuf)>, Failure> {
    let Some(path) = &token.output else { return Ok(None) };
    if path.as_os_str() == "-" && output.is_json() {
        return Err(Failure::usage("--output - prints only the token: leave out --json"));
    }
    let file = NewSecretFile::create("--output", path)?;
    Ok(Some((file, if path.as_os_str() == "-" { path.clone() } else { std::path::absolute(path)? })))
}

fn print_token(
    target: &Target<'_>,
    mut issued: IssuedIntegration,
    file: Option<(NewSecretFile, PathBuf)>,
    done: &str,
    output: Output,
) -> Result<(), Failure> {
    let Some(token) = issued.token.take() else { return Ok(()) };
    let token = token.into_secret();
    let expires = issued.expires_at.as_deref().unwrap_or("never");
    let facts = format!(
        "  namespaces      {}\n  expires         {expires}\n  integration id  {}",
        issued.namespaces.join(", "),
        issued.id
    );
    let Some((file, path)) = file else {
        let lines = job_lines(target, &issued, None);
        let text = format!(
            "{done} Copy the token now; it is not shown again:\n\n  token           {}\n{facts}\n\n{lines}",
            token.expose_secret() // printed once, for the integration
        );
        issued.token = Some(token.into());
        return output.print(&ShownToken::from(issued), &text);
    };
    file.write(token.expose_secret())?; // written once, for the integration
    if path.as_os_str() == "-" {
        note(done);
        return Ok(());
    }
    let shown = path.display().to_string();
    let lines = job_lines(target, &issued, Some(&shown));
    let text = format!("{done}\n\n  token file      {shown}\n{facts}\n\n{lines}");
    output.print(&ShownToken::from(issued), &text)
}

/// Describes the workloads that the integration trusts, and the settings that their jobs need.
fn workloads(target: &Target<'_>, id: &str, trusts: &[TrustItem]) -> String {
    let mut text = format!("  audience        {}\n", audience_of(id).unwrap_or_default());
    for trust in trusts {
        text.push_str(&format!("  trust {}  {}\n", trust.id, trust.issuer));
        for (pointer, pattern) in &trust.claims {
            text.push_str(&format!("    {pointer} = {pattern}\n"));
        }
    }
    if !trusts.is_empty() {
        let url = target.activation_url().unwrap_or_else(|| "https://HOST:PORT/v1".to_owned());
        text.push_str(&format!(
            "\nA job requests an identity token with this audience from its platform. Set its environment variables:\n\n  \
             ORGVAULT_ACTIVATION_URL={url}\n  ORGVAULT_INTEGRATION_ID={id}\n"
        ));
    }
    text
}

async fn place(
    target: &Target<'_>,
    vault: &OpenVault,
    integration: &NamedIntegration,
) -> Result<(OrganizationId, IntegrationRef), Failure> {
    let organization = organization_id(vault, target.organization(integration.org.as_deref())?).await?;
    Ok((organization, IntegrationRef::Name(integration.name.clone())))
}

async fn find(target: &Target<'_>, integration: &NamedIntegration) -> Result<Shown, Failure> {
    let org = target.organization(integration.org.as_deref())?;
    let found = match target {
        Target::Database(_, vault) => {
            let (organization, meant) = place(target, vault, integration).await?;
            let found = vault.integrations().find(&Principal::Operator, organization, &meant).await;
            let found = found.map_err(|error| refused(error, NO_INTEGRATION))?;
            items::integration(&found, target.now())
        }
        Target::Server(remote) => find_remote(remote, &integration.name)?,
    };
    Ok(Shown::new(org, found))
}

/// Returns the integration with this name.
fn find_remote(remote: &Remote, name: &str) -> Result<IntegrationItem, Failure> {
    let key = |name: &str| IntegrationName::parse(name, "--name").map(|name| name.uniqueness_key());
    let wanted = key(name).ok();
    let mut all = remote.done(remote.session.integrations(), NO_INTEGRATION)?.into_iter();
    let found = all.find(|item| wanted.is_some() && key(&item.name).ok() == wanted);
    found.ok_or_else(|| Failure::new(NO_INTEGRATION))
}

/// Returns shell commands for the job's host: they save the token to a file, test the namespace and start the job. The
/// first one prompts for the token, which therefore does not appear in the shell's history.
fn job_lines(target: &Target<'_>, integration: &IssuedIntegration, file: Option<&str>) -> String {
    let name: String = integration.name.to_lowercase();
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
    let pattern = integration.namespaces.first().map_or("", String::as_str);
    let (namespace, hint) = match pattern.strip_suffix('*') {
        Some(prefix) => (format!("{prefix}NAME"), ", with the namespace instead of NAME"),
        None => (pattern.to_owned(), ""),
    };
    let (url, missing) = match target.activation_url() {
        Some(url) => (format!("--activation-url {} ", quoted(&url)), ""),
        None => (
            String::new(),
            "The settings have no --activation-listen. Set ORGVAULT_ACTIVATION_URL to the address of the server's\n\
             activation listener (unix:/PATH or https://HOST:PORT/v1), then:\n\n",
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

/// Returns the random end of an ID, which lists show and filters accept.
pub(super) fn short_id(id: &str) -> &str {
    id.len().checked_sub(8).and_then(|start| id.get(start..)).unwrap_or(id)
}

/// Returns IDs and names of the integrations of one organization, or of all.
pub(super) async fn names(target: &Target<'_>, org: Option<&str>) -> Result<Vec<(String, String)>, Failure> {
    let shown = listed(target, org).await?;
    Ok(shown.into_iter().map(|one| (one.integration.id, one.integration.name)).collect())
}

async fn listed(target: &Target<'_>, org: Option<&str>) -> Result<Vec<Shown>, Failure> {
    match target {
        Target::Database(_, vault) => all(vault, org).await,
        Target::Server(remote) => {
            let org = target.organization(org)?;
            let found = remote.done(remote.session.integrations(), NO_INTEGRATION)?;
            Ok(found.into_iter().map(|integration| Shown::new(org, integration)).collect())
        }
    }
}

async fn list(target: &Target<'_>, org: Option<&str>, output: Output) -> Result<(), Failure> {
    let shown = listed(target, org).await?;
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|row| {
            let found = &row.integration;
            let expires = found.expires_at.clone().unwrap_or_else(|| "never".to_owned());
            let used = found.last_used_at.clone().unwrap_or_else(|| "never".to_owned());
            let previous = found.previous_token_until.clone().unwrap_or_default();
            let (organization, name, id) = (row.organization.clone(), found.name.clone(), short_id(&found.id).into());
            vec![organization, name, id, found.state.clone(), expires, used, previous, found.namespaces.join(" ")]
        })
        .collect();
    let heading =
        ["ORGANIZATION", "NAME", "ID", "STATE", "EXPIRES", "TOKEN LAST USED", "PREVIOUS TOKEN UNTIL", "NAMESPACES"];
    output.print(&shown, &table(&heading, &rows))
}

/// Returns the integrations of one organization, or of all.
async fn all(vault: &OpenVault, org: Option<&str>) -> Result<Vec<Shown>, Failure> {
    let organizations = Organizations::of(vault).await?;
    let scope = match org {
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
    let shown =
        listed.iter().map(|row| Shown::new(&organizations.name_of(row.organization), items::integration(row, now)));
    Ok(shown.collect())
}
