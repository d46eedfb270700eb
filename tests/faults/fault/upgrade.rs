//! A rolling upgrade: servers of the previous build and of this build use one PostgreSQL database during and after its
//! migration.

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;
use vault_tests::Vault;
use vault_tests::binary;
use vault_tests::process::Server;

pub(super) fn rolling(ground: &Ground<'_>) -> Report {
    let Some(earlier) = &ground.options.earlier else {
        return Report::skipped("rolling-upgrade", ground.database, "--earlier names no binary of the build before");
    };
    // The earlier build creates the vault and its schema.
    let vault = Vault::absent_in(&ground.options.shared.dir, ground.new_url());
    let program = || binary::isolated(Command::new(earlier));
    binary::Run::of(&mut vault.on_this(program(), &["init"])).done();
    let vault = vault.granted();
    let old = |vault: &Vault| {
        let command = vault.on_this(program(), &["serve", "--login-rate", "0"]);
        Server::start(command, &vault.scratch("output-earlier"), &vault.scratch("log"))
    };
    let before = [old(&vault), old(&vault)];
    // The owner of the tables migrates while the servers run.
    let migrated = binary::Run::of(&mut vault.owner_command(&["migrate"])).done();
    let vault = vault.granted();
    let mut rig = Rig::served("rolling-upgrade", ground, vault, None);
    rig.report.figure("migrate", migrated.stdout.trim());
    let addresses: Vec<SocketAddr> = before.iter().map(|server| server.address).chain([rig.address]).collect();
    for _ in 0..ground.options.rounds(10) {
        rig.work_on(&addresses, || std::thread::sleep(Duration::from_secs(2)));
        rig.check();
        let client = before[0].client();
        rig.check_by(&client);
        rig.check_deeply();
    }
    for server in before {
        let ended = server.stop();
        if ended != Some(0) {
            rig.report.losses.push(format!("an earlier server ended with {ended:?}"));
        }
    }
    rig.work(|| std::thread::sleep(Duration::from_secs(1)));
    rig.check();
    rig.finish()
}
