//! The process is killed, gets no resources, or another program disturbs it.

use super::{Ground, Outcome};
use crate::rig::{Rig, wait};
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use vault_tests::{Client, Database};

/// The service is killed (SIGKILL) at any moment and started again. This covers only the death of the process: its
/// writes stay in the memory of the kernel, so missing syncs to disk are not detected.
pub(super) fn kill(ground: &Ground<'_>) -> Outcome {
    let mut rig = Rig::new(ground).share();
    rig.rounds(200, |rig, _| {
        let delay = rig.random.millis(20, 500);
        rig.work_while(|server| {
            thread::sleep(delay); // at a random moment
            server.take().expect("its server runs").kill();
        });
        rig.serve();
    });
    rig.finish()
}

/// The process reaches its limit of open file descriptors: 10 are free, and 100 idle connections use them.
pub(super) fn descriptors(ground: &Ground<'_>) -> Outcome {
    let mut rig = Rig::new(ground);
    rig.rounds(10, |rig, _| {
        let process = rig.running().id();
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("the limit");
        let [soft, hard] = [0, 1].map(|place| line.split_whitespace().nth(place).unwrap());
        let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
        limit(process, &format!("--nofile={}:{hard}", open + 10));
        let address = rig.address;
        rig.work(|| {
            thread::sleep(Duration::from_millis(200)); // the clients connect
            let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok();
            let idle: Vec<_> = (0..100).filter_map(connect).collect();
            thread::sleep(Duration::from_secs(2));
            drop(idle);
        });
        limit(process, &format!("--nofile={soft}:{hard}"));
        rig.heal();
        assert_eq!(rig.running().id(), process);
    });
    rig.finish()
}

/// Changes a limit of a running process.
fn limit(process: u32, limit: &str) {
    let status = Command::new("prlimit").arg(format!("--pid={process}")).arg(limit).status().unwrap();
    assert!(status.success(), "prlimit failed");
}

/// Returns a value of the status of a process, in bytes.
fn status(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a value of the status");
    line.trim_matches([':', '\t', ' ']).trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The process gets no more memory. A password hash, the largest allocation of the process, fails and the process
/// continues.
pub(super) fn no_memory(ground: &Ground<'_>) -> Outcome {
    /// Memory that the process can still allocate, in bytes: less than a hash.
    const SPARE: u64 = 12 << 20;
    let mut rig = Rig::new(ground);
    let mut refused = 0;
    rig.rounds(5, |rig, _| {
        // A new process has not yet allocated the memory of a hash.
        rig.stop();
        rig.serve();
        rig.wait_until_it_writes();
        let process = rig.running().id();
        limit(process, &format!("--data={}:", status(process, "VmData") + SPARE));
        let client = rig.client();
        let stranger = json!({"email": "unknown@example.com", "password": "wrong wrong wrong", "passcode": "000000"});
        // In parallel, so that every thread hashes. A login of an unknown account also needs a hash.
        let answers: Vec<_> = thread::scope(|scope| {
            let log_in = || client.request("POST", "/v1/login").json(&stranger).try_send();
            let logins: Vec<_> = (0..8).map(|_| scope.spawn(log_in)).collect();
            logins.into_iter().map(|login| login.join().unwrap()).collect()
        });
        for answer in answers {
            match answer {
                Ok(answer) if answer.status == 503 && answer.header("retry-after").is_some() => refused += 1,
                Ok(answer) if answer.status == 401 => {}
                answer => rig.lose(format!("a login without memory was answered {answer:?}")),
            }
        }
        if !rig.can_read() || !rig.try_write() {
            rig.lose("without memory for hashes, lists and writes do not continue");
        }
        limit(process, "--data=unlimited:");
        let answer = client.log_in(&stranger);
        if answer.status != 401 {
            rig.lose(format!("with memory again, a login was answered {}", answer.status));
        }
        if rig.running().id() != process || !rig.is_alive() {
            rig.lose("the server ended for want of memory");
        }
    });
    rig.tested("logins refused for want of memory", refused);
    rig.finish()
}

/// 256 clients log in, which is more than can wait for a hash, to a process that is limited to 512 MiB.
pub(super) fn login_storm(ground: &Ground<'_>) -> Outcome {
    /// Memory of a password hash, and for connections and request bodies, in addition to the memory of the idle process.
    const HASH: u64 = 19 << 20;
    const SLACK: u64 = 64 << 20;
    let lasts = Duration::from_secs(if ground.options.rounds.is_some() { 4 } else { 60 });
    let group = Group::new();
    let mut rig = Rig::new(ground);
    let (mut away, mut hashed, mut most) = (Vec::new(), 0, 0);
    let allowed = thread::available_parallelism().map_or(1, usize::from) as u64 * HASH + SLACK;
    rig.rounds(1, |rig, _| {
        rig.stop();
        rig.serve_by(group.as_ref().map(Group::program));
        rig.wait_until_it_writes();
        let base = rig.running().resident_bytes();
        let client = rig.client();
        let answers = rig.work(|| storm(&client, lasts));
        let used = status(rig.running().id(), "VmHWM").saturating_sub(base);
        if used > allowed {
            rig.lose(format!("the process used {used} bytes, more than {allowed}"));
        }
        if !rig.is_alive() {
            rig.lose("the server ended in a storm");
        }
        most = most.max(used);
        for (status, took) in answers {
            match status {
                429 | 503 => away.push(took),
                401 => hashed += 1,
                status => rig.lose(format!("a stranger's login was answered {status}")),
            }
        }
    });
    rig.tested("logins turned away", away.len());
    rig.report.figure("logins hashed", hashed);
    rig.report.times("until turned away", away);
    rig.report.figure("memory beyond that at rest", format!("{} MiB of {} allowed", most >> 20, allowed >> 20));
    rig.report.figure("limit", if group.is_some() { "512 MiB" } else { "none: no control group can be created here" });
    rig.finish()
}

/// Logs in to unknown accounts in parallel. Returns the status, or 0 without a response, and the time of each login.
fn storm(client: &Client, lasts: Duration) -> Vec<(u16, Duration)> {
    let started = Instant::now();
    thread::scope(|scope| {
        let stranger = |number: usize| {
            let email = format!("stranger.{number}@example.com");
            let login = json!({"email": email, "password": "wrong wrong wrong", "passcode": "000000"});
            let mut answers = Vec::new();
            while started.elapsed() < lasts {
                let asked = Instant::now();
                let answer = client.request("POST", "/v1/login").json(&login).try_send();
                answers.push((answer.map_or(0, |answer| answer.status), asked.elapsed()));
            }
            answers
        };
        let strangers: Vec<_> = (0..256).map(|number| scope.spawn(move || stranger(number))).collect();
        strangers.into_iter().flat_map(|stranger| stranger.join().unwrap()).collect()
    })
}

/// A control group with a memory limit. Removed after its processes have exited.
struct Group(PathBuf);

impl Group {
    /// Creates a group of cgroup version 1 or 2, if this is possible.
    fn new() -> Option<Self> {
        let name = format!("orgvault-faults-{}", std::process::id());
        let made = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        made.into_iter().find_map(|(parent, limit)| {
            let group = Self(Path::new(parent).join(&name));
            fs::create_dir(&group.0).ok()?;
            fs::write(group.0.join(limit), (512 << 20).to_string()).ok()?;
            Some(group)
        })
    }

    /// Creates a command that runs another program in the group.
    fn program(&self) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        shell
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Another program has the lock that every write needs, for 10 s.
pub(super) fn lock(ground: &Ground<'_>) -> Outcome {
    let mut rig = Rig::new(ground);
    rig.rounds(2, |rig, _| {
        rig.work(wait(500));
        let holder = Holder::locking(rig);
        rig.work(wait(10_000));
        if !rig.can_read() {
            rig.lose("lists were not answered in the meantime");
        }
        drop(holder);
        rig.heal();
    });
    rig.report.slowest_answer(Duration::from_secs(8));
    rig.finish()
}

/// A long read prevents a restart of the write-ahead log while clients write.
pub(super) fn long_read(ground: &Ground<'_>) -> Outcome {
    /// Time limit for the restart of the log after the read.
    const HEALED: Duration = Duration::from_secs(5);
    /// Maximum size of the log that the program keeps, and a write beyond it.
    const LOG_LIMIT: u64 = 65 << 20;
    let held = if ground.options.rounds.is_some() { 6_000 } else { 60_000 };
    let mut rig = Rig::new(ground);
    let log = rig.vault.data_dir().join("orgvault.db-wal");
    let size = || fs::metadata(&log).map_or(0, |log| log.len());
    let (mut restarted, mut largest, mut left) = (Vec::new(), 0, 0);
    rig.rounds(1, |rig, _| {
        rig.work(wait(500));
        let reader = Holder::on_file(rig, READING);
        let started = generation(&log);
        rig.work(wait(held));
        if generation(&log) != started {
            rig.lose("the log started over under the read, so nothing was tested");
        }
        largest = largest.max(size());
        drop(reader);
        let again = rig.work(|| {
            let freed = Instant::now();
            while generation(&log) == started && freed.elapsed() < HEALED {
                thread::sleep(Duration::from_millis(10));
            }
            let again = freed.elapsed();
            thread::sleep(Duration::from_secs(2)); // the program may take as long to check and truncate the log
            again
        });
        left = left.max(size());
        if again >= HEALED {
            rig.lose(format!("the log did not start over within {HEALED:?} after the read"));
        }
        if size() > LOG_LIMIT {
            rig.lose(format!("the log still has {} bytes after the read", size()));
        }
        restarted.push(again);
    });
    let sizes = format!("{} MiB at the end of the read, then {} MiB", largest >> 20, left >> 20);
    rig.report.figure("the write-ahead log", sizes);
    rig.report.times("from the end of the read until the log starts over", restarted);
    rig.report.slowest_answer(Duration::from_secs(5));
    rig.finish()
}

/// Returns the checkpoint sequence number in the header of the log, which counts its restarts.
fn generation(log: &Path) -> [u8; 4] {
    let mut number = [0; 4];
    let _ = fs::File::open(log).and_then(|log| log.read_exact_at(&mut number, 12)); // a truncated log has no header
    number
}

/// A process that has a lock until it is dropped.
struct Holder(Child);

impl Holder {
    fn locking(rig: &Rig<'_>) -> Self {
        if rig.vault.database() == Database::Sqlite {
            return Self::on_file(rig, LOCKING);
        }
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", rig.vault.url()]);
        Self::start(psql, "BEGIN; LOCK TABLE credentials, sessions IN EXCLUSIVE MODE; SELECT 'held';\n")
    }

    /// To SQLite, every program that locks the bytes of the log's index as SQLite does is another SQLite. This does not
    /// need the key of the file.
    fn on_file(rig: &Rig<'_>, program: &str) -> Self {
        let mut python = Command::new("python3");
        python.arg("-c").arg(program).arg(rig.vault.data_dir().join("orgvault.db-shm"));
        Self::start(python, "")
    }

    /// Starts a program and waits until it has printed that it has the lock.
    fn start(mut program: Command, input: &str) -> Self {
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "held");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Locks the byte of the write-ahead log's index that represents the write lock, until the standard input is closed.
const LOCKING: &str = "
import fcntl, sys
file = open(sys.argv[1], 'r+b')
fcntl.lockf(file, fcntl.LOCK_EX, 1, 120)
print('held', flush=True)
sys.stdin.read()
";

/// Locks the newest read mark in shared mode. The log is not overwritten from there on until the standard input is
/// closed.
const READING: &str = "
import fcntl, struct, sys
file = open(sys.argv[1], 'r+b')
unused = 0xffffffff
while True:
    file.seek(100)
    marks = struct.unpack('=5I', file.read(20))
    newest, mark = max((mark, number) for number, mark in enumerate(marks) if number > 0 and mark != unused)
    fcntl.lockf(file, fcntl.LOCK_SH, 1, 123 + mark)
    file.seek(100)
    if newest > 0 and struct.unpack('=5I', file.read(20))[mark] == newest:
        break
    fcntl.lockf(file, fcntl.LOCK_UN, 1, 123 + mark)
print('held', flush=True)
sys.stdin.read()
";
