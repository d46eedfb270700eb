//! The getting-started pages work: each command is typed into a terminal as the page shows it.
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use vault_testkit::stores::find_tool;
use vault_tests::binary;
use vault_tests::skip;
use vault_tests::terminal::Terminal;
use vault_tests::{Database, Vault};

/// Arguments for separate network and process namespaces, because pages use fixed ports and leave servers running.
const APART: &[&str] = &["--net", "--pid", "--fork", "--mount-proc", "--kill-child"];
/// Default ports of the servers on the pages.
const PORTS: [(&str, u16); 2] = [("quickstart", 8080), ("moto_server", 5000)];

/// The prompt after an `orgvault exec` that could not start its command.
const EXEC_FAILS: &str = "<125>";

/// A command of a page.
struct Step {
    /// Set if the page runs it in a separate terminal.
    is_server: bool,
    command: String,
    /// Lines of its output, in order and possibly with others in between. An ellipsis stands for any text.
    expected: Vec<String>,
}

/// Returns the commands in the `sh run` and `sh server` blocks of a page. A `text` block directly after one contains lines
/// of its output. Other blocks install software, or are for another host.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut block, mut ran) = (None, false);
    for line in page.lines().map(str::trim_start) {
        match (block, line.strip_prefix("```")) {
            (Some(language), Some(_)) => (block, ran) = (None, matches!(language, "sh run" | "sh server")),
            (None, Some(language)) => block = Some(language),
            (Some("text"), None) if ran => steps.last_mut().unwrap().expected.push(line.to_owned()),
            (Some(language @ ("sh run" | "sh server")), None) => match steps.last_mut() {
                Some(step) if !is_complete(&step.command) => step.command.extend(["\n", line]),
                _ => steps.push(Step {
                    is_server: language == "sh server",
                    command: line.to_owned(),
                    expected: Vec::new(),
                }),
            },
            (None, None) => ran &= line.is_empty(),
            _ => {}
        }
    }
    steps
}

/// Returns whether a command needs no further line: it neither ends in an operator nor has an open here-document.
fn is_complete(command: &str) -> bool {
    let end = command.split_once("<<'").and_then(|(_, rest)| rest.split('\'').next());
    let document_is_closed = end.is_none_or(|end| command.lines().skip(1).any(|line| line == end));
    document_is_closed && !['\\', '|', '&'].into_iter().any(|operator| command.ends_with(operator))
}

/// Returns the commands of the README.
fn readme_steps(root: &Path) -> Vec<Step> {
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let steps = steps(&readme);
    assert_eq!(steps.len(), 4, "the commands of the README");
    steps
}

/// Creates a substitute for a built clone in `home`: the script that checks build tools, a `cargo` whose `run` starts
/// the program under test, and the program at the path of the release build.
fn clone(home: &Path, root: &Path) {
    symlink(root.join("packaging"), home.join("packaging")).unwrap();
    let release = home.join("target/release");
    fs::create_dir_all(&release).unwrap();
    symlink(binary::path(), release.join("orgvault")).unwrap();
    fs::create_dir(home.join("bin")).unwrap();
    let cargo = home.join("bin/cargo");
    let script = format!(
        "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --release --' ] || exit 1\nshift 3\nexec '{}' \"$@\"\n",
        release.join("orgvault").display()
    );
    fs::write(&cargo, script).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Types the commands of the README and then of pages of `docs/` in a new directory.
fn follow(pages: &[&str], commands: usize) {
    if !Command::new("unshare").args(APART).arg("true").status().is_ok_and(|status| status.success()) {
        skip!("this machine allows root no network namespace");
    }
    let vault = Vault::absent(Database::Sqlite);
    let home = vault.scratch("home");
    fs::create_dir(&home).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    clone(&home, &root);
    let mut shell = binary::isolated(Command::new("unshare"));
    shell.args(APART).args(["bash", "--norc", "--noprofile", "--noediting", "-i"]).current_dir(&home);
    let tools = [find_tool("moto_server"), find_tool("aws")].map(|program| program.parent().unwrap().to_owned());
    let path = std::env::var_os("PATH").unwrap();
    let path = [home.join("bin")].into_iter().chain(tools).chain(std::env::split_paths(&path));
    shell.env("PATH", std::env::join_paths(path).unwrap()).env("HOME", &home).env_remove("XDG_STATE_HOME");
    shell.env("PS1", "<$?>").env("PS2", "").env("TERM", "dumb");
    let mut terminal = Terminal::start(shell, 400);
    terminal.wait_for("<0>");
    for prepare in ["stty -echo", "ip link set lo up"] {
        terminal.type_line(prepare);
        terminal.wait_for("<0>");
    }
    let read = |page: &&str| steps(&fs::read_to_string(root.join("docs").join(page)).unwrap());
    let steps: Vec<Step> = readme_steps(&root).into_iter().chain(pages.iter().flat_map(read)).collect();
    assert_eq!(steps.len(), commands, "the commands of the pages");
    for step in steps {
        if step.is_server {
            let (_, port) = PORTS.into_iter().find(|(name, _)| step.command.contains(name)).unwrap();
            terminal.type_line(&format!("({}) > {port}.txt 2>&1 &", step.command));
            terminal.wait_for("<0>");
            terminal.type_line(&format!("until (: > /dev/tcp/127.0.0.1/{port}) 2> {port}.wait; do sleep 0.1; done"));
            terminal.wait_for("<0>");
            continue;
        }
        terminal.type_line(&step.command);
        for part in step.expected.iter().flat_map(|line| line.split('…')).map(str::trim) {
            terminal.wait_for(part);
        }
        let fails = step.expected.iter().any(|line| line.starts_with("orgvault: "));
        terminal.wait_for(if fails { EXEC_FAILS } else { "<0>" });
    }
}

/// A new user's path from the README to a job that reads a file: one vault, and at most eight commands of the program.
#[test]
fn readme_to_first_job_runs_as_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = steps(&fs::read_to_string(root.join("start.md")).unwrap());
    let typed = page.iter().filter(|step| step.command.starts_with("orgvault ")).count();
    assert!(typed < 8, "{typed} commands after `quickstart`");
    follow(&["start.md", "jobs/run.md", "jobs/tools.md"], 21);
}

/// An admin's tasks with the vault of the first page.
#[test]
fn imports_and_documents_run_as_printed() {
    follow(&["start.md", "operate/import.md", "operate/documents.md"], 25);
}

/// Receivers of an organization and of the instance, with the vault of the first page.
#[test]
fn receivers_page_runs_as_printed() {
    follow(&["start.md", "RECEIVERS.md"], 20);
}
