//! Lists the cases of the contract suite: the functions of `src/contract` whose only parameter is the suite.

#![allow(clippy::print_stdout, reason = "cargo reads the output")]

use std::path::Path;
use std::{env, fs, io};

/// Each of their cases needs a separate database.
const ALONE: [&str; 3] = ["federation.rs", "instance_rotation.rs", "restore.rs"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src/contract");
    let files: Result<Vec<_>, _> = fs::read_dir("src/contract")?.map(|file| file.map(|file| file.path())).collect();
    let mut files = files?;
    files.sort();
    let mut list = String::new();
    for file in files.iter().filter(|file| !ALONE.iter().any(|name| file.ends_with(name))) {
        let text = fs::read_to_string(file)?;
        let name = |line: &str| {
            Some(line.strip_prefix("pub async fn ")?.strip_suffix("(suite: &dyn ContractStore) {")?.to_owned())
        };
        let cases: Vec<_> = text.lines().filter_map(name).collect();
        if let (Some(subject), false) = (file.file_stem(), cases.is_empty()) {
            list += &format!("{} {{ {} }}\n", subject.display(), cases.join(" "));
        }
    }
    let cases = format!(
        "#[doc(hidden)]\n#[macro_export]\nmacro_rules! all_contract_cases {{\n($make:expr) => {{\n\
         $crate::contract_cases! {{ $make;\n{list}}} }};\n}}\n"
    );
    fs::write(Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("contract_cases.rs"), cases)
}
