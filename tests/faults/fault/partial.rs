//! Networks between clients and replicas and between replicas and PostgreSQL that fail in part: packets are lost and
//! duplicated, or one direction is cut. Each replica runs on a simulated host (see [`network`]).

use super::Ground;
use crate::network::{self, Here, Network, Rule};
use crate::report::Report;
use crate::rig::Rig;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use tempfile::TempDir;
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::process::Server;
use vault_tests::{Vault, binary};

/// Number of replicas.
const REPLICAS: usize = 2;
/// How long clients wait for a replica that they cannot reach, and for one that cannot reach PostgreSQL.
const IMPATIENT: Duration = Duration::from_secs(2);
const PATIENT: Duration = Duration::from_secs(15);
/// Time limit of requests while PostgreSQL is unreachable: a change waits at most 7 s, after a wait for a connection.
const LONGEST: Duration = Duration::from_secs(10);

/// Two replicas on simulated hosts. A third server, which no fault affects, is used for checks.
struct Scene {
    rig: Rig,
    replicas: Vec<Server>,
    addresses: Vec<SocketAddr>,
    network: Network,
    // Dropped last.
    _cluster: Cluster,
    _place: TempDir,
}

impl Scene {
    fn new(name: &'static str, ground: &Ground<'_>) -> Self {
        let network = Network::new(REPLICAS);
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap(); // the server has its own user
        let hosts = place.path().join("pg_hba.conf");
        fs::write(&hosts, "local all all trust\nhost all all 10.0.0.0/24 trust\n").unwrap();
        let database = Here::Database.ip();
        let settings = vec![format!("listen_addresses='{database}'"), format!("hba_file='{}'", hosts.display())];
        let cluster = Cluster::start(Options { settings, ..Options::default() });
        let url = cluster.create_database();
        let vault = Vault::absent_in(&ground.options.shared.dir, Some(url.clone())).set_up();
        let rig = Rig::served(name, ground, vault, None).share(ground);
        let (_, own) = url.rsplit_once('/').unwrap();
        let over_network = format!("postgres://postgres@{database}/{own}?sslmode=disable");
        let replicas: Vec<_> = (0..REPLICAS).map(|machine| replica(&rig, &network, machine, &over_network)).collect();
        let addresses = replicas.iter().map(|replica| replica.address).collect();
        Self { rig, replicas, addresses, network, _cluster: cluster, _place: place }
    }

    /// Waits until all replicas work again, checks the data through each replica, and records the branch marks of each.
    fn check(&mut self) -> Duration {
        self.rig.heal();
        let healed = self.addresses.iter().map(|address| self.rig.heal_at(*address)).max().unwrap_or_default();
        for replica in &self.replicas {
            self.rig.marks.read(replica);
        }
        let client = self.replicas[self.rig.report.rounds % REPLICAS].client();
        self.rig.check_by(&client);
        healed
    }

    fn finish(mut self, healed: Vec<Duration>) -> Report {
        self.rig.report.times("from the network's repair to the next write by each replica", healed);
        let lost = self.network.lost();
        self.rig.report.figure("packets lost", lost);
        if lost == 0 {
            self.rig.report.losses.push("no packet was lost, so nothing was tested".to_owned());
        }
        drop(self.replicas);
        self.rig.finish()
    }
}

/// Starts a server on a simulated host.
fn replica(rig: &Rig, network: &Network, machine: usize, url: &str) -> Server {
    let mut command = network.entering(machine);
    command.arg(binary::path());
    let mut command = binary::isolated(command);
    command.arg("serve").arg("--data-dir").arg(rig.vault.data_dir()).args(["--database-url", url, "--login-rate=0"]);
    command.arg(format!("--trusted-proxy={}", Here::Clients.ip())); // without this option the server requires TLS
    let [address, admin] = [10_000, 10_001].map(|port| SocketAddr::from((network.address(machine), port)));
    let (output, log) = (rig.vault.scratch(&format!("output-{machine}")), rig.vault.scratch("log"));
    let mut server = Server::spawn_with([address, admin], command, &output, &log);
    server.wait_until_ready();
    server
}

/// Packets are lost in both directions and duplicated.
pub(super) fn lossy(ground: &Ground<'_>) -> Report {
    if let Some(why) = network::impossible() {
        return Report::skipped("lossy-network", ground.database, &why);
    }
    let mut scene = Scene::new("lossy-network", ground);
    let (mut random, mut healed) = (ground.random(), Vec::new());
    for _ in 0..ground.options.rounds(20) {
        let [lost, twice] = [15, 30].map(|most| 1 + u8::try_from(random.below(most)).unwrap());
        let between = |machine| {
            let of = |here| {
                [
                    Rule::LoseFrom(machine, here, lost),
                    Rule::LoseTo(machine, here, lost),
                    Rule::Double(machine, here, twice),
                ]
            };
            [of(Here::Clients), of(Here::Database)].concat()
        };
        let rules: Vec<_> = (0..REPLICAS).flat_map(between).collect();
        let lasts = random.millis(1_500, 4_000);
        let Scene { rig, addresses, network, .. } = &mut scene;
        rig.work_on(addresses, || {
            network.set(&rules);
            std::thread::sleep(lasts);
            network.set(&[]);
        });
        healed.push(scene.check());
    }
    let slowest = scene.rig.report.tally.slowest;
    scene.rig.report.figure("slowest answer", format!("{:.1} s", slowest.as_secs_f64()));
    scene.finish(healed)
}

/// The part of a replica's network that is cut.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// Packets to PostgreSQL.
    ToDatabase,
    /// Packets from PostgreSQL.
    FromDatabase,
    /// Packets from clients.
    FromClients,
    /// Packets to clients.
    ToClients,
    /// Clients in both directions. The replica reaches PostgreSQL.
    Clients,
}

impl Cut {
    const ALL: [Self; 5] = [Self::ToDatabase, Self::FromDatabase, Self::FromClients, Self::ToClients, Self::Clients];

    fn rules(self, machine: usize) -> Vec<Rule> {
        match self {
            Self::ToDatabase => vec![Rule::LoseFrom(machine, Here::Database, 100)],
            Self::FromDatabase => vec![Rule::LoseTo(machine, Here::Database, 100)],
            Self::FromClients => vec![Rule::LoseTo(machine, Here::Clients, 100)],
            Self::ToClients => vec![Rule::LoseFrom(machine, Here::Clients, 100)],
            Self::Clients => [Self::FromClients, Self::ToClients].map(|one| one.rules(machine)).concat(),
        }
    }
}

/// One direction of a replica's network is cut, or a replica reaches PostgreSQL and no client.
pub(super) fn one_way(ground: &Ground<'_>) -> Report {
    if let Some(why) = network::impossible() {
        return Report::skipped("one-way-cut", ground.database, &why);
    }
    let mut scene = Scene::new("one-way-cut", ground);
    let (mut random, mut healed, mut slowest) = (ground.random(), Vec::new(), Duration::ZERO);
    let first = random.below(Cut::ALL.len());
    for round in 0..ground.options.rounds(20) {
        let cut = Cut::ALL[(first + round) % Cut::ALL.len()];
        let rules = cut.rules(random.below(REPLICAS));
        let is_of_database = matches!(cut, Cut::ToDatabase | Cut::FromDatabase);
        let (delay, lasts) = (random.millis(50, 500), random.millis(3_000, 9_000));
        let Scene { rig, addresses, network, .. } = &mut scene;
        rig.crew.patience = Some(if is_of_database { PATIENT } else { IMPATIENT });
        rig.report.tally.slowest = Duration::ZERO;
        let before = rig.report.losses.len();
        rig.work_on(addresses, || {
            std::thread::sleep(delay);
            network.set(&rules);
            std::thread::sleep(lasts);
            network.set(&[]);
        });
        if is_of_database {
            slowest = slowest.max(rig.report.tally.slowest);
        }
        healed.push(scene.check());
        for loss in &mut scene.rig.report.losses[before..] {
            *loss = format!("{loss} (after {cut:?})");
        }
    }
    scene.rig.report.tally.slowest = slowest;
    scene.rig.report.slowest_answer(LONGEST);
    scene.finish(healed)
}
