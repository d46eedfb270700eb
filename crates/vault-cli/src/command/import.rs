//! `orgvault import`: saves storage credentials from files of other programs.

use super::several;
use crate::activation::names::named;
use crate::client::args::ProfileArg;
use crate::client::data::{buckets as buckets_of, printable};
use crate::client::login::{Login, failure};
use crate::client::prompt;
use crate::failure::Failure;
use crate::manifest::NAME;
use crate::output::{Output, table, warn};
use crate::secret_file;
use clap::Args;
use secrecy::SecretString;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vault_client::{ClientError, ListFilter, SaveRequest, Session, WireJson};
use vault_core::credential::Labels;
use vault_core::namespace::Namespace;
use vault_import::{Entry, Files, Source, Violation};

/// Maximum file size in bytes.
const MAX_FILE: usize = 1024 * 1024;
/// Placeholder for the entry's name in `--namespace`.
const PLACEHOLDER: &str = "{name}";

#[expect(missing_docs, reason = "clap would print a doc comment as the description of the command")]
#[derive(Args)]
pub struct ImportArgs {
    #[command(flatten)]
    profile: ProfileArg,
    /// Files (mode 0600); - reads standard input. A profile of the AWS tools can be in two: ~/.aws/config ~/.aws/credentials
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Format of the files: rclone (rclone.conf), aws (config and credentials files), airflow (connections export, JSON), kv
    /// (kv get -format=json of OpenBao or Vault, a JSON object of secrets by path, JSON of cloud tools) or text (variables,
    /// labels, CSV, connection string) [default: recognized from the content]
    #[arg(long, value_name = "PROGRAM", value_parser = named(Source::ALL.map(Source::as_str), Source::parse))]
    from: Option<Source>,
    /// Name of the only entry; required for standard input if the text contains no name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Namespace to save into; {name} is replaced by the entry's name, such as imports/{name} [default: prompt]
    #[arg(long, value_name = "RULE")]
    namespace: Option<String>,
    /// Bucket or container of entries without one, or NAME=BUCKET for one of them; repeatable [default: prompt]
    #[arg(long = "bucket", value_name = "[NAME=]BUCKET")]
    buckets: Vec<String>,
    /// Entry to import; repeatable [default: all]
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Show the result without saving
    #[arg(long)]
    dry_run: bool,
    /// Save without confirmation
    #[arg(long)]
    yes: bool,
    /// Save into a namespace that has or gets several credentials, even if an integration can use it
    #[arg(long)]
    allow_several: bool,
}

/// The result of an entry.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
enum Outcome {
    /// Valid, and not saved yet.
    Ready {
        #[serde(skip)]
        data: WireJson,
    },
    /// The server saved it.
    Saved { id: String },
    /// The namespace contains a credential with this name and the same data.
    Present { id: String },
    /// The namespace contains a credential with this name and other data.
    Different { id: String },
    /// Invalid, or rejected by the server.
    Refused {
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        field: Option<String>,
        reason: String,
    },
}

/// An entry and its result.
#[derive(Serialize)]
struct Import {
    name: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// Names in the entry that do not match any field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    #[serde(skip)]
    places: String,
    #[serde(skip)]
    expires_at: Option<String>,
    #[serde(flatten)]
    outcome: Outcome,
}

impl From<Violation> for Outcome {
    fn from(Violation { line, field, reason }: Violation) -> Self {
        Self::Refused { line: Some(line), field, reason }
    }
}

/// Runs `orgvault import`.
pub fn run(args: ImportArgs, output: Output) -> Result<ExitCode, Failure> {
    let session = Login::session(&args.profile.profile)?;
    let mut entries = read(&args)?;
    let all = || args.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    if entries.is_empty() {
        return Err(Failure::new(format!("{}: no credential found. To choose the format, pass --from", all())));
    }
    if let Some(unknown) = args.only.iter().find(|name| entries.iter().all(|entry| entry.name != **name)) {
        return Err(Failure::usage(format!("--only: {} has no entry {unknown}", all())));
    }
    entries.retain(|entry| args.only.is_empty() || args.only.contains(&entry.name));
    if let Some(name) = &args.name {
        let [entry] = &mut entries[..] else {
            let found = entries.len();
            return Err(Failure::usage(format!("--name: {} has {found} entries. Choose one with --only", all())));
        };
        entry.name.clone_from(name);
    }
    if entries.iter().any(|entry| entry.name.is_empty()) {
        return Err(Failure::usage("--name required: standard input does not contain a name for the credential"));
    }
    // Standard input may be a file to import, so prompt only if it is a terminal.
    let asks = io::stdin().is_terminal() && !output.is_json();
    let rule = rule(args.namespace.as_deref(), asks)?;
    let buckets = Buckets::parse(&args.buckets, &entries, asks)?;
    let imports = entries.into_iter().map(|entry| prepare(entry, &rule, &buckets, &session));
    let mut imports = imports.collect::<Result<Vec<_>, _>>()?;
    refuse_merged_names(&mut imports);
    let namespaces = ready_by_namespace(&imports);
    let ready: usize = namespaces.values().map(Vec::len).sum();
    let mut crowded = Vec::new();
    for (namespace, names) in namespaces.iter().filter(|_| !args.allow_several) {
        crowded.extend(several::find(&session, namespace, names.len())?);
    }
    if args.dry_run {
        crowded.iter().for_each(|several| warn(&several.text));
    } else if ready > 0 {
        if !args.yes {
            let _ = write!(io::stderr(), "{}", shown(&imports)); // standard error may be closed
        }
        for several in &crowded {
            several.confirm("Save them?", output)?;
        }
        if !args.yes {
            let credentials = if ready == 1 { "1 credential".to_owned() } else { format!("{ready} credentials") };
            output.confirm(&format!("This saves {credentials}."), "yes")?;
        }
        save(&session, &mut imports);
    }
    let is_unsaved = |import: &&Import| matches!(import.outcome, Outcome::Refused { .. } | Outcome::Different { .. });
    let refused = imports.iter().filter(is_unsaved).count();
    output.print(&imports, &shown(&imports))?;
    Ok(if refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the indexes of the entries that would be saved, by namespace.
fn ready_by_namespace(imports: &[Import]) -> BTreeMap<String, Vec<usize>> {
    let mut namespaces: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, import) in imports.iter().enumerate() {
        if let (Outcome::Ready { .. }, Some(namespace)) = (&import.outcome, &import.namespace) {
            namespaces.entry(namespace.clone()).or_default().push(at);
        }
    }
    namespaces
}

/// Refuses entries whose different names become one label after characters are replaced, because a later run could not
/// distinguish their credentials.
fn refuse_merged_names(imports: &mut [Import]) {
    for at in ready_by_namespace(imports).into_values() {
        let labels: Vec<String> = at.iter().map(|&one| as_label(&imports[one].name)).collect();
        for (position, &one) in at.iter().enumerate() {
            let twin = (0..at.len()).find(|&other| other != position && labels[other] == labels[position]);
            if let Some(twin) = twin {
                let reason = format!(
                    "{} has the same name and namespace after characters are replaced. Import them one by one with --only \
                     and --name",
                    imports[at[twin]].name
                );
                imports[one].outcome = Outcome::Refused { line: None, field: None, reason };
            }
        }
    }
}

/// Reads the entries of all files.
fn read(args: &ImportArgs) -> Result<Vec<Entry>, Failure> {
    let mut texts = Vec::new();
    for file in &args.files {
        let bytes = secret_file::read_or_stdin("FILE", file, MAX_FILE)?;
        let text =
            vault_import::decode(&bytes).map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
        texts.push((file.as_path(), text));
    }
    let source = |text: &str| args.from.unwrap_or_else(|| Source::detect(text));
    let first = texts.first().map_or(Source::Text, |(_, text)| source(text));
    if let Some((file, _)) = texts.iter().find(|(_, text)| source(text) != first) {
        let message = format!("{}: the files have different formats. Import them one by one", file.display());
        return Err(Failure::usage(message));
    }
    let files = Files {
        variable: &|name| std::env::var(name).ok(),
        read: &|path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display())),
    };
    // `$RCLONE_CONFIG_DIR` in rclone.conf is the folder of that file, as an absolute path.
    let absolute = |file: &Path| match std::path::absolute(file) {
        Ok(path) if file != Path::new("-") => path,
        _ => file.to_owned(),
    };
    let paths: Vec<PathBuf> = texts.iter().map(|(file, _)| absolute(file)).collect();
    let texts: Vec<(&Path, &str)> =
        paths.iter().zip(&texts).map(|(path, (_, text))| (&**path, text.as_str())).collect();
    vault_import::read(first, &texts, &files).map_err(|error| Failure::new(error.to_string()))
}

fn rule(given: Option<&str>, asks: bool) -> Result<String, Failure> {
    match given {
        Some(rule) => Ok(rule.to_owned()),
        None if asks => {
            match prompt::line("--namespace", "Namespace, with {name} for each entry's name [imports/{name}]")? {
                rule if rule.is_empty() => Ok(format!("imports/{PLACEHOLDER}")),
                rule => Ok(rule),
            }
        }
        None => Err(Failure::usage("--namespace required, such as --namespace 'imports/{name}'")),
    }
}

/// The buckets for entries that do not name one.
struct Buckets {
    all: Option<String>,
    of: BTreeMap<String, String>,
    asks: bool,
}

impl Buckets {
    fn parse(given: &[String], entries: &[Entry], asks: bool) -> Result<Self, Failure> {
        let mut buckets = Self { all: None, of: BTreeMap::new(), asks };
        for text in given {
            let Some((name, bucket)) = text.split_once('=') else {
                buckets.all = Some(text.clone());
                continue;
            };
            if entries.iter().all(|entry| entry.name != name) {
                return Err(Failure::usage(format!("--bucket {text}: there is no entry {name}")));
            }
            buckets.of.insert(name.to_owned(), bucket.to_owned());
        }
        Ok(buckets)
    }

    fn find(&self, name: &str, place: &str) -> Result<Option<String>, Failure> {
        match self.of.get(name).or(self.all.as_ref()) {
            Some(bucket) => Ok(Some(bucket.clone())),
            None if self.asks => {
                let answer = prompt::line("--bucket", &format!("The {place} of {name}, or Enter to leave it out"))?;
                Ok(Some(answer).filter(|answer| !answer.is_empty()))
            }
            None => Ok(None),
        }
    }
}

/// Converts a name to a namespace: keeps letters, digits and `. _ - /`, and replaces other characters by a hyphen.
fn in_namespace(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-/".contains(c) { c } else { '-' };
    name.chars().map(plain).collect()
}

/// Converts a name to a label value, which may contain no slash and at most 63 characters.
fn as_label(name: &str) -> String {
    in_namespace(name).replace('/', "-").chars().take(Labels::MAX_LENGTH).collect()
}

fn prepare(entry: Entry, rule: &str, buckets: &Buckets, session: &Session) -> Result<Import, Failure> {
    let Entry { name, content } = entry;
    let mut import = Import {
        name,
        kind: None,
        namespace: None,
        left_out: Vec::new(),
        places: String::new(),
        expires_at: None,
        outcome: Outcome::Saved { id: String::new() },
    };
    let mut fields = match content {
        Ok(fields) => fields,
        Err(violation) => return Ok(Import { outcome: violation.into(), ..import }),
    };
    import.kind = Some(fields.kind.as_str());
    import.left_out = std::mem::take(&mut fields.left_out);
    import.expires_at = fields.expires_at.take();
    let missing = vault_import::place(fields.kind).filter(|place| fields.get(place).is_none());
    if let Some(place) = missing
        && let Some(bucket) = buckets.find(&import.name, place)?
    {
        let line = fields.line;
        fields.set(place, buckets_of(&bucket), line, "--bucket");
    }
    let namespace = rule.replace(PLACEHOLDER, &in_namespace(&import.name));
    if let Err(violation) = Namespace::parse(&namespace, "") {
        let reason = format!("its namespace would be {}, which {}", printable(&namespace), violation.detail);
        let outcome = Outcome::Refused { line: Some(fields.line), field: None, reason };
        return Ok(Import { outcome, ..import });
    }
    import.places = vault_import::shown(&fields);
    import.outcome = match vault_import::check(&fields) {
        Err(violation) => violation.into(),
        Ok(()) => {
            let data = || -> Result<WireJson, Failure> { Ok(SecretString::from(fields.to_json()?.as_str()).into()) };
            match present(session, &namespace, &import.name, data)? {
                Some(outcome) => outcome,
                None => Outcome::Ready { data: data()? },
            }
        }
    };
    import.namespace = Some(namespace);
    Ok(import)
}

/// Returns the result if the namespace already contains a credential with this name: with the same data, or different.
fn present(
    session: &Session,
    namespace: &str,
    name: &str,
    data: impl Fn() -> Result<WireJson, Failure>,
) -> Result<Option<Outcome>, Failure> {
    let labels = vec![format!("{NAME}:{}", as_label(name))];
    let filter = ListFilter { namespace: Some(namespace.to_owned()), labels, ..ListFilter::default() };
    let mut other = None;
    for found in session.list(filter) {
        let id = found.map_err(|error| failure("list credentials", &error))?.id;
        match session.matches(&id, data()?) {
            Ok(true) => return Ok(Some(Outcome::Present { id })),
            Ok(false) => other = Some(id),
            Err(error) => return Err(failure(&format!("compare with credential {id}"), &error)),
        }
    }
    Ok(other.map(|id| Outcome::Different { id }))
}

/// Saves the entries that are ready, one request each. After the server fails to respond, the others are not tried.
fn save(session: &Session, imports: &mut [Import]) {
    let mut gone = false;
    for import in imports {
        let refused = |reason: String| Outcome::Refused { line: None, field: None, reason };
        let left = refused("not tried, because the server did not respond. Run the command again".to_owned());
        let data = match std::mem::replace(&mut import.outcome, left) {
            Outcome::Ready { data } if gone => {
                drop(data);
                continue;
            }
            Outcome::Ready { data } => data,
            outcome => {
                import.outcome = outcome;
                continue;
            }
        };
        let kind = import.kind.unwrap_or_default().to_owned();
        let mut request = SaveRequest::new(kind, import.namespace.clone().unwrap_or_default(), data);
        request.labels = Some(BTreeMap::from([(NAME.to_owned(), as_label(&import.name))]));
        request.expires_at.clone_from(&import.expires_at);
        import.outcome = match session.save(&request, None) {
            Ok(saved) => Outcome::Saved { id: saved.id },
            Err(error) => {
                gone = !matches!(error, ClientError::Problem { .. });
                refused(failure("save it", &error).to_string())
            }
        };
    }
}

fn shown(imports: &[Import]) -> String {
    let rows: Vec<Vec<String>> = imports
        .iter()
        .map(|import| {
            let what = match &import.outcome {
                Outcome::Ready { .. } => format!("would be saved: {}", import.places),
                Outcome::Saved { id } => format!("saved as {id}"),
                Outcome::Present { id } => format!("already saved: {id}"),
                Outcome::Different { id } => format!(
                    "NOT saved: credential {id} has this name and other data. To replace its data, run `orgvault credential \
                     replace {id}`, or choose another --name or --namespace"
                ),
                Outcome::Refused { line, field, reason } => {
                    let line = line.map(|line| format!("line {line}, ")).unwrap_or_default();
                    let field = field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
                    format!("NOT saved: {line}{field}{reason}")
                }
            };
            let left_out = match &import.left_out[..] {
                [] => String::new(),
                names => format!(" (left out: {})", names.join(", ")),
            };
            let what = what + &left_out;
            let namespace = import.namespace.clone().unwrap_or_default();
            [import.name.clone(), import.kind.unwrap_or_default().to_owned(), namespace, what]
                .map(|text| printable(&text))
                .into()
        })
        .collect();
    table(&["NAME", "TYPE", "NAMESPACE", ""], &rows)
}
