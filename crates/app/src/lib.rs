//! `orgvault`: a self-hosted vault for the storage credentials of batch jobs.
//!
//! This crate is the composition root: it reads settings, creates the adapters, passes them to the use cases as ports,
//! and runs one command. The program is a library with one function, so that it compiles while the libraries that it links are
//! still being optimized.

mod audit;
mod background;
mod backups;
mod checks;
mod cli;
mod command;
mod completion;
mod compose;
mod container;
mod egress;
mod event_log;
mod events;
mod federation;
mod figures;
mod flag_error;
mod inspections;
mod listeners;
mod logging;
mod owner;
mod parts;
mod progress;
mod receivers;
mod removed;
mod root_key;
mod served;
mod settings;
mod tls;
mod traces;
mod usage;

use clap::ArgMatches;
use clap_complete::Shell;
use cli::{Cli, Command};
use command::target::Target;
use settings::{LogFormat, Settings};
use std::io::Write;
use std::process::ExitCode;
use traces::Traces;
use vault_cli::activation::child;
use vault_cli::client::login::Profile;
use vault_cli::failure::Failure;
use vault_cli::output::{Output, table};
use vault_cli::{hardening, text};
use vault_embed::OpenVault;

/// Overwrites memory when it is freed, so that secrets do not remain in buffers of the web framework, strings of the
/// JSON parser or rows of the database drivers.
#[global_allocator]
static ALLOCATOR: zeroizing_alloc::ZeroAlloc<std::alloc::System> = zeroizing_alloc::ZeroAlloc(std::alloc::System);

/// Returns the definition of the command line, for the manual pages.
pub fn command() -> clap::Command {
    cli::command()
}

/// Runs the command of this process's arguments. Returns its exit status.
pub fn main() -> ExitCode {
    let started = child::become_command().and_then(|()| {
        completion::answer();
        cli::parse()
    });
    match started.and_then(|(cli, flags)| run(cli, &flags)) {
        Ok(status) => status,
        Err(failure) => {
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "orgvault: {}", text::legible(&failure.to_string()));
            failure.exit_code()
        }
    }
}

fn run(cli: Cli, flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let output = Output::new(cli.json);
    // Client commands open no vault, so they do not accept its settings.
    if cli.command.is_without_vault() {
        settings::refuse_vault_flags(flags.subcommand_name().unwrap_or_default(), flags)?;
    }
    if cli.command.profile().is_some() {
        settings::refuse_all_flags(flags)?;
        cli.command.require_api()?;
    }
    let mut cli = cli;
    match &mut cli.command {
        Command::Completions { shell } => return completions(*shell, output).map(|()| ExitCode::SUCCESS),
        Command::Settings => cli::print_settings(),
        Command::Activate(args) => {
            hardening::apply()?;
            return vault_cli::command::activate::run(args, Some(settings::client_base_path(flags)?.as_str()), output);
        }
        Command::Exec(args) => {
            return vault_cli::command::exec::run(args, Some(settings::client_base_path(flags)?.as_str()));
        }
        _ => hardening::apply()?,
    }
    let cli = match cli.command {
        Command::Enrol(args) => {
            let base_path = settings::client_base_path(flags)?;
            return vault_cli::command::enrol::run(args, base_path.as_str(), output).map(|()| ExitCode::SUCCESS);
        }
        Command::Login(args) => return vault_cli::command::login::log_in(args, output).map(|()| ExitCode::SUCCESS),
        Command::Logout(args) => return vault_cli::command::login::log_out(&args, output).map(|()| ExitCode::SUCCESS),
        Command::Profiles => return vault_cli::command::login::list(output).map(|()| ExitCode::SUCCESS),
        Command::Import(args) => return vault_cli::command::import::run(args, output),
        Command::Export(args) => return vault_cli::command::manifest::export(&args, output),
        Command::Apply(args) => return vault_cli::command::manifest::apply(&args, output),
        Command::Identity(command) => {
            return vault_cli::command::identity::run(&command, output).map(|()| ExitCode::SUCCESS);
        }
        Command::Credential(args) => {
            return vault_cli::command::credential::run(args, output);
        }
        command => Cli { command, ..cli },
    };
    if let Some(profile) = cli.command.profile().cloned() {
        return run_at_server(&profile, cli.command, output).map(|()| ExitCode::SUCCESS);
    }
    let done = run_on_vault(cli, flags, output);
    logging::resume();
    done
}

/// Runs a command of admins with the login of a profile.
fn run_at_server(profile: &Profile, command: Command, output: Output) -> Result<(), Failure> {
    let done = Target::login(profile).and_then(|target| manage(&target, command, output));
    done.map_err(|failure| failure.with_profile(profile))
}

fn run_on_vault(cli: Cli, flags: &ArgMatches, output: Output) -> Result<ExitCode, Failure> {
    let settings = Settings::read(flags, &cli::other_variables())?;
    if matches!(&cli.command, Command::Serve(args) if args.print_settings) {
        let rows = settings.shown.iter().map(|one| vec![one.name.clone(), one.value.clone(), one.source.clone()]);
        let text = table(&["SETTING", "VALUE", "SOURCE"], &rows.collect::<Vec<_>>());
        return output.print(&settings.shown, &text).map(|()| ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let traces = if cli.command.serves() { Traces::start(&settings, runtime.handle())? } else { None };
    // The output of `quickstart` is for a user, even if it is piped: the log follows it.
    let is_quickstart = matches!(cli.command, Command::Quickstart(_));
    let format = settings.log_format.or(is_quickstart.then_some(LogFormat::Text));
    if is_quickstart {
        logging::delay();
    }
    logging::start(format, settings.log_level, traces.as_ref());
    if settings.shows_password {
        tracing::warn!(
            "--database-url contains a password, which every user of this host can read in the list of processes: set \
             ORGVAULT_DATABASE_URL, or put it into a file and name it with ORGVAULT_DATABASE_URL_FILE"
        );
    }
    for variable in &settings.unknown_variables {
        tracing::warn!("environment variable {variable} is not a setting and is ignored; see `orgvault help settings`");
    }
    let done = runtime.block_on(dispatch(settings, cli.command, output));
    if let Some(traces) = traces {
        traces.end();
    }
    done.map(|()| ExitCode::SUCCESS)
}

fn completions(shell: Shell, output: Output) -> Result<(), Failure> {
    let script = completion::script(shell)?;
    output.print(&serde_json::json!({"shell": shell.to_string(), "script": script}), &script)
}

async fn dispatch(settings: Settings, command: Command, output: Output) -> Result<(), Failure> {
    match command {
        Command::Quickstart(args) => command::quickstart::run(settings, args, output).await,
        Command::Init => command::init::run(&settings, output).await,
        Command::Serve(args) => command::serve::open_and_run(settings, args).await,
        Command::Doctor(args) => command::doctor::run(&settings, &args, output).await,
        Command::Migrate(args) => command::migrate::run(&settings, &args, output).await,
        Command::MigrateTo(args) => command::migrate_to::run(&settings, args, output).await,
        Command::Backup(args) => command::backup::run(&settings, args, output).await,
        Command::Key(cli::KeyCommand::Rotate(args)) if args.root => {
            command::key::rotate_root(&settings, &args, output).await
        }
        Command::Restore(args) => command::restore::run(&settings, args, output).await,
        command => {
            let vault = compose::open(&settings).await.map_err(|failure| {
                let is_absent = settings.database.file().is_some_and(|path| !path.exists());
                match is_absent && command.can_run_at_server() {
                    true => {
                        failure.noting("to manage a vault on another host, run `orgvault login` and pass --profile")
                    }
                    false => failure,
                }
            })?;
            let done = on_vault(&settings, &vault, command, output).await;
            let closed = vault.close().await;
            done?;
            Ok(closed?)
        }
    }
}

async fn on_vault(settings: &Settings, vault: &OpenVault, command: Command, output: Output) -> Result<(), Failure> {
    match command {
        Command::Org(command) => command::organization::run(vault, command, output).await,
        Command::Issuer(command) => command::issuer::run(settings, vault, command, output).await,
        Command::Federation(command) => command::federation::run(settings, vault, command, output).await,
        Command::Key(command) => command::key::run(vault, command, output).await,
        command => manage(&Target::operator(settings, vault), command, output),
    }
}

/// Runs a command of admins.
fn manage(target: &Target<'_>, command: Command, output: Output) -> Result<(), Failure> {
    match command {
        Command::Account(args) => command::account::run(target, args.command, output),
        Command::Integration(args) => command::integration::run(target, args.command, output),
        Command::Receiver(args) => command::receiver::run(target, args.command, output),
        Command::Namespace(args) => command::namespace::run(target, args.command, output),
        Command::Audit(args) => command::audit::run(target, args.command, output),
        // Handled above, or without a vault.
        _ => Ok(()),
    }
}
