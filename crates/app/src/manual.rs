//! Manual pages, generated from the command definitions.

use crate::cli;
use clap_mangen::Man;
use std::fs;
use std::path::Path;
use vault_cli::failure::Failure;
use vault_cli::output::Output;

/// Writes a page per command into `directory`, such as `orgvault.1` and `orgvault-account-create.1`. Creates the
/// directory if necessary.
pub(crate) fn write(directory: &Path, output: Output) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot write to {}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    let pages = pages(cli::command().disable_help_subcommand(true));
    for (name, page) in &pages {
        let mut text = Vec::new();
        page.render(&mut text).map_err(failed)?;
        fs::write(directory.join(name), text).map_err(failed)?;
    }
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    output.print(&names, &format!("Wrote {} manual pages to {}.", names.len(), directory.display()))
}

/// Returns the pages of `command` and its subcommands, with their file names.
fn pages(command: clap::Command) -> Vec<(String, Man)> {
    // Build the whole tree first, so that each page contains the names of the parent commands.
    let mut command = command.mut_subcommand("settings", |settings| settings.hide(false));
    command.build();
    let mut found = Vec::new();
    collect(&command, "orgvault", &mut found);
    found
}

fn collect(command: &clap::Command, name: &str, found: &mut Vec<(String, Man)>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, &format!("{name}-{}", below.get_name()), found);
    }
    let page = Man::new(command.clone())
        .title(name.to_uppercase())
        .manual("OrgVault")
        .source(concat!("orgvault ", env!("CARGO_PKG_VERSION")));
    found.push((format!("{name}.1"), page));
}
