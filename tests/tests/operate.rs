//! The commands in `docs/operate` run as printed, as root, in the layout that the Debian package and `service.md` create: a service with
//! its own user, a directory of root for its key, and on PostgreSQL a role without rights to the schema. They run in an overlay of this
//! system, which only root can create.

use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use vault_tests::binary;
use vault_tests::skip;
use vault_tests::terminal::Terminal;

/// Pages whose commands run with the embedded database, in this order, after those that install the service.
const PAGES: [&str; 8] = [
    "activations.md",
    "root-key.md",
    "keys.md",
    "emergency.md",
    "audit.md",
    "monitoring.md",
    "integrity.md",
    "backup.md",
];
/// Pages that install the service: by hand, or from the package.
const INSTALLS: [&str; 2] = ["service.md", "install.md"];
/// Creates the layout of the Debian package.
const PACKAGE: &str = "sed '/#DEBHELPER#/d' /src/packaging/debian/postinst > postinst && sh postinst configure ''";
/// As `service.md` and `install.md` specify.
const ADMIN: &str = "orgvault() { sudo orgvault-admin \"$@\"; }";
/// Starts PostgreSQL at the host names of the pages.
const POSTGRES: &str = r#"bin=$(dirname "$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb | tail -n 1)")
install -d -m 0700 -o postgres /var/lib/pg
install -d -o postgres /var/run/postgresql
(cd / && runuser -u postgres -- "$bin/initdb" --auth trust -D /var/lib/pg > /dev/null &&
    runuser -u postgres -- "$bin/pg_ctl" -D /var/lib/pg -w -l /var/lib/pg/log -o '-c listen_addresses=127.0.0.1' start > /dev/null)
echo '127.0.0.1 db.example db1' >> /etc/hosts
printf '#!/bin/sh\necho postgres://orgvault_owner@127.0.0.1/orgvault > "$1"\n' > editor
chmod 0755 editor
export EDITOR=/root/desk/editor"#;

/// Commands that do not run here: page, prefix of the command, reason. An empty prefix is the whole page.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("accounts.md", "", "run with a login to a server: tests/cmd/remote.console"),
    ("activations.md", "orgvault serve", "serves until it is stopped: attacks_tls.rs"),
    ("activations.md", "orgvault issuer", "fetches the keys of an issuer from the internet: workloads.rs"),
    ("containers.md", "", "needs Docker: tests/container"),
    ("federation.md", "", ISSUER),
    ("import.md", "", "clients of the HTTP API: pages.rs"),
    ("install.md", "packaging/build-deb", "builds the package: tests/package"),
    ("install.md", "sudo apt install", "installs the package: tests/package"),
    ("install.md", "cargo build", "builds the program"),
    ("install.md", "cargo run", "builds the manual pages: tests/package"),
    ("install.md", "install -m 0755 target/dist", "installs that build"),
    ("install.md", "orgvault init", "serves until it is stopped: first_run.rs"),
    ("install.md", "ssh-keygen", "verifies a release: tests/archive"),
    ("install.md", "sha256sum", "verifies a release: tests/archive"),
    ("install.md", "tar", "unpacks a release: tests/archive"),
    ("kubernetes.md", "", "needs a cluster. service_files.rs validates the manifests"),
    ("tls.md", "", "needs a domain, or serves until it is stopped: attacks_tls.rs"),
];

/// Commands in the text that do not run here, and why.
const TEXT_ELSEWHERE: &[(&str, &str)] = &[
    ("orgvault account", NAME),
    ("orgvault apply -f orgvault-documents/ --dry-run", CLIENT),
    ("orgvault backup", NAME),
    ("orgvault credential list", CLIENT),
    ("orgvault credential list --expires-before", NAME),
    ("orgvault credential list --health failing", CLIENT),
    ("orgvault credential replace", NAME),
    ("orgvault enrol", "prompts: printed_lines.rs"),
    ("orgvault export", CLIENT),
    ("orgvault federation key add --file signing.pem", ISSUER),
    ("orgvault federation key promote", ISSUER),
    ("orgvault federation key promote --now", ISSUER),
    ("orgvault federation status", ISSUER),
    ("orgvault help settings", "prints help"),
    ("orgvault import", NAME),
    ("orgvault init", "runs in service.md"),
    ("orgvault login", "prompts: cli_credential.rs"),
    ("orgvault migrate --spread", "needs Citus: citus.rs"),
    ("orgvault migrate-to", NAME),
    ("orgvault quickstart", "serves until it is stopped: quickstart.rs"),
    ("orgvault restore --after-external", "runs in backup.md, on PostgreSQL"),
    ("orgvault serve", "serves until it is stopped"),
    ("orgvault serve --adopt-anchor", "serves until it is stopped: restore.rs"),
    ("orgvault serve --migrate", "serves until it is stopped: upgrade.rs"),
    ("orgvault-admin init", "runs in postgresql.md"),
];
/// The reason of a text that only names a command.
const NAME: &str = "the name of a command, without its arguments";
/// The reason of commands that need a login.
const CLIENT: &str = "a client of the HTTP API: pages.rs, tests/cmd";
/// The reason of commands on signing keys.
const ISSUER: &str = "a server with an issuer: federation.rs";

/// What each page needs before its commands, and answers to its prompts.
fn preparation(page: &str) -> (&'static str, &'static [(&'static str, &'static str)]) {
    match page {
        "activations.md" => ("useradd importer", &[("Type nightly import to continue: ", "nightly import")]),
        "emergency.md" => {
            const STOLEN: &str = "orgvault account create --org Example --email ada@example.com --role editor > /dev/null\n\
                                  orgvault integration create --org Example --name nightly --namespace 'imports/*' > /dev/null";
            (STOLEN, &[])
        }
        _ => ("", &[]),
    }
}

/// Returns commands that create the state that a printed command needs.
fn before(page: &str, command: &str) -> &'static str {
    match page {
        // The only commands on this page that need a server that is stopped, or a data directory without a vault.
        "backup.md" if command.starts_with("orgvault restore /backup") => {
            "systemctl stop orgvault; find /var/lib/orgvault -mindepth 1 -delete"
        }
        "backup.md" if command == "systemctl stop orgvault" => {
            "cp /etc/orgvault/root.key COPY-OF-THE-ROOT-KEY; cp \"$(ls /backup/orgvault/* | tail -n 1)\" COPY-OF-THE-BACKUP"
        }
        "troubleshooting.md" if command == "orgvault migrate" => "systemctl stop orgvault",
        _ => "",
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operate").canonicalize().unwrap()
}

/// Returns the commands in the `sh` and `console` blocks of a page.
fn commands(page: &str) -> Vec<String> {
    let text = fs::read_to_string(docs().join(page)).unwrap();
    let text = text.split("\n## Recipes\n").next().unwrap(); // root_key_recipes.rs
    let (mut commands, mut block, mut command, mut document) = (Vec::new(), false, String::new(), None::<String>);
    for line in text.lines() {
        let indented = line.trim_start();
        if let Some(language) = indented.strip_prefix("```") {
            block = !block && (language == "sh" || language.starts_with("console"));
            assert_eq!(command, "", "{page}: the command does not end in its block");
            continue;
        }
        if !block || (indented.is_empty() && command.is_empty()) || indented.starts_with("# ") {
            continue;
        }
        let line = indented.strip_prefix("$ ").or_else(|| indented.strip_prefix("> ")).unwrap_or(indented);
        command.push_str(line);
        command.push('\n');
        match &document {
            Some(end) if line == end => document = None,
            Some(_) => continue,
            None => {
                let end = line.split_once("<<").map(|(_, end)| end.trim().trim_matches('\'').to_owned());
                document = end;
            }
        }
        let is_open = command.matches('(').count() > command.matches(')').count();
        let code = line.split(" #").next().unwrap().trim_end();
        let continues = ["\\", "|", "||", "&&"].iter().any(|end| code.ends_with(end));
        if document.is_none() && !is_open && !continues {
            commands.push(std::mem::take(&mut command).trim_end().to_owned());
        }
    }
    commands
}

/// Returns the complete commands in the text of a page: those without a placeholder.
fn commands_in_text(page: &str) -> Vec<String> {
    let text = fs::read_to_string(docs().join(page)).unwrap();
    let (mut found, mut block) = (Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            block = !block;
        } else if !block {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    let is_placeholder = |word: &str| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase());
    found.retain(|command| {
        (command.starts_with("orgvault ") || command.starts_with("orgvault-admin "))
            && !command.contains(['…', '$', '|'])
            && !command.split([' ', ':', '=']).any(is_placeholder)
    });
    found
}

/// Returns whether a command of a page about both databases is for PostgreSQL.
fn is_for_postgres(page: &str, command: &str) -> bool {
    page == "backup.md" && ["_URL\"", "--after-external"].iter().any(|part| command.contains(part))
}

fn reason(page: &str, command: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    ELSEWHERE.iter().find(|(of, prefix, _)| *of == page && command.starts_with(*prefix))
}

fn pages() -> Vec<String> {
    let pages = fs::read_dir(docs()).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = pages.filter(|page| page.ends_with(".md") && page != "commands.md").collect();
    pages.sort();
    pages
}

/// A command without an entry in these tables must run in a test below, and an entry for no command is removed.
#[test]
fn every_printed_command_runs_or_has_a_reason() {
    let (mut used, mut text) = (BTreeSet::new(), BTreeSet::new());
    for page in pages() {
        for command in commands(&page) {
            let known = reason(&page, &command);
            let runs = [&PAGES[..], &INSTALLS, &["postgresql.md"]].concat().contains(&&*page);
            assert!(known.is_some() || runs, "{page}: no test runs {command:?}");
            used.extend(known.map(|(page, prefix, _)| (*page, *prefix)));
        }
        text.extend(commands_in_text(&page));
    }
    let all: BTreeSet<_> = ELSEWHERE.iter().map(|(page, prefix, _)| (*page, *prefix)).collect();
    assert_eq!(used, all);
    for (command, _) in TEXT_ELSEWHERE {
        assert!(text.contains(*command), "no page contains {command}");
    }
}

/// Returns the commands of a page that run here: those for the embedded database or both, and those for PostgreSQL.
fn split(page: &str) -> (Vec<String>, Vec<String>) {
    let run = commands(page).into_iter().filter(|command| reason(page, command).is_none());
    run.partition(|command| !is_for_postgres(page, command))
}

/// A host on which the commands of a script run.
struct Host {
    script: String,
    answers: Vec<(String, String)>,
}

impl Host {
    fn new() -> Self {
        Self { script: "#!/bin/bash\nset -eu -o pipefail\nexport EDITOR=true\n".to_owned(), answers: Vec::new() }
    }

    /// Adds commands that no page prints.
    fn prepare(&mut self, commands: &str) -> &mut Self {
        self.script += commands;
        self.script.push('\n');
        self
    }

    /// Adds a command that `page` prints.
    fn print(&mut self, page: &str, command: &str) -> &mut Self {
        self.prepare(before(page, command));
        writeln!(self.script, "echo {}", shlex(&format!("== {page}: {command}"))).unwrap();
        self.prepare(command)
    }

    fn page(&mut self, page: &str) -> &mut Self {
        let (commands_before, answers) = preparation(page);
        self.prepare(commands_before);
        self.answers.extend(answers.iter().map(|(prompt, answer)| ((*prompt).to_owned(), (*answer).to_owned())));
        let (embedded, _) = split(page);
        for command in &embedded {
            self.print(page, command);
        }
        self
    }

    /// Runs the script.
    fn run(&mut self) {
        if !geteuid().is_root() {
            skip!("only root can create users and mount an overlay");
        }
        self.prepare("systemctl stop orgvault\necho All commands ran");
        let directory = tempfile::tempdir().unwrap();
        let (script, root) = (directory.path().join("script"), directory.path().join("host"));
        fs::write(&script, &self.script).unwrap();
        fs::create_dir(&root).unwrap();
        let source = docs().join("../..").canonicalize().unwrap();
        let mut unshare = binary::isolated(Command::new("unshare"));
        unshare.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "bash"]);
        unshare.arg(source.join("tests/tests/operate_host.sh"));
        unshare.arg(&root).arg(binary::path()).arg(&source).arg(&script);
        let mut terminal = Terminal::start(unshare, 400);
        for (prompt, answer) in &self.answers {
            terminal.wait_for(prompt);
            terminal.type_line(answer);
        }
        let (status, shown) = terminal.end();
        let last: Vec<&str> = shown.lines().rev().take(40).collect();
        let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
        assert!(status == Some(0) && shown.contains("All commands ran"), "{status:?}: {last}");
    }
}

/// Quotes a text for the shell.
fn shlex(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Adds the commands in the text of all pages.
fn with_text(host: &mut Host) {
    host.prepare("orgvault org create Acme");
    let mut seen: BTreeSet<String> = TEXT_ELSEWHERE.iter().map(|(command, _)| (*command).to_owned()).collect();
    for page in pages() {
        for command in commands_in_text(&page) {
            if seen.insert(command.clone()) {
                host.print(&page, &command);
            }
        }
    }
}

#[test]
fn pages_run_in_the_layout_of_the_service_page() {
    let mut host = Host::new();
    host.page("service.md").prepare(ADMIN);
    for page in PAGES {
        host.page(page);
    }
    with_text(&mut host);
    host.run();
}

#[test]
fn pages_run_in_the_layout_of_the_package() {
    let mut host = Host::new();
    host.prepare(PACKAGE).prepare("systemctl start orgvault").page("install.md").prepare(ADMIN);
    for page in PAGES {
        host.page(page);
    }
    host.run();
}

/// The service's role may not change tables and keys, so the pages name the role of the owner.
#[test]
fn pages_run_on_postgresql_with_two_roles() {
    let page = fs::read_to_string(docs().join("postgresql.md")).unwrap();
    let roles = page.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    let (postgresql, _) = split("postgresql.md");
    let (grants, others) = postgresql.split_first().unwrap();
    let mut host = Host::new();
    host.prepare(POSTGRES);
    host.prepare(&format!("psql -v ON_ERROR_STOP=1 -U postgres -h 127.0.0.1 postgres <<'SQL'\n{roles}SQL"));
    host.prepare(
        "install -d /etc/orgvault\n(umask 077; echo ORGVAULT_DATABASE_URL=postgres://orgvault_owner@127.0.0.1/orgvault > /etc/orgvault/orgvault.env)",
    );
    host.prepare(PACKAGE).prepare("orgvault-admin init").print("postgresql.md", grants);
    host.prepare("sed -i 's/orgvault_owner@/orgvault@/' /etc/orgvault/orgvault.env\nsystemctl start orgvault");
    host.page("install.md").prepare(ADMIN);
    for command in others {
        host.print("postgresql.md", command);
    }
    host.page("activations.md").page("emergency.md");
    host.prepare("psql -U postgres -h 127.0.0.1 -c 'CREATE DATABASE vault OWNER orgvault_owner' postgres");
    host.prepare(
        "OWNER_URL=postgres://orgvault_owner@127.0.0.1/orgvault NEW_URL=postgres://orgvault_owner@127.0.0.1/vault",
    );
    host.prepare("systemctl stop orgvault");
    for command in split("backup.md").1 {
        host.print("backup.md", &command);
    }
    host.prepare(
        "sed -i 's|/orgvault$|/vault|' /etc/orgvault/orgvault.env\nsystemctl start orgvault\norgvault org list",
    );
    host.run();
}
