//! `orgvault activate`: activates a namespace and prints its credentials.

use super::check;
use crate::activation::args::ActivateArgs;
use crate::activation::choice::Chosen;
use crate::activation::listener::Listener;
use crate::activation::opened::Opened;
use crate::failure::Failure;
use crate::form::Form;
use crate::output::{Output, note, warn};
use crate::text::rfc3339;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use vault_core::credential::SecretText;

/// Runs `orgvault activate`.
pub fn run(args: &mut ActivateArgs, base_path: Option<&str>, output: Output) -> Result<ExitCode, Failure> {
    args.listener.complete()?;
    if args.check {
        return check::run(args, &Listener::open(&args.listener, base_path)?, output);
    }
    let to_terminal = io::stdout().is_terminal();
    let form = form(args.format, output.is_json(), to_terminal)?;
    let listener = Listener::open(&args.listener, base_path)?;
    if let Some(identity) = listener.identity() {
        note(&identity);
    }
    let mut received = listener.activate_within(&args.wanted.request(), args.listener.wait())?;
    received.warn_of_clock();
    if form == Form::Json {
        received.clock_ahead = 0; // print the times of the response
    }
    let mut opened = Opened::read(received)?;
    let chosen = args.choice.narrow(&mut opened).and_then(|()| Ok(args.choice.of(&opened, form == Form::Json)?));
    // End an activation whose credentials cannot be printed.
    let pieces = chosen.and_then(|chosen| render(form, &opened, &chosen));
    let pieces = pieces.inspect_err(|_| end(&listener, &opened.activation))?;
    if to_terminal {
        warn("these secrets stay in the terminal's scrollback. Clear it afterwards");
    }
    print(form, &opened, &pieces)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the output format. Secrets stay in a terminal's scrollback, so a terminal requires an explicit `--format`.
fn form(asked: Option<Form>, json: bool, to_terminal: bool) -> Result<Form, Failure> {
    match asked {
        Some(form) if json && form != Form::Json => Err(Failure::usage("--json cannot be combined with --format")),
        None if to_terminal && !json => Err(Failure::usage(
            "refusing to print secrets to a terminal. Redirect the output, or pass --format to print them anyway",
        )),
        asked => Ok(asked.unwrap_or(Form::Json)),
    }
}

/// Returns whether the outputs of several credentials can be concatenated.
const fn supports_several(form: Form) -> bool {
    match form {
        Form::Json | Form::Env | Form::AwsIni | Form::Rclone | Form::Duckdb | Form::Hadoop => true,
        Form::AwsCredentialProcess | Form::GcpKeyFile => false,
    }
}

fn render(form: Form, opened: &Opened, chosen: &[Chosen]) -> Result<Vec<SecretText>, Failure> {
    if chosen.len() > 1 && !supports_several(form) {
        return Err(Failure::usage(format!("--format {form} prints one credential. Choose it with --id or --type")));
    }
    let rendered = chosen.iter().map(|(index, name)| {
        let subject = opened.subject(*index, name.as_ref());
        form.render(&subject).map_err(|violation| Failure::new(format!("credential {}: {violation}", subject.id)))
    });
    rendered.collect()
}

/// Prints the rendered credentials. JSON output has the same fields as the response of the HTTP API.
fn print(form: Form, opened: &Opened, pieces: &[SecretText]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let mut write = || {
        if form != Form::Json {
            // The user requested these secrets on standard output.
            pieces.iter().try_for_each(|piece| stdout.write_all(piece.expose().as_bytes()))?;
            return stdout.flush();
        }
        let text = |text: &str| serde_json::Value::from(text);
        let (id, namespace) = (text(&opened.activation), text(opened.namespace.as_str()));
        let end = text(&rfc3339(opened.expires_at));
        write!(stdout, "{{\"id\":{id},\"namespace\":{namespace},\"expires_at\":{end},\"credentials\":[")?;
        for (index, piece) in pieces.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(stdout, "{comma}{}", piece.expose().trim_end())?; // the user requested these secrets
        }
        stdout.write_all(b"]}\n")?;
        stdout.flush()
    };
    match write() {
        // The reader closed the pipe, for example `head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// Ends an activation. If the request fails, the activation expires later.
pub(super) fn end(listener: &Listener, activation: &str) {
    if let Err(failure) = listener.end(activation) {
        warn(&format!("{failure}\n  It expires automatically"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_gets_secrets_only_on_request() {
        for (asked, json, to_terminal, printed) in [
            (None, false, false, Some(Form::Json)),
            (None, false, true, None),
            (None, true, true, Some(Form::Json)),
            (Some(Form::Json), true, true, Some(Form::Json)),
            (Some(Form::Json), false, true, Some(Form::Json)),
            (Some(Form::Env), false, true, Some(Form::Env)),
            (Some(Form::Env), false, false, Some(Form::Env)),
            (Some(Form::Env), true, false, None),
        ] {
            assert_eq!(form(asked, json, to_terminal).ok(), printed, "{asked:?} {json} {to_terminal}");
        }
    }
}
