//! `orgvault quickstart`: the main job in one command.

use crate::cli::QuickstartArgs;
use crate::command::account::{self, ShownCreated, created_text};
use crate::command::init::root_key_warning;
use crate::command::serve;
use crate::compose;
use crate::failure::Failure;
use crate::listeners::cannot_listen;
use crate::output::Output;
use crate::settings::{ActivationListen, Settings};
use crate::text::{in_here_document, quoted};
use serde::Serialize;
use std::net::TcpListener;
use vault_core::account::AccountState;
use vault_core::email::EmailAddress;
use vault_core::organization::OrganizationName;
use vault_core::principal::{Principal, Scope};
use vault_core::role::Role;
use vault_core::usecase::{AccountsRequest, CreatedAccount};
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
    judge(&args)?;
    // What is shown once must not be followed by a failure that could have been known before.
    check_addresses(&settings).map_err(|failure| compose::already_served(&settings).unwrap_or(failure))?;
    if let Some(files) = &settings.tls {
        files.load(&settings.files)?;
    }
    compose::make_data_dir(&settings)?;
    let opening = compose::serve_or_create(&settings, "quickstart")?.with_opener();
    let (vault, opener) = opening.await.map_err(|error| compose::failure(&settings, error))?;
    let account = first_account(&vault, &args).await?;
    let base_url = settings.base_url(settings.listen);
    let text = match &account {
        Some(account) => format!(
            "A new vault is in {}.\n{}\n\n{}\n{}",
            settings.data_dir.display(),
            root_key_warning(&settings),
            created_text(account)?,
            curl_lines(&settings, &base_url, account)
        ),
        None => existing_text(&settings, &base_url, &vault, &args).await?,
    };
    let document = Started {
        base_url,
        data_dir: settings.data_dir.display().to_string(),
        account: account.as_ref().map(ShownCreated::from),
    };
    output.print(&document, &text)?;
    drop((document, text, account)); // what was shown once need not stay in memory
    serve::run(settings, vault, opener).await
}

/// Judges the arguments as the operations will: nothing is made for those that would be refused then.
fn judge(args: &QuickstartArgs) -> Result<(), Failure> {
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
    let activation = settings.activation.as_ref().and_then(|activation| match &activation.listen {
        ActivationListen::Tcp(address) => Some(*address),
        ActivationListen::Unix(_) => None,
    });
    for (flag, address) in [
        ("--listen", Some(settings.listen)),
        ("--admin-listen", settings.admin_listen),
        ("--activation-listen", activation),
    ] {
        if let Some(address) = address {
            drop(TcpListener::bind(address).map_err(|error| cannot_listen(flag, address, &error))?);
        }
    }
    Ok(())
}

/// The organization and admin account of a vault that has no account.
async fn first_account(vault: &OpenVault, args: &QuickstartArgs) -> Result<Option<CreatedAccount>, Failure> {
    let request = AccountsRequest { limit: 1, cursor: None };
    if !vault.accounts().list(&Principal::Operator, Scope::All, request).await?.accounts.is_empty() {
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

/// What is said when there is nothing to make.
async fn existing_text(
    settings: &Settings,
    base_url: &str,
    vault: &OpenVault,
    args: &QuickstartArgs,
) -> Result<String, Failure> {
    let mut text = format!("Serving the existing vault in {} at {base_url}.\n", settings.data_dir.display());
    let ignored: Vec<&str> = [("--org", &args.org), ("--email", &args.email)]
        .iter()
        .filter(|(_, given)| given.is_some())
        .map(|(flag, _)| *flag)
        .collect();
    if !ignored.is_empty() {
        text += &format!("Ignored {}: the vault already has accounts.\n", ignored.join(" and "));
    }
    let page = vault.accounts().list(&Principal::Operator, Scope::All, AccountsRequest::default()).await?;
    let mut admins = page
        .accounts
        .iter()
        .map(|account| &account.grant)
        .filter(|grant| grant.role == Role::Admin && grant.state == AccountState::Active);
    let email = match (admins.next(), admins.next()) {
        (Some(only), None) => only.email.to_string(),
        _ => "ADDRESS".to_owned(),
    };
    let (program, flags) = (program(), flags(settings));
    text += &format!("Lost the password? {program} account set-password {flags} --email {}\n", quoted(&email));
    text += &format!("Other accounts: {program} account list {flags}\nStop the server with Ctrl-C.\n");
    Ok(text)
}

/// This program as a shell is to be given it.
fn program() -> String {
    std::env::current_exe().map_or_else(|_| "orgvault".to_owned(), |path| quoted(&path.to_string_lossy()))
}

/// The flags with which a shell finds this vault from any directory.
fn flags(settings: &Settings) -> String {
    settings.location_flags().iter().map(|flag| quoted(flag)).collect::<Vec<_>>().join(" ")
}

/// The four operations, ready to paste. Bodies and tokens go through standard input and a file, because
/// other users of the machine can read a process's arguments.
fn curl_lines(settings: &Settings, base_url: &str, account: &CreatedAccount) -> String {
    let shown = ShownCreated::from(account);
    let (program, flags) = (program(), flags(settings));
    let (email, quoted_email) = (in_here_document(&shown.email), quoted(&shown.email));
    let password = shown.password.as_deref().unwrap_or("YOUR PASSWORD");
    format!(
        r#"Try it in another terminal. The token goes to a file that only you can read:

umask 077
curl -sS {base_url}/login -H 'Content-Type: application/json' --data-binary @- <<JSON | sed -n 's/.*"access_token":"\([^"]*\)".*/Authorization: Bearer \1/p' > orgvault.token
{{"email": "{email}", "password": "{password}", "passcode": "$({program} account passcode {flags} --email {quoted_email})", "ttl": 3600}}
JSON

ID=$(curl -sS -X PATCH {base_url}/organization-vault -H @orgvault.token -H 'Content-Type: application/json' --data-binary @- <<'JSON' | sed -n 's/.*"id":"\([^"]*\)".*/\1/p'
{{"type": "s3", "namespace": "imports/nightly", "data": {{"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "bucket": "nightly-imports", "region": "eu-central-1"}}}}
JSON
)

curl -sS {base_url}/organization-vault -H @orgvault.token; echo

curl -sS -X DELETE {base_url}/organization-vault/$ID -H @orgvault.token -o /dev/null -w '%{{http_code}}\n'
"#
    )
}
