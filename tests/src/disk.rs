//! A small file system in memory, which tests can fill.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::Command;

/// Mounts a file system in memory with these `tmpfs` options. Requires root.
pub fn mount(directory: &Path, options: &str) {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(directory);
    assert!(command.status().unwrap().success());
}

/// Uses all available space.
pub fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    for piece in [vec![0_u8; 64 * 1024], vec![0; 1]] {
        loop {
            match file.write(&piece) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}
