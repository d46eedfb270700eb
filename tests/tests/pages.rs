//! The pages for newcomers do what they print: each command is typed into a terminal as the page shows it.
#![allow(clippy::print_stderr, reason = "a test says what it skips")]
use std::fs;
use std::path::Path;
use std::process::Command;
use vault_testkit::stores::find_tool;
use vault_tests::binary;
use vault_tests::terminal::Terminal;
use vault_tests::{Database, Vault};

/// A network and processes of one's own, since pages name ports and servers go on.
const APART: &[&str] = &["--net", "--pid", "--fork", "--mount-proc", "--kill-child"];
/// Where the servers of the pages listen unless told otherwise.
const PORTS: [(&str, u16); 2] = [("quickstart", 8080), ("moto_server", 5000)];

/// The prompt after an `orgvault exec` that could not start its command.
const EXEC_FAILS: &str = "<125>";

/// A command of a page.
struct Step {
    /// Whether the page has it go on in a terminal of its own.
    is_server: bool,
    command: String,
    /// Lines that it says, in this order, beside others.
    says: Vec<String>,
}

/// The commands in the blocks of a page that are marked `console`. Those marked `sh` install things.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block = None;
    for line in page.lines().map(str::trim_start) {
        match (block, line) {
            (None, "```console") => block = Some(false),
            (None, "```console server") => block = Some(true),
            (Some(_), "```") => block = None,
            (Some(is_server), _) => match line.split_at_checked(2) {
                Some(("$ ", command)) => steps.push(Step { is_server, command: command.to_owned(), says: Vec::new() }),
                Some(("> ", more)) => {
                    let command = &mut steps.last_mut().unwrap().command;
                    command.push('\n');
                    command.push_str(more);
                }
                _ => steps.last_mut().unwrap().says.push(line.to_owned()),
            },
            (None, _) => {}
        }
    }
    steps
}

/// Types the commands of pages of `docs/`, one after the other, in a new directory.
fn follow(pages: &[&str], commands: usize) {
    if !Command::new("unshare").args(APART).arg("true").status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this machine allows no network of one's own");
        return;
    }
    let vault = Vault::absent(Database::Sqlite);
    let home = vault.scratch("home");
    fs::create_dir(&home).unwrap();
    let mut shell = binary::isolated(Command::new("unshare"));
    shell.args(APART).args(["bash", "--norc", "--noprofile", "--noediting", "-i"]).current_dir(&home);
    let directories = [binary::path(), find_tool("moto_server"), find_tool("aws")];
    let directories = directories.iter().map(|program| program.parent().unwrap().to_owned());
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(directories.chain(std::env::split_paths(&path))).unwrap();
    shell.env("PATH", path).env("HOME", &home).env("PS1", "<$?>").env("PS2", "").env("TERM", "dumb");
    let mut terminal = Terminal::start(shell, 400);
    terminal.wait_for("<0>");
    for prepare in ["stty -echo", "ip link set lo up"] {
        terminal.type_line(prepare);
        terminal.wait_for("<0>");
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let steps = pages.iter().flat_map(|page| steps(&fs::read_to_string(docs.join(page)).unwrap())).collect::<Vec<_>>();
    assert_eq!(steps.len(), commands, "the commands of the pages");
    for step in steps {
        if step.is_server {
            let (_, port) = PORTS.into_iter().find(|(name, _)| step.command.contains(name)).unwrap();
            terminal.type_line(&format!("{} > {port}.txt 2>&1 &", step.command));
            terminal.wait_for("<0>");
            terminal.type_line(&format!("until (: > /dev/tcp/127.0.0.1/{port}) 2> {port}.wait; do sleep 0.1; done"));
            terminal.wait_for("<0>");
            continue;
        }
        terminal.type_line(&step.command);
        for line in &step.says {
            terminal.wait_for(line);
            match line.split([' ', ':']).next().unwrap() {
                "Password" => terminal.type_line(&password(&home)),
                "Passcode" => terminal.type_line(&passcode(&home)),
                _ => {}
            }
        }
        let fails = step.says.iter().any(|line| line.starts_with("orgvault: "));
        terminal.wait_for(if fails { EXEC_FAILS } else { "<0>" });
    }
}

/// What `quickstart` printed.
fn password(home: &Path) -> String {
    let printed = fs::read_to_string(home.join("8080.txt")).unwrap();
    let line = printed.lines().find_map(|line| line.trim().strip_prefix("password "));
    line.unwrap_or_else(|| panic!("{printed}")).trim().to_owned()
}

fn passcode(home: &Path) -> String {
    let mut command = binary::command();
    command.args(["account", "passcode", "--email", "admin@example.com"]).current_dir(home);
    binary::Run::of(&mut command).done().stdout.trim().to_owned()
}

#[test]
fn five_minutes_are_as_printed() {
    follow(&["start.md"], 4);
}

#[test]
fn the_first_job_is_as_printed() {
    follow(&["first-job.md", "jobs/run.md", "jobs/formats.md"], 22);
}

/// What an admin does with the vault of the first page.
#[test]
fn files_of_others_and_documents_are_taken_as_printed() {
    follow(&["start.md", "operate/import.md", "operate/documents.md"], 14);
}

/// What operators do with the vault of the first pages.
#[test]
fn keys_receivers_and_an_emergency_are_as_printed() {
    follow(&["start.md", "operate/keys.md", "RECEIVERS.md", "operate/emergency.md"], 13);
}
