//! What the documentation points to is there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The Markdown files of the repository.
fn pages(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The targets of Markdown links in `text`, outside of code.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if !code {
            found.extend(line.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
        }
    }
    found
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut files = Vec::new();
    pages(&root(), &mut files);
    assert!(!files.is_empty());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for link in links(&text).into_iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.clone() } else { file.parent().unwrap().join(path) };
            assert!(target.exists(), "{}: {link} leads nowhere", file.display());
            if !fragment.is_empty() {
                let page = fs::read_to_string(&target).unwrap();
                let there = page.lines().any(|line| line.starts_with('#') && anchor(line) == fragment);
                assert!(there, "{}: there is no heading for {link}", file.display());
            }
        }
    }
}

/// A path of this repository that a page names in code is there.
#[test]
fn named_files_are_there() {
    let mut files = Vec::new();
    pages(&root(), &mut files);
    for file in files.iter().filter(|file| !file.ends_with("CHANGELOG.md")) {
        let text = fs::read_to_string(file).unwrap();
        let in_code = text.split('`').skip(1).step_by(2);
        for name in in_code.filter(|name| ["crates/", "tests/", "docs/"].iter().any(|start| name.starts_with(start))) {
            let plain = name.split([' ', '*', '{', '<', '\u{2026}', ':']).next().unwrap();
            assert!(root().join(plain).exists(), "{} names {name}", file.display());
        }
    }
}
