//! Keys are replaced under saves: an organization's, the instance's and the root key, while clients save on two servers (one, on the
//! embedded file). Some rotations are killed on the way and made again. After a new root key all servers are killed and start anew, as
//! docs/operate/keys.md asks for before the next instance key.

use super::Ground;
use crate::chance::Chance;
use crate::report::Report;
use crate::rig::Rig;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use vault_tests::binary::Run;
use vault_tests::{Database, Vault};

/// How often the root key is replaced.
const ROOT_EVERY: usize = 3;

pub(super) fn happen(ground: &Ground<'_>) -> Report {
    let mut rig = Rig::new("rotation", ground).share(ground);
    let (mut chance, mut rotations) = (ground.chance(), Rotations::default());
    let replica = |rig: &Rig| (ground.database == Database::Postgres).then(|| rig.replica());
    let mut other = replica(&rig);
    for round in 0..ground.options.rounds(30) {
        let addresses: Vec<SocketAddr> = other.iter().map(|server| server.address).chain([rig.address]).collect();
        let mut commands = commands(&rig.vault, round);
        let wrong = rig.work_on(&addresses, || {
            std::thread::sleep(chance.millis(10, 100));
            let wrong: Vec<_> = commands.iter_mut().filter_map(|one| rotations.make(one, &mut chance).err()).collect();
            std::thread::sleep(Duration::from_millis(100));
            wrong
        });
        rig.report.losses.extend(wrong);
        rig.check();
        if let Some(server) = &other {
            rig.marks.read(server);
        }
        if has_new_root(round) {
            rig.kill();
            drop(other.take());
            rig.serve();
            other = replica(&rig);
        }
    }
    rig.report.figure("rotations", rotations.made);
    rig.report.figure("of them killed and made again", rotations.killed);
    drop(other);
    rig.finish()
}

const fn has_new_root(round: usize) -> bool {
    round % ROOT_EVERY == ROOT_EVERY - 1
}

/// What replaces a key.
struct Rotation {
    command: Command,
    /// The file of the new root key, and the place that it takes.
    root: Option<[PathBuf; 2]>,
}

/// Those of a round: an organization's key, then the instance key, and sometimes the root key.
fn commands(vault: &Vault, round: usize) -> Vec<Rotation> {
    let of = |arguments: &[&str]| vault.owner_command(&[&["key", "rotate"], arguments].concat());
    let mut rotations: Vec<_> =
        [of(&["--organization", "Acme"]), of(&["--instance"])].map(|command| Rotation { command, root: None }).into();
    if has_new_root(round) {
        let new = vault.scratch(&format!("root-{round}.key"));
        let command = of(&["--root", "--new-root-key-file", new.to_str().unwrap()]);
        rotations.push(Rotation { command, root: Some([new, vault.data_dir().join("root.key")]) });
    }
    rotations
}

/// How many were made.
#[derive(Default)]
struct Rotations {
    made: usize,
    killed: usize,
}

impl Rotations {
    /// Makes one, sometimes again after it was killed.
    fn make(&mut self, Rotation { command, root }: &mut Rotation, chance: &mut Chance) -> Result<(), String> {
        if chance.below(3) == 0 {
            let delay = chance.millis(5, 400);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut rotation = command.spawn().unwrap();
            std::thread::sleep(delay); // at any moment, not at a certain one
            let has_ended = rotation.try_wait().unwrap().is_some();
            let _ = rotation.kill();
            rotation.wait().unwrap();
            self.killed += usize::from(!has_ended);
        }
        let run = Run::of(command);
        if run.status != Some(0) {
            return Err(format!("{command:?}: {run:?}"));
        }
        self.made += 1;
        if let Some([new, place]) = root {
            fs::rename(new, place).unwrap();
        }
        Ok(())
    }
}
