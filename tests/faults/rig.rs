//! A vault with its servers and its workers, and the checks of its data.

use crate::branches::{Branches, missed};
use crate::fault::{Ground, Outcome};
use crate::ledger;
use crate::log::AckLog;
use crate::login_client::LoginClient;
use crate::record::{Acknowledged, Cut, compare};
use crate::report::Report;
use crate::shared::{CLIENTS, Shared, Sharer};
use crate::worker::Worker;
use crate::workers::{Tally, Workers};
use serde_json::Value;
use simulated_disk::random::Random;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};
use vault_testkit::postgres::Cluster;
use vault_tests::process::{Server, free_address};
use vault_tests::{ActivationListener, Answer, Client, Database, Integration, Vault, binary};

/// Maximum wait for any recovery.
const LIMIT: Duration = Duration::from_secs(90);
/// Time limit for the recovery of the service.
const HEALED: Duration = Duration::from_secs(5);

/// A vault that faults affect.
pub(crate) struct Rig<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) vault: Vault,
    /// The URL of the database for its servers, if it differs from that for commands.
    url: Option<String>,
    /// Its first server, while it runs.
    pub(crate) server: Option<Server>,
    /// The address of the first server.
    pub(crate) address: SocketAddr,
    listener: ActivationListener,
    integration: Integration,
    pub(crate) workers: Workers,
    /// The token of the workers.
    token: String,
    pub(crate) log: AckLog,
    pub(crate) report: Report,
    /// The branches that its servers executed.
    pub(crate) branches: Branches,
    /// The generator for the moments of faults.
    pub(crate) random: Random,
    /// The fault of this round, which is added to its losses.
    pub(crate) cause: String,
    /// Times until servers were ready, and until the service worked again after a fault.
    starts: Vec<Duration>,
    healed: Vec<Duration>,
}

/// Returns a disturbance that only lets the workers work for this number of milliseconds.
pub(crate) fn wait(milliseconds: u64) -> impl FnOnce() {
    move || std::thread::sleep(Duration::from_millis(milliseconds))
}

impl<'a> Rig<'a> {
    /// Sets up a vault on the database and in the directory of `ground`.
    pub(crate) fn new(ground: &Ground<'a>) -> Self {
        Self::of(ground, Vault::absent_in(&ground.options.shared.dir, ground.new_url()))
    }

    /// Sets up a vault on a PostgreSQL cluster that only this fault uses.
    pub(crate) fn on(ground: &Ground<'a>, cluster: &Cluster) -> Self {
        Self::of(ground, Vault::absent_in(&ground.options.shared.dir, Some(cluster.create_database())))
    }

    /// Sets up `vault` and starts its server.
    pub(crate) fn of(ground: &Ground<'a>, vault: Vault) -> Self {
        Self::served(ground, vault.set_up(), None)
    }

    /// Starts the server of a vault that is already set up. Servers use the database at `url`, if it is given.
    pub(crate) fn served(ground: &Ground<'a>, vault: Vault, url: Option<String>) -> Self {
        let (address, listener) = (free_address(), ActivationListener { address: free_address() });
        let admin = vault.admin();
        let logins = LoginClient::new(&vault);
        let integration = Integration::make(&vault, "checker", &["worker/*"]);
        let mut rig = Self {
            ground: *ground,
            vault,
            url,
            server: None,
            address,
            listener,
            integration,
            workers: Workers { writers: Vec::new(), logins, sharers: Vec::new(), shared: None, patience: None },
            token: String::new(),
            log: AckLog::new(&ground.options.log_dir, ground.name),
            report: Report::new(ground),
            branches: Branches::default(),
            random: ground.random(),
            cause: String::new(),
            starts: Vec::new(),
            healed: Vec::new(),
        };
        rig.serve();
        rig.token = admin.log_in(&rig.client()).token;
        let seed = ground.options.seed;
        rig.workers.writers = (0..4).map(|number| Worker::new(seed, number, &rig.token)).collect();
        rig
    }

    /// Adds clients that share credentials. The history of each credential is checked after each round.
    pub(crate) fn share(mut self) -> Self {
        let seed = self.ground.options.seed;
        let integration = Integration::make(&self.vault, "sharer", &["worker/shared"]);
        self.workers.sharers = (0..CLIENTS).map(|number| Sharer::new(seed, number)).collect();
        self.workers.shared = Some(Shared::new(&self.token, integration, self.listener.client()));
        let client = self.client();
        self.share_again(&client);
        self
    }

    /// Creates new shared credentials.
    fn share_again(&mut self, client: &Client) {
        if let Some(shared) = &mut self.workers.shared {
            shared.begin(client, &mut self.report.losses);
            self.workers.sharers.iter_mut().for_each(Sharer::begin);
        }
    }

    /// Runs `round` as often as the options specify, or `usual` times, and checks the data after each run. Every hundredth
    /// check decrypts everything.
    pub(crate) fn rounds(&mut self, usual: usize, mut round: impl FnMut(&mut Self, usize)) {
        for number in 0..self.ground.options.rounds(usual) {
            let before = self.report.losses.len();
            round(self, number);
            self.check();
            let cause = std::mem::take(&mut self.cause);
            self.report.losses[before..].iter_mut().for_each(|loss| loss.push_str(&cause));
            if number % 100 == 99 {
                self.check_deeply();
            }
        }
    }

    /// Reports a loss.
    pub(crate) fn lose(&mut self, loss: impl Into<String>) {
        self.report.losses.push(loss.into());
    }

    /// Reports how often a fault had its effect. Without any effect, nothing was tested.
    pub(crate) fn tested(&mut self, what: &str, count: usize) {
        self.report.figure(what, count);
        if count == 0 {
            self.lose(format!("{what}: 0, so nothing was tested"));
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
        command.arg(format!("--activation-listen={}", self.listener.address));
        command
    }

    /// Starts the server.
    pub(crate) fn serve(&mut self) {
        self.serve_by(None);
    }

    /// Starts the server through another program.
    pub(crate) fn serve_by(&mut self, program: Option<Command>) {
        let started = Instant::now();
        let mut server = self.spawn_by(program);
        server.wait_until_ready();
        self.server = Some(server);
        self.starts.push(started.elapsed());
    }

    /// Starts the server. Returns `false` if it exits instead of becoming ready.
    pub(crate) fn try_serve(&mut self) -> bool {
        let mut server = self.spawn_by(None);
        let is_ready = starts(&mut server);
        self.server = is_ready.then_some(server);
        is_ready
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

    /// Stops the server, which may have exited.
    pub(crate) fn stop(&mut self) {
        self.server.take().expect("its server runs").stop();
    }

    /// Returns `false` if the server has exited.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.server.as_mut().expect("its server was started").is_alive()
    }

    /// Returns the addresses of `others` and of the first server.
    pub(crate) fn and_addresses_of(&self, others: &[Server]) -> Vec<SocketAddr> {
        others.iter().map(|server| server.address).chain([self.address]).collect()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// Runs the workers on the server while `disturbance` runs.
    pub(crate) fn work<T>(&mut self, disturbance: impl FnOnce() -> T) -> T {
        let address = self.address;
        self.work_on(&[address], disturbance)
    }

    /// Runs the workers on `servers` while `disturbance` runs.
    pub(crate) fn work_on<T>(&mut self, servers: &[SocketAddr], disturbance: impl FnOnce() -> T) -> T {
        let (outcome, mut tally) = self.workers.work(servers, &self.log, disturbance);
        let round = self.report.rounds;
        self.report
            .losses
            .extend(std::mem::take(&mut tally.wrong).into_iter().map(|wrong| format!("round {round}: {wrong}")));
        self.report.tally.add(tally);
        outcome
    }

    /// Runs the workers while `disturbance` can take the server.
    pub(crate) fn work_while<T>(&mut self, disturbance: impl FnOnce(&mut Option<Server>) -> T) -> T {
        let mut server = self.server.take();
        let outcome = self.work(|| disturbance(&mut server));
        self.server = server;
        outcome
    }

    /// Requests an activation of the first client's namespace.
    pub(crate) fn try_activation(&self) -> Result<Answer, String> {
        let body = serde_json::json!({"namespace": self.workers.writers[0].namespace()});
        let client = self.listener.client();
        let call = client.request("POST", "/v1/activations").bearer(&self.integration.token).json(&body);
        call.try_send().map_err(|error| error.to_string())
    }

    /// Waits until the server responds to a list request.
    pub(crate) fn wait_until_it_answers(&mut self) {
        let (started, client) = (Instant::now(), self.client());
        loop {
            if let Some(server) = &mut self.server {
                assert!(server.is_alive(), "the server ended: {}", server.log_text());
            }
            let answer = client.get("/v1/organization-vault").bearer(&self.token).try_send();
            if answer.is_ok_and(|answer| answer.status == 200) {
                return;
            }
            assert!(started.elapsed() < LIMIT, "no answer: {}", self.vault.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns `true` if list requests succeed.
    pub(crate) fn can_read(&self) -> bool {
        self.list(&self.client()).is_ok()
    }

    /// Attempts a write. Returns `true` if it is acknowledged.
    pub(crate) fn try_write(&mut self) -> bool {
        let client = self.client();
        let mut tally = Tally::default();
        let outcome = self.workers.writers[0].write(&client, &self.log, &mut tally);
        self.report.losses.append(&mut tally.wrong);
        self.report.tally.add(tally);
        outcome == ledger::Outcome::Done
    }

    /// Waits until a write is acknowledged.
    pub(crate) fn wait_until_it_writes(&mut self) {
        let started = Instant::now();
        while !self.try_write() {
            assert!(started.elapsed() < LIMIT, "nothing can be written: {}", self.vault.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the service reads and writes again. A recovery that takes too long is reported as a loss.
    pub(crate) fn heal(&mut self) {
        self.heal_at(self.address);
    }

    /// Waits for the recovery of the server at `address`.
    pub(crate) fn heal_at(&mut self, address: SocketAddr) {
        let own = std::mem::replace(&mut self.address, address);
        let started = Instant::now();
        self.wait_until_it_answers();
        self.wait_until_it_writes();
        self.address = own;
        let healed = started.elapsed();
        if healed > HEALED {
            self.lose(format!("the server at {address} needed {healed:?} to work again"));
        }
        self.healed.push(healed);
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
                for worker in &mut self.workers.writers {
                    worker.check(client, &listed, &mut self.report.losses);
                }
            }
            Err(answer) => self.report.losses.push(format!("the list cannot be read: {answer:?}")),
        }
        if let Some(shared) = &mut self.workers.shared {
            shared.evaluate(client, &self.log, &mut self.report.losses);
        }
        self.share_again(client);
        self.workers.logins.check(client, &mut self.report.losses);
        self.workers.logins.refill(&self.vault);
        if let Some(server) = &self.server {
            self.branches.read(server);
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
        let client = self.listener.client();
        for worker in &self.workers.writers {
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

    /// Reads everything. Returns `true` if all requests succeeded. Data that differs from the saved data is reported.
    pub(crate) fn reads_rightly(&mut self) -> bool {
        self.try_to_read().unwrap_or_else(|wrong| {
            self.lose(wrong);
            false
        })
    }

    fn try_to_read(&self) -> Result<bool, String> {
        let mut all = true;
        let client = self.client();
        let listed = client.get("/v1/organization-vault?limit=100").bearer(&self.token).try_send();
        let listed = listed.ok().filter(|answer| answer.status == 200).map(|answer| answer.json());
        all &= listed.is_some();
        for worker in &self.workers.writers {
            let expected = worker.expected();
            for item in listed.iter().flat_map(|listed| listed.as_array().expect("an array")) {
                let Some(data) = item["id"].as_str().and_then(|id| expected.get(id)) else { continue };
                if item["information"]["bucket"] != data["bucket"] {
                    return Err(format!("{item} was listed, and {data} was saved"));
                }
            }
            let listener = self.listener.client();
            let body = serde_json::json!({"namespace": worker.namespace()});
            let call = listener.request("POST", "/v1/activations").bearer(&self.integration.token).json(&body);
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
    pub(crate) fn finish(mut self) -> Outcome {
        self.check_deeply();
        self.report.times("from start to ready", std::mem::take(&mut self.starts));
        self.report.times("from the end of the fault to the next write", std::mem::take(&mut self.healed));
        if let Some(shared) = &self.workers.shared {
            let (histories, operations) = shared.evaluated;
            self.report.figure("histories of shared credentials", format!("{histories}, {operations} operations"));
        }
        if let Some(server) = self.server.take() {
            self.branches.read(&server);
            let status = server.stop();
            if status != Some(0) {
                self.report.losses.push(format!("the server ended with {status:?}: {}", self.vault.log()));
            }
        }
        let passed = self.branches.passed();
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
        Ok(self.report)
    }
}

/// Waits until a server is ready or has exited. Returns `true` if it is ready.
pub(crate) fn starts(server: &mut Server) -> bool {
    let is_ready = server.becomes_ready(LIMIT);
    assert!(is_ready || !server.is_alive(), "the server neither starts nor ends: {}", server.log_text());
    is_ready
}

/// Returns `true` if an activation contains all saved values.
fn matches_saved(given: &Value, saved: &Value) -> bool {
    saved.as_object().unwrap().iter().all(|(name, value)| given[name] == *value)
}

/// Returns the lines of a log that report a panic.
fn panics(log: &str) -> impl Iterator<Item = String> + use<'_> {
    log.lines().filter(|line| line.contains("panicked")).map(str::to_owned)
}
