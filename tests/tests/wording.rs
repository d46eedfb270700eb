//! A ratchet for plain language: in each directory, the number of words that only this project uses may only fall.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// File with the maximum number of occurrences in each directory.
const LIMITS: &str = "tests/wording.txt";

/// First lines of the file.
const HEADER: &str = "# Maximum number of occurrences of the phrases in tests/tests/wording.rs, by directory.\n\
                      # To lower them: ORGVAULT_UPDATE=1 cargo nextest run -p vault-tests wording\n";

/// Extensions of the files that are counted.
const EXTENSIONS: [&str; 6] = ["rs", "md", "py", "js", "mjs", "yaml"];

/// Phrases that readers would have to translate first, in lower case. Each has a common equivalent: authorize, decide
/// or validate instead of judge; contain or store instead of hold; a user or an attacker instead of somebody.
const PHRASES: &[&str] = &[
    "anew",
    "are over",
    "as many as",
    "at once",
    "begun",
    "beside",
    "brought",
    "by itself",
    "by themselves",
    "came of",
    "come of",
    "cut off",
    "deed",
    "deeds",
    "door",
    "flaw",
    "flaws",
    "given back",
    "gives back",
    "go on",
    "goes on",
    "hand out",
    "handed out",
    "hands out",
    "holds",
    "in the place of",
    "is over",
    "judge",
    "judged",
    "judgement",
    "judges",
    "knows",
    "lies",
    "look ups",
    "meanwhile",
    "nobody",
    "on its way",
    "put back",
    "says",
    "seat",
    "seats",
    "set back",
    "so many",
    "somebody",
    "surroundings",
    "tells",
    "the one before",
    "those before",
    "told",
    "unsure",
    "vouch",
    "vouches",
    "what is",
    "what was",
    "whoever",
    "worn",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Collects the files to count below `directory`.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "target" || name == "node_modules" || name == "wording.rs" {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|counted| extension == *counted)) {
            found.push(path);
        }
    }
}

/// Returns the directory that the limit of a file belongs to: a crate, a top-level directory, or `.`.
fn directory_of(file: &Path) -> String {
    let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    match parts.as_slice() {
        [crates, name, _, ..] if crates == "crates" => format!("crates/{name}"),
        [directory, _, ..] => directory.clone(),
        _ => ".".to_owned(),
    }
}

/// Returns the words of `text` in lower case. Names are split at underscores and capital letters.
fn words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut previous = ' ';
    for letter in text.chars() {
        if letter.is_ascii_alphabetic() {
            let is_first = !previous.is_ascii_alphabetic();
            if is_first || (previous.is_ascii_lowercase() && letter.is_ascii_uppercase()) {
                found.push(String::new());
            }
            found.last_mut().unwrap().push(letter.to_ascii_lowercase());
        }
        previous = letter;
    }
    found
}

/// Returns the phrases by their first word.
fn by_first_word() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut phrases: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for phrase in PHRASES {
        phrases.entry(phrase.split(' ').next().unwrap()).or_default().push(*phrase);
    }
    phrases
}

/// Adds the occurrences of each phrase in `text` to `found`.
fn count(text: &str, phrases: &BTreeMap<&str, Vec<&'static str>>, found: &mut BTreeMap<&'static str, usize>) {
    let words = words(text);
    for (position, word) in words.iter().enumerate() {
        for phrase in phrases.get(word.as_str()).into_iter().flatten() {
            let length = phrase.split(' ').count();
            if words.iter().skip(position).take(length).map(String::as_str).eq(phrase.split(' ')) {
                *found.entry(*phrase).or_default() += 1;
            }
        }
    }
}

/// Parses the limits: a directory and a number in each line.
fn limits(text: &str) -> BTreeMap<&str, usize> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once(' ').unwrap()).map(|(name, limit)| (name, limit.parse().unwrap())).collect()
}

#[test]
fn counted_phrases_do_not_increase() {
    let (mut found, phrases) = (Vec::new(), by_first_word());
    files(&root(), &mut found);
    let mut counts: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    for file in &found {
        let directory = directory_of(file.strip_prefix(root()).unwrap());
        count(&fs::read_to_string(file).unwrap(), &phrases, counts.entry(directory).or_default());
    }
    assert!(counts.len() > 10, "only {} directories were found", counts.len());

    let text = fs::read_to_string(root().join(LIMITS)).unwrap();
    let limits = limits(&text);
    let is_update = std::env::var_os("ORGVAULT_UPDATE").is_some();
    let mut lowered = HEADER.to_owned();
    let mut grown = Vec::new();
    for (directory, by_phrase) in &counts {
        let total: usize = by_phrase.values().sum();
        // An update adds limits of new directories, and never raises one.
        let missing = if is_update { total } else { 0 };
        let limit = limits.get(directory.as_str()).copied().unwrap_or(missing);
        lowered += &format!("{directory} {}\n", limit.min(total));
        if total > limit {
            grown.push(format!("{directory}: {total}, allowed {limit}: {by_phrase:?}"));
        }
    }
    if is_update {
        fs::write(root().join(LIMITS), lowered).unwrap();
    }
    assert!(grown.is_empty(), "use common words instead (compare with `git diff`):\n{}", grown.join("\n"));
}

#[test]
fn phrases_are_counted_in_prose_and_in_names() {
    let mut found = BTreeMap::new();
    let text = "// Whoever sees that it ended by\n// itself\nfn judge_all(told: HoldsAll) { \"retold, unseated\" }";
    count(text, &by_first_word(), &mut found);
    let expected = [("by itself", 1), ("holds", 1), ("judge", 1), ("told", 1), ("whoever", 1)];
    assert_eq!(found, BTreeMap::from(expected));
}
