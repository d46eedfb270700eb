//! `orgvault import`: saves the storage credentials that another program's file holds.

use crate::activation::names::named;
use crate::client::args::ProfileArg;
use crate::client::data::printable;
use crate::client::login::{Login, failure};
use crate::client::prompt;
use crate::failure::Failure;
use crate::import::{self, Entry, Flaw, Source};
use crate::manifest::NAME;
use crate::output::{Output, table};
use crate::run_as::NamedFiles;
use crate::secret_file;
use clap::Args;
use secrecy::SecretString;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use vault_client::{ClientError, ListFilter, SaveRequest, Session, WireJson};
use vault_core::credential::Labels;
use vault_core::namespace::Namespace;

/// The largest file that is read, in bytes.
const MAX_FILE: usize = 1024 * 1024;
/// What stands for an entry's name in a rule.
const PLACEHOLDER: &str = "{name}";

/// The flags of `orgvault import`.
#[derive(Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    profile: ProfileArg,
    /// The file (mode 0600); - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Whose file it is: rclone (rclone.conf), aws (credentials file), airflow (connections export, JSON) or kv (kv get
    /// -format=json of OpenBao or Vault, or a JSON object of secrets by path)
    #[arg(long, value_name = "PROGRAM", value_parser = named(Source::ALL.map(Source::as_str), Source::parse))]
    from: Source,
    /// Namespace to save into; {name} stands for the entry's name, such as imports/{name} [default: ask]
    #[arg(long, value_name = "RULE")]
    namespace: Option<String>,
    /// Bucket or container of the entries that name none, or NAME=BUCKET for one of them; repeatable [default: ask]
    #[arg(long = "bucket", value_name = "[NAME=]BUCKET")]
    buckets: Vec<String>,
    /// Only the entry of this name; repeatable [default: all]
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Show what would be saved, and save nothing
    #[arg(long)]
    dry_run: bool,
    /// Save without asking
    #[arg(long)]
    yes: bool,
}

/// What becomes of an entry.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
enum Outcome {
    /// It would be saved.
    Ready {
        #[serde(skip)]
        data: WireJson,
    },
    /// It was saved.
    Saved { id: String },
    /// The namespace has a credential of this name.
    Present { id: String },
    /// It cannot be saved.
    Refused {
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        field: Option<String>,
        reason: String,
    },
}

/// An entry on its way into the vault.
#[derive(Serialize)]
struct Import {
    name: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip)]
    places: String,
    #[serde(flatten)]
    outcome: Outcome,
}

impl From<Flaw> for Outcome {
    fn from(Flaw { line, field, reason }: Flaw) -> Self {
        Self::Refused { line: Some(line), field, reason }
    }
}

/// Carries the command out.
pub(crate) fn run(args: ImportArgs, output: Output) -> Result<ExitCode, Failure> {
    let session = Login::read(&args.profile.profile)?.session()?;
    let bytes = secret_file::read_or_stdin(&NamedFiles::default(), "FILE", &args.file, MAX_FILE)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| Failure::new(format!("{}: byte {} is no UTF-8", args.file.display(), error.valid_up_to())))?;
    let mut entries = import::read(args.from, &args.file, text)?;
    if let Some(unknown) = args.only.iter().find(|name| entries.iter().all(|entry| entry.name != **name)) {
        return Err(Failure::usage(format!("--only: {} has no entry {unknown}", args.file.display())));
    }
    entries.retain(|entry| args.only.is_empty() || args.only.contains(&entry.name));
    // Asked on a terminal only where there is one that is not the file itself.
    let asks = io::stdin().is_terminal() && !output.is_json();
    let rule = rule(args.namespace.as_deref(), asks)?;
    let buckets = Buckets::parse(&args.buckets, &entries, asks)?;
    let imports = entries.into_iter().map(|entry| prepare(entry, &rule, &buckets, &session));
    let mut imports = imports.collect::<Result<Vec<_>, _>>()?;
    let ready = imports.iter().filter(|import| matches!(import.outcome, Outcome::Ready { .. })).count();
    if ready > 0 && !args.dry_run {
        if !args.yes {
            let _ = write!(io::stderr(), "{}", shown(&imports)); // standard error may be closed
            let credentials = if ready == 1 { "1 credential".to_owned() } else { format!("{ready} credentials") };
            output.confirm(&format!("Saves {credentials}."), "yes")?;
        }
        save(&session, &mut imports);
    }
    let refused = imports.iter().filter(|import| matches!(import.outcome, Outcome::Refused { .. })).count();
    output.print(&imports, &shown(&imports))?;
    Ok(if refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
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

/// The buckets of entries that name none.
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

/// The name in a namespace: letters, digits and `. _ - /` stay, all else becomes a hyphen.
fn in_namespace(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-/".contains(c) { c } else { '-' };
    name.chars().map(plain).collect()
}

/// The name as the value of a label, which holds no slash and at most 63 characters.
fn as_label(name: &str) -> String {
    in_namespace(name).replace('/', "-").chars().take(Labels::MAX_LENGTH).collect()
}

fn prepare(entry: Entry, rule: &str, buckets: &Buckets, session: &Session) -> Result<Import, Failure> {
    let Entry { name, content } = entry;
    let mut import = Import {
        name,
        kind: None,
        namespace: None,
        places: String::new(),
        outcome: Outcome::Saved { id: String::new() },
    };
    let mut fields = match content {
        Ok(fields) => fields,
        Err(flaw) => return Ok(Import { outcome: flaw.into(), ..import }),
    };
    import.kind = Some(fields.kind.as_str());
    let missing = import::place(fields.kind).filter(|place| fields.get(place).is_none());
    if let Some(place) = missing
        && let Some(bucket) = buckets.find(&import.name, place)?
    {
        let line = fields.line;
        fields.set(place, bucket, line, "--bucket");
    }
    let namespace = rule.replace(PLACEHOLDER, &in_namespace(&import.name));
    if let Err(flaw) = Namespace::parse(&namespace, "") {
        let reason = format!("its namespace would be {}, which {}", printable(&namespace), flaw.detail);
        let outcome = Outcome::Refused { line: Some(fields.line), field: None, reason };
        return Ok(Import { outcome, ..import });
    }
    import.places = import::shown(&fields);
    import.outcome = match import::check(&fields) {
        Err(flaw) => flaw.into(),
        Ok(()) => match present(session, &namespace, &import.name)? {
            Some(id) => Outcome::Present { id },
            None => Outcome::Ready { data: SecretString::from(fields.to_json()?.as_str()).into() },
        },
    };
    import.namespace = Some(namespace);
    Ok(import)
}

/// The credential that an entry of this name has become before.
fn present(session: &Session, namespace: &str, name: &str) -> Result<Option<String>, Failure> {
    let labels = vec![format!("{NAME}:{}", as_label(name))];
    let filter = ListFilter { namespace: Some(namespace.to_owned()), labels, ..ListFilter::default() };
    let found = session.list(filter).next().transpose();
    Ok(found.map_err(|error| failure("list credentials", &error))?.map(|item| item.id))
}

/// Saves those that are ready, each by itself. If the server is gone, the rest is left for the next time.
fn save(session: &Session, imports: &mut [Import]) {
    let mut gone = false;
    for import in imports {
        let refused = |reason: String| Outcome::Refused { line: None, field: None, reason };
        let left = refused("not tried, since the server did not answer: run this again".to_owned());
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
        import.outcome = match session.save(&request, None) {
            Ok(saved) => Outcome::Saved { id: saved.id },
            Err(error) => {
                gone = !matches!(error, ClientError::Problem(_));
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
                Outcome::Present { id } => format!("is there already: {id}"),
                Outcome::Refused { line, field, reason } => {
                    let line = line.map(|line| format!("line {line}, ")).unwrap_or_default();
                    let field = field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
                    format!("NOT saved: {line}{field}{reason}")
                }
            };
            let namespace = import.namespace.clone().unwrap_or_default();
            [import.name.clone(), import.kind.unwrap_or_default().to_owned(), namespace, what]
                .map(|text| printable(&text))
                .into()
        })
        .collect();
    table(&["NAME", "TYPE", "NAMESPACE", ""], &rows)
}
