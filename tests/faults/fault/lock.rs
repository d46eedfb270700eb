//! Another program has the lock that every write needs, for 10 s.

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use vault_tests::Database;

/// Time for which the lock is taken.
const HELD: Duration = Duration::from_secs(10);
/// Time limit of requests while the lock is taken.
const LONGEST: Duration = Duration::from_millis(8_000);

pub(super) fn happen(ground: &Ground<'_>) -> Report {
    let mut rig = Rig::new("lock", ground);
    let mut healed = Vec::new();
    for _ in 0..ground.options.rounds(2) {
        rig.work(|| std::thread::sleep(Duration::from_millis(500)));
        let holder = Holder::begin(&rig);
        rig.work(|| std::thread::sleep(HELD));
        if !rig.can_read() {
            rig.report.losses.push("lists were not answered in the meantime".to_owned());
        }
        drop(holder);
        healed.push(rig.wait_until_it_writes());
        rig.check();
    }
    rig.report.slowest_answer(LONGEST);
    rig.report.times("from the release to the next write", healed);
    rig.finish()
}

/// A process that has a lock until it is dropped.
pub(super) struct Holder(Child);

impl Holder {
    fn begin(rig: &Rig) -> Self {
        match rig.vault.database() {
            Database::Sqlite => Self::on_file(rig, LOCKING),
            Database::Postgres => {
                let mut psql = Command::new("psql");
                psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", rig.vault.url()]);
                let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
                let statements = "BEGIN; LOCK TABLE credentials, sessions IN EXCLUSIVE MODE; SELECT 'held';\n";
                child.stdin.as_mut().unwrap().write_all(statements.as_bytes()).unwrap();
                Self(ready(child))
            }
        }
    }
}

impl Holder {
    /// Starts a process that reads the embedded file in its current state until it is dropped.
    pub(super) fn reading(rig: &Rig) -> Self {
        Self::on_file(rig, READING)
    }

    /// To SQLite, every program that locks the bytes of the log's index as SQLite does is another SQLite. This does not
    /// need the key of the file.
    fn on_file(rig: &Rig, program: &str) -> Self {
        let mut holder = Command::new("python3");
        holder.arg("-c").arg(program).arg(rig.vault.data_dir().join("orgvault.db-shm"));
        Self(ready(holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()))
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

/// Waits until the child has printed that it has the lock.
fn ready(mut child: Child) -> Child {
    use std::io::{BufRead as _, BufReader};
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "held");
    child
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
