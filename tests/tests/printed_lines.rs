//! Command lines that commands print for pasting, run exactly as printed.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use vault_tests::binary::Run;
use vault_tests::passcode::{Authenticator, current_step};
use vault_tests::samples::small;
use vault_tests::{Account, Database, Door, Vault};

/// A password with characters that are special in shells, `printf` or JSON.
const PASSWORD: &str = r#"a "quoted" \n back\slash %s $HOME `id` 'x'"#;

/// Returns the paragraph of `text` that starts with `start`.
fn block<'a>(text: &'a str, start: &str) -> &'a str {
    let block = &text[text.find(start).unwrap_or_else(|| panic!("no {start:?} in {text}"))..];
    block.split("\n\n").next().unwrap()
}

#[test]
fn an_invitation_is_taken_up_with_the_printed_lines() {
    let vault = Vault::start(Database::Sqlite);
    vault.organization("Acme");
    let public = format!("--public-url=http://{}", vault.address());
    let invite = ["account", "invite", "--org", "Acme", "--role", "viewer", &public, "--email", "c@example.com"];
    let text = vault.run(&invite).done().stdout;
    let code = text.lines().find_map(|line| line.trim().strip_prefix("enrolment code")).unwrap().trim();
    let script = block(&text, "(\n");
    assert!(!script.contains(code), "what is pasted stays in a shell's history: {script}");

    let mut shell = Command::new("bash");
    shell.args(["-u", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = shell.spawn().unwrap();
    let mut typed = child.stdin.take().unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    write!(typed, "{code}\n{PASSWORD}\n{PASSWORD}\n").unwrap();
    let mut answer = String::new();
    shown.read_line(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    let authenticator = Authenticator::new(answer["totp"]["secret"].as_str().unwrap());
    writeln!(typed, "{}", authenticator.code(current_step())).unwrap();
    drop(typed);
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success() && rest.starts_with("Enrolled."), "{rest}");

    let account = json!({"id": "", "email": "c@example.com", "organization": "Acme", "role": "viewer",
        "totp": answer["totp"], "recovery_codes": answer["recovery_codes"]});
    Account::new(&account, Some(PASSWORD)).log_in(&vault.client());
}

#[test]
fn a_refused_enrolment_is_shown_and_goes_no_further() {
    let vault = Vault::start(Database::Sqlite);
    vault.organization("Acme");
    let public = format!("--public-url=http://{}", vault.address());
    let invite = ["account", "invite", "--org", "Acme", "--role", "viewer", &public, "--email", "c@example.com"];
    let text = vault.run(&invite).done().stdout;
    let script = block(&text, "(\n");
    for (typed, shown) in [
        ("not-the-code\na password\na password\n", "invalid-enrolment"),
        ("not-the-code\na password\nanother\n", "The passwords differ."),
    ] {
        let input = vault.scratch("typed");
        fs::write(&input, typed).unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-u", "-c", script]).stdin(fs::File::open(&input).unwrap());
        let run = Run::of(&mut shell);
        assert_ne!(run.status, Some(0), "{run:?}");
        assert!(run.stdout.contains(shown) && !run.stderr.contains("Passcode"), "{run:?}");
    }
}

#[test]
fn an_invitation_for_this_machine_alone_says_so() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Acme");
    let invite = |email: &str, flags: &[&str]| {
        let words = ["account", "invite", "--org", "Acme", "--role", "viewer", "--email", email];
        vault.run(&[&words[..], flags].concat()).done()
    };
    let run = invite("a@example.com", &[]);
    assert!(run.stdout.contains("http://127.0.0.1:8080/v1") && run.stderr.contains("--public-url"), "{run:?}");
    let run = invite("b@example.com", &["--public-url", "https://vault.example.com"]);
    assert!(run.stdout.contains("https://vault.example.com/v1") && !run.stderr.contains("--public-url"), "{run:?}");
}

#[test]
fn an_integration_is_set_up_with_the_printed_lines() {
    let (vault, door) = Door::open(Database::Sqlite);
    vault.admin_session().save(&small("imports/nightly", 1));
    let create =
        ["integration", "create", "--org", "Acme", "--name", "Nightly import", "--namespace", "imports/nightly"];
    let mut command = vault.command(&create);
    command.env("ORGVAULT_ACTIVATION_LISTEN", door.address.to_string());
    let text = Run::of(&mut command).done().stdout;
    let token = text.split_whitespace().find(|word| word.starts_with("ovi_")).unwrap();

    let home = vault.scratch("home");
    fs::create_dir(&home).unwrap();
    let typed = vault.scratch("typed");
    fs::write(&typed, format!("{token}\n")).unwrap();
    let save = block(&text, "(umask");
    assert!(!save.contains(token), "what is pasted stays in a shell's history: {save}");
    let mut shell = Command::new("bash");
    Run::of(shell.args(["-c", save]).current_dir(&home).stdin(fs::File::open(&typed).unwrap())).done();
    let exec = text.lines().find(|line| line.contains(" exec ")).unwrap();
    let exec = exec.strip_suffix("COMMAND").unwrap().to_owned() + "sh -c 'echo $ORGVAULT_BUCKET'";
    let run = Run::of(Command::new("sh").args(["-c", &exec]).current_dir(&home)).done();
    assert_eq!(run.stdout, "exports-1\n");
}
