//! The table of names, values and reasons: `formats.json`.

use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;
use vault_core::credential::CredentialType;

/// Maximum number of additional words around a name.
const MAX_WORDS: usize = 4;

type Lists = BTreeMap<String, Vec<String>>;

/// Names are compared in lower case without punctuation, and without the words in `prefixes` and `stores` around them.
#[derive(Default, Deserialize)]
pub(crate) struct Table {
    fields: BTreeMap<String, Lists>,
    prefixes: Vec<String>,
    stores: Vec<String>,
    names_of_stores: Vec<String>,
    refused: Lists,
    refused_if_true: Vec<String>,
    refused_unless_true: Vec<String>,
    address_words: Vec<String>,
    azure_words: Vec<String>,
    harmless: Vec<String>,
    harmless_values: Vec<String>,
    /// Values that change nothing, by name.
    defaults: BTreeMap<String, String>,
    harmless_prefixes: Vec<String>,
    flags: BTreeMap<String, Option<bool>>,
    pub(crate) rclone: Programs,
    pub(crate) airflow: Programs,
    pub(crate) azure_clouds: Lists,
    pub(crate) azure_services: Vec<String>,
    reasons: BTreeMap<String, String>,
}

/// The entry types of a program.
#[derive(Default, Deserialize)]
pub(crate) struct Programs {
    types: BTreeMap<String, String>,
    /// rclone providers that always use virtual-hosted addresses.
    #[serde(default)]
    pub(crate) virtual_hosted: Vec<String>,
}

impl Programs {
    /// Returns the credential type for the program's type `name`.
    pub(crate) fn kind(&self, name: &str) -> Option<CredentialType> {
        CredentialType::parse(self.types.get(name)?)
    }
}

/// The meaning of a name.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    pub(crate) field: &'static str,
    /// Position among the field's names. `None` if the name has additional words.
    pub(crate) rank: Option<usize>,
    /// Set if the name belongs to a store other than Amazon S3.
    pub(crate) foreign: bool,
}

/// Fields and ranks by name.
pub(crate) type Names = HashMap<&'static str, (&'static str, usize)>;

static TABLE: LazyLock<Table> =
    LazyLock::new(|| serde_json::from_str(include_str!("formats.json")).unwrap_or_default());
static NAMES: LazyLock<BTreeMap<&'static str, Names>> =
    LazyLock::new(|| TABLE.fields.iter().map(|(kind, fields)| (kind.as_str(), inverted(fields))).collect());
static REFUSED: LazyLock<Names> = LazyLock::new(|| inverted(&TABLE.refused));

fn inverted(lists: &'static Lists) -> Names {
    let aliases = |(field, aliases): (&'static String, &'static Vec<String>)| {
        aliases.iter().enumerate().map(move |(rank, alias)| (alias.as_str(), (field.as_str(), rank)))
    };
    lists.iter().flat_map(aliases).collect()
}

pub(crate) fn table() -> &'static Table {
    &TABLE
}

/// Converts a name to the table's normal form: lower case, without punctuation.
pub(crate) fn normal(name: &str) -> String {
    name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Returns `name` without one of `words` at its start or end.
fn without<'a>(words: &'a [String], name: &'a str) -> impl Iterator<Item = &'a str> {
    words.iter().flat_map(|word| [name.strip_prefix(&**word), name.strip_suffix(&**word)]).flatten()
}

fn resolve(names: &Names, name: &str, depth: usize) -> Option<Name> {
    if let Some((field, rank)) = names.get(name) {
        return Some(Name { field, rank: Some(*rank), foreign: false });
    }
    if depth == 0 {
        return None;
    }
    let inner = |words, foreign| {
        without(words, name)
            .filter(|rest| !rest.is_empty())
            .find_map(|rest| resolve(names, rest, depth - 1))
            .map(|found| Name { rank: None, foreign: found.foreign || foreign, ..found })
    };
    inner(&TABLE.prefixes, false).or_else(|| inner(&TABLE.stores, true))
}

fn among(list: &[String], name: &str, depth: usize) -> bool {
    let rest = |words| without(words, name).any(|rest| !rest.is_empty() && among(list, rest, depth - 1));
    list.iter().any(|other| other == name) || (depth > 0 && (rest(&TABLE.prefixes) || rest(&TABLE.stores)))
}

impl Table {
    /// Returns the field of `kind` that `name` sets. `name` must be in normal form.
    pub(crate) fn field(&self, kind: CredentialType, name: &str) -> Option<Name> {
        let found = resolve(NAMES.get(kind.as_str())?, name, MAX_WORDS)?;
        Some(Name { foreign: found.foreign || among(&self.names_of_stores, name, MAX_WORDS), ..found })
    }

    /// Returns the kind of reason to reject an entry with this name and value.
    pub(crate) fn refusal(&self, name: &str, value: &Value) -> Option<&'static str> {
        let flag = self.flag(value);
        if let Some(refused) = resolve(&REFUSED, name, MAX_WORDS) {
            return (flag != Some(Some(false))).then_some(refused.field);
        }
        let if_true = among(&self.refused_if_true, name, MAX_WORDS) && flag != Some(Some(false));
        let unless_true = among(&self.refused_unless_true, name, MAX_WORDS) && flag != Some(Some(true));
        (if_true || unless_true).then_some("not-supported")
    }

    /// Returns the kind of reason that lists exactly this name.
    pub(crate) fn refused_name(name: &str) -> Option<&'static str> {
        REFUSED.get(name).map(|(kind, _)| *kind)
    }

    /// Returns whether the name is a flag that has no effect when off.
    pub(crate) fn is_switch(&self, name: &str) -> bool {
        among(&self.refused_if_true, name, MAX_WORDS)
            || among(&self.refused_unless_true, name, MAX_WORDS)
            || resolve(&REFUSED, name, MAX_WORDS).is_some()
    }

    /// Returns whether the name never affects where requests go, as for labels such as `environment: production`.
    pub(crate) fn is_harmless(&self, name: &str, value: &Value) -> bool {
        let is_label = ["cloud", "environment", "partition"].iter().any(|word| name.contains(word));
        let value = normal(&text(value));
        among(&self.harmless, name, MAX_WORDS)
            || self.defaults.get(name) == Some(&value)
            || (is_label && self.harmless_values.contains(&value))
    }

    /// Returns whether the name or value looks like an address, a cloud or an addressing style.
    pub(crate) fn looks_like_address(&self, kind: CredentialType, name: &str, value: &str) -> bool {
        if self.harmless_prefixes.iter().any(|prefix| normal(name).starts_with(&**prefix)) {
            return false;
        }
        let lower = value.to_ascii_lowercase();
        if lower.starts_with("http://") || lower.starts_with("https://") || is_host_and_port(&lower) {
            return true;
        }
        let azure = if kind == CredentialType::S3 { &[][..] } else { &self.azure_words };
        let is_mark = |word: &str| {
            let mut marks = self.address_words.iter().chain(azure);
            marks.any(|mark| word.starts_with(&**mark) || word.ends_with(&**mark))
        };
        words(name).split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).any(is_mark)
    }

    /// Returns the meaning of a flag: `Some(None)` for the store's default, `None` if the value is not a flag.
    pub(crate) fn flag(&self, value: &Value) -> Option<Option<bool>> {
        self.flags.get(&normal(&text(value))).copied()
    }

    pub(crate) fn is_flag(&self, text: &str) -> bool {
        self.flags.contains_key(&text.to_lowercase())
    }

    pub(crate) fn reason<'a>(&'a self, kind: &'a str) -> &'a str {
        self.reasons.get(kind).map_or(kind, String::as_str)
    }
}

/// Converts the name to lower case, with a space before each capitalized word.
fn words(name: &str) -> String {
    let mut split = String::with_capacity(name.len() + 8);
    let mut before = ' ';
    for c in name.chars() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            split.push(' ');
        }
        split.extend(c.to_lowercase());
        before = c;
    }
    split
}

fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.split_once(':') else { return false };
    let labels: Vec<&str> = host.split('.').collect();
    let is_label = |label: &&str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    labels.len() > 1
        && labels.iter().all(is_label)
        && labels.last().is_some_and(|last| last.bytes().all(|b| b.is_ascii_alphabetic()))
        && !port.is_empty()
        && port.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether `name` can set a field of an S3 key or an Azure identity.
pub(crate) fn is_known(name: &str) -> bool {
    let name = normal(name);
    [CredentialType::S3, CredentialType::AzureIdentity].into_iter().any(|kind| TABLE.field(kind, &name).is_some())
}

/// Returns a value as text, or an empty string for other types.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => String::new(),
    }
}
