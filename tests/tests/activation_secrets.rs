//! Only the client of an activation gets its secrets. They do not appear in logs at any level, metrics, rows, error
//! messages, arguments, environments or files, however a command ends.

use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use vault_tests::binary;
use vault_tests::canary::Canaries;
use vault_tests::samples::every_type;
use vault_tests::sql::Sql;
use vault_tests::{ActivationListener, Database, Integration, Vault};

/// Creates a namespace with one credential of every type, their secrets, and an integration for them.
fn set(flags: &[&str]) -> (Vault, ActivationListener, Integration, Canaries) {
    let flags = [&["--log-level=debug", "--activation-rate=0"], flags].concat();
    let (vault, listener) = ActivationListener::open_with(Database::Postgres, &flags);
    let session = vault.admin_session();
    let mut canaries = Canaries::new();
    for mut sample in every_type() {
        sample.request["namespace"] = json!("imports");
        session.save(&sample.request);
        for secret in &sample.secrets {
            canaries.add(secret, secret);
        }
    }
    let integration = Integration::make(&vault, "import", &["imports"]);
    canaries.add("the token", &integration.token);
    canaries.add("the session", &session.token);
    (vault, listener, integration, canaries)
}

#[track_caller]
fn assert_none_in(canaries: &Canaries, place: &str, text: impl AsRef<[u8]>) {
    let found = canaries.find(text.as_ref());
    assert!(found.is_empty(), "{place} contains {found:?}");
}

#[test]
fn activation_writes_no_secret() {
    let (vault, listener, integration, canaries) = set(&[]);
    let client = listener.client();
    let mut responses = Vec::new();
    integration.activate(&client, "imports").expect(201);
    responses.push(integration.check(&client, "imports", &["list", "read", "write"]).expect(200));
    let asks = [
        json!({"namespace": "imports", "vend": "short"}),
        json!({"namespace": "elsewhere"}),
        json!({"namespace": "imports", "purpose": integration.token, "ttl": 1}),
        json!({"namespace": integration.token, "access_token": integration.token}),
    ];
    responses.extend(asks.map(|ask| integration.activate_with(&client, &ask)));
    let other = client.request("POST", "/v1/activations").bearer(&format!("{}0", integration.token));
    responses.push(other.json(&json!({"namespace": "imports"})).send());
    for answer in &responses {
        assert_none_in(&canaries, "an answer", &answer.body);
    }
    vault.run(&["namespace", "freeze", "imports", "--org", "Acme"]).done();
    assert_none_in(&canaries, "a refusal", integration.activate(&client, "imports").problem("frozen").body);
    let run = integration.run(listener, &["exec", "--namespace", "imports", "--", "true"]).not_run();
    assert_none_in(&canaries, "a command's refusal", run.stderr);

    let log = vault.log();
    assert!(log.contains("/activations"), "the log contains the activations");
    assert_none_in(&canaries, "the log", log);
    assert_none_in(&canaries, "the metrics", vault.server().admin_client().get("/metrics").send().body);
    let rows = Sql::of(&vault).everything();
    assert!(rows.iter().any(|row| row[0] == "activations"));
    rows.iter().for_each(|row| assert_none_in(&canaries, &row[0], row[1].as_bytes()));
    let process = PathBuf::from(format!("/proc/{}", vault.server().id()));
    for place in ["environ", "cmdline"] {
        assert_none_in(&canaries, place, fs::read(process.join(place)).unwrap());
    }
    let limits = fs::read_to_string(process.join("limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
}

/// A run of `orgvault exec` whose command has printed the path of its file and waits.
struct Job {
    child: Child,
    output: BufReader<ChildStdout>,
    command: u32,
    file: PathBuf,
}

impl Job {
    /// Starts the run. The shell runs `before` first.
    fn start(integration: &Integration, listener: ActivationListener, places: &Path, before: &str) -> Self {
        let script =
            format!(r#"{before}printf '%s %s\n' $$ "$GOOGLE_APPLICATION_CREDENTIALS"; exec tail -f /dev/null"#);
        let arguments = ["exec", "--namespace", "imports", "--type", "gcs", "--", "sh", "-c", &script];
        let mut command = integration.command(listener, &arguments);
        command.env("XDG_RUNTIME_DIR", places).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let (number, file) = line.trim_end().split_once(' ').unwrap();
        let (command, file) = (number.parse().unwrap(), PathBuf::from(file));
        assert!(file.starts_with(places) && file.is_file(), "{}", file.display());
        Self { child, output, command, file }
    }

    fn signal(number: u32, signal: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {number}")]).status().unwrap();
        assert!(sent.success());
    }

    fn end(&mut self) -> Option<i32> {
        binary::wait(&mut self.child, std::time::Duration::from_secs(60)).expect("it ends").code()
    }

    /// Waits until all writers of the command's output are closed: it has exited, regardless of its parent.
    fn command_has_ended(&mut self) {
        std::io::copy(&mut self.output, &mut std::io::sink()).unwrap();
        // Its descriptors are closed shortly before it becomes a zombie or disappears.
        let status = format!("/proc/{}/status", self.command);
        while fs::read_to_string(&status).is_ok_and(|status| !status.contains("\nState:\tZ")) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn no_secret_remains_after_command_ends() {
    let (vault, listener, integration, canaries) = set(&[]);
    let places = vault.scratch("places");
    fs::create_dir(&places).unwrap();
    fs::set_permissions(&places, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let left = || fs::read_dir(&places).unwrap().count();
    let client = listener.client();

    for (to_command, signal, status) in
        [(true, "KILL", 137), (true, "TERM", 143), (false, "TERM", 143), (false, "INT", 130)]
    {
        let mut job = Job::start(&integration, listener, &places, "");
        for place in ["environ", "cmdline"] {
            let of_ours = fs::read(format!("/proc/{}/{place}", job.child.id())).unwrap();
            assert_none_in(&canaries, place, of_ours);
        }
        let mut token = Canaries::new();
        token.add("the token", &integration.token);
        // Temporarily empty, while the shell executes the next program.
        let environment = || fs::read(format!("/proc/{}/environ", job.command)).unwrap();
        let environment = std::iter::repeat_with(environment).find(|environment| !environment.is_empty()).unwrap();
        assert_none_in(&token, "the command's environment", &environment);
        assert!(!canaries.find(&environment).is_empty(), "it has what it was activated for");
        Job::signal(if to_command { job.command } else { job.child.id() }, signal);
        assert_eq!(job.end(), Some(status), "{signal}");
        assert_eq!((left(), integration.live(&client).len()), (0, 0), "{signal}");
    }

    // If `exec` is killed, the command is stopped. If it continues, it keeps its file, and a run after its exit removes
    // it.
    let mut job = Job::start(&integration, listener, &places, "");
    Job::signal(job.child.id(), "KILL");
    assert_eq!(job.end(), None);
    job.command_has_ended();
    let mut job = Job::start(&integration, listener, &places, "trap '' TERM; ");
    Job::signal(job.child.id(), "KILL");
    assert_eq!(job.end(), None);
    let next = || {
        let mut next = integration.command(listener, &["exec", "--namespace", "imports", "--type", "s3", "--", "true"]);
        binary::Run::of(next.env("XDG_RUNTIME_DIR", &places)).done();
    };
    next();
    assert!(job.file.is_file(), "it is still needed");
    Job::signal(job.command, "KILL");
    job.command_has_ended();
    next();
    assert_eq!(left(), 0);
}
