//! `orgvault integration …`

use super::target::{Of, Place, Target};
use crate::cli::{IntegrationCommand as Asked, NamedIntegration, StateArg, TokenOutput};
use secrecy::ExposeSecret;
use std::path::PathBuf;
use vault_cli::failure::{Doing, Failure, NO_INTEGRATION, flag_of, rejected, wrong_flag};
use vault_cli::output::{Output, note, table};
use vault_cli::secret_file::NewSecretFile;
use vault_cli::text::{program, quoted, rfc3339};
use vault_client::{
    ChangeIntegrationRequest, ClientError, CreateIntegrationRequest, IntegrationItem, IssuedIntegration, TrustItem,
};
use vault_core::id::IntegrationId;
use vault_core::identity::{TrustId, audience};
use vault_core::integration::{IntegrationName, IntegrationState, Overlap};

/// Returns the audience of the integration with this ID.
fn audience_of(id: &str) -> Option<String> {
    id.parse::<IntegrationId>().ok().map(audience)
}

pub(crate) fn run(target: &Target<'_>, command: Asked, output: Output) -> Result<(), Failure> {
    match command {
        Asked::Create { integration, namespace, expires, trust, no_token, token } => {
            if no_token && token.output.is_some() {
                return Err(Failure::usage("--output needs a token: leave out --no-token"));
            }
            let org = target.organization(integration.org.as_deref())?;
            let file = token_file(&token, output)?;
            let name = integration.name;
            let what = || format!("create integration {name} in {org}");
            let done = format!("Created integration {name} in {org}.");
            let request = CreateIntegrationRequest {
                name: name.clone(),
                namespaces: namespace,
                expires_at: expires.map(|moment| rfc3339(moment.from(target.now()))),
                token: Some(!no_token),
                trusts: Some(trust).filter(|trusts| !trusts.is_empty()),
                managed_by: None,
            };
            let created = target.place(Some(org)).doing(what)?.session.create_integration(&request);
            let issued = match &created {
                Err(ClientError::Problem { problem, .. }) if !problem.errors.is_empty() => {
                    let errors = problem.errors.iter().map(|error| (&*error.pointer, &*error.detail));
                    Err(wrong_flags(errors, &request.namespaces))
                }
                _ => target.done(created, NO_INTEGRATION),
            };
            let issued = issued.doing(what)?;
            if issued.token.is_some() {
                return print_token(target, issued, file, &done, output);
            }
            let workloads = workloads(target, &issued.id, &issued.trusts);
            output.print(&issued, &format!("{done}\n\n{workloads}"))
        }
        Asked::Show(integration) => {
            let (place, found) = find(target, &integration)?;
            let expires = found.expires_at.clone().unwrap_or_else(|| "never".to_owned());
            let text = format!(
                "  integration id  {}\n  state           {}\n  namespaces      {}\n  expires         {expires}\n\n{}",
                found.id,
                found.state,
                found.namespaces.join(", "),
                workloads(target, &found.id, &found.trusts)
            );
            output.print(&Of { organization: place.organization, object: found }, &text)
        }
        Asked::Trust { integration, trust } => {
            let what = || format!("trust a workload for integration {}", integration.name);
            let (place, found) = find(target, &integration).doing(what)?;
            let trusted = target.done(place.session.trust(&found.id, &trust), NO_INTEGRATION).doing(what)?;
            let (_, found) = find(target, &integration)?;
            let workloads = workloads(target, &found.id, &found.trusts);
            output.print(&trusted, &format!("Added trust {}.\n\n{workloads}", trusted.id))
        }
        Asked::Distrust { integration, trust } => {
            const ABSENT: &str = "no such integration or trust";
            let what = || format!("remove trust {trust} from integration {}", integration.name);
            let id: TrustId = trust.parse().map_err(|_| Failure::usage("--trust: must be the id of a trust"))?;
            let place = target.place(integration.org.as_deref()).doing(what)?;
            let found = named(target, &place, &integration.name).map_err(|_| Failure::new(ABSENT)).doing(what)?;
            target.done(place.session.distrust(&found.id, &id.to_string()), ABSENT).doing(what)?;
            let text =
                format!("Removed trust {trust} from integration {}. Its workloads are now rejected.", integration.name);
            output.print(&serde_json::json!({"id": trust}), &text)
        }
        Asked::List { org } => list(target, org.as_deref(), output),
        Asked::Rotate { integration, overlap, token } => {
            Overlap::parse(overlap, "--overlap").map_err(|error| wrong_flag(&error))?;
            let org = target.organization(integration.org.as_deref())?;
            let file = token_file(&token, output)?;
            let what = || format!("rotate the token of integration {} of {org}", integration.name);
            let (place, found) = find(target, &integration).doing(what)?;
            let rotated = place.session.rotate_integration(&found.id, overlap);
            let issued = target.done(rotated, NO_INTEGRATION).doing(what)?;
            // The new token must be printed, even if this request fails.
            let until = named(target, &place, &integration.name).ok().and_then(|found| found.previous_token_until);
            let old = match until {
                Some(until) => format!("The old one stays valid until {until}."),
                None => "The old one is revoked.".to_owned(),
            };
            let done = format!("Issued a new token for {}. {old}", issued.name);
            print_token(target, issued, file, &done, output)
        }
        Asked::Set { integration, set } => {
            let (state, doing, past, consequence) = match set.state {
                StateArg::Disabled => (IntegrationState::Disabled, "disable", "Disabled", "Its tokens do not work."),
                StateArg::Enabled => (IntegrationState::Active, "enable", "Enabled", "Its tokens work again."),
            };
            let state = Some(state.as_str().to_owned());
            let change = ChangeIntegrationRequest { state, ..ChangeIntegrationRequest::default() };
            let set = |place: &Place, found: IntegrationItem| place.session.change_integration(&found.id, &change);
            print_changed(target, &integration, set, (doing, past, consequence), output)
        }
        Asked::Delete { integration, yes } => {
            if !yes {
                let org = target.organization(integration.org.as_deref())?;
                let question = format!("This deletes integration {} of {org}.", integration.name);
                output.confirm(&question, &integration.name)?;
            }
            let delete =
                |place: &Place, found: IntegrationItem| place.session.delete_integration(&found.id).map(|()| found);
            print_changed(target, &integration, delete, ("delete", "Deleted", "Its activations have ended."), output)
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

/// Changes an integration, and prints the result.
fn print_changed(
    target: &Target<'_>,
    integration: &NamedIntegration,
    change: impl FnOnce(&Place, IntegrationItem) -> Result<IntegrationItem, ClientError>,
    (doing, past, consequence): (&str, &str, &str),
    output: Output,
) -> Result<(), Failure> {
    let org = target.organization(integration.org.as_deref())?;
    let what = || format!("{doing} integration {} of {org}", integration.name);
    let (place, found) = find(target, integration).doing(what)?;
    let object = target.done(change(&place, found), NO_INTEGRATION).doing(what)?;
    let text = format!("{past} integration {} of {org}. {consequence}\n", object.name);
    output.print(&Of { organization: place.organization, object }, &text)
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
        return output.print(&issued, &text);
    };
    file.write(token.expose_secret())?; // written once, for the integration
    if path.as_os_str() == "-" {
        note(done);
        return Ok(());
    }
    let shown = path.display().to_string();
    let lines = job_lines(target, &issued, Some(&shown));
    let text = format!("{done}\n\n  token file      {shown}\n{facts}\n\n{lines}");
    output.print(&issued, &text)
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

/// Returns the integration that a command names, and its place.
fn find(target: &Target<'_>, integration: &NamedIntegration) -> Result<(Place, IntegrationItem), Failure> {
    let place = target.place(integration.org.as_deref())?;
    let found = named(target, &place, &integration.name)?;
    Ok((place, found))
}

fn named(target: &Target<'_>, place: &Place, name: &str) -> Result<IntegrationItem, Failure> {
    let key = |name: &str| IntegrationName::parse(name, "--name").map(|name| name.uniqueness_key());
    let wanted = key(name).ok();
    let mut all = target.done(place.session.integrations(), NO_INTEGRATION)?.into_iter();
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
             activation listener (unix:/PATH or https://HOST:PORT/v1).\n\n",
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

fn list(target: &Target<'_>, org: Option<&str>, output: Output) -> Result<(), Failure> {
    let mut shown = Vec::new();
    for place in target.places(org)? {
        let integrations = target.done(place.session.integrations(), NO_INTEGRATION)?.into_iter();
        shown.extend(integrations.map(|object| Of { organization: place.organization.clone(), object }));
    }
    let row = |Of { organization, object: found }: &Of<IntegrationItem>| {
        let [expires, used] =
            [&found.expires_at, &found.last_used_at].map(|time| time.clone().unwrap_or_else(|| "never".to_owned()));
        let previous = found.previous_token_until.clone().unwrap_or_default();
        let (organization, name, id) = (organization.clone(), found.name.clone(), short_id(&found.id).into());
        vec![organization, name, id, found.state.clone(), expires, used, previous, found.namespaces.join(" ")]
    };
    let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
    let heading =
        ["ORGANIZATION", "NAME", "ID", "STATE", "EXPIRES", "TOKEN LAST USED", "PREVIOUS TOKEN UNTIL", "NAMESPACES"];
    output.print(&shown, &table(&heading, &rows))
}
