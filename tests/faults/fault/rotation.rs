//! Keys are rotated under saves: the organization key, the instance key and the root key, while clients save on two
//! servers, or on one with the embedded file. Some rotations are killed and repeated. After a rotation of the root key,
//! all servers are killed and started, as docs/operate/keys.md requires before the next rotation of the instance key.

use super::Ground;
use crate::random::Random;
use crate::report::Report;
use crate::rig::Rig;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use vault_tests::binary::Run;
use vault_tests::{Database, Vault};

/// Interval, in rounds, of rotations of the root key.
const ROOT_EVERY: usize = 3;

pub(super) fn happen(ground: &Ground<'_>) -> Report {
    let mut rig = Rig::new("rotation", ground).share(ground);
    let (mut random, mut rotations) = (ground.random(), Rotations::default());
    let replica = |rig: &Rig| (ground.database == Database::Postgres).then(|| rig.replica());
    let mut other = replica(&rig);
    for round in 0..ground.options.rounds(30) {
        let addresses: Vec<SocketAddr> = other.iter().map(|server| server.address).chain([rig.address]).collect();
        let mut commands = commands(&rig.vault, round);
        let wrong = rig.work_on(&addresses, || {
            std::thread::sleep(random.millis(10, 100));
            let wrong: Vec<_> = commands.iter_mut().filter_map(|one| rotations.make(one, &mut random).err()).collect();
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

/// A rotation of a key.
struct Rotation {
    command: Command,
    /// The file of the new root key, and the path that it replaces.
    root: Option<[PathBuf; 2]>,
}

/// Returns the rotations of a round: an organization key, the instance key, and in some rounds the root key.
fn commands(vault: &Vault, round: usize) -> Vec<Rotation> {
    let of = |arguments: &[&str]| vault.owner_command(&[&["key", "rotate"], arguments].concat());
    let mut rotations: Vec<_> =
        [of(&["--organization", "Acme"]), of(&["--instance"])].map(|command| Rotation { command, root: None }).into();
    if has_new_root(round) {
        let new = vault.scratch(&format!("root-{round}.key"));
        let command = of(&["--root", "--new-root-key", new.to_str().unwrap()]);
        rotations.push(Rotation { command, root: Some([new, vault.data_dir().join("root.key")]) });
    }
    rotations
}

/// Number of completed and of killed rotations.
#[derive(Default)]
struct Rotations {
    made: usize,
    killed: usize,
}

impl Rotations {
    /// Runs a rotation. Some are killed and repeated.
    fn make(&mut self, Rotation { command, root }: &mut Rotation, random: &mut Random) -> Result<(), String> {
        if random.below(3) == 0 {
            let delay = random.millis(5, 400);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut rotation = command.spawn().unwrap();
            std::thread::sleep(delay); // at a random moment
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
