//! A network of simulated hosts that fails in part. Each host is a network namespace that a bridge connects to that of
//! this program, and nftables rules drop or duplicate packets. Everything is removed when this program exits.

use crate::fault::run;
use std::cell::Cell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set in a process that has a separate network namespace.
pub(crate) const OWN: &str = "ORGVAULT_FAULTS_OWN_NETWORK";

/// An address of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Here {
    /// The source address of clients: by default, the kernel chooses the first address.
    Clients,
    /// The address of PostgreSQL.
    Database,
    /// The address of etcd.
    Etcd,
}

impl Here {
    const ALL: [Self; 3] = [Self::Clients, Self::Database, Self::Etcd];

    pub(crate) const fn ip(self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + self as u8))
    }
}

/// The treatment of packets between a simulated host and an address of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Drops this percentage of the packets from the host.
    LoseFrom(usize, Here, u8),
    /// Drops this percentage of the packets to the host.
    LoseTo(usize, Here, u8),
    /// Duplicates this percentage of the packets in both directions.
    Double(usize, Here, u8),
}

/// The simulated hosts and their rules.
pub(crate) struct Network {
    machines: Vec<Child>,
    /// Number of packets that earlier rules dropped.
    lost: Cell<u64>,
}

/// Returns the reason why networks cannot be created here.
pub(crate) fn impossible() -> Option<String> {
    if std::env::var_os(OWN).is_none() {
        return Some("only root can make networks, with ip (Debian: iproute2)".to_owned());
    }
    let table = "add table bridge orgvault\nadd chain bridge orgvault probe { type filter hook input priority 0; }\n\
                 delete table bridge orgvault\n";
    match nft(Command::new("nft"), table) {
        Ok(()) => None,
        Err(why) => Some(format!("packets cannot be dropped by nftables (Debian: nftables): {why}")),
    }
}

/// Applies nftables rules.
fn nft(mut nft: Command, rules: &str) -> Result<(), String> {
    let child = nft.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    child.stdin.take().unwrap().write_all(rules.as_bytes()).map_err(|error| error.to_string())?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

impl Network {
    /// Creates the network with this number of hosts.
    pub(crate) fn new(machines: usize) -> Self {
        ip("link add orgvault type bridge");
        ip("link set orgvault up");
        for here in Here::ALL {
            ip(&format!("address add {}/24 dev orgvault", here.ip()));
        }
        let mut network = Self { machines: Vec::new(), lost: Cell::new(0) };
        for number in 0..machines {
            network.add(number);
        }
        network
    }

    fn add(&mut self, number: usize) {
        let mut holder = Command::new("setpriv");
        holder.args(["--pdeathsig", "KILL", "--", "unshare", "--net", "sleep", "infinity"]).stdin(Stdio::null());
        let holder = holder.spawn().unwrap();
        let id = holder.id();
        self.machines.push(holder);
        wait_for_own(id);
        ip(&format!("link add machine{number} type veth peer name eth0 netns {id}"));
        ip(&format!("link set machine{number} master orgvault"));
        ip(&format!("link set machine{number} up"));
        let address = self.address(number);
        for words in ["link set lo up", &format!("address add {address}/24 dev eth0"), "link set eth0 up"] {
            run(self.on(number, "ip").args(words.split(' ')));
        }
    }

    /// Returns the address of a host.
    pub(crate) fn address(&self, machine: usize) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, 11 + u8::try_from(machine).unwrap()))
    }

    /// Creates a command that runs a program on a host.
    pub(crate) fn on(&self, machine: usize, program: &str) -> Command {
        let mut command = self.entering(machine);
        command.arg(program);
        command
    }

    /// Creates a command that runs the program in its arguments on a host.
    pub(crate) fn entering(&self, machine: usize) -> Command {
        let mut nsenter = Command::new("nsenter");
        nsenter.arg(self.namespace(machine)).arg("--").stdin(Stdio::null());
        nsenter
    }

    /// Returns the argument of `nsenter` for the network of a host.
    pub(crate) fn namespace(&self, machine: usize) -> String {
        format!("--net=/proc/{}/ns/net", self.machines[machine].id())
    }

    /// Returns the number of dropped packets.
    pub(crate) fn lost(&self) -> u64 {
        let listed = run(Command::new("nft").args(["list", "ruleset"]));
        // "counter packets 17 bytes 1234 drop"
        let counts =
            listed.split("counter packets ").skip(1).filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        self.lost.get() + counts.sum::<u64>()
    }

    /// Replaces the rules.
    pub(crate) fn set(&self, rules: &[Rule]) {
        self.lost.set(self.lost());
        let (mut from, mut to) = (String::new(), String::new());
        let mut doubled = vec![String::new(); self.machines.len()];
        let mut doubled_here = String::new();
        let some = |percent: u8| match percent {
            100.. => String::new(),
            percent => format!("numgen random mod 100 < {percent} "),
        };
        for rule in rules {
            match *rule {
                Rule::LoseFrom(machine, here, percent) => {
                    let (here, some) = (here.ip(), some(percent));
                    writeln!(from, "iifname \"machine{machine}\" ip daddr {here} {some}counter drop").unwrap();
                }
                Rule::LoseTo(machine, here, percent) => {
                    let (here, some) = (here.ip(), some(percent));
                    writeln!(to, "oifname \"machine{machine}\" ip saddr {here} {some}counter drop").unwrap();
                }
                Rule::Double(machine, here, percent) => {
                    let (here, there, some) = (here.ip(), self.address(machine), some(percent));
                    writeln!(doubled[machine], "ip daddr {here} {some}dup to {here} device \"eth0\"").unwrap();
                    writeln!(doubled_here, "ip saddr {here} ip daddr {there} {some}dup to {there} device \"orgvault\"")
                        .unwrap();
                }
            }
        }
        let lost = format!(
            "table bridge orgvault {{\nchain from {{\ntype filter hook input priority 0\n{from}}}\n\
             chain to {{\ntype filter hook output priority 0\n{to}}}\n}}\n"
        );
        let twice = |rules: &str| {
            format!("table ip orgvault {{\nchain out {{\ntype filter hook output priority 0\n{rules}}}\n}}\n")
        };
        let here = format!("flush ruleset\n{lost}{}", twice(&doubled_here));
        nft(Command::new("nft"), &here).unwrap_or_else(|why| panic!("nft: {why}: {here}"));
        for (machine, rules) in doubled.iter().enumerate() {
            let there = format!("flush ruleset\n{}", twice(rules));
            nft(self.on(machine, "nft"), &there).unwrap_or_else(|why| panic!("nft: {why}: {there}"));
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for machine in &mut self.machines {
            let _ = machine.kill();
            let _ = machine.wait();
        }
        let _ = nft(Command::new("nft"), "flush ruleset\n");
        let _ = Command::new("ip").args(["link", "delete", "orgvault"]).status();
    }
}

fn ip(words: &str) {
    run(Command::new("ip").args(words.split(' ')));
}

/// Waits until a process has a separate network namespace.
fn wait_for_own(id: u32) {
    let network = |id: &str| std::fs::read_link(format!("/proc/{id}/ns/net")).ok();
    let (here, started) = (network("self"), Instant::now());
    while network(&id.to_string()).is_none_or(|there| Some(there) == here) {
        assert!(started.elapsed() < Duration::from_secs(10), "a machine gets no network of its own");
        std::thread::sleep(Duration::from_millis(2));
    }
}
