//! `orgvault exec`: a command with a namespace's credentials, and nothing left of them afterwards.

use super::activate::end;
use crate::activation::args::{ChoiceArgs, DOOR_VARIABLES, ExecArgs};
use crate::activation::child;
use crate::activation::door;
use crate::activation::opened::Opened;
use crate::activation::private_files::{PrivateDirectory, places, sweep};
use crate::activation::signals::Signals;
use crate::ambient::SystemIds;
use crate::failure::Failure;
use crate::output::warn;
use rustix::process::Signal;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::process::Command;
use tokio::task::spawn_blocking;
use vault_client::ActivationClient;
use vault_core::activation::{Environment, FormError};
use vault_core::port::IdGenerator as _;

/// Carries the command out.
pub(crate) fn run(args: &ExecArgs, base_path: Option<&str>) -> Result<ExitCode, Failure> {
    let client = Arc::new(door::open(&args.door, base_path)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(activate_and_run(args, client))?;
    Ok(ExitCode::from(status))
}

async fn activate_and_run(args: &ExecArgs, client: Arc<ActivationClient>) -> Result<u8, Failure> {
    // Before anything is begun, so that nothing is left undone.
    let mut signals = Signals::listen()?;
    let places = places();
    sweep(&places);

    let (asking, request) = (client.clone(), args.wanted.request());
    let answer = spawn_blocking(move || asking.activate(&request)).await??;
    let activation = answer.id.clone();
    let run = async {
        let opened = Opened::read(answer)?;
        match signals.arrived().await.filter(|signal| asks_to_stop(*signal)) {
            Some(signal) => Err(Failure::with_status(
                format!("told to stop before {} was started", args.command[0].to_string_lossy()),
                u8::try_from(128 + signal.as_raw()).unwrap_or(u8::MAX),
            )),
            None => {
                let run = Run::prepare(&args.command, &args.choice, opened, &places)?;
                run.wait(&mut signals).await
            }
        }
    };
    let status = run.await;
    spawn_blocking(move || end(&client, &activation)).await?;
    status
}

const fn asks_to_stop(signal: Signal) -> bool {
    !matches!(signal, Signal::USR1 | Signal::USR2)
}

/// A command and the files that it needs.
struct Run {
    command: Command,
    files: Option<PrivateDirectory>,
}

impl Run {
    fn prepare(words: &[OsString], choice: &ChoiceArgs, opened: Opened, places: &[PathBuf]) -> Result<Self, Failure> {
        let chosen = choice.of(&opened.kinds(), false)?;
        let environments =
            chosen.iter().map(|(index, name)| Environment::for_command(&opened.subject(*index, name.as_ref())));
        let environments = environments.collect::<Result<Vec<_>, FormError>>()?;

        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for (name, _) in env::vars_os() {
            let known = name.to_str().unwrap_or_default();
            if DOOR_VARIABLES.contains(&known) || environments.iter().any(|environment| environment.displaces(known)) {
                command.env_remove(&name);
            }
        }
        let needs_files = environments.iter().any(|environment| !environment.files.is_empty());
        let ids = SystemIds::new();
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
        let status = child::wait(child, signals).await;
        if let Some(Err(flaw)) = self.files.map(PrivateDirectory::remove) {
            warn(&flaw.to_string());
        }
        status
    }
}
