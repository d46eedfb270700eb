//! The public listener can open nothing: read off the source of what it is made of. The types say so too, see
//! `ServerParts`; this says it of what lies behind them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The files below `directory` (from the folder of the crates) whose code has the word `word`, from there.
fn files_with(directory: &str, word: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(directory);
    let mut waiting: Vec<PathBuf> = vec![root.clone()];
    let mut found = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if has_word(&fs::read_to_string(&path).unwrap(), word) {
            found.insert(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
        }
    }
    found
}

fn has_word(source: &str, word: &str) -> bool {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')).any(|found| found == word)
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn words_are_found_as_words_and_not_in_comments() {
    assert!(has_word("use a::{Opener, B};", "Opener") && has_word("Arc<dyn Opener>", "Opener"));
    assert!(!has_word("InformationOpener", "Opener") && !has_word("  /// An Opener\n// Opener", "Opener"));
}

#[test]
fn one_use_case_opens_and_two_are_made_of_it() {
    assert_eq!(files_with("vault-core/src/usecase", "Opener"), set(&["open_namespace.rs"]));
    let made_of_it = set(&["activate.rs", "check_namespace.rs", "mod.rs", "open_namespace.rs"]);
    assert_eq!(files_with("vault-core/src/usecase", "OpenNamespace"), made_of_it);
    for (use_case, file) in [("Activate", "activate.rs"), ("CheckNamespace", "check_namespace.rs")] {
        assert_eq!(files_with("vault-core/src/usecase", use_case), set(&[file, "mod.rs"]), "{use_case} is in no other");
    }
}

#[test]
fn only_the_activation_listener_has_them() {
    for word in ["Opener", "OpenNamespace"] {
        assert_eq!(files_with("vault-http/src", word), set(&[]), "{word}");
    }
    let listener = set(&["activation.rs", "lib.rs", "operation/activation/mod.rs"]);
    assert_eq!(files_with("vault-http/src", "ActivationParts"), listener);
}
