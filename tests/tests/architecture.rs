//! Rules of the architecture that `deny.toml` cannot express, checked on the dependency graph and the manifests.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn metadata() -> Metadata {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    MetadataCommand::new()
        .manifest_path(manifest)
        .other_options(["--locked".to_owned(), "--offline".to_owned()])
        .exec()
        .unwrap()
}

/// Returns the direct dependencies of a package of these kinds: shipped, or also for build and tests.
fn direct<'a>(package: &'a Package, kinds: &[DependencyKind]) -> BTreeSet<&'a str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| kinds.contains(&dependency.kind))
        .map(|dependency| dependency.name.as_str())
        .collect()
}

const SHIPPED: [DependencyKind; 2] = [DependencyKind::Normal, DependencyKind::Build];
const ANY: [DependencyKind; 3] = [DependencyKind::Normal, DependencyKind::Build, DependencyKind::Development];

/// Returns all direct and indirect dependencies that `root` ships with.
fn shipped<'a>(metadata: &'a Metadata, root: &str) -> BTreeSet<&'a str> {
    let resolve = metadata.resolve.as_ref().unwrap();
    let package = |id| metadata.packages.iter().find(|package| package.id == id).unwrap();
    let node = |id| resolve.nodes.iter().find(|node| node.id == id).unwrap();
    let mut waiting = vec![metadata.packages.iter().find(|package| package.name.as_str() == root).unwrap().id.clone()];
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        for dependency in &node(id).deps {
            let ships = dependency.dep_kinds.iter().any(|kind| SHIPPED.contains(&kind.kind));
            if ships && seen.insert(package(dependency.pkg.clone()).name.as_str()) {
                waiting.push(dependency.pkg.clone());
            }
        }
    }
    seen
}

fn member<'a>(metadata: &'a Metadata, name: &str) -> &'a Package {
    metadata
        .workspace_packages()
        .into_iter()
        .find(|package| package.name.as_str() == name)
        .unwrap_or_else(|| panic!("no member {name}"))
}

const RUNTIMES: [&str; 5] = ["tokio", "actix-rt", "async-std", "smol", "futures-executor"];
const AMBIENT: [&str; 3] = ["getrandom", "rand", "chrono"];
const ADAPTERS: [&str; 6] =
    ["vault-crypto", "vault-diesel", "vault-http", "vault-storage", "vault-notify", "vault-client"];
/// Technologies that `deny.toml` does not limit to adapters.
const TECHNOLOGIES: [&str; 6] = ["ring", "hmac", "hkdf", "sha2", "clap", "metrics"];

#[test]
fn core_depends_on_no_technology() {
    let metadata = metadata();
    let found = shipped(&metadata, "vault-core");
    for foreign in
        [&TECHNOLOGIES[..], &RUNTIMES, &ADAPTERS, &["vault-api", "vault-testkit", "vault-embed", "app"]].concat()
    {
        assert!(!found.contains(foreign), "vault-core ships with {foreign}");
    }
    // Only direct dependencies, because other members may enable features of a shared dependency.
    let found = direct(member(&metadata, "vault-core"), &SHIPPED);
    for source in AMBIENT {
        assert!(!found.contains(source), "vault-core depends on {source}");
    }
    let wire = shipped(&metadata, "vault-api");
    for foreign in [&TECHNOLOGIES[..], &RUNTIMES, &ADAPTERS, &["vault-core"]].concat() {
        assert!(!wire.contains(foreign), "vault-api ships with {foreign}");
    }
}

#[test]
fn adapters_do_not_see_each_other() {
    let metadata = metadata();
    for adapter in ADAPTERS {
        let found = direct(member(&metadata, adapter), &ANY);
        for other in ADAPTERS.iter().chain(&["vault-embed", "app"]).filter(|other| **other != adapter) {
            assert!(!found.contains(other), "{adapter} depends on {other}");
        }
        assert!(!shipped(&metadata, adapter).contains("vault-testkit"), "{adapter} ships with test code");
    }
    assert!(!shipped(&metadata, "app").contains("vault-testkit"));
    assert!(!shipped(&metadata, "vault-client").contains("vault-core"), "a client needs the wire types alone");
}

#[test]
fn only_app_and_vault_embed_name_adapters() {
    let metadata = metadata();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        let found = direct(package, &SHIPPED);
        match name {
            "app" => {}
            // The commands of clients talk to a server, and read secret files by the rules of the root key's file.
            "vault-cli" => {
                for adapter in ADAPTERS.iter().filter(|adapter| !["vault-client", "vault-crypto"].contains(adapter)) {
                    assert!(!found.contains(adapter), "commands of clients ship with {adapter}");
                }
                assert!(
                    !shipped(&metadata, name).contains("actix-web"),
                    "commands of clients serve no requests of users"
                );
            }
            "vault-embed" => {
                for adapter in ADAPTERS.iter().filter(|adapter| !["vault-crypto", "vault-diesel"].contains(adapter)) {
                    assert!(!found.contains(adapter), "an embedder would ship with {adapter}");
                }
                assert!(!shipped(&metadata, name).contains("actix-web"), "an embedder has a web framework of its own");
            }
            // The acceptance tests with their client, and the database on a simulated disk.
            "vault-tests" | "vault-simulator" | "simulated-disk" | "xtask" => {}
            _ => {
                for adapter in ADAPTERS {
                    assert!(!found.contains(adapter), "{name} names {adapter}");
                }
            }
        }
        let uses = direct(package, &ANY).contains("vault-embed");
        assert!(!uses || name == "app", "{name} depends on vault-embed, which would make a circle or hide an adapter");
    }
}

/// Members that are not published libraries.
const PROGRAMS: [&str; 6] = ["app", "vault-cli", "vault-tests", "vault-simulator", "simulated-disk", "xtask"];

/// Members with unsafe code and their files: one block in shipped code, and C callbacks in tests.
const UNSAFE_MEMBERS: [(&str, &[&str]); 3] = [
    ("vault-crypto", &["huge_pages.rs"]),
    ("vault-simulator", &["failing_malloc.rs"]),
    ("simulated-disk", &["vfs.rs"]),
];

/// Collects the Rust files under `directory`.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// All other members forbid unsafe code.
#[test]
fn unsafe_code_is_only_in_named_files() {
    let metadata = metadata();
    for (name, expected) in UNSAFE_MEMBERS {
        let mut files = Vec::new();
        sources(member(&metadata, name).manifest_path.parent().unwrap().as_std_path(), &mut files);
        let mut allowed: Vec<_> = files
            .iter()
            .flat_map(|file| {
                let text = fs::read_to_string(file).unwrap();
                let count = text.matches("(unsafe_code").count();
                std::iter::repeat_n(file.file_name().unwrap().to_owned(), count)
            })
            .collect();
        allowed.sort();
        assert_eq!(allowed, expected, "{name}");
    }
    for shipped_from in ["app", "vault-embed"] {
        assert!(!shipped(&metadata, shipped_from).contains("vault-simulator"), "{shipped_from} ships with test code");
    }
}

/// Clippy does not merge configuration files, so core's own repeats the workspace's and extends it.
#[test]
fn core_bans_what_the_workspace_bans_and_more() {
    let root = metadata().workspace_root;
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let (workspace, core) = (read("clippy.toml"), read("crates/vault-core/clippy.toml"));
    for line in workspace.lines() {
        assert!(core.lines().any(|own| own == line), "crates/vault-core/clippy.toml lacks {line}");
    }
    for banned in
        ["std::fs::File", "std::net::TcpStream", "std::env::var", "std::process::Command", "std::time::Instant"]
    {
        assert!(core.contains(&format!("\"{banned}\"")), "crates/vault-core/clippy.toml lacks {banned}");
    }
}

#[test]
fn members_inherit_versions_and_lints() {
    let metadata = metadata();
    let root = metadata.workspace_root.as_std_path();
    let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"forbid\""), "the workspace forbids unsafe code");
    assert!(workspace.contains("missing_docs"), "the workspace asks for documentation");
    for package in metadata.workspace_packages() {
        let manifest = fs::read_to_string(&package.manifest_path).unwrap();
        let lints = if UNSAFE_MEMBERS.iter().any(|(name, _)| *name == package.name.as_str()) {
            let section = |text: &str| -> Vec<String> {
                let lines = text.lines().skip_while(|line| !line.contains("lints.rust]"));
                let lines = lines.take_while(|line| !line.starts_with('[') || line.contains("lints."));
                lines.filter(|line| !line.is_empty() && !line.starts_with('[')).map(str::to_owned).collect()
            };
            let expected = section(&workspace).join("\n").replace("\"forbid\"", "\"deny\"");
            section(&manifest).join("\n") == expected
        } else {
            manifest.contains("[lints]\nworkspace = true")
        };
        assert!(lints, "{} has lints of its own", package.name);
        for field in ["version", "edition", "rust-version", "license"] {
            assert!(manifest.contains(&format!("{field}.workspace = true")), "{}: {field}", package.name);
        }
        if PROGRAMS.contains(&package.name.as_str()) {
            assert!(manifest.contains("\npublish = false\n"), "{} is no library", package.name);
        } else {
            for field in ["readme", "publish"] {
                assert!(manifest.contains(&format!("{field}.workspace = true")), "{}: {field}", package.name);
            }
            assert!(package.description.as_ref().is_some_and(|text| text.len() > 20), "{} is described", package.name);
        }
    }
}

#[test]
fn each_file_of_tests_is_part_of_its_program() {
    let metadata = metadata();
    let mut programs = 0;
    for package in metadata.workspace_packages() {
        for program in
            package.targets.iter().filter(|target| target.is_test() && target.src_path.ends_with("tests/main.rs"))
        {
            programs += 1;
            let main = fs::read_to_string(&program.src_path).unwrap();
            for entry in fs::read_dir(program.src_path.parent().unwrap()).unwrap() {
                let path = entry.unwrap().path();
                let stem = path.file_stem().unwrap().to_str().unwrap();
                if path.extension().is_some_and(|extension| extension == "rs") && stem != "main" {
                    assert!(
                        main.lines().any(|line| line == format!("mod {stem};")),
                        "{} runs nowhere: {} does not name it",
                        path.display(),
                        program.src_path,
                    );
                }
            }
        }
    }
    assert!(programs >= 7, "{programs} programs of tests: did their names change?");
}
