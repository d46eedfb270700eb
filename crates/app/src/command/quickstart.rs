//! `orgvault quickstart`: the main job in one command.

use crate::cli::QuickstartArgs;
use crate::command::account::{self, ShownCreated, created_text};
use crate::command::init::root_key_warning;
use crate::command::serve;
use crate::compose::{self, Vault};
use crate::failure::Failure;
use crate::listeners::cannot_listen;
use crate::output::Output;
use crate::parts;
use crate::settings::Settings;
use crate::text::{in_here_document, quoted};
use serde::Serialize;
use std::net::TcpListener;
use vault_core::port::AccountScope;
use vault_core::role::Role;
use vault_core::usecase::CreatedAccount;

#[derive(Serialize)]
struct Started {
    base_url: String,
    data_dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<ShownCreated>,
}

/// Carries the command out.
pub(crate) async fn run(settings: Settings, args: QuickstartArgs, output: Output) -> Result<(), Failure> {
    // What is shown once must not be followed by a failure that could have been known before.
    for address in [Some(settings.listen), settings.admin_listen].into_iter().flatten() {
        drop(TcpListener::bind(address).map_err(|error| cannot_listen(address, &error))?);
    }
    if let Some(files) = &settings.tls {
        files.load()?;
    }
    compose::make_data_dir(&settings)?;
    let lock = compose::lock(&settings, "quickstart")?;
    let whole = match compose::find(&settings).await? {
        Some(whole) => whole,
        None => compose::create(&settings).await?,
    };
    let account = first_account(&whole.vault, args).await?;
    let base_url = settings.base_url(settings.listen);
    let text = match &account {
        Some(account) => format!(
            "A new vault is in {}.\n{}\n\n{}\n{}",
            settings.data_dir.display(),
            root_key_warning(&settings),
            created_text(account)?,
            curl_lines(&settings, &base_url, account)
        ),
        None => format!(
            "The vault in {} is there already; nothing was changed. Its interface is at {base_url}.\n",
            settings.data_dir.display()
        ),
    };
    let document = Started {
        base_url,
        data_dir: settings.data_dir.display().to_string(),
        account: account.as_ref().map(ShownCreated::from),
    };
    output.print(&document, &text)?;
    drop((document, text, account)); // what was shown once need not stay in memory
    serve::run(settings, whole, lock).await
}

/// The organization and admin account of a vault that has none.
async fn first_account(vault: &Vault, args: QuickstartArgs) -> Result<Option<CreatedAccount>, Failure> {
    if !parts::list_accounts(vault).run(AccountScope::Everywhere).await?.is_empty() {
        return Ok(None);
    }
    // A first run may have been interrupted between the two.
    if vault.operator().organizations().await?.is_empty() {
        vault.operator().create_organization(&args.org).await?;
    }
    Ok(Some(account::create(vault, args.org, args.email, Role::Admin, None).await?))
}

/// The four operations, ready to paste. Bodies and tokens go through standard input and a file, because
/// other users of the machine can read a process's arguments.
fn curl_lines(settings: &Settings, base_url: &str, account: &CreatedAccount) -> String {
    let shown = ShownCreated::from(account);
    let program =
        std::env::current_exe().map_or_else(|_| "orgvault".to_owned(), |path| quoted(&path.to_string_lossy()));
    let flags = settings.location_flags().iter().map(|flag| quoted(flag)).collect::<Vec<_>>().join(" ");
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
