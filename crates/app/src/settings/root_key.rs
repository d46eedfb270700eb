//! The location of the root key.

use std::ffi::OsString;
use std::fmt;
use std::path::{PathBuf, absolute};
use std::str::FromStr;
use std::sync::Arc;
use std::{env, iter};
use vault_cli::failure::Failure;
use vault_cli::text::quoted;
use vault_crypto::{LoadedRootKey, OsEntropy};

const COMMAND: &str = "command:";
const CREDENTIAL: &str = "credential:";

/// The value of `--root-key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RootKeySource {
    /// A file.
    File(PathBuf),
    /// A systemd credential, by name, which is a file.
    Credential(String),
    /// The output of a command: program and arguments.
    Command(Vec<String>),
}

impl FromStr for RootKeySource {
    type Err = String;

    // Errors do not repeat the value, because a user may have pasted a key.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(line) = text.strip_prefix(COMMAND) {
            let words = shlex::split(line).filter(|words| words.first().is_some_and(|program| !program.is_empty()));
            return words.map(Self::Command).ok_or_else(|| {
                "command: needs a program and its arguments, each quoted if it contains spaces".to_owned()
            });
        }
        if let Some(name) = text.strip_prefix(CREDENTIAL) {
            let is_name = !name.is_empty() && name.len() < 256 && name != "." && name != ".." && !name.contains('/');
            return match is_name {
                true => Ok(Self::Credential(name.to_owned())),
                false => Err("credential: needs the name of a credential, such as credential:root.key".to_owned()),
            };
        }
        if let Some(removed) = ["aws-kms", "pkcs11"].into_iter().find(|name| text.starts_with(&format!("{name}:"))) {
            return Err(format!(
                "{removed}: was replaced by command:COMMAND, which prints the root key. See docs/operate/root-key.md"
            ));
        }
        let path = path_of(text).ok_or(
            "must be file:PATH, credential:NAME or command:COMMAND, and not the key. See docs/operate/root-key.md",
        )?;
        absolute(path).map(Self::File).map_err(|error| format!("file: is not a usable path: {error}"))
    }
}

/// Returns the path in a value that is one.
fn path_of(text: &str) -> Option<&str> {
    text.strip_prefix("file:").or_else(|| {
        let has_scheme = text.split('/').next().is_some_and(|start| start.contains(':'));
        let is_key = || text.len() > 32 && LoadedRootKey::decode(text.as_bytes(), Arc::new(OsEntropy)).is_ok();
        (!has_scheme && !is_key()).then_some(text)
    })
}

/// Converts the values in the settings file to those of a flag. A list contains the words of a command. `resolve` returns a
/// path relative to the file.
pub(super) fn of_file(values: &[String], resolve: impl Fn(&str) -> PathBuf) -> Vec<OsString> {
    match values {
        [value] => match path_of(value) {
            Some(path) => vec![resolve(path).into_os_string()],
            None => vec![value.into()],
        },
        [first, rest @ ..] if first.starts_with(COMMAND) => {
            let program = first.trim_start_matches(COMMAND);
            let words: Vec<_> = iter::once(program).chain(rest.iter().map(String::as_str)).map(quoted).collect();
            vec![format!("{COMMAND}{}", words.join(" ")).into()]
        }
        values => values.iter().map(OsString::from).collect(),
    }
}

/// Refuses the variable of an earlier setting, which could be mistaken for a file that contains the value of `--root-key`.
pub(super) fn refuse_replaced_variable() -> Result<(), Failure> {
    const REPLACED: &str = "ORGVAULT_ROOT_KEY_FILE";
    match env::var_os(REPLACED) {
        Some(_) => Err(Failure::usage(format!("{REPLACED} was replaced: set ORGVAULT_ROOT_KEY=file:PATH"))),
        None => Ok(()),
    }
}

impl RootKeySource {
    /// Returns the file that contains the root key, if it is in a file.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match self {
            Self::File(path) => Some(path.clone()),
            Self::Credential(name) => {
                let directory = PathBuf::from(env::var_os("CREDENTIALS_DIRECTORY")?);
                directory.is_absolute().then(|| directory.join(name))
            }
            Self::Command(_) => None,
        }
    }
}

/// Prints the value of the flag.
impl fmt::Display for RootKeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Credential(name) => write!(f, "{CREDENTIAL}{name}"),
            Self::Command(words) => {
                let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
                write!(f, "{COMMAND}{}", words.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_key_is_parsed_and_never_printed() {
        let parse = str::parse::<RootKeySource>;
        assert_eq!(parse("credential:root.key"), Ok(RootKeySource::Credential("root.key".to_owned())));
        for path in ["/k/root.key", "file:/k/root.key"] {
            assert_eq!(parse(path), Ok(RootKeySource::File("/k/root.key".into())));
        }
        assert_eq!(parse("./a:b"), Ok(RootKeySource::File(absolute("./a:b").unwrap())));
        let command = parse("command:/bin/key 'a b' c\\'d \"\"").unwrap();
        let words = ["/bin/key", "a b", "c'd", ""].map(str::to_owned);
        assert_eq!(command, RootKeySource::Command(words.to_vec()));
        assert_eq!(parse(&command.to_string()), Ok(command));
        let key = "0fDFpI5rOXIAT6fmmxyD0vheYLdJKtMcf+WAS5bCrRM=";
        for (wrong, expected) in [
            ("credential:", "the name of a credential"),
            ("credential:..", "the name of a credential"),
            ("credential:a/s3cret", "the name of a credential"),
            ("command:", "a program and its arguments"),
            ("command:s3cret 'a", "quoted"),
            ("pkcs11:token=s3cret", "pkcs11: was replaced by command:"),
            ("aws-kms:s3cret", "aws-kms: was replaced by command:"),
            ("comand:s3cret /x", "must be file:PATH"),
            (key, "not the key"),
        ] {
            let message = parse(wrong).unwrap_err();
            assert!(message.contains(expected) && !message.contains("s3cret") && !message.contains(key), "{message}");
        }
    }

    #[test]
    fn root_key_in_settings_file_is_relative_to_it() {
        let of_file = |values: &[&str]| {
            let values: Vec<_> = values.iter().map(|value| (*value).to_owned()).collect();
            super::of_file(&values, |path| PathBuf::from("/etc/x").join(path))
        };
        for path in ["root.key", "file:root.key", "/etc/x/root.key"] {
            assert_eq!(of_file(&[path]), ["/etc/x/root.key"]);
        }
        assert_eq!(of_file(&["credential:a"]), ["credential:a"]);
        assert_eq!(of_file(&["command:a 'b c'"]), ["command:a 'b c'"]);
        assert_eq!(of_file(&["command:/a b", "c'd"]), [r"command:'/a b' 'c'\''d'"]);
        assert_eq!(of_file(&["a", "b"]), ["a", "b"], "the flag parser refuses two values");
    }
}
