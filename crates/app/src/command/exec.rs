//! `orgvault exec`: a command with a namespace's credentials, and nothing left of them afterwards.

use super::activate::end;
use crate::activation::args::{ExecArgs, LISTENER_VARIABLES};
use crate::activation::child;
use crate::activation::choice::ChoiceArgs;
use crate::activation::listener::Listener;
use crate::activation::opened::Opened;
use crate::activation::private_files::{PrivateDirectory, places, remove_abandoned};
use crate::activation::signals::{Signals, asks_to_stop};
use crate::failure::Failure;
use crate::hardening;
use crate::output::warn;
use rustix::process::Signal;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::process::Command;
use tokio::task::spawn_blocking;
use vault_core::activation::EnvironmentVariables;
use vault_core::port::IdGenerator as _;
use vault_embed::SystemIds;

/// The exit status where `exec` itself failed, as env(1) and timeout(1) have it: commands seldom use it.
const OWN_FAILURE: u8 = 125;

/// Carries the command out.
pub(crate) fn run(args: &ExecArgs, base_path: Option<&str>) -> Result<ExitCode, Failure> {
    execute(args, base_path).map(ExitCode::from).map_err(|failure| failure.or_status(OWN_FAILURE))
}

fn execute(args: &ExecArgs, base_path: Option<&str>) -> Result<u8, Failure> {
    hardening::apply_beside_a_command()?;
    let listener = Arc::new(Listener::open(&args.listener, base_path)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(activate_and_run(args, listener));
    // Without waiting for a listener that does not answer.
    runtime.shutdown_background();
    status
}

async fn activate_and_run(args: &ExecArgs, listener: Arc<Listener>) -> Result<u8, Failure> {
    // Before anything is begun, so that nothing is left undone.
    let mut signals = Signals::listen()?;
    let places = places();
    remove_abandoned(&places);

    let (asking, request) = (Arc::clone(&listener), args.wanted.request());
    let answer = tokio::select! {
        biased;
        answer = spawn_blocking(move || asking.activate(&request)) => answer??,
        // If the listener begins the activation all the same, it ends by itself.
        signal = signals.stop() => return Err(stopped(args, signal)),
    };
    let activation = answer.id.clone();
    let run = async {
        let opened = Opened::read(answer)?;
        if let Some(signal) = signals.arrived().await.filter(|signal| asks_to_stop(*signal)) {
            return Err(stopped(args, signal));
        }
        Run::prepare(&args.command, &args.choice, &opened, &places)?.wait(&mut signals).await
    };
    let status = run.await;

    // They were for the command.
    signals.forget().await;
    let (ending, ended) = (listener, activation.clone());
    tokio::select! {
        biased;
        result = spawn_blocking(move || end(&ending, &ended)) => result?,
        _ = signals.stop() => warn(&format!("stopped before activation {activation} was ended; it expires by itself")),
    }
    status
}

/// Told to stop before the command was started: the status that shells give to a command which a signal ended.
fn stopped(args: &ExecArgs, signal: Signal) -> Failure {
    let status = u8::try_from(128 + signal.as_raw()).unwrap_or(u8::MAX);
    Failure::with_status(format!("stopped before {} was started", args.command[0].to_string_lossy()), status)
}

/// A command and the files that it needs.
struct Run {
    command: Command,
    files: Option<PrivateDirectory>,
}

impl Run {
    fn prepare(words: &[OsString], choice: &ChoiceArgs, opened: &Opened, places: &[PathBuf]) -> Result<Self, Failure> {
        let chosen = choice.of(opened, false)?;
        let environments = chosen.iter().map(|(index, name)| {
            let subject = opened.subject(*index, name.as_ref());
            EnvironmentVariables::for_command(&subject)
                .map_err(|flaw| Failure::new(format!("credential {}: {flaw}", subject.id)))
        });
        let environments = environments.collect::<Result<Vec<_>, _>>()?;

        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for (name, _) in env::vars_os() {
            let known = name.to_str().unwrap_or_default();
            if LISTENER_VARIABLES.contains(&known)
                || environments.iter().any(|environment| environment.displaces(known))
            {
                command.env_remove(&name);
            }
        }
        let needs_files = environments.iter().any(|environment| !environment.files.is_empty());
        let ids = SystemIds::default();
        let files = needs_files.then(|| PrivateDirectory::create(places, || ids.random())).transpose()?;
        for (number, environment) in environments.iter().enumerate() {
            for set in &environment.variables {
                command.env(&set.name, set.value.expose()); // for the command that it was activated for
            }
            for file in &environment.files {
                let name = format!("{number}-{}", file.file_name);
                if let Some(directory) = &files {
                    command.env(&file.variable, directory.write(&name, file.content.expose())?); // for the same
                }
            }
        }
        Ok(Self { command, files })
    }

    /// Starts it, waits for its end, and removes its files.
    async fn wait(self, signals: &mut Signals) -> Result<u8, Failure> {
        if let Some(files) = &self.files {
            files.share_lock()?;
        }
        let child = child::start(self.command)?;
        if let (Some(files), Some(pid)) = (&self.files, child::pid(&child)) {
            files.record(pid);
        }
        let status = child::wait(child, signals).await;
        if let Some(Err(flaw)) = self.files.map(PrivateDirectory::remove) {
            warn(&flaw.to_string());
        }
        status
    }
}
