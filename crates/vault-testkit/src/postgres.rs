//! Temporary PostgreSQL server for a test, which leaves nothing behind.
//!
//! The server listens on a Unix socket in a private directory and on no network. A shell next to it waits on a pipe
//! from this process: however this process ends, the shell stops the server and removes its directory.
//!
//! With workers it is a PostgreSQL distributed over several servers by the extension Citus. All servers are in the same
//! directory and end together.

mod install;

use self::install::Installation;
use crate::clock::scramble;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

/// Environment variable that names a running temporary server, in the form of [`Cluster::base_url`].
pub const ENVIRONMENT: &str = "ORGVAULT_TEST_POSTGRES";
/// Environment variable that sets the number of workers of temporary servers that tests start.
pub const WORKERS: &str = "ORGVAULT_TEST_CITUS_WORKERS";
/// Superuser of temporary servers.
const USER: &str = "postgres";
const SCHEME: &str = "postgres://postgres@";
/// Port, which names the socket in its directory.
const PORT: u16 = 5432;
/// Settings of a server with workers: few shards, because each test database creates its own shards and a deadlock
/// detector runs in each of them.
const SPREAD: &str = "shared_preload_libraries='citus,pg_stat_statements'\nmax_prepared_transactions=400\n\
     wal_level=logical\nmax_wal_senders=20\nmax_replication_slots=20\nmax_worker_processes=400\nmax_locks_per_transaction=256\ncitus.shard_count=4\n\
     citus.stat_statements_track='all'\n";

/// Settings of a temporary server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether commits are flushed to disk. Without it commits are faster and survive a crash of the server, but not of
    /// the machine.
    pub fsync: bool,
    /// Maximum number of connections.
    pub max_connections: u16,
    /// Additional settings as `name=value`.
    pub settings: Vec<String>,
    /// Number of additional servers that store distributed tables, with the extension Citus, which must be installed.
    pub workers: usize,
    /// Empty directory for the data, for instance on a separate disk; by default the data is next to the socket. The
    /// caller removes it.
    pub data: Option<PathBuf>,
    /// Additional arguments of `initdb`.
    pub initdb: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { fsync: true, max_connections: 200, settings: Vec::new(), workers: 0, data: None, initdb: Vec::new() }
    }
}

/// Temporary PostgreSQL server. If this process started it, dropping the value stops and removes it.
#[derive(Debug)]
pub struct Cluster {
    installation: Installation,
    /// Directory of the socket.
    directory: PathBuf,
    /// Process that stops the server when this process ends; `None` if the server was started elsewhere.
    janitor: Option<Child>,
}

impl Cluster {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// PostgreSQL is not installed or does not start. The message explains how to fix it.
    pub fn start(options: Options) -> Self {
        let installation = Installation::find();
        let directory = make_directory(&installation);
        // First, so that a later failure leaves nothing behind.
        let janitor = Some(hire_janitor(&installation, &directory));
        let cluster = Self { installation, directory, janitor };
        let places = (1..=options.workers).map(|number| cluster.worker(number));
        for place in [cluster.directory.clone()].into_iter().chain(places) {
            if !place.exists() {
                fs::DirBuilder::new().mode(0o700).create(&place).unwrap();
                cluster.installation.give(&place);
            }
            cluster.initialize(&place, &options);
            cluster.control(&place, &["start"]);
        }
        cluster
    }

    /// Creates the files of a server.
    fn initialize(&self, place: &Path, options: &Options) {
        let data = place.join("data");
        if let Some(elsewhere) = &options.data {
            self.installation.give(elsewhere);
            symlink(elsewhere, &data).unwrap();
        }
        let initdb = self
            .installation
            .command("initdb")
            .args(["--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .args(&options.initdb)
            .args(["--username", USER, "--pgdata"])
            .arg(&data)
            .output();
        install::succeed("initdb", initdb);
        fs::write(data.join("postgresql.auto.conf"), configuration(place, options)).unwrap();
    }

    /// Returns whether the extension Citus, which distributes tables, is installed.
    pub fn can_have_workers() -> bool {
        Installation::find().has_extension("citus")
    }

    /// Returns the number of workers that tests request by [`WORKERS`].
    ///
    /// # Panics
    /// The variable is set to something other than a number.
    pub fn wanted_workers() -> usize {
        let wanted = std::env::var(WORKERS).unwrap_or_default();
        if wanted.is_empty() {
            0
        } else {
            wanted.parse().unwrap_or_else(|_| panic!("{WORKERS} must be a number, not {wanted:?}"))
        }
    }

    /// Returns the directory of a worker, counted from 1.
    fn worker(&self, number: usize) -> PathBuf {
        self.directory.join(format!("worker-{number}"))
    }

    /// Returns the directories of the workers.
    fn workers(&self) -> Vec<PathBuf> {
        (1..).map(|number| self.worker(number)).take_while(|place| place.exists()).collect()
    }

    /// Returns the server shared by this process: the one that [`ENVIRONMENT`] names, or one that is started at the
    /// first call and ends with the process.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Cluster> = LazyLock::new(|| match std::env::var(ENVIRONMENT) {
            Ok(base) => Cluster::running(&base),
            Err(_) => {
                Cluster::start(Options { fsync: false, workers: Cluster::wanted_workers(), ..Options::default() })
            }
        });
        &SHARED
    }

    /// Returns the running temporary server with this [`Cluster::base_url`]. Dropping the value does not stop it.
    ///
    /// # Panics
    /// `base` is not such a URL.
    pub fn running(base: &str) -> Self {
        let directory = base.strip_prefix(SCHEME).and_then(decode);
        let directory = directory.unwrap_or_else(|| panic!("{ENVIRONMENT} must begin with {SCHEME}%2F, not {base:?}"));
        Self { installation: Installation::find(), directory, janitor: None }
    }

    /// Returns the server's URL without a database: `postgres://postgres@%2Fpath%2Fof%2Fsocket`.
    pub fn base_url(&self) -> String {
        format!("{SCHEME}{}", encode(&self.directory))
    }

    /// Creates an empty database and returns its URL. The database is removed with the server.
    ///
    /// # Panics
    /// The server does not create the database.
    pub fn create_database(&self) -> String {
        let name = format!("test_{}_{:016x}", std::process::id(), random());
        let workers = self.workers();
        for place in [&self.directory].into_iter().chain(&workers) {
            let outcome = self.client("createdb", place).arg(&name).output();
            install::succeed("createdb", outcome);
            if !workers.is_empty() {
                self.psql(place, &name, "CREATE EXTENSION citus");
            }
        }
        if !workers.is_empty() {
            let node = |function: &str, place: &Path| format!("SELECT {function}('{}', {PORT});", place.display());
            let mut sql = node("citus_set_coordinator_host", &self.directory);
            workers.iter().for_each(|worker| sql.push_str(&node("citus_add_node", worker)));
            self.psql(&self.directory, &name, &sql);
        }
        format!("{}/{name}", self.base_url())
    }

    /// Returns the URL of a database that test processes share: the first caller of a name creates and prepares it.
    ///
    /// # Panics
    /// The server does not create the database, or `prepare` panics. The next caller creates another database.
    pub fn shared_database(&self, name: &str, prepare: impl FnOnce(&str)) -> String {
        let path = self.directory.join(format!("shared-{name}"));
        let mut file = fs::OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path).unwrap();
        file.lock().unwrap();
        let mut address = String::new();
        file.read_to_string(&mut address).unwrap();
        if address.is_empty() {
            address = self.create_database();
            prepare(&address);
            file.write_all(address.as_bytes()).unwrap();
        }
        address
    }

    /// Returns the URL of a database at a worker, counted from 1, instead of at the server in its URL.
    pub fn by_worker(&self, number: usize, database: &str) -> String {
        let name = database.rsplit('/').next().unwrap_or_default();
        format!("{SCHEME}{}/{name}", encode(&self.worker(number)))
    }

    /// Executes SQL as the superuser, in the database of a URL that [`Cluster::create_database`] returned.
    ///
    /// Returns the output of `psql`: one row per line, columns separated by `|`.
    ///
    /// # Panics
    /// The server rejects the statement.
    pub fn execute(&self, database: &str, sql: &str) -> String {
        self.psql(&self.directory, database.rsplit('/').next().unwrap_or_default(), sql)
    }

    /// Executes SQL like [`Cluster::execute`], on a worker, counted from 1.
    ///
    /// # Panics
    /// The worker rejects the statement.
    pub fn execute_on_worker(&self, number: usize, database: &str, sql: &str) -> String {
        self.psql(&self.worker(number), database.rsplit('/').next().unwrap_or_default(), sql)
    }

    fn psql(&self, place: &Path, name: &str, sql: &str) -> String {
        let arguments = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", "--dbname"];
        let outcome = self.client("psql", place).args(arguments).arg(name).arg("--command").arg(sql).output();
        install::succeed("psql", outcome).trim_end().to_owned()
    }

    /// Stops the server as a crash would: immediately, closing connections.
    ///
    /// # Panics
    /// The server was started elsewhere, or does not stop.
    pub fn crash(&self) {
        self.control(&self.directory, &["--mode=immediate", "stop"]);
    }

    /// Stops the server like [`Cluster::crash`], if it is running.
    pub fn try_crash(&self) {
        let _ = self.try_control(&self.directory, &["--mode=immediate", "stop"]);
    }

    /// Stops the server in an orderly way, aborting transactions in progress.
    ///
    /// # Panics
    /// The server was started elsewhere, or does not stop.
    pub fn stop(&self) {
        self.control(&self.directory, &["--mode=fast", "stop"]);
    }

    /// Stops a worker, counted from 1, like [`Cluster::crash`].
    ///
    /// # Panics
    /// The worker was started elsewhere, or does not stop.
    pub fn crash_worker(&self, number: usize) {
        self.control(&self.worker(number), &["--mode=immediate", "stop"]);
    }

    /// Restarts a worker and waits until it accepts connections.
    ///
    /// # Panics
    /// The worker was started elsewhere, or does not start.
    pub fn resume_worker(&self, number: usize) {
        self.control(&self.worker(number), &["start"]);
    }

    /// Restarts the server and waits until it accepts connections.
    ///
    /// # Panics
    /// The server was started elsewhere, or does not start.
    pub fn resume(&self) {
        self.control(&self.directory, &["start"]);
    }

    /// Restarts the server and waits until it accepts connections.
    ///
    /// # Errors
    /// Returns the log if the server does not start.
    pub fn try_resume(&self) -> Result<(), String> {
        self.try_control(&self.directory, &["start"]).inspect_err(|_| self.try_crash())
    }

    /// Returns the main process of each server, the parent of all its other processes: first the server that clients
    /// use, then the workers.
    ///
    /// # Panics
    /// A server is not running.
    pub fn postmasters(&self) -> Vec<u32> {
        let places = [self.directory.clone()].into_iter().chain(self.workers());
        let id = |place: PathBuf| {
            let text =
                fs::read_to_string(place.join("data/postmaster.pid")).expect("the process of a throwaway server");
            text.lines().next().and_then(|line| line.parse().ok()).expect("the number of a process")
        };
        places.map(id).collect()
    }

    /// Returns the server's log.
    ///
    /// # Panics
    /// The log cannot be read.
    pub fn log(&self) -> String {
        Self::log_at(&self.directory)
    }

    /// Returns the log of a worker, counted from 1.
    ///
    /// # Panics
    /// The log cannot be read.
    pub fn log_of_worker(&self, number: usize) -> String {
        Self::log_at(&self.worker(number))
    }

    fn log_at(place: &Path) -> String {
        let text = fs::read(place.join("log")).expect("the log of a throwaway server");
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Returns the settings of a server that archives its write-ahead log, for [`Cluster::recovered`].
    pub fn archiving() -> Options {
        // Relative to the data directory, the working directory of the server.
        let archive = "archive_command='mkdir -p ../archive && cp %p ../archive/%f'".to_owned();
        Options { settings: vec!["archive_mode=on".to_owned(), archive], ..Options::default() }
    }

    /// Creates a physical backup and returns its directory. The backup is removed with the server.
    ///
    /// # Panics
    /// The server does not create the backup.
    pub fn base_backup(&self) -> PathBuf {
        let to = self.directory.join("base");
        let mut command = self.installation.command("pg_basebackup");
        command.arg("--host").arg(&self.directory).args(["--username", USER, "--no-password", "--checkpoint=fast"]);
        install::succeed("pg_basebackup", command.arg("--pgdata").arg(&to).output());
        to
    }

    /// Marks the current position of the write-ahead log as `point`, and waits until the log up to it is archived.
    ///
    /// # Panics
    /// The server fails.
    pub fn mark(&self, database: &str, point: &str) {
        self.execute(database, &format!("SELECT pg_create_restore_point('{point}')"));
        let file = self.execute(database, "SELECT pg_walfile_name(pg_switch_wal())");
        let archived = format!("SELECT coalesce(last_archived_wal >= '{file}', false) FROM pg_stat_archiver");
        while self.execute(database, &archived) != "t" {
            std::thread::yield_now();
        }
    }

    /// Starts another server from a physical `backup` of this one, in its state at a `point` that was marked later.
    ///
    /// # Panics
    /// The server does not start.
    pub fn recovered(&self, backup: &Path, point: &str) -> Self {
        let installation = Installation::find();
        let directory = make_directory(&installation);
        let janitor = Some(hire_janitor(&installation, &directory));
        let cluster = Self { installation, directory, janitor };
        let data = cluster.directory.join("data");
        let mut copy = cluster.installation.command("sh");
        let copied = copy.args(["-c", "cp -a \"$1\" \"$2\"", "sh"]).arg(backup).arg(&data).output();
        install::succeed("cp", copied);
        let archive = self.directory.join("archive");
        let settings = vec![
            format!("restore_command='cp {}/%f %p'", archive.display()),
            format!("recovery_target_name='{point}'"),
            "recovery_target_action=promote".to_owned(),
        ];
        let options = Options { settings, ..Options::default() };
        fs::write(data.join("postgresql.auto.conf"), configuration(&cluster.directory, &options)).unwrap();
        fs::write(data.join("recovery.signal"), "").unwrap();
        cluster.resume();
        // The server accepts connections before recovery is complete.
        while cluster.execute("postgres", "SELECT pg_is_in_recovery()") != "f" {
            std::thread::yield_now();
        }
        cluster
    }

    fn control(&self, place: &Path, arguments: &[&str]) {
        self.try_control(place, arguments).unwrap_or_else(|error| panic!("{error}"));
    }

    fn try_control(&self, place: &Path, arguments: &[&str]) -> Result<(), String> {
        assert!(self.janitor.is_some(), "a server that was started elsewhere is not ours to start or stop");
        let log = place.join("log");
        // No pipes: the server would keep them open, and this call would wait until the server ends.
        let message = place.join("pg_ctl");
        let output = fs::File::create(&message).unwrap();
        let status = self
            .installation
            .command("pg_ctl")
            .args(["--silent", "--wait", "--timeout=60", "--pgdata"])
            .arg(place.join("data"))
            .arg("--log")
            .arg(&log)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(output)
            .status();
        if status.as_ref().is_ok_and(std::process::ExitStatus::success) {
            return Ok(());
        }
        let [log, message] = [log, message].map(|file| fs::read_to_string(file).unwrap_or_default());
        Err(format!("The server's log:\n{log}\npg_ctl {arguments:?} failed ({status:?}): {message}"))
    }

    fn client(&self, program: &str, place: &Path) -> Command {
        let mut command = self.installation.client(program);
        command.arg("--host").arg(place).args(["--username", USER, "--no-password"]);
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut janitor) = self.janitor.take() {
            drop(janitor.stdin.take());
            // A failure here cannot be handled.
            let _ = janitor.wait();
        }
    }
}

/// Creates a directory that only the server's user may enter, with a path short enough for a socket.
fn make_directory(installation: &Installation) -> PathBuf {
    let name = format!("orgvault-postgres-{}-{:08x}", std::process::id(), random() >> 32);
    let directory = std::env::temp_dir().join(name);
    assert!(
        directory.as_os_str().len() < 80,
        "the socket's path would be too long: set TMPDIR to a shorter path than {}",
        directory.display()
    );
    fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    installation.give(&directory);
    directory
}

/// Returns the configuration. The server reads it after `postgresql.conf`, so these values take precedence.
fn configuration(directory: &Path, options: &Options) -> String {
    let Options { fsync, max_connections, settings, workers, .. } = options;
    let on = |flag: &bool| if *flag { "on" } else { "off" };
    let directory = directory.display();
    let mut text = format!(
        "listen_addresses=''\nunix_socket_directories='{directory}'\nunix_socket_permissions=0700\n\
         max_connections={max_connections}\nfsync={fsync}\nfull_page_writes={fsync}\nsynchronous_commit=on\n\
         shared_buffers=32MB\nlogging_collector=off\ntimezone='UTC'\n",
        fsync = on(fsync),
    );
    if *workers > 0 {
        text.push_str(SPREAD);
        text.push_str(&format!("citus.local_hostname='{directory}'\n"));
    }
    for setting in settings {
        text.push_str(setting);
        text.push('\n');
    }
    text
}

/// Starts a shell that ends when its input closes, and then stops the server and removes its directory.
fn hire_janitor(installation: &Installation, directory: &Path) -> Child {
    const SCRIPT: &str = "cat >/dev/null; for data in \"$2\"/data \"$2\"/worker-*/data; do \
        \"$1\" --silent --mode=immediate --pgdata \"$data\" stop; done; rm -rf \"$2\"";
    installation
        .command("sh")
        .args(["-c", SCRIPT, "sh"])
        .arg(installation.path("pg_ctl"))
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // In a separate process group, because an interrupt from the terminal must not reach it.
        .process_group(0)
        .spawn()
        .unwrap()
}

fn random() -> u64 {
    scramble(RandomState::new().hash_one(std::process::id()))
}

/// Returns a path as the host of a URL: everything but letters and digits is percent-encoded.
fn encode(path: &Path) -> String {
    path.as_os_str()
        .as_encoded_bytes()
        .iter()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(*byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// Returns the absolute path that [`encode`] encoded.
fn decode(host: &str) -> Option<PathBuf> {
    let mut pieces = host.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    let path = PathBuf::from(String::from_utf8(bytes).ok()?);
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_path_round_trips_as_host() {
        for text in ["/tmp/orgvault-postgres-1", "/tmp/a b/%2F/ü", "/"] {
            assert_eq!(decode(&encode(Path::new(text))), Some(PathBuf::from(text)));
        }
        for text in ["", "localhost", "%2", "%zz", "tmp", "%2Ftmp%"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
