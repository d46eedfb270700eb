//! `orgvault quickstart`: the main job in one command.

use crate::cli::QuickstartArgs;
use crate::command::account::{self, ShownCreated, created_text};
use crate::command::init::root_key_warning;
use crate::command::login::DEFAULT_URL;
use crate::command::serve;
use crate::compose;
use crate::container;
use crate::events::ServerEvents;
use crate::failure::Failure;
use crate::output::{Output, warn};
use crate::settings::{Role as Served, Settings};
use crate::text::{json_in_here_document, program, quoted};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use vault_core::account::AccountState;
use vault_core::cursor::PageRequest;
use vault_core::email::EmailAddress;
use vault_core::organization::OrganizationName;
use vault_core::principal::{Principal, Scope};
use vault_core::role::Role;
use vault_core::usecase::CreatedAccount;
use vault_embed::OpenVault;

const DEFAULT_ORGANIZATION: &str = "Example";
const DEFAULT_EMAIL: &str = "admin@example.com";

#[derive(Serialize)]
struct Started {
    base_url: String,
    data_dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<ShownCreated>,
}

/// Carries the command out.
pub(crate) async fn run(settings: Settings, args: QuickstartArgs, output: Output) -> Result<(), Failure> {
    check_arguments(&args)?;
    let settings = reachable(settings);
    if settings.server.role != Served::All {
        return Err(Failure::usage("quickstart serves all: unset `role` and ORGVAULT_ROLE, or use `orgvault serve`"));
    }
    // What is shown once must not be followed by a failure that could have been known before.
    check_addresses(&settings).map_err(|failure| compose::already_served(&settings).unwrap_or(failure))?;
    if let Some(files) = settings.server.tls() {
        files.load(&settings.files)?;
    }
    compose::make_data_dir(&settings)?;
    let events = ServerEvents::default();
    let opening = compose::serve_or_create(&settings, "quickstart", &events)?;
    let opening = opening.anchor(compose::anchor(&settings), false).with_opener();
    let (vault, opener) = opening.await.map_err(|error| compose::failure(&settings, error))?;
    let account = first_account(&vault, &args).await?;
    let base_url = settings.server.base_url(settings.server.listen);
    let console_url = settings.server.console_url(settings.server.listen);
    let text = match &account {
        Some(account) => format!(
            "Created a vault in {}.\n{}\n\n{}\n{}",
            settings.data_dir.display(),
            root_key_warning(&settings),
            created_text(account)?,
            printed_lines(&settings, &base_url, &console_url, account)
        ),
        None => existing_text(&settings, &base_url, &console_url, &vault, &args).await?,
    };
    let document = Started {
        base_url,
        data_dir: settings.data_dir.display().to_string(),
        account: account.as_ref().map(ShownCreated::from),
    };
    output.print(&document, &text)?;
    drop((document, text, account)); // what was shown once need not stay in memory
    serve::run(Arc::new(settings), vault, opener, &events).await
}

/// In a container, a loopback address reaches nobody. Unless settings say where to listen: all addresses, though only the engine
/// may connect, as a proxy does; it passes on what arrives at published ports.
fn reachable(mut settings: Settings) -> Settings {
    let server = &mut settings.server;
    if server.names_address() || !server.trusted_proxy.is_empty() {
        return settings;
    }
    if let Some(gateway) = container::gateway() {
        server.listen.set_ip(Ipv4Addr::UNSPECIFIED.into());
        server.trusted_proxy.push(IpAddr::from(gateway).into());
        warn(&format!(
            "in a container: listening on {} without TLS, for connections of the container engine ({gateway}) alone. Publish the \
             port on this machine only: -p 127.0.0.1:{port}:{port}",
            server.listen,
            port = server.listen.port()
        ));
    }
    settings
}

/// Checks the arguments before anything is written.
fn check_arguments(args: &QuickstartArgs) -> Result<(), Failure> {
    let usage = |flag: &str, flaw: &dyn std::fmt::Display| Failure::usage(format!("{flag}: {flaw}"));
    if let Some(email) = &args.email {
        EmailAddress::parse(email).map_err(|flaw| usage("--email", &flaw))?;
    }
    if let Some(name) = &args.org {
        OrganizationName::parse(name).map_err(|flaw| usage("--org", &flaw))?;
    }
    Ok(())
}

fn check_addresses(settings: &Settings) -> Result<(), Failure> {
    for (flag, address) in settings.server.addresses() {
        if settings.files.bound_socket(address).is_none() {
            drop(TcpListener::bind(address).map_err(|error| Failure::cannot_listen(flag, address, &error))?);
        }
    }
    Ok(())
}

/// The organization and admin account of a vault that has no account.
async fn first_account(vault: &OpenVault, args: &QuickstartArgs) -> Result<Option<CreatedAccount>, Failure> {
    let request = PageRequest { limit: 1, cursor: None };
    if !vault.accounts().list(&Principal::Operator, Scope::All, request).await?.items.is_empty() {
        return Ok(None);
    }
    let organization = args.org.clone().unwrap_or_else(|| DEFAULT_ORGANIZATION.to_owned());
    let email = args.email.clone().unwrap_or_else(|| DEFAULT_EMAIL.to_owned());
    // A first run may have been interrupted between the two, and may have had other arguments.
    let name = OrganizationName::parse(&organization)?.uniqueness_key();
    let organizations = vault.operator().organizations().await?;
    if !organizations.iter().any(|organization| organization.name.uniqueness_key() == name) {
        vault.operator().create_organization(&organization).await?;
    }
    Ok(Some(account::create(vault, organization, email, Role::Admin, None).await?))
}

/// What is printed of an existing vault.
async fn existing_text(
    settings: &Settings,
    base_url: &str,
    console_url: &str,
    vault: &OpenVault,
    args: &QuickstartArgs,
) -> Result<String, Failure> {
    let mut text = format!("Serving the existing vault in {} at {base_url}.\n", settings.data_dir.display());
    text += &format!("Console: {console_url}\n");
    let ignored: Vec<&str> = [("--org", &args.org), ("--email", &args.email)]
        .iter()
        .filter(|(_, given)| given.is_some())
        .map(|(flag, _)| *flag)
        .collect();
    if !ignored.is_empty() {
        warn(&format!("ignored {}: the vault has accounts already", ignored.join(" and ")));
    }
    let page = vault.accounts().list(&Principal::Operator, Scope::All, PageRequest::default()).await?;
    let mut admins = page
        .items
        .iter()
        .map(|account| &account.grant)
        .filter(|grant| grant.role == Role::Admin && grant.state == AccountState::Active);
    let email = match (admins.next(), admins.next()) {
        (Some(only), None) => only.email.to_string(),
        _ => "ADDRESS".to_owned(),
    };
    let (set_password, list) = (settings.command_line("account set-password"), settings.command_line("account list"));
    text += &format!("Lost the password? {set_password} --email {}\n", quoted(&email));
    text += &format!("Other accounts: {list}\nStop the server with Ctrl-C.\n");
    Ok(text)
}

/// The flags with which another command prints the same URLs.
fn url_flags(settings: &Settings) -> String {
    settings.server.url_flags().iter().map(|flag| format!(" {}", quoted(flag))).collect()
}

/// The four operations, ready to paste, and what comes next. Bodies and the token go through standard input and a file,
/// because other users of the machine can read a process's arguments. The first failure shows the answer and stops.
fn printed_lines(settings: &Settings, base_url: &str, console_url: &str, account: &CreatedAccount) -> String {
    let shown = ShownCreated::from(account);
    let passcode = format!("{} --email {}", settings.command_line("account passcode"), quoted(&shown.email));
    let email = json_in_here_document(&shown.email);
    let password = json_in_here_document(shown.password.as_deref().unwrap_or_default());
    let organization = quoted(&shown.organization);
    let vault = format!("{base_url}/organization-vault");
    let post = "-H 'Content-Type: application/json' --data-binary @-";
    let activation = match settings.server.activation_listen() {
        Some(_) => "",
        None => "#                             after a start with --activation-listen: see docs/jobs/run.md\n",
    };
    let or_show = r#"|| { printf '%s\n' "$answer"; false; }"#;
    format!(
        r#"Open the console in a browser and sign in with the details above:

  {console_url}

Or in another terminal, with the command line, which asks for password and passcode, and for what you save:

{program} login{url} --email {shown_email}
{program} credential save --namespace imports/nightly --type s3

Or with curl, in one paste. The token goes into a file that only you can read:

umask 077
(set -e
answer=$(curl -sS --fail-with-body {base_url}/login {post} <<JSON
{{"email": {email}, "password": {password}, "passcode": "$({passcode})", "ttl": 3600}}
JSON
) && printf '%s' "$answer" | sed 's/.*"access_token":"\([^"]*\)".*/Authorization: Bearer \1/' > orgvault.token {or_show}

answer=$(curl -sS --fail-with-body -X PATCH {vault} -H @orgvault.token {post} <<'JSON'
{{"type": "s3", "namespace": "imports/nightly", "data": {{"access_key_id": "EXAMPLE-KEY-ID", "secret_access_key": "example-secret", "bucket": "nightly-imports", "region": "eu-central-1"}}}}
JSON
) && id=$(printf '%s' "$answer" | sed 's/.*"id":"\([^"]*\)".*/\1/') {or_show}

curl -sS --fail-with-body {vault} -H @orgvault.token; echo

curl -sS --fail-with-body -X DELETE {vault}/"$id" -H @orgvault.token -w '%{{http_code}}\n'
)

# Next, while this serves (Ctrl-C stops it; the same command starts it again):
#   invite a colleague:       {invite} --org {organization} --role editor --email ADDRESS
#   let a batch job use it:   {integration} --org {organization} --name nightly --namespace 'imports/*'
{activation}"#,
        program = program(),
        shown_email = quoted(&shown.email),
        url = if base_url == DEFAULT_URL { String::new() } else { format!(" --url {}", quoted(base_url)) },
        invite = settings.command_line("account invite") + &url_flags(settings),
        integration = settings.command_line("integration create"),
    )
}
