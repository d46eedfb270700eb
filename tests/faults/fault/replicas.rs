//! Several replicas on one PostgreSQL server: with few connections, restarted, upgraded, with wrong clocks, and with
//! networks that fail in part. Keys are rotated under them.

use super::{Ground, Outcome, possible};
use crate::network::{self, Here, Network, Rule};
use crate::rig::{Rig, wait};
use simulated_disk::random::Random;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::binary::Run;
use vault_tests::process::Server;
use vault_tests::{Client, Database, Vault, binary};

/// Three replicas want thirty connections of a server that allows ten.
pub(super) fn few_connections(ground: &Ground<'_>) -> Outcome {
    let cluster = Cluster::start(Options { max_connections: 13, ..Options::default() }); // three for a superuser
    let mut rig = Rig::on(ground, &cluster).share();
    rig.rounds(5, |rig, _| {
        let others = [rig.replica(), rig.replica()];
        let addresses = rig.and_addresses_of(&others);
        rig.work_on(&addresses, wait(3_000));
        rig.wait_until_it_writes();
        others.iter().for_each(|server| rig.branches.read(server));
        // The commands of the check need a connection, too.
    });
    rig.report.slowest_answer(Duration::MAX);
    rig.finish()
}

/// The three replicas are restarted in turn. Clients switch to another replica if theirs does not respond. The first
/// one delivers events, and another one takes over the delivery.
pub(super) fn rolling_restart(ground: &Ground<'_>) -> Outcome {
    let mut rig = Rig::new(ground).share();
    let mut others = vec![rig.replica(), rig.replica()];
    rig.rounds(30, |rig, round| {
        let addresses = rig.and_addresses_of(&others);
        let is_first = round % 3 == 2;
        let stopped = if is_first { rig.server.take().expect("its server runs") } else { others.remove(round % 2) };
        rig.branches.read(&stopped);
        // Other replicas check every second whether they have to deliver events.
        let then = Duration::from_millis(if is_first { 1_500 } else { 200 });
        let ended = rig.work_on(&addresses, || {
            thread::sleep(Duration::from_millis(200));
            let ended = stopped.stop();
            thread::sleep(then);
            ended
        });
        if ended != Some(0) {
            rig.lose(format!("a replica ended with {ended:?}"));
        }
        others.iter().for_each(|server| rig.branches.read(server));
        if is_first {
            rig.serve();
        } else {
            others.push(rig.replica());
        }
    });
    drop(others);
    rig.finish()
}

/// A rolling upgrade: servers of the previous build and of this build use one PostgreSQL database during and after its
/// migration.
pub(super) fn rolling_upgrade(ground: &Ground<'_>) -> Outcome {
    let earlier = ground.options.earlier.as_ref().ok_or("--earlier names no binary of the build before")?;
    // The earlier build creates the vault and its schema.
    let vault = Vault::absent_in(&ground.options.shared.dir, ground.new_url());
    let program = || binary::isolated(Command::new(earlier));
    Run::of(&mut vault.on_this(program(), &["init"])).done();
    let vault = vault.granted();
    let old = |_| {
        let command = vault.on_this(program(), &["serve", "--login-rate", "0"]);
        Server::start(command, &vault.scratch("output-earlier"), &vault.scratch("log"))
    };
    let before = [0, 1].map(old);
    // The owner of the tables migrates while the servers run.
    let migrated = Run::of(&mut vault.owner_command(&["migrate"])).done();
    let mut rig = Rig::served(ground, vault.granted(), None);
    rig.report.figure("migrate", migrated.stdout.trim());
    let addresses = rig.and_addresses_of(&before);
    rig.rounds(10, |rig, _| {
        rig.work_on(&addresses, wait(2_000));
        rig.check_by(&before[0].client());
        rig.check_deeply();
    });
    for server in before {
        let ended = server.stop();
        if ended != Some(0) {
            rig.lose(format!("an earlier server ended with {ended:?}"));
        }
    }
    rig.work(wait(1_000));
    rig.check();
    rig.finish()
}

/// The clocks of replicas are wrong (libfaketime). Replicas whose clocks differ from that of the database by more than
/// 2 s are not ready. Replicas with a smaller difference make the same decisions.
pub(super) fn clocks(ground: &Ground<'_>) -> Outcome {
    /// Path of the library on Debian.
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
    possible((!Path::new(LIBRARY).exists()).then(|| "libfaketime is not installed (Debian: faketime)".to_owned()))?;
    let spawn = |rig: &Rig<'_>, offset: &str| {
        let mut command = rig.replica_command();
        command.env("LD_PRELOAD", LIBRARY).env("FAKETIME", offset).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command.env("DONT_FAKE_MONOTONIC", "1").stdin(Stdio::null());
        Server::spawn(command, &rig.vault.scratch("output-replica"), &rig.vault.scratch("log"))
    };
    let mut rig = Rig::new(ground).share();
    rig.rounds(2, |rig, _| {
        for offset in ["-3600", "+3600", "-90", "+90"] {
            let mut replica = spawn(rig, offset);
            let (started, client) = (Instant::now(), Client::new(replica.admin));
            let mut answered = false;
            while started.elapsed() < Duration::from_secs(5) && replica.is_alive() {
                match client.get("/readyz").try_send() {
                    Ok(answer) if answer.status == 200 => {
                        rig.lose(format!("a replica whose clock is {offset} s off is ready"));
                        break;
                    }
                    Ok(answer) => answered |= answer.text().contains("clock"),
                    Err(_) => {}
                }
                thread::sleep(Duration::from_millis(50));
            }
            if !answered && replica.is_alive() {
                rig.lose(format!("a replica whose clock is {offset} s off does not say so"));
            }
            replica.kill();
        }
        for offset in ["-1", "+1"] {
            let mut replica = spawn(rig, offset);
            replica.wait_until_ready();
            let addresses = [rig.address, replica.address];
            rig.work_on(&addresses, wait(2_000));
            rig.check_by(&replica.client());
        }
    });
    rig.finish()
}

/// The organization key, the instance key and the root key are rotated, while clients save on two servers, or on one
/// with the embedded file. Some rotations are killed and repeated. After a rotation of the root key, all servers are
/// killed and started, as docs/operate/keys.md requires before the next rotation of the instance key.
pub(super) fn rotation(ground: &Ground<'_>) -> Outcome {
    let mut rig = Rig::new(ground).share();
    let (mut random, mut completed, mut killed) = (ground.random(), 0, 0);
    let replica = |rig: &Rig<'_>| (ground.database == Database::Postgres).then(|| rig.replica());
    let mut other = replica(&rig);
    rig.rounds(30, |rig, round| {
        let has_new_root = round % 3 == 2;
        let addresses = rig.and_addresses_of(other.as_slice());
        let rotations = rotations(&rig.vault, has_new_root.then(|| rig.vault.scratch(&format!("root-{round}.key"))));
        let wrong = rig.work_on(&addresses, || {
            thread::sleep(random.millis(10, 100));
            let wrong: Vec<_> =
                rotations.into_iter().filter_map(|rotation| rotate(rotation, &mut random, &mut killed).err()).collect();
            thread::sleep(Duration::from_millis(100));
            wrong
        });
        completed += if has_new_root { 3 } else { 2 } - wrong.len();
        rig.report.losses.extend(wrong);
        other.iter().chain(&rig.server).for_each(|server| rig.branches.read(server));
        if has_new_root {
            rig.kill();
            drop(other.take());
            rig.serve();
            other = replica(rig);
        }
    });
    rig.report.figure("rotations", completed);
    rig.report.figure("of them killed and repeated", killed);
    drop(other);
    rig.finish()
}

/// The command of a rotation. With a new root key, its file and the path that it replaces.
type Rotation = (Command, Option<[PathBuf; 2]>);

/// Returns the rotations of a round: an organization key, the instance key, and the root key if `new_root` is its file.
fn rotations(vault: &Vault, new_root: Option<PathBuf>) -> Vec<Rotation> {
    let of = |arguments: &[&str]| vault.owner_command(&[&["key", "rotate"], arguments].concat());
    let mut rotations = vec![(of(&["--organization", "Acme"]), None), (of(&["--instance"]), None)];
    if let Some(new) = new_root {
        let command = of(&["--root", "--new-root-key", new.to_str().unwrap()]);
        rotations.push((command, Some([new, vault.data_dir().join("root.key")])));
    }
    rotations
}

/// Runs a rotation. Some are killed and repeated.
fn rotate((mut command, root): Rotation, random: &mut Random, killed: &mut usize) -> Result<(), String> {
    if random.below(3) == 0 {
        let delay = random.millis(5, 400);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut rotation = command.spawn().unwrap();
        thread::sleep(delay); // at a random moment
        *killed += usize::from(rotation.try_wait().unwrap().is_none());
        let _ = rotation.kill();
        rotation.wait().unwrap();
    }
    let run = Run::of(&mut command);
    if run.status != Some(0) {
        return Err(format!("{command:?}: {run:?}"));
    }
    if let Some([new, place]) = root {
        fs::rename(new, place).unwrap();
    }
    Ok(())
}

/// Number of replicas on simulated hosts (see [`network`]).
const REPLICAS: usize = 2;

/// Two replicas on simulated hosts. A third server, which no fault affects, is used for checks.
struct Scene<'a> {
    rig: Rig<'a>,
    replicas: Vec<Server>,
    addresses: Vec<SocketAddr>,
    network: Network,
    // Dropped last.
    _cluster: Cluster,
    _place: TempDir,
}

impl<'a> Scene<'a> {
    fn new(ground: &Ground<'a>) -> Result<Self, String> {
        possible(network::impossible())?;
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
        let rig = Rig::served(ground, vault, None).share();
        let over_network =
            format!("postgres://postgres@{database}/{}?sslmode=disable", url.rsplit('/').next().unwrap());
        let replicas: Vec<_> = (0..REPLICAS).map(|host| replica(&rig, &network, host, &over_network)).collect();
        let addresses = replicas.iter().map(|replica| replica.address).collect();
        Ok(Self { rig, replicas, addresses, network, _cluster: cluster, _place: place })
    }

    /// Applies `rules` for a while, waits until all replicas work again, and checks the data through one of them.
    fn round(&mut self, rules: &[Rule], delay: Duration, lasts: Duration, cause: &str) {
        let Self { rig, replicas, addresses, network, .. } = self;
        let before = rig.report.losses.len();
        rig.work_on(addresses, || {
            thread::sleep(delay);
            network.set(rules);
            thread::sleep(lasts);
            network.set(&[]);
        });
        rig.heal();
        addresses.iter().for_each(|address| rig.heal_at(*address));
        replicas.iter().for_each(|replica| rig.branches.read(replica));
        rig.check_by(&replicas[rig.report.rounds % REPLICAS].client());
        for loss in &mut rig.report.losses[before..] {
            loss.push_str(cause);
        }
    }

    fn finish(mut self) -> Outcome {
        self.rig.tested("packets lost", usize::try_from(self.network.lost()).unwrap());
        drop(self.replicas);
        self.rig.finish()
    }
}

/// Starts a server on a simulated host.
fn replica(rig: &Rig<'_>, network: &Network, host: usize, url: &str) -> Server {
    let mut command = network.entering(host);
    command.arg(binary::path());
    let mut command = binary::isolated(command);
    command.arg("serve").arg("--data-dir").arg(rig.vault.data_dir()).args(["--database-url", url, "--login-rate=0"]);
    command.arg(format!("--trusted-proxy={}", Here::Clients.ip())); // without this option the server requires TLS
    let addresses = [10_000, 10_001].map(|port| SocketAddr::from((network.address(host), port)));
    let (output, log) = (rig.vault.scratch(&format!("output-{host}")), rig.vault.scratch("log"));
    let mut server = Server::spawn_with(addresses, command, &output, &log);
    server.wait_until_ready();
    server
}

/// Packets between replicas and clients and between replicas and PostgreSQL are lost in both directions and duplicated.
pub(super) fn lossy_network(ground: &Ground<'_>) -> Outcome {
    let mut scene = Scene::new(ground)?;
    for _ in 0..ground.options.rounds(20) {
        let random = &mut scene.rig.random;
        let [lost, twice] = [15, 30].map(|most| 1 + u8::try_from(random.below(most)).unwrap());
        let lasts = random.millis(1_500, 4_000);
        let of = |host, here| {
            [Rule::LoseFrom(host, here, lost), Rule::LoseTo(host, here, lost), Rule::Double(host, here, twice)]
        };
        let rules: Vec<_> =
            (0..REPLICAS).flat_map(|host| [of(host, Here::Clients), of(host, Here::Database)].concat()).collect();
        scene.round(&rules, Duration::ZERO, lasts, "");
    }
    scene.rig.report.slowest_answer(Duration::MAX);
    scene.finish()
}

/// One direction of a replica's network is cut, or a replica reaches PostgreSQL and no client.
pub(super) fn one_way_cut(ground: &Ground<'_>) -> Outcome {
    let mut scene = Scene::new(ground)?;
    let mut slowest = Duration::ZERO;
    let first = scene.rig.random.below(5);
    for round in 0..ground.options.rounds(20) {
        let random = &mut scene.rig.random;
        let host = random.below(REPLICAS);
        let (from_clients, to_clients) =
            (Rule::LoseTo(host, Here::Clients, 100), Rule::LoseFrom(host, Here::Clients, 100));
        let (rules, cause) = match (first + round) % 5 {
            0 => (vec![Rule::LoseFrom(host, Here::Database, 100)], "to the database"),
            1 => (vec![Rule::LoseTo(host, Here::Database, 100)], "from the database"),
            2 => (vec![from_clients], "from clients"),
            3 => (vec![to_clients], "to clients"),
            _ => (vec![from_clients, to_clients], "of all clients"),
        };
        let (delay, lasts) = (random.millis(50, 500), random.millis(3_000, 9_000));
        let is_of_database = cause.ends_with("database");
        // How long clients wait for a replica that cannot reach PostgreSQL, and for one that they cannot reach.
        scene.rig.workers.patience = Some(Duration::from_secs(if is_of_database { 15 } else { 2 }));
        scene.rig.report.tally.slowest = Duration::ZERO;
        scene.round(&rules, delay, lasts, &format!(" (after a cut {cause})"));
        if is_of_database {
            slowest = slowest.max(scene.rig.report.tally.slowest);
        }
    }
    scene.rig.report.tally.slowest = slowest;
    // A change waits at most 7 s, after a wait for a connection.
    scene.rig.report.slowest_answer(Duration::from_secs(10));
    scene.finish()
}
