//! `orgvault exec`: runs a command with a namespace's credentials and removes them afterwards.

use super::activate::end;
use crate::activation::args::{ExecArgs, LISTENER_VARIABLES};
use crate::activation::child;
use crate::activation::endpoint::Endpoint;
use crate::activation::listener::Listener;
use crate::activation::opened::Opened;
use crate::activation::private_files::{PrivateDirectory, places, remove_abandoned};
use crate::activation::renewal::Renewal;
use crate::activation::signals::{Signals, asks_to_stop};
use crate::activation::supply::{Supply, is_served};
use crate::failure::Failure;
use crate::hardening;
use crate::output::{note, warn};
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::process::Command;
use tokio::task::spawn_blocking;
use vault_core::port::IdGenerator as _;
use vault_crypto::OsEntropy;
use vault_crypto::{SystemClock, SystemIds};

/// Exit status of a failure of `exec` itself. env(1) and timeout(1) use the same value, which few commands return.
const EXEC_FAILED: u8 = 125;

/// Runs `orgvault exec`. Returns the exit status of its command.
pub fn run(args: &mut ExecArgs, base_path: Option<&str>) -> Result<ExitCode, Failure> {
    args.listener
        .complete()
        .and_then(|()| execute(args, base_path))
        .map(ExitCode::from)
        .map_err(|failure| failure.or_status(EXEC_FAILED))
}

fn execute(args: &ExecArgs, base_path: Option<&str>) -> Result<u8, Failure> {
    hardening::apply_next_to_a_command()?;
    let listener = Arc::new(Listener::open(&args.listener, base_path)?);
    if let Some(identity) = listener.identity() {
        note(&identity);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(activate_and_run(args, base_path, listener));
    // Do not wait for a listener that does not respond.
    runtime.shutdown_background();
    status
}

async fn activate_and_run(args: &ExecArgs, base_path: Option<&str>, listener: Arc<Listener>) -> Result<u8, Failure> {
    // Listen before the activation starts, so that a signal cannot prevent the clean-up.
    let mut signals = Signals::listen()?;
    let places = places();
    remove_abandoned(&places);

    let (asking, request, wait) = (Arc::clone(&listener), args.wanted.request(), args.listener.wait());
    let answer = tokio::select! {
        biased;
        answer = spawn_blocking(move || asking.activate_within(&request, wait)) => answer??,
        // The server may still start the activation. It then expires without being used.
        signal = signals.stop() => return Err(stopped(args, signal)),
    };
    answer.warn_of_clock();
    let mut activation = answer.activation.id.clone();
    let run = async {
        let mut opened = Opened::read(answer)?;
        args.choice.narrow(&mut opened)?;
        if let Some(signal) = signals.arrived().await.filter(|signal| asks_to_stop(*signal)) {
            return Err(stopped(args, signal));
        }
        let run = Run::prepare(args, listener.source_variables(), &opened, &places).await?;
        if args.no_refresh {
            return run.wait(&mut signals, None).await;
        }
        let mut renewal = Renewal::new(args, base_path, Arc::new(SystemClock), &opened, &run.supply);
        drop(opened);
        let status = run.wait(&mut signals, Some(&mut renewal)).await;
        renewal.activation().clone_into(&mut activation);
        status
    };
    let status = run.await;

    // These signals were meant for the command, which has exited.
    signals.forget().await;
    let (ending, ended) = (listener, activation.clone());
    tokio::select! {
        biased;
        result = spawn_blocking(move || end(&ending, &ended)) => result?,
        _ = signals.stop() => warn(&format!("stopped before activation {activation} was ended. It expires automatically")),
    }
    status
}

/// The failure of a stop before the command was started. Its status is 128 plus the signal, as in shells.
fn stopped(args: &ExecArgs, signal: Signal) -> Failure {
    let status = u8::try_from(128 + signal.as_raw()).unwrap_or(u8::MAX);
    Failure::with_status(format!("stopped before {} was started", args.command[0].to_string_lossy()), status)
}

/// The command and its credentials.
struct Run {
    command: Command,
    supply: Supply,
}

impl Run {
    async fn prepare(
        args: &ExecArgs,
        source_variables: &[&str],
        opened: &Opened,
        places: &[PathBuf],
    ) -> Result<Self, Failure> {
        let chosen = args.choice.of(opened, false)?;
        let mut command = child::command(&args.command);
        for name in LISTENER_VARIABLES.iter().chain(source_variables) {
            command.env_remove(name);
        }
        let endpoint = if !args.is_static && is_served(opened, &chosen) {
            Some(Endpoint::open(&OsEntropy, Arc::new(SystemClock)).await?)
        } else {
            None
        };
        let ids = SystemIds::default();
        let files = PrivateDirectory::create(places, || ids.random())?;
        let supply = Supply::give(&mut command, opened, chosen, endpoint, files)?;
        Ok(Self { command, supply })
    }

    /// Starts the command, waits for its exit while `renewal` renews its credentials, and removes its files.
    async fn wait(self, signals: &mut Signals, renewal: Option<&mut Renewal<'_>>) -> Result<u8, Failure> {
        let Self { command, mut supply } = self;
        supply.files().share_lock()?;
        let child = child::start(command)?;
        if let Some(pid) = child::pid(&child) {
            supply.files().record(pid);
        }
        let status = match renewal {
            Some(renewal) => tokio::select! {
                biased;
                status = child::wait(child, signals) => status,
                never = renewal.keep(&mut supply) => match never {},
            },
            None => child::wait(child, signals).await,
        };
        if let Err(violation) = supply.remove() {
            warn(&violation.to_string());
        }
        status
    }
}
