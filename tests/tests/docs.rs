//! References in the documentation are valid.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Collects the Markdown files of the repository.
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

/// Returns the targets of Markdown links in `text`, outside code.
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

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_resolve() {
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

/// The table of contents contains every page once. Architecture decisions are not in the book.
#[test]
fn every_page_is_in_the_contents() {
    let docs = root().join("docs");
    let contents = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut listed: Vec<_> =
        links(&contents).into_iter().filter(|link| !link.is_empty()).map(|link| docs.join(link)).collect();
    listed.push(docs.join("SUMMARY.md"));
    listed.sort();
    let mut there = Vec::new();
    pages(&docs, &mut there);
    there.retain(|page| !page.starts_with(docs.join("adr")));
    there.sort();
    assert_eq!(listed, there);
}

/// Every path of this repository that a page names in code exists.
#[test]
fn named_files_exist() {
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

/// Collects the names of all tests in the Rust files below `directory`.
fn tests_in(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap().filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && name != "target" {
            tests_in(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.extend(attributed(&text).chain(listed(&text)).map(str::to_owned));
        }
    }
}

/// Returns functions with a test attribute.
fn attributed(text: &str) -> impl Iterator<Item = &str> {
    let mut waiting = false;
    text.lines().map(str::trim).filter_map(move |line| {
        waiting |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let (_, rest) = line.split_once("fn ").filter(|_| waiting && !line.starts_with("//"))?;
        waiting = false;
        rest.split('(').next()
    })
}

/// Returns functions that a macro converts to tests: those for both databases, and the cases of the store's contract.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    let both = text.split("\non_both_databases! {").skip(1);
    let names = both.filter_map(|rest| rest.split('}').next()).flat_map(|names| names.split([',', '\n']));
    let functions = text.lines().filter_map(|line| line.strip_prefix("pub async fn "));
    let contract = functions.filter_map(|line| line.strip_suffix("(suite: &dyn ContractStore) {"));
    names.chain(contract).map(str::trim).filter(|name| {
        name.contains('_')
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    })
}

/// Returns the table rows of a page that start with a number such as `L1`, as cells.
fn numbered_rows(page: &str) -> Vec<Vec<&str>> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let cells = rows.map(|line| line.trim_matches(['|', ' ']).split(" | ").collect::<Vec<_>>());
    cells.filter(|cells| is_number(cells[0])).collect()
}

/// Returns whether the cell is a capital letter and a number.
fn is_number(cell: &str) -> bool {
    let digits = cell.strip_prefix(|first: char| first.is_ascii_uppercase());
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Each row of the tables on security has tests on the page of tests, and the tests exist.
#[test]
fn security_rows_have_tests() {
    let mut tests = BTreeSet::new();
    for directory in ["crates", "tests"] {
        tests_in(&root().join(directory), &mut tests);
    }
    let sessions = fs::read_dir(root().join("tests/cmd")).unwrap();
    tests.extend(sessions.map(|file| file.unwrap().file_name().into_string().unwrap()));
    let promised = fs::read_to_string(root().join("docs/threats.md")).unwrap();
    let shown = fs::read_to_string(root().join("tests/security-tests.md")).unwrap();
    let (promised, shown) = (numbered_rows(&promised), numbered_rows(&shown));
    assert!(promised.len() > 40, "only {} rows were found", promised.len());
    let numbers = |rows: &[Vec<&str>]| rows.iter().map(|row| row[0].to_owned()).collect::<Vec<_>>();
    assert_eq!(numbers(&promised), numbers(&shown));
    for row in shown {
        let names: Vec<_> = row[row.len() - 1].split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test shows this: {row:?}");
        for name in names {
            assert!(tests.contains(name) || name == "cargo deny check", "there is no test {name}");
        }
    }
}
