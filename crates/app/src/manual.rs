//! The manual pages, made from the same definitions as the help.

use crate::cli;
use crate::failure::Failure;
use crate::output::Output;
use clap_mangen::Man;
use std::fs;
use std::path::Path;

/// Writes a page for each command into `directory`, which is made if it does not exist: `orgvault.1`,
/// `orgvault-account-create.1` and so on.
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

/// The pages of `command` and all below it, with the names of their files.
fn pages(command: clap::Command) -> Vec<(String, Man)> {
    // Built as a whole, so that a page of a command says the names of those above it.
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
