//! Writes the manual pages of all commands to a directory, for packages.

use clap_mangen::Man;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let directory =
        env::args_os().nth(1).map(PathBuf::from).ok_or_else(|| io::Error::other("usage: man-pages DIRECTORY"))?;
    fs::create_dir_all(&directory)?;
    let command = orgvault::command().disable_help_subcommand(true);
    let mut command = command.mut_subcommand("settings", |settings| settings.hide(false));
    // Build the whole tree first, so that each page contains the names of the parent commands.
    command.build();
    write(&command, "orgvault", &directory)
}

/// Writes the pages of `command` and its subcommands, such as `orgvault.1` and `orgvault-account-create.1`.
fn write(command: &clap::Command, name: &str, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write(below, &format!("{name}-{}", below.get_name()), directory)?;
    }
    let page = Man::new(command.clone())
        .title(name.to_uppercase())
        .manual("OrgVault")
        .source(concat!("orgvault ", env!("CARGO_PKG_VERSION")));
    page.render(&mut fs::File::create(directory.join(format!("{name}.1")))?)
}
