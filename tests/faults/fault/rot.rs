//! Bytes of the stored file change spontaneously. The service must reject the damaged data and never return wrong data.

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;
use std::fs;

pub(super) fn happen(ground: &Ground<'_>) -> Report {
    let mut rig = Rig::new("bit-rot", ground);
    rig.work(|| std::thread::sleep(std::time::Duration::from_millis(500)));
    rig.check();
    let mut random = ground.random();
    let file = rig.vault.data_dir().join("orgvault.db");
    // A server on a damaged file may record a newer state in the anchor, and would then reject the intact file as an
    // earlier one.
    let anchor = rig.vault.data_dir().join("orgvault.anchor");
    let (mut refused_start, mut refused_read, mut whole) = (0_usize, 0_usize, 0_usize);
    for _ in 0..ground.options.rounds(200) {
        rig.server.take().expect("its server runs").stop();
        let (sound, anchored) = (fs::read(&file).unwrap(), fs::read(&anchor).unwrap());
        let mut rotten = sound.clone();
        for _ in 0..=random.below(64) {
            let place = random.below(rotten.len());
            rotten[place] ^= 1 << random.below(8);
        }
        fs::write(&file, rotten).unwrap();
        let mut server = rig.spawn_by(None);
        if super::syscalls::wait(&mut server) {
            rig.server = Some(server);
            match rig.reads_rightly() {
                Ok(true) => whole += 1,
                Ok(false) => refused_read += 1,
                Err(wrong) => rig.report.losses.push(wrong),
            }
            rig.kill();
        } else {
            refused_start += 1;
        }
        for companion in ["orgvault.db-wal", "orgvault.db-shm"] {
            let _ = fs::remove_file(rig.vault.data_dir().join(companion));
        }
        fs::write(&file, sound).unwrap();
        fs::write(&anchor, anchored).unwrap();
        rig.serve();
        rig.report.rounds += 1;
    }
    rig.check();
    rig.report.figure("the server refused to start", refused_start);
    rig.report.figure("some reads were refused", refused_read);
    rig.report.figure("all that was read was right", whole);
    rig.finish()
}
