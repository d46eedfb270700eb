//! The service is killed (SIGKILL) at any moment and started again. This covers only the death of the process: its
//! writes stay in the memory of the kernel, so missing syncs to disk are not detected.

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;

/// Interval, in rounds, of the check of all stored data.
const DEEPLY_EVERY: usize = 100;

pub(super) fn happen(ground: &Ground<'_>) -> Report {
    let mut rig = Rig::new("kill", ground).share(ground);
    let mut random = ground.random();
    let mut starts = Vec::new();
    for round in 0..ground.options.rounds(200) {
        let delay = random.millis(20, 500);
        rig.work_while(|server| {
            std::thread::sleep(delay); // at a random moment
            server.take().expect("its server runs").kill();
        });
        starts.push(rig.serve());
        rig.check();
        if round % DEEPLY_EVERY == DEEPLY_EVERY - 1 {
            rig.check_deeply();
        }
    }
    rig.report.times("from start to ready", starts);
    rig.finish()
}
