//! A vault with its servers and its crew, and the checks of its data.

use crate::crew::{Crew, Tally};
use crate::doorman::Doorman;
use crate::fault::Ground;
use crate::log::AckLog;
use crate::marks::{Marks, missed};
use crate::record::{Acknowledged, Cut, compare};
use crate::report::Report;
use crate::shared::{CLIENTS, Shared, Sharer};
use crate::worker::Worker;
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};
use vault_testkit::postgres::Cluster;
use vault_tests::process::{Server, free_address};
use vault_tests::{ActivationListener, Answer, Client, Database, Integration, Vault, binary};

/// Number of clients that write.
const WORKERS: usize = 4;
/// Maximum wait for any recovery.
const LIMIT: Duration = Duration::from_secs(90);
/// Time limit for the recovery of the service.
const HEALED: Duration = Duration::from_secs(5);

/// A vault that faults affect.
pub(crate) struct Rig {
    pub(crate) vault: Vault,
    /// The URL of the database for its servers, if it differs from that for commands.
    url: Option<String>,
    /// Its first server, while it runs.
    pub(crate) server: Option<Server>,
    /// The address of the first server.
    pub(crate) address: SocketAddr,
    activation_listener: ActivationListener,
    integration: Integration,
    pub(crate) crew: Crew,
    /// The token of the crew.
    token: String,
    pub(crate) log: AckLog,
    pub(crate) report: Report,
    /// The branches that its servers executed.
    pub(crate) marks: Marks,
}

impl Rig {
    /// Sets up a vault on the database and in the directory of `ground`.
    pub(crate) fn new(fault: &'static str, ground: &Ground<'_>) -> Self {
        Self::of(fault, ground, Vault::absent_in(&ground.options.shared.dir, ground.new_url()))
    }

    /// Sets up a vault on a PostgreSQL cluster that only this fault uses.
    pub(crate) fn on(fault: &'static str, ground: &Ground<'_>, cluster: &Cluster) -> Self {
        Self::of(fault, ground, Vault::absent_in(&ground.options.shared.dir, Some(cluster.create_database())))
    }

    /// Sets up `vault` and starts its server.
    pub(crate) fn of(fault: &'static str, ground: &Ground<'_>, vault: Vault) -> Self {
        Self::served(fault, ground, vault.set_up(), None)
    }

    /// Sets up a vault whose servers use the database URL `url`.
    pub(crate) fn through(fault: &'static str, ground: &Ground<'_>, vault: Vault, url: &str) -> Self {
        Self::served(fault, ground, vault, Some(url.to_owned()))
    }

    /// Starts the server of a vault that is already set up.
    pub(crate) fn served(fault: &'static str, ground: &Ground<'_>, vault: Vault, url: Option<String>) -> Self {
        let (address, activation_listener) = (free_address(), ActivationListener { address: free_address() });
        let admin = vault.admin();
        let doorman = Doorman::new(&vault);
        let integration = Integration::make(&vault, "checker", &["crew/*"]);
        let report = Report {
            fault,
            database: ground.database,
            rounds: 0,
            tally: Tally::default(),
            losses: Vec::new(),
            figures: Vec::new(),
            log: String::new(),
        };
        let log = AckLog::new(&ground.options.log_dir, fault);
        let crew = Crew { workers: Vec::new(), doorman, sharers: Vec::new(), shared: None, patience: None };
        let mut rig = Self {
            vault,
            url,
            server: None,
            address,
            activation_listener,
            integration,
            crew,
            token: String::new(),
            log,
            report,
            marks: Marks::default(),
        };
        rig.serve();
        rig.token = admin.log_in(&rig.client()).token;
        let seed = ground.options.seed;
        rig.crew.workers = (0..WORKERS).map(|number| Worker::new(seed, number, &rig.token)).collect();
        rig
    }

    /// Adds clients that share credentials. The history of each credential is checked after each round.
    pub(crate) fn share(mut self, ground: &Ground<'_>) -> Self {
        let seed = ground.options.seed;
        let integration = Integration::make(&self.vault, "sharer", &["crew/shared"]);
        self.crew.sharers = (0..CLIENTS).map(|number| Sharer::new(seed, number)).collect();
        self.crew.shared = Some(Shared::new(&self.token, integration, self.activation_listener.client()));
        let client = self.client();
        self.share_again(&client);
        self
    }

    /// Creates new shared credentials.
    fn share_again(&mut self, client: &Client) {
        if let Some(shared) = &mut self.crew.shared {
            shared.begin(client, &mut self.report.losses);
            self.crew.sharers.iter_mut().for_each(Sharer::begin);
        }
    }

    /// Returns the command that starts the server, through `program` if it is given.
    pub(crate) fn serve_command(&self, program: Option<Command>) -> Command {
        let command = program.map_or_else(binary::command, |mut program| {
            program.arg(binary::path());
            binary::isolated(program)
        });
        let mut command = match &self.url {
            Some(url) => {
                let mut command = command;
                command.arg("serve").arg("--data-dir").arg(self.vault.data_dir()).args(["--database-url", url]);
                command
            }
            None => self.vault.on_this(command, &["serve"]),
        };
        command.args(["--login-rate", "0"]);
        command.arg(format!("--activation-listen={}", self.activation_listener.address));
        command
    }

    /// Starts the server and returns the time until it is ready.
    pub(crate) fn serve(&mut self) -> Duration {
        self.serve_by(None)
    }

    /// Starts the server through another program and returns the time until it is ready.
    pub(crate) fn serve_by(&mut self, program: Option<Command>) -> Duration {
        let started = Instant::now();
        let mut server = self.spawn_by(program);
        server.wait_until_ready();
        self.server = Some(server);
        started.elapsed()
    }

    /// Starts the server through another program, without a wait.
    pub(crate) fn spawn_by(&self, program: Option<Command>) -> Server {
        let (output, log) = (self.vault.scratch("output"), self.vault.scratch("log"));
        Server::spawn_at(self.address, self.serve_command(program), &output, &log)
    }

    /// Starts another server on the same database.
    pub(crate) fn replica(&self) -> Server {
        Server::start(self.replica_command(), &self.vault.scratch("output-replica"), &self.vault.scratch("log"))
    }

    /// Returns the command that starts another server.
    pub(crate) fn replica_command(&self) -> Command {
        self.vault.command(&["serve", "--login-rate", "0"])
    }

    pub(crate) fn running(&self) -> &Server {
        self.server.as_ref().expect("its server runs")
    }

    pub(crate) fn kill(&mut self) {
        self.server.take().expect("its server runs").kill();
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// Runs the crew on the server while `disturbance` runs.
    pub(crate) fn work<T>(&mut self, disturbance: impl FnOnce() -> T) -> T {
        let address = self.address;
        self.work_on(&[address], disturbance)
    }

    /// Runs the crew on `servers` while `disturbance` runs.
    pub(crate) fn work_on<T>(&mut self, servers: &[SocketAddr], disturbance: impl FnOnce() -> T) -> T {
        let (outcome, mut tally) = self.crew.work(servers, &self.log, disturbance);
        let round = self.report.rounds;
        self.report
            .losses
            .extend(std::mem::take(&mut tally.wrong).into_iter().map(|wrong| format!("round {round}: {wrong}")));
        self.report.tally.add(tally);
        outcome
    }

    /// Runs the crew while `disturbance` can take the server.
    pub(crate) fn work_while<T>(&mut self, disturbance: impl FnOnce(&mut Option<Server>) -> T) -> T {
        let mut server = self.server.take();
        let outcome = self.work(|| disturbance(&mut server));
        self.server = server;
        outcome
    }

    /// Requests an activation of the first client's namespace.
    pub(crate) fn try_activation(&self) -> Result<Answer, String> {
        let body = serde_json::json!({"namespace": self.crew.workers[0].namespace()});
        let client = self.activation_listener.client();
        let call = client.request("POST", "/v1/activations").bearer(&self.integration.token).json(&body);
        call.try_send().map_err(|error| error.to_string())
    }

    /// Waits until the server responds to a list request, and returns the time.
    pub(crate) fn wait_until_it_answers(&mut self) -> Duration {
        let (started, client) = (Instant::now(), self.client());
        loop {
            if let Some(server) = &mut self.server {
                assert!(server.is_alive(), "the server ended: {}", server.log_text());
            }
            let answer = client.get("/v1/organization-vault").bearer(&self.token).try_send();
            if answer.is_ok_and(|answer| answer.status == 200) {
                return started.elapsed();
            }
            assert!(started.elapsed() < LIMIT, "no answer: {}", self.vault.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns `true` if list requests succeed.
    pub(crate) fn can_read(&self) -> bool {
        self.list(&self.client()).is_ok()
    }

    /// Attempts a write. Returns `true` if it is acknowledged, and the counts.
    pub(crate) fn try_write(&mut self) -> (bool, Tally) {
        let client = self.client();
        let mut tally = Tally::default();
        let outcome = self.crew.workers[0].write(&client, &self.log, &mut tally);
        let done = outcome == crate::ledger::Outcome::Done;
        self.report.losses.append(&mut tally.wrong);
        self.report.tally.add(tally.clone());
        (done, tally)
    }

    /// Waits until a write is acknowledged, and returns the time.
    pub(crate) fn wait_until_it_writes(&mut self) -> Duration {
        let started = Instant::now();
        while !self.try_write().0 {
            assert!(started.elapsed() < LIMIT, "nothing can be written: {}", self.vault.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        started.elapsed()
    }

    /// Waits until the service reads and writes again, and returns the time. A recovery that takes too long is reported
    /// as a loss.
    pub(crate) fn heal(&mut self) -> Duration {
        let started = Instant::now();
        self.wait_until_it_answers();
        self.wait_until_it_writes();
        let healed = started.elapsed();
        if healed > HEALED {
            self.report.losses.push(format!("the service needed {healed:?} to work again"));
        }
        healed
    }

    /// Waits for the recovery of the server at `address`, as [`Self::heal`] does.
    pub(crate) fn heal_at(&mut self, address: SocketAddr) -> Duration {
        let own = std::mem::replace(&mut self.address, address);
        let started = Instant::now();
        self.wait_until_it_writes();
        self.address = own;
        let healed = started.elapsed();
        if healed > HEALED {
            self.report.losses.push(format!("the server at {address} needed {healed:?} to work again"));
        }
        healed
    }

    /// Returns all credentials, as its server lists them.
    ///
    /// # Errors
    /// If the server rejects the request.
    pub(crate) fn listed(&self) -> Result<Vec<Value>, Box<Answer>> {
        self.list(&self.client())
    }

    fn list(&self, client: &Client) -> Result<Vec<Value>, Box<Answer>> {
        let (mut path, mut items) = ("/v1/organization-vault?limit=100".to_owned(), Vec::new());
        loop {
            let answer = client.get(&path).bearer(&self.token).send();
            if answer.status != 200 {
                return Err(Box::new(answer));
            }
            items.extend(answer.json().as_array().expect("an array").iter().cloned());
            match answer.header("link").and_then(|link| link.split_once('<')?.1.split_once('>')) {
                Some((next, _)) => path = next.to_owned(),
                None => return Ok(items),
            }
        }
    }

    /// Compares the credentials of the server with the acknowledged writes.
    pub(crate) fn check(&mut self) {
        let client = self.client();
        self.check_by(&client);
    }

    /// Compares the credentials of another server with the acknowledged writes.
    pub(crate) fn check_by(&mut self, client: &Client) {
        let before = self.report.losses.len();
        match self.list(client) {
            Ok(listed) => {
                for worker in &mut self.crew.workers {
                    worker.check(client, &listed, &mut self.report.losses);
                }
            }
            Err(answer) => self.report.losses.push(format!("the list cannot be read: {answer:?}")),
        }
        if let Some(shared) = &mut self.crew.shared {
            shared.evaluate(client, &self.log, &mut self.report.losses);
        }
        self.share_again(client);
        self.crew.doorman.check(client, &mut self.report.losses);
        self.crew.doorman.refill(&self.vault);
        if let Some(server) = &self.server {
            self.marks.read(server);
        }
        let round = self.report.rounds;
        for loss in &mut self.report.losses[before..] {
            *loss = format!("round {round}: {loss}");
        }
        self.report.rounds += 1;
    }

    /// Decrypts everything: activates each credential and compares it with the acknowledged value, and checks all rows
    /// and the audit log with `doctor --deep`. For the embedded file, also makes a backup, which checks the copied
    /// data.
    pub(crate) fn check_deeply(&mut self) {
        let client = self.activation_listener.client();
        for worker in &self.crew.workers {
            let expected = worker.expected();
            if expected.is_empty() {
                continue;
            }
            let answer = self.integration.activate(&client, worker.namespace());
            if answer.status != 201 {
                self.report.losses.push(format!("{} cannot be activated: {answer:?}", worker.namespace()));
                continue;
            }
            let answer = answer.json();
            let credentials = answer["credentials"].as_array().expect("credentials");
            for (id, data) in expected {
                let given = credentials.iter().find(|credential| credential["id"] == *id).map(|found| &found["data"]);
                if !given.is_some_and(|given| matches_saved(given, &data)) {
                    self.report.losses.push(format!("{id} was opened to something else than was saved"));
                }
            }
        }
        self.check_stored();
    }

    /// Checks all rows and the audit log with `orgvault`, and makes a backup of the embedded file.
    pub(crate) fn check_stored(&mut self) {
        let doctor = self.vault.run(&["doctor", "--deep"]);
        if doctor.status != Some(0) {
            self.report.losses.push(format!("doctor --deep: {}{}", doctor.stdout, doctor.stderr));
        }
        if self.vault.database() == Database::Sqlite {
            let file = self.vault.scratch(&format!("backup-{}", self.report.rounds));
            let backup = self.vault.run(&["backup", file.to_str().unwrap()]);
            if backup.status != Some(0) {
                self.report.losses.push(format!("backup: {}{}", backup.stdout, backup.stderr));
            }
            let _ = std::fs::remove_file(file);
        }
    }

    /// Starts the server on a disk as a power cut left it, compares the data with the writes acknowledged before the
    /// cut, and kills the server. With `deeply`, also checks all rows.
    pub(crate) fn look_at_disk(&mut self, acknowledged: &[Acknowledged], cut: Cut, deeply: bool) {
        self.report.rounds += 1;
        let disk = self.report.rounds;
        let mut server = self.spawn_by(None);
        if !server.becomes_ready(LIMIT) {
            let text = self.vault.log();
            let last = text.lines().last().unwrap_or_default();
            self.report.losses.push(format!("disk {disk}: the server does not start: {last}"));
            return;
        }
        self.server = Some(server);
        match self.listed() {
            Ok(listed) => {
                let losses = compare(acknowledged, &listed, cut);
                self.report.losses.extend(losses.into_iter().map(|loss| format!("disk {disk}: {loss}")));
            }
            Err(answer) => self.report.losses.push(format!("disk {disk}: {answer:?}")),
        }
        if deeply {
            self.check_stored();
        }
        self.kill();
    }

    /// Reads everything. Returns `true` if all requests succeeded.
    ///
    /// # Errors
    /// If the data differs from the saved data.
    pub(crate) fn reads_rightly(&self) -> Result<bool, String> {
        let mut all = true;
        let client = self.client();
        let listed = client.get("/v1/organization-vault?limit=100").bearer(&self.token).try_send();
        let listed = listed.ok().filter(|answer| answer.status == 200).map(|answer| answer.json());
        all &= listed.is_some();
        for worker in &self.crew.workers {
            let expected = worker.expected();
            for item in listed.iter().flat_map(|listed| listed.as_array().expect("an array")) {
                let Some(data) = item["id"].as_str().and_then(|id| expected.get(id)) else { continue };
                if item["information"]["bucket"] != data["bucket"] {
                    return Err(format!("{item} was listed, and {data} was saved"));
                }
            }
            let activation_listener = self.activation_listener.client();
            let body = serde_json::json!({"namespace": worker.namespace()});
            let call =
                activation_listener.request("POST", "/v1/activations").bearer(&self.integration.token).json(&body);
            let Some(answer) = call.try_send().ok().filter(|answer| answer.status == 201) else {
                all &= expected.is_empty();
                continue;
            };
            for given in answer.json()["credentials"].as_array().expect("credentials") {
                let id = given["id"].as_str().expect("an id");
                let Some(data) = expected.get(id) else {
                    if worker.is_indeterminate(id) {
                        continue;
                    }
                    return Err(format!("{} was issued, but never saved", given["id"]));
                };
                if !matches_saved(&given["data"], data) {
                    return Err(format!("{} was issued with other data than was saved", given["id"]));
                }
            }
        }
        Ok(all)
    }

    /// Makes the last checks and returns the report.
    pub(crate) fn finish(mut self) -> Report {
        self.check_deeply();
        if let Some(shared) = &self.crew.shared {
            let (histories, operations) = shared.evaluated;
            self.report.figure("histories of shared credentials", format!("{histories}, {operations} operations"));
        }
        if let Some(server) = self.server.take() {
            self.marks.read(&server);
            let status = server.stop();
            if status != Some(0) {
                self.report.losses.push(format!("the server ended with {status:?}: {}", self.vault.log()));
            }
        }
        let passed = self.marks.passed();
        if !passed.is_empty() {
            let all: Vec<_> = passed.iter().map(|(mark, count)| format!("{mark} {count}")).collect();
            self.report.figure("branches", all.join(", "));
        }
        self.report.losses.extend(missed(self.report.fault, self.report.rounds, &passed));
        self.report.losses.extend(panics(&self.vault.log()));
        if !self.report.losses.is_empty() {
            // The log of the servers is deleted with the vault.
            let _ = std::fs::copy(self.vault.scratch("log"), self.log.with_extension("server"));
        }
        self.report.log = self.log.seal();
        self.report
    }
}

/// Returns `true` if an activation contains all saved values.
fn matches_saved(given: &Value, saved: &Value) -> bool {
    saved.as_object().unwrap().iter().all(|(name, value)| given[name] == *value)
}

/// Returns the lines of a log that report a panic.
fn panics(log: &str) -> impl Iterator<Item = String> + use<'_> {
    log.lines().filter(|line| line.contains("panicked")).map(str::to_owned)
}
