//! `orgvault quickstart`: creates and serves a vault with an account and an integration for its jobs.

use crate::cli::QuickstartArgs;
use crate::command::account::{self, ShownCreated};
use crate::command::init::root_key_warning;
use crate::command::serve;
use crate::compose;
use crate::container;
use crate::events::ServerEvents;
use crate::logging;
use crate::settings::{ActivationListen, Role as Served, SETTINGS_FILE, Settings};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rustix::process::geteuid;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_cli::client::QUICKSTART;
use vault_cli::client::login::{Login, Profile, StoredActivation, StoredSession};
use vault_cli::failure::Failure;
use vault_cli::output::{Output, warn};
use vault_cli::secret_file::NewSecretFile;
use vault_cli::text::{passcode_sheet, program, quoted, recovery_codes, rfc3339};
use vault_client::ServerSocket;
use vault_core::account::AccountState;
use vault_core::cursor::PageRequest;
use vault_core::email::EmailAddress;
use vault_core::id::OrganizationId;
use vault_core::integration::Overlap;
use vault_core::network::Network;
use vault_core::organization::OrganizationName;
use vault_core::passcode::TimeStep;
use vault_core::principal::{Principal, Scope};
use vault_core::role::Role;
use vault_core::usecase::integrations::{CreateIntegrationRequest, IntegrationRef};
use vault_core::usecase::{CreatedAccount, LogInRequest};
use vault_core::{Error, Refusal};
use vault_crypto::passcode_of;
use vault_embed::OpenVault;
use vault_storage::Destination;

const DEFAULT_ORGANIZATION: &str = "Example";
const DEFAULT_EMAIL: &str = "admin@example.com";
/// Namespaces that the integration for this user's jobs may activate.
const NAMESPACES: &str = "imports/*";
/// Names in the data directory: the token file of the integration, and the sockets for activations and for the API.
const TOKEN_FILE: &str = "quickstart.token";
const ACTIVATION_SOCKET: &str = "activation.sock";
const API_SOCKET: &str = "orgvault.sock";
/// In the last milliseconds of a time step, its passcode may expire during the login. Longer than a login takes.
const NEAR_END: i64 = 10_000;
/// Maximum length of a Unix socket path in bytes. `sun_path` on Linux has 108, including the final NUL (unix(7)).
const LONGEST_SOCKET_PATH: usize = 107;
/// Networks on which storage emulators of this host listen.
const LOOPBACK: [IpNet; 2] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
];

/// The output with `--json`.
#[derive(Serialize)]
struct Started {
    base_url: String,
    data_dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<ShownCreated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    activation_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_file: Option<String>,
    /// Profile in which the session was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'static str>,
}

/// The objects created in a new vault.
struct SetUp {
    account: CreatedAccount,
    /// Path of the integration's token file, if the vault has an activation listener.
    token_file: Option<PathBuf>,
    /// Expiry time of this user's session, or the reason why the login failed.
    signed_in: Result<String, String>,
}

pub(crate) async fn run(mut settings: Settings, args: QuickstartArgs, output: Output) -> Result<(), Failure> {
    check_arguments(&args)?;
    let is_local = is_for_this_host_only(&settings);
    reachable(&mut settings);
    if settings.server.role != Served::All {
        return Err(Failure::usage("quickstart serves all: unset `role` and ORGVAULT_ROLE, or use `orgvault serve`"));
    }
    if is_local {
        settings.server.example_keys = true;
        settings.server.allow_egress.extend(LOOPBACK.map(Destination::Network));
    }
    // Check first, so that no failure follows the secrets, which are shown only once.
    check_addresses(&settings).map_err(|failure| compose::already_served(&settings).unwrap_or(failure))?;
    if let Some(files) = settings.server.tls() {
        files.load()?;
    }
    if settings.server.listen_socket.is_none() {
        settings.server.listen_socket = socket_place(&settings, API_SOCKET, "--listen-socket to /PATH");
    }
    compose::make_data_dir(&settings)?;
    let events = ServerEvents::default();
    let opening = compose::serve_or_create(&settings, "quickstart", &events).await?;
    let opening = opening.anchor(compose::anchor(&settings), false).with_opener();
    let (vault, opener) = opening.await.map_err(|error| compose::failure(&settings, error))?;
    let set_up = if has_accounts(&vault).await? { None } else { Some(set_up(&mut settings, &vault, &args).await?) };
    let base_url = settings.server.base_url(settings.server.listen);
    let console_url = settings.server.console_url(settings.server.listen);
    if set_up.is_none()
        && let Err(failure) = repair_profile(&settings, &vault)
    {
        warn(&format!("the profile was not updated: {failure}"));
    }
    let text = match &set_up {
        Some(set_up) => created_text(&settings, &console_url, set_up, &args, is_local)?,
        None => existing_text(&settings, &base_url, &console_url, &vault, &args).await?,
    };
    let document = Started {
        base_url,
        data_dir: settings.data_dir.display().to_string(),
        account: set_up.as_ref().map(|set_up| ShownCreated::from(&set_up.account)),
        activation_url: settings.server.activation_url(),
        token_file: set_up
            .as_ref()
            .and_then(|set_up| set_up.token_file.as_ref())
            .map(|path| path.display().to_string()),
        profile: set_up.as_ref().filter(|set_up| set_up.signed_in.is_ok()).map(|_| Profile::DEFAULT),
    };
    output.print(&document, &text)?;
    logging::resume();
    drop((document, text, set_up)); // free the secrets, which were shown once
    serve::run(Arc::new(settings), vault, opener, &events).await
}

/// In a container, listens on all addresses unless the settings contain an address, because other hosts cannot reach a
/// loopback address. Only the container engine may connect, as a trusted proxy. It forwards connections to published
/// ports.
fn reachable(settings: &mut Settings) {
    let server = &mut settings.server;
    if server.names_address() || !server.trusted_proxy.is_empty() {
        return;
    }
    if let Some(gateway) = container::gateway() {
        server.listen.set_ip(Ipv4Addr::UNSPECIFIED.into());
        server.trusted_proxy.push(IpAddr::from(gateway).into());
        warn(&format!(
            "in a container: listening on {} without TLS, only for connections of the container engine ({gateway}). Publish the \
             port only on this host: -p 127.0.0.1:{port}:{port}",
            server.listen,
            port = server.listen.port()
        ));
    }
}

/// Returns whether only users of this host can reach the vault. Behind a proxy or in a container, the listener may be
/// on loopback although the users are remote.
fn is_for_this_host_only(settings: &Settings) -> bool {
    let server = &settings.server;
    let is_direct = server.trusted_proxy.is_empty() && server.public_url.is_none();
    server.listen.ip().is_loopback() && is_direct && !container::is_main_process()
}

/// Validates the arguments before anything is written.
fn check_arguments(args: &QuickstartArgs) -> Result<(), Failure> {
    let usage = |flag: &str, violation: &dyn std::fmt::Display| Failure::usage(format!("{flag}: {violation}"));
    if let Some(email) = &args.email {
        EmailAddress::parse(email).map_err(|violation| usage("--email", &violation))?;
    }
    if let Some(name) = &args.org {
        OrganizationName::parse(name).map_err(|violation| usage("--org", &violation))?;
    }
    Ok(())
}

fn check_addresses(settings: &Settings) -> Result<(), Failure> {
    for (flag, address) in settings.server.addresses() {
        drop(TcpListener::bind(address).map_err(|error| Failure::cannot_listen(flag, address, &error))?);
    }
    Ok(())
}

async fn has_accounts(vault: &OpenVault) -> Result<bool, Failure> {
    let request = PageRequest { limit: 1, cursor: None };
    Ok(!vault.accounts().list(&Principal::Operator, Scope::All, request).await?.items.is_empty())
}

/// Creates the objects of a vault without accounts. The account is created last: until it exists, another run repeats
/// all steps.
async fn set_up(settings: &mut Settings, vault: &OpenVault, args: &QuickstartArgs) -> Result<SetUp, Failure> {
    let name = args.org.clone().unwrap_or_else(|| DEFAULT_ORGANIZATION.to_owned());
    let email = args.email.clone().unwrap_or_else(|| DEFAULT_EMAIL.to_owned());
    let organization = organization(vault, &name).await?;
    if !settings.has_file {
        if settings.server.activation_listen().is_none()
            && let Some(path) = socket_place(settings, ACTIVATION_SOCKET, "--activation-listen to unix:/PATH")
        {
            settings.server.add_activation_socket(path);
        }
        write_settings(settings)?;
    }
    let token_file = match settings.server.activation_listen() {
        Some(_) => Some(create_integration(settings, vault, organization).await?),
        None => None,
    };
    let account = account::create(vault, name, email, Role::Admin, None).await?;
    let signed_in = sign_in(settings, vault, &account, token_file.as_deref()).await;
    Ok(SetUp { account, token_file, signed_in })
}

/// Returns the organization's ID. An interrupted run may have created it.
async fn organization(vault: &OpenVault, name: &str) -> Result<OrganizationId, Failure> {
    let key = OrganizationName::parse(name)?.uniqueness_key();
    let organizations = vault.operator().organizations().await?;
    match organizations.iter().find(|organization| organization.name.uniqueness_key() == key) {
        Some(found) => Ok(found.id),
        None => Ok(vault.operator().create_organization(name).await?.id),
    }
}

/// Returns the path of a socket for this user: in the data directory, or in the runtime directory if that path is too
/// long. `setting` is the remedy if both are.
fn socket_place(settings: &Settings, name: &str, setting: &str) -> Option<PathBuf> {
    let in_data_dir = settings.data_dir.join(name);
    if in_data_dir.as_os_str().len() <= LONGEST_SOCKET_PATH {
        return Some(in_data_dir);
    }
    let place = runtime_socket(&in_data_dir);
    if place.is_none() {
        warn(&format!(
            "no socket: the path of {} is longer than {LONGEST_SOCKET_PATH} bytes. Set {setting} with a shorter path",
            in_data_dir.display()
        ));
    }
    place
}

/// Writes the settings file in the data directory, so that later runs and `orgvault serve` use the same sockets.
fn write_settings(settings: &Settings) -> Result<(), Failure> {
    let mut text = "# Written by `orgvault quickstart`. `orgvault help settings` lists all settings.\n".to_owned();
    // The names of files in the data directory remain valid if it is moved.
    let named = |path: &Path| path.strip_prefix(&settings.data_dir).unwrap_or(path).display().to_string();
    if let Some(path) = &settings.server.listen_socket {
        let _ = writeln!(text, "listen-socket = {}", toml_string(&named(path)));
    }
    if let Some(ActivationListen::Unix(socket)) = settings.server.activation_listen() {
        let _ = writeln!(text, "activation-listen = {}", toml_string(&format!("unix:{}", named(&socket.path))));
    }
    let file = settings.data_dir.join(SETTINGS_FILE);
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    let written = created.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))
}

/// Returns a short socket path in the user's private runtime directory (XDG Base Directory Specification).
fn runtime_socket(in_data_dir: &Path) -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())?;
    let metadata = runtime.metadata().ok()?;
    let is_private = metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o077 == 0;
    let mut digest = DefaultHasher::new(); // only distinguishes data directories; need not be cryptographic
    in_data_dir.hash(&mut digest);
    let path = runtime.join(format!("orgvault-{:016x}.sock", digest.finish()));
    (is_private && path.as_os_str().len() <= LONGEST_SOCKET_PATH).then_some(path)
}

/// Quotes `text` as a basic TOML string.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string() // every JSON escape is also a TOML escape
}

/// Creates the integration for this user's jobs. Writes its token to a file and returns the path.
async fn create_integration(
    settings: &Settings,
    vault: &OpenVault,
    organization: OrganizationId,
) -> Result<PathBuf, Failure> {
    let path = settings.data_dir.join(TOKEN_FILE);
    let _ = fs::remove_file(&path); // of an interrupted run, which never printed its token
    let file = NewSecretFile::create("quickstart", &path)?;
    let request = CreateIntegrationRequest {
        name: QUICKSTART.to_owned(),
        namespaces: vec![NAMESPACES.to_owned()],
        expires_at: None,
        token: true,
        trusts: Vec::new(),
        managed_by: None,
    };
    let integrations = vault.integrations();
    let token = match integrations.create(&Principal::Operator, organization, request).await {
        Err(Error::Refused(Refusal::NameTaken)) => {
            let meant = IntegrationRef::Name(QUICKSTART.to_owned());
            let overlap = Overlap::parse(Some(0), "")?;
            integrations.rotate(&Principal::Operator, organization, &meant, overlap).await?.1
        }
        created => created?.token.ok_or_else(|| Failure::new("the new integration has no token"))?,
    };
    file.write(token.text().expose_secret())?; // readable only by this user, whose jobs need it
    Ok(path)
}

/// Logs this user in as the new account. Stores the session, the activation listener and the token file as the default
/// profile. On failure, returns the reason, and the vault is served without a session.
async fn sign_in(
    settings: &Settings,
    vault: &OpenVault,
    account: &CreatedAccount,
    token_file: Option<&Path>,
) -> Result<String, String> {
    let profile = Profile::default();
    let found = Login::find(&profile).map_err(|failure| failure.to_string())?;
    if let Some(found) = found.filter(|found| found.session.is_some() && !is_of_this_vault(settings, found)) {
        return Err(format!("profile {} belongs to {} at {}", profile.as_str(), found.email, found.url));
    }
    if settings.server.listen.port() == 0 {
        return Err("the port is chosen by the operating system".to_owned());
    }
    let email = account.grant.email.to_string();
    let password = account.generated_password.clone().ok_or("the password was given")?;
    // Use the passcode of the previous step, which a login accepts too, so that the current one remains valid for the
    // console. Near the end of a step, the previous passcode could expire while the password is hashed.
    let now = vault.ports().environment.now();
    let current = TimeStep::at(now);
    let is_near_end = current.next().begins_at().millis_since(now) < NEAR_END;
    let step = if is_near_end { current } else { current.previous() };
    let passcode = passcode_of(&account.passcode, step).ok_or("its passcode cannot be computed")?;
    let request = LogInRequest {
        email: email.clone(),
        password,
        passcode,
        ttl: Some(i64::from(settings.server.max_ttl)),
        network: Network::of(Ipv4Addr::LOCALHOST.into()),
        client: Some("orgvault quickstart".to_owned()),
    };
    let session = vault.accounts().with_max_ttl(settings.server.max_ttl).log_in(request).await;
    let session = session.map_err(|error| Failure::from(error).to_string())?;
    let expires_at = rfc3339(session.expires_at);
    let login = Login {
        url: settings.server.base_url(settings.server.listen),
        ca_file: None,
        socket: stored_socket(settings),
        email,
        session: Some(StoredSession { access_token: session.token.0.into(), expires_at: expires_at.clone() }),
        activation: stored_activation(settings, token_file),
    };
    login.write(&profile).map_err(|failure| failure.to_string())?;
    Ok(expires_at)
}

fn stored_socket(settings: &Settings) -> Option<ServerSocket> {
    let path = settings.server.listen_socket.clone()?;
    Some(ServerSocket { path, server_user: geteuid().as_raw() })
}

/// Returns the activation listener for the profile. Another user can listen on the port of a stopped server, so the
/// token is stored only for a socket or TLS.
fn stored_activation(settings: &Settings, token_file: Option<&Path>) -> Option<StoredActivation> {
    let (url, token_file) = settings.server.activation_url().zip(token_file)?;
    let stored = StoredActivation { url, token_file: token_file.to_owned(), server_user: geteuid().as_raw() };
    Some(stored).filter(|stored| !stored.url.starts_with("http:"))
}

/// Returns whether `quickstart` stored the login for this data directory. Its vault may have been removed.
fn is_of_this_vault(settings: &Settings, login: &Login) -> bool {
    login.socket.is_some() && login.socket == stored_socket(settings)
}

/// Stores the current addresses of this vault in the profile, if it belongs to this vault.
fn repair_profile(settings: &Settings, vault: &OpenVault) -> Result<(), Failure> {
    let profile = Profile::default();
    let Some(mut login) = Login::find(&profile).unwrap_or_default() else { return Ok(()) };
    let is_session = |session: StoredSession| {
        let token = session.access_token.into_secret();
        let is_valid = vault.accounts().authenticate(token.expose_secret()).is_ok();
        (is_valid, StoredSession { access_token: token.into(), ..session })
    };
    let (is_valid, session) = login.session.take().map(is_session).unzip();
    login.session = session;
    let is_ours = is_of_this_vault(settings, &login) || is_valid == Some(true);
    if !is_ours || settings.server.listen.port() == 0 {
        return Ok(());
    }
    let token_file = Some(settings.data_dir.join(TOKEN_FILE)).filter(|file| file.exists());
    login.url = settings.server.base_url(settings.server.listen);
    login.socket = stored_socket(settings);
    login.activation = stored_activation(settings, token_file.as_deref()).or(login.activation);
    login.write(&profile).map(|_| ())
}

/// Formats the output for a new vault, in the order in which the user needs it.
fn created_text(
    settings: &Settings,
    console_url: &str,
    set_up: &SetUp,
    args: &QuickstartArgs,
    is_local: bool,
) -> Result<String, Failure> {
    let account = &set_up.account;
    let shown = ShownCreated::from(account);
    let flags = format!("--email {}", quoted(&shown.email));
    let mut text = format!("Created a vault in {}.\n\n", settings.data_dir.display());
    let _ = writeln!(text, "  console        {console_url}");
    let _ = writeln!(text, "  e-mail         {}", shown.email);
    let _ = writeln!(text, "  password       {}", shown.password.as_deref().unwrap_or("as given"));
    if args.qr {
        let _ = write!(text, "\n{}", passcode_sheet(&account.passcode, &account.recovery_codes)?);
    } else {
        let _ = writeln!(text, "  authenticator  {}", account.passcode.uri.expose_secret()); // shown once, to its owner
        let _ = write!(text, "\n{}", recovery_codes(&account.recovery_codes));
    }
    text += "\nPassword and codes are not shown again.\n";
    match &set_up.signed_in {
        Ok(until) => {
            let _ = writeln!(text, "\nYou are signed in on this host until {until}. In another terminal:\n");
            text += &next_commands(stored_activation(settings, set_up.token_file.as_deref()).is_some());
        }
        Err(reason) => {
            let url = settings.server.base_url(settings.server.listen);
            let _ = writeln!(text, "\nNot signed in: {reason}. In another terminal:\n");
            let _ = writeln!(text, "  {} login --url {} {flags}", program(), quoted(&url));
        }
    }
    if is_local {
        text += "\nStorage on this host (an emulator) is allowed, because this vault is for users of this host.\n";
    }
    let _ =
        write!(text, "\n{}\nCtrl-C stops the server. The same command starts it again.\n", root_key_warning(settings));
    Ok(text)
}

/// Formats the commands to run next.
fn next_commands(jobs: bool) -> String {
    let program = program();
    let mut text = String::new();
    if program != "orgvault"
        && let Some(directory) = std::env::current_exe().ok().as_deref().and_then(Path::parent)
    {
        let _ = writeln!(text, "  export PATH={}:\"$PATH\"", quoted(&directory.to_string_lossy()));
    }
    text += "  orgvault import ~/.aws/credentials --namespace 'imports/{name}' --bucket BUCKET\n";
    if jobs {
        text += "  orgvault exec --namespace imports/default -- aws s3 ls s3://BUCKET\n";
    }
    text
}

/// Formats the output for an existing vault.
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
    let (re_enrol, list) = (settings.command_line("account re-enrol"), settings.command_line("account list"));
    let log_in = format!("{} login --url {} --email {}", program(), quoted(base_url), quoted(&email));
    text += &format!("Sign in on the command line: {log_in}\n");
    text += &format!("Lost the password or the authenticator? {re_enrol} --email {}\n", quoted(&email));
    text += &format!("Other accounts: {list}\nStop the server with Ctrl-C.\n");
    Ok(text)
}
