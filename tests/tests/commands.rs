//! Commands as a user types them. Each file in `tests/cmd` is a session of a shell, and shows what the commands print. A session starts in
//! a home directory with a vault and the logins of an admin and an editor, which is a copy of one that is prepared once.
//! `ORGVAULT_UPDATE=1` writes the output into the files.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use vault_tests::binary::{self, Run};
use vault_tests::process::free_address;
use vault_tests::{Database, Desk, Vault};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cmd")
}

/// Creates the home directory, in which the vault has its default path. Returns the address in the logins.
fn prepare(vault: &mut Vault) -> (PathBuf, String) {
    let desk = Desk::of(vault, "home");
    let (admin, editor) = (vault.admin(), vault.account("Acme", "editor"));
    vault.serve();
    desk.log_in(vault, &admin, &[]).done();
    desk.log_in(vault, &editor, &["--profile", "editor"]).done();
    let address = vault.address().to_string();
    vault.stop();
    for file in ["password", "passcode"] {
        fs::remove_file(desk.home().join(file)).unwrap();
    }
    fs::remove_file(vault.data_dir().join("orgvault.url")).unwrap();
    fs::rename(vault.data_dir(), desk.home().join("orgvault-data")).unwrap();
    (desk.home().to_owned(), address)
}

/// A command, or the lines before the first one.
#[derive(Default, PartialEq)]
struct Step {
    /// The lines with the command. A line after the first one starts with `> `.
    typed: String,
    /// Its output, without empty lines at the end, and the statuses of its runs of the program.
    shown: String,
    /// Comments and empty lines before the next command.
    after: String,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps = vec![Step::default()];
    for line in text.split_inclusive('\n') {
        let step = steps.last_mut().unwrap();
        if line.starts_with("$ ") {
            steps.push(Step { typed: line.to_owned(), ..Step::default() });
        } else if line.starts_with("> ") && step.shown.is_empty() && step.after.is_empty() {
            step.typed += line;
        } else if line == "\n" || (line.starts_with("# ") && (!step.after.is_empty() || step.typed.is_empty())) {
            step.after += line;
        } else {
            step.shown += &std::mem::take(&mut step.after);
            step.shown += line;
        }
    }
    steps
}

/// Runs the commands in a copy of `home`.
fn run(mut steps: Vec<Step>, (home, address): &(PathBuf, String)) -> Vec<Step> {
    let work = tempfile::tempdir().unwrap();
    let copy = work.path().join("home");
    Run::of(Command::new("cp").arg("-a").arg(home).arg(&copy)).done();
    let [server, activation] = [(); 2].map(|()| free_address().to_string());
    for login in ["default.json", "editor.json"] {
        let file = copy.join(".local/state/orgvault/logins").join(login);
        fs::write(&file, fs::read_to_string(&file).unwrap().replace(address, &server)).unwrap();
    }
    let mut script = fs::read_to_string(directory().join("shell.sh")).unwrap();
    for step in &steps[1..] {
        let command = step.typed.lines().map(|line| &line[2..]).collect::<Vec<_>>().join("\n");
        write!(script, "{{ {command}\n}} >\"$WORK/out\" 2>\"$WORK/err\" </dev/null; show\n").unwrap();
    }
    script += "kill $(jobs -p) 2>/dev/null; wait\n";
    fs::write(work.path().join("script"), script).unwrap();
    let mut shell = binary::isolated(Command::new("bash"));
    let path = [binary::path().parent().unwrap().to_owned(), "/usr/bin".into(), "/bin".into()];
    shell.arg("--norc").arg(work.path().join("script")).current_dir(&copy).env_remove("XDG_STATE_HOME");
    shell.env("PATH", std::env::join_paths(path).unwrap()).env("HOME", &copy).env("WORK", work.path());
    shell.env("SERVER", &server).env("ACTIVATION", &activation).env("REDACTIONS", directory().join("redactions.sed"));
    let shown = Run::of(&mut shell).stdout;
    let raw = work.path().join("shown");
    let names = [(copy.to_str().unwrap(), "~"), (&server, "SERVER"), (&activation, "ACTIVATION")];
    fs::write(&raw, names.iter().fold(shown, |text, (value, name)| text.replace(value, name))).unwrap();
    let shown =
        Run::of(Command::new("sed").args(["-E", "-f"]).arg(directory().join("redactions.sed")).arg(&raw)).done();
    let mut shown = shown.stdout.split('\u{1e}');
    for step in &mut steps[1..] {
        step.shown = match shown.next().unwrap_or("the shell has exited").trim_matches('\n') {
            "" => String::new(),
            text => format!("{text}\n"),
        };
    }
    steps
}

#[test]
fn commands_print_what_their_files_show() {
    let mut vault = Vault::init(Database::Sqlite);
    let home = prepare(&mut vault);
    let files = fs::read_dir(directory()).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "console")).collect();
    files.sort_by_key(|file| fs::metadata(file).unwrap().len()); // the longest one is taken first
    let waiting = Mutex::new(files);
    let wrong = Mutex::new(String::new());
    let work = || {
        while let Some(file) = { waiting.lock().unwrap().pop() } {
            let text = fs::read_to_string(&file).unwrap();
            let found = run(steps(&text), &home);
            if std::env::var_os("ORGVAULT_UPDATE").is_some() {
                let lines: String = found.iter().flat_map(|step| [&*step.typed, &step.shown, &step.after]).collect();
                fs::write(&file, lines).unwrap();
                continue;
            }
            for (expected, found) in steps(&text).iter().zip(&found).filter(|(expected, found)| expected != found) {
                let (name, Step { typed, shown, .. }) = (file.display(), found);
                *wrong.lock().unwrap() += &format!("{name}\n{typed}{shown}\ninstead of:\n{}\n\n", expected.shown);
            }
        }
    };
    std::thread::scope(|scope| [(); 2].map(|()| scope.spawn(work)).map(|thread| thread.join().unwrap()));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong}");
}
