//! Command lines that commands print for pasting, run exactly as printed.

use serde_json::json;
use std::fs;
use std::process::Command;
use vault_tests::binary::{self, Run};
use vault_tests::passcode::{Authenticator, current_step};
use vault_tests::samples::small;
use vault_tests::terminal::Terminal;
use vault_tests::{Account, ActivationListener, Database, Vault};

/// A password with characters that are special in shells, `printf` or JSON.
const PASSWORD: &str = r#"a "quoted" \n back\slash %s $HOME `id` 'x'"#;

/// Returns the paragraph of `text` that starts with `start`.
fn block<'a>(text: &'a str, start: &str) -> &'a str {
    let block = &text[text.find(start).unwrap_or_else(|| panic!("no {start:?} in {text}"))..];
    block.split("\n\n").next().unwrap()
}

fn enrol_at_terminal() -> Terminal {
    let mut command = binary::command();
    command.arg("enrol");
    Terminal::start(command, 120)
}

#[test]
fn owner_enrols_at_a_terminal_with_the_link() {
    let vault = Vault::start(Database::Sqlite);
    vault.organization("Acme");
    let public = format!("--public-url=http://{}", vault.address());
    let invite = ["account", "invite", "--org", "Acme", "--role", "viewer", &public, "--email", "c@example.com"];
    let text = vault.run(&invite).done().stdout;
    assert!(text.contains("`orgvault enrol`"), "{text}");
    let link = text.lines().map(str::trim).find(|line| line.starts_with("http")).unwrap().to_owned();

    let mut terminal = enrol_at_terminal();
    terminal.wait_for("Enrolment link (hidden): ");
    terminal.type_line(&link);
    for typed in [("New password: ", PASSWORD), ("again: ", "another")] {
        terminal.wait_for(typed.0);
        terminal.type_line(typed.1);
    }
    terminal.wait_for("the passwords differ");
    let weak = "password1";
    for typed in [("New password: ", weak), ("again: ", weak)] {
        terminal.wait_for(typed.0);
        terminal.type_line(typed.1);
    }
    terminal.wait_for("one of the most common");
    for typed in [("New password: ", PASSWORD), ("again: ", PASSWORD)] {
        terminal.wait_for(typed.0);
        terminal.type_line(typed.1);
    }
    terminal.wait_for("otpauth://");
    let shown = terminal.line();
    let secret = shown.split("secret=").nth(1).unwrap().split('&').next().unwrap().trim().to_owned();
    let authenticator = Authenticator::new(&secret);
    terminal.wait_for("Passcode (six digits): ");
    terminal.type_line("000000");
    terminal.wait_for("was not accepted");
    terminal.wait_for("Passcode (six digits): ");
    terminal.type_line(&authenticator.code(current_step()));
    let (status, shown) = terminal.end();
    assert_eq!(status, Some(0), "{shown}");
    assert!(shown.contains("Enrolled c@example.com") && shown.contains("orgvault login --url"), "{shown}");
    for hidden in [PASSWORD, &link] {
        assert!(!shown.contains(hidden), "{shown}");
    }

    let codes: Vec<&str> = shown.split_whitespace().filter(|word| word.split('-').count() == 4).collect();
    assert_eq!(codes.len(), 10, "{shown}");
    let account = json!({"id": "", "email": "c@example.com", "organization": "Acme", "role": "viewer",
        "totp": {"secret": secret, "uri": ""}, "recovery_codes": codes});
    Account::new(&account, Some(PASSWORD)).log_in(&vault.client());
}

#[test]
fn enrolment_without_a_terminal_or_with_a_wrong_link_is_refused() {
    Run::of(binary::command().args(["enrol", "http://127.0.0.1/#/enrol/A"])).misused().says("needs a terminal");
    let mut terminal = enrol_at_terminal();
    terminal.wait_for("Enrolment link (hidden): ");
    terminal.type_line("https://vault.example.com/");
    let (status, shown) = terminal.end();
    assert_eq!(status, Some(2), "{shown}");
    assert!(shown.contains("https://HOST/#/enrol/CODE"), "{shown}");
}

/// A link for other hosts contains the name in the certificate, or the answer to a question.
#[test]
fn invitation_names_server_for_other_hosts() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Acme");
    let created = rcgen::generate_simple_self_signed(["vault.example.com".to_owned()]).unwrap();
    let (certificate, key) = (vault.scratch("tls.pem"), vault.scratch("tls.key"));
    fs::write(&certificate, created.cert.pem()).unwrap();
    fs::write(&key, created.signing_key.serialize_pem()).unwrap();
    let invite = |email: &str, listen: &str| {
        let mut command = vault.command(&["account", "invite", "--org", "Acme", "--role", "viewer", "--email", email]);
        command.env("ORGVAULT_LISTEN", listen);
        command
    };
    for (email, listen, origin) in [
        ("a@example.com", "0.0.0.0:8443", "https://vault.example.com:8443"),
        ("b@example.com", "127.0.0.1:8443", "https://127.0.0.1:8443"),
    ] {
        let mut command = invite(email, listen);
        let run =
            Run::of(command.env("ORGVAULT_TLS_CERT_FILE", &certificate).env("ORGVAULT_TLS_KEY_FILE", &key)).done();
        assert!(run.stdout.contains(&format!("{origin}/#/enrol/")), "{run:?}");
    }
    let mut command = invite("c@example.com", "0.0.0.0:8443");
    command.env("ORGVAULT_TRUSTED_PROXY", "127.0.0.1/32");
    let mut terminal = Terminal::start(command, 200);
    terminal.wait_for("for other hosts (--public-url) [http://127.0.0.1:8443]");
    terminal.type_line("https://typed.example.com");
    let (status, shown) = terminal.end();
    assert!(status == Some(0) && shown.contains("https://typed.example.com/#/enrol/"), "{shown}");
    assert!(!shown.contains("only from this host"), "{shown}");
}

#[test]
fn printed_lines_set_up_integration() {
    let (vault, listener) = ActivationListener::open(Database::Sqlite);
    vault.admin_session().save(&small("imports/nightly", 1));
    let create =
        ["integration", "create", "--org", "Acme", "--name", "Nightly import", "--namespace", "imports/nightly"];
    let mut command = vault.command(&create);
    command.env("ORGVAULT_ACTIVATION_LISTEN", listener.address.to_string());
    let text = Run::of(&mut command).done().stdout;
    let token = text.split_whitespace().find(|word| word.starts_with("ovi_")).unwrap();

    let home = vault.scratch("home");
    fs::create_dir(&home).unwrap();
    let typed = vault.scratch("typed");
    fs::write(&typed, format!("{token}\n")).unwrap();
    let save = block(&text, "(umask");
    assert!(!save.contains(token), "pasted text stays in a shell's history: {save}");
    let mut shell = Command::new("bash");
    Run::of(shell.args(["-c", save]).current_dir(&home).stdin(fs::File::open(&typed).unwrap())).done();
    let exec = text.lines().find(|line| line.contains(" exec ")).unwrap();
    let exec = exec.strip_suffix("COMMAND").unwrap().to_owned() + "sh -c 'echo $ORGVAULT_BUCKET'";
    let run = Run::of(Command::new("sh").args(["-c", &exec]).current_dir(&home)).done();
    assert_eq!(run.stdout, "exports-1\n");
}
