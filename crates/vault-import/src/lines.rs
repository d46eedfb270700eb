//! Other text: shell variables, labels with values below them, tables, connection strings and links.

use crate::reading::{Fields, Pair, interpret};
use crate::table::{is_known, normal};
use crate::{Entry, Violation, airflow, json, unquoted};
use serde_json::Value;
use vault_core::credential::CredentialType;

/// Commands that may precede assignments or options.
const COMMANDS: [&str; 11] =
    ["export", "setx", "setenv", "set", "env", "declare", "typeset", "docker", "podman", "run", "sudo"];
/// Options that may precede assignments.
const OPTIONS: [&str; 7] = ["e", "env", "x", "gx", "Ux", "xg", "from-literal"];
const CONNECTION_PARTS: [&str; 4] = ["AccountName=", "AccountKey=", "BlobEndpoint=", "SharedAccessSignature="];

pub(crate) fn entries(text: &str) -> Vec<Entry> {
    let only = text.trim();
    let of = |pair: Pair, kind| {
        let content = interpret(&[pair], kind, 1);
        content.map(|content| Entry { name: String::new(), content }).into_iter().collect()
    };
    if !only.contains(char::is_whitespace) {
        if is_link(only) {
            return of(Pair::new("url", only, 1), Some(CredentialType::DirectLink));
        }
        if is_connection_string(only) && starts_as_connection_string(only) {
            return of(Pair::new("connection_string", only, 1), None);
        }
        // The address of a bucket completes a form. A user name in it would be a key.
        for (scheme, kind) in [("s3://", CredentialType::S3), ("gs://", CredentialType::Gcs)] {
            if let Some(place) = only.strip_prefix(scheme).filter(|place| !place.contains('@')) {
                let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
                let mut fields = Fields::new(kind, 1);
                fields.set("bucket", bucket, 1, "bucket");
                if !prefix.is_empty() {
                    fields.set("key_prefix", prefix, 1, "key_prefix");
                }
                return vec![Entry { name: String::new(), content: Ok(fields) }];
            }
        }
    }
    let rows = table(text);
    if rows.is_empty() { assigned(text) } else { rows }
}

fn is_connection_string(text: &str) -> bool {
    let has_part = |segment: &str| {
        CONNECTION_PARTS.iter().any(|part| starts_with_ignoring_case(segment.trim_start_matches(' '), part))
    };
    text.contains(';') && text.split(';').any(has_part)
}

fn starts_as_connection_string(text: &str) -> bool {
    let name = text.split('=').next().unwrap_or_default().to_ascii_lowercase();
    ["defaultendpointsprotocol", "accountname", "accountkey", "endpointsuffix", "sharedaccesssignature"]
        .contains(&&*name)
        || (name.ends_with("endpoint") && name.bytes().all(|b| b.is_ascii_alphabetic()) && name != "endpoint")
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start))
}

/// Parses a table: a line of headings, then one line per key.
fn table(text: &str) -> Vec<Entry> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((_, head)) = lines.next() else { return Vec::new() };
    let rows: Vec<(usize, &str)> = lines.collect();
    for separator in [',', ';', '\t'] {
        let names = cells(head, separator);
        let has = |ends: [&str; 2]| {
            names.iter().map(|name| normal(name)).any(|name| ends.iter().any(|end| name.ends_with(end)))
        };
        if names.len() < 2 || !has(["accesskeyid", "accesskey"]) || !has(["secretaccesskey", "secretkey"]) {
            continue;
        }
        let entry = |(index, (line, row)): (usize, &(usize, &str))| {
            let pairs: Vec<Pair> = names
                .iter()
                .zip(cells(row, separator))
                .map(|(name, cell)| Pair::new(&**name, cell, line + 1))
                .collect();
            let find = |is: &dyn Fn(&str) -> bool| {
                pairs
                    .iter()
                    .find(|pair| is(&pair.normal()))
                    .and_then(|pair| pair.value.as_str())
                    .filter(|cell| !cell.is_empty())
            };
            find(&|name| name.ends_with("accesskey") || name.ends_with("accesskeyid"))?;
            let user = find(&|name| name == "username" || name == "user").map(str::to_owned);
            let number = if rows.len() > 1 { (index + 1).to_string() } else { String::new() };
            let content = interpret(&pairs, Some(CredentialType::S3), line + 1)?;
            Some(Entry { name: user.unwrap_or(number), content })
        };
        return rows.iter().enumerate().filter_map(entry).collect();
    }
    Vec::new()
}

fn cells(line: &str, separator: char) -> Vec<String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Returns the lines with their numbers. Joins continued lines and drops comments.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        let (number, mut joined) = open.take().unwrap_or((index + 1, String::new()));
        let end = line.trim_end();
        let before = end.strip_suffix(['\\', '`', '^']).filter(|before| before.ends_with([' ', '\t']));
        joined.push_str(before.unwrap_or(line));
        match before {
            Some(_) => open = Some((number, joined)),
            None => lines.push((number, joined)),
        }
    }
    lines.extend(open);
    let bare = |(number, line): (usize, String)| {
        let line = line.trim();
        (number, line.strip_prefix("- ").unwrap_or(line).trim().to_owned())
    };
    let is_comment =
        |line: &str| line.starts_with(['#', ';']) || line.starts_with("//") || starts_with_ignoring_case(line, "rem ");
    lines.into_iter().map(bare).filter(|(_, line)| !line.is_empty() && !is_comment(line)).collect()
}

fn is_link(line: &str) -> bool {
    (line.starts_with("https://") || line.starts_with("http://")) && !line.contains(char::is_whitespace)
}

/// Parses variables and labels.
fn assigned(text: &str) -> Vec<Entry> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let ["mc" | "mc.exe", "alias", "set", name, url, key, secret, ..]
    | ["mc" | "mc.exe", "config", "host", "add", name, url, key, secret, ..] = words[..]
    {
        let pairs = [("url", url), ("access_key", unquoted(key)), ("secret_key", unquoted(secret))];
        let pairs = pairs.map(|(name, value)| Pair::new(name, value, 1));
        let content = interpret(&pairs, Some(CredentialType::S3), 1);
        return content.map(|content| Entry { name: name.to_owned(), content }).into_iter().collect();
    }
    if airflow::kind(text.trim()).is_some() {
        return json::secret("", &Value::from(text.trim()), &json::Lines::of(""), 1).into_iter().collect();
    }
    let lines = logical_lines(text);
    let mut pairs = Vec::new();
    let mut at = 0;
    while let Some((number, line)) = lines.get(at) {
        let label = without_sign(line);
        let next = lines.get(at + 1).map_or("", |(_, next)| next);
        let is_value =
            !next.is_empty() && !is_known(without_sign(next)) && (assignments(next).is_none() || is_link(next));
        if is_known(label) && is_value {
            pairs.push(Pair::new(label, unquoted(next), *number));
            at += 1;
        } else if is_link(line) {
            pairs.push(Pair::new("address", &**line, *number));
        } else {
            let found = assignments(line).unwrap_or_default();
            pairs.extend(found.into_iter().map(|(name, value)| Pair::new(name, value, *number)));
        }
        at += 1;
    }
    let is =
        |name: &str, wanted: &str| pairs.iter().any(|pair| pair.name == name && pair.value.as_str() == Some(wanted));
    if is("kind", "Secret") && lines.iter().any(|(_, line)| line.starts_with("data:")) {
        return vec![Entry { name: String::new(), content: Err(Violation::of(1, "data", "encoded")) }];
    }
    let (connections, others): (Vec<Pair>, Vec<Pair>) = named_by_value(pairs).into_iter().partition(|pair| {
        pair.name.starts_with("AIRFLOW_CONN_") || pair.value.as_str().is_some_and(|text| airflow::kind(text).is_some())
    });
    let members = json::Lines::of(text);
    let connection = |pair: &Pair| {
        let name = pair.name.strip_prefix("AIRFLOW_CONN_").unwrap_or(&pair.name).to_lowercase();
        let parsed = pair
            .value
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok())
            .filter(|value: &Value| value.is_object());
        json::secret(&name, parsed.as_ref().unwrap_or(&pair.value), &members, pair.line)
    };
    let rest = interpret(&others, None, 1).map(|content| Entry { name: String::new(), content });
    connections.iter().filter_map(connection).chain(rest).collect()
}

/// Joins the pairs with which Kubernetes lists a variable: `name: X`, then `value: Y`.
fn named_by_value(pairs: Vec<Pair>) -> Vec<Pair> {
    let mut named: Vec<Pair> = Vec::new();
    for pair in pairs {
        if pair.name != "value" {
            named.push(pair);
        } else if let Some(last) = named.pop_if(|last| last.name == "name") {
            named.push(Pair { name: last.value.as_str().unwrap_or_default().to_owned(), ..pair });
        }
    }
    named.retain(|pair| pair.name != "name");
    named
}

/// Removes the sign after a label.
fn without_sign(line: &str) -> &str {
    line.strip_suffix([':', '=']).unwrap_or(line).trim_end()
}

/// Parses the names and values in a line: `NAME=value`, `export A=b C=d`, `$Env:NAME = "value"`, `NAME: value`, `setx
/// NAME value`, `docker run -e NAME=value`. Returns `None` if the line is not an assignment.
fn assignments(line: &str) -> Option<Vec<(String, String)>> {
    if let Some(pair) = spaced(line).or_else(|| labelled(line)) {
        return Some(vec![pair]);
    }
    let mut found: Vec<(String, String)> = Vec::new();
    let (mut rest, mut is_command, mut plain) = (line, false, None);
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || ";&,{}".contains(c));
        if rest.is_empty() || (rest.starts_with('#') && !found.is_empty()) {
            return Some(found);
        }
        if let Some(after) = after_command(rest) {
            is_command = true;
            let inner = after.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'));
            rest = inner.filter(|inner| inner.contains('=') && !inner.contains('"')).unwrap_or(after);
        } else if let Some((name, value, after)) = option(rest) {
            found.push((name.to_owned(), unquoted(value).to_owned()));
            rest = after;
        } else if let Some(assignment) = Assignment::parse(rest) {
            let (value, after) = assignment.value(&mut plain);
            found.push((assignment.name.to_owned(), value));
            rest = after;
        } else if is_command || found.len() > 1 {
            rest = rest.trim_start_matches(|c: char| !c.is_whitespace());
        } else {
            let last = found.last_mut()?;
            last.1 = format!("{} {rest}", last.1); // values with spaces are refused later
            return Some(found);
        }
    }
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

/// Parses `setx NAME value`, `setenv NAME value` and `set -x NAME value`.
fn spaced(line: &str) -> Option<(String, String)> {
    let (command, mut rest) = word(line);
    if command.eq_ignore_ascii_case("set") {
        let mut options = 0;
        while rest.starts_with('-') {
            rest = word(rest).1;
            options += 1;
        }
        if options == 0 {
            return None;
        }
    } else if !command.eq_ignore_ascii_case("setx") && !command.eq_ignore_ascii_case("setenv") {
        return None;
    }
    let (name, value) = word(rest);
    let is_pair = is_identifier(name) && !value.is_empty() && !value.starts_with('=');
    is_pair.then(|| (name.to_owned(), unquoted(value.trim()).to_owned()))
}

/// Parses a known name that contains spaces, and its value: `Access key ID: value`.
fn labelled(line: &str) -> Option<(String, String)> {
    let at = line.find([':', '=', '\t'])?;
    let (name, value) = (line[..at].trim_end(), line[at + 1..].trim());
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b" _.()-".contains(&b));
    let is_pair = is_name && name.contains(' ') && !value.is_empty() && !value.starts_with("//") && is_known(name);
    is_pair.then(|| (name.to_owned(), unquoted(value).to_owned()))
}

/// Returns the text after a command, or after an option that precedes an assignment.
fn after_command(rest: &str) -> Option<&str> {
    let (first, after) = word(rest);
    if !after.is_empty() && (COMMANDS.iter().any(|command| first.eq_ignore_ascii_case(command)) || first == "aws") {
        return Some(after);
    }
    let option = rest.strip_prefix('-')?;
    let option = option.strip_prefix('-').unwrap_or(option);
    let end = option.find(|c: char| c == '=' || c.is_whitespace())?;
    OPTIONS.contains(&&option[..end]).then(|| option[end + 1..].trim_start())
}

/// Parses `--endpoint-url address` into a known name, its value and the remaining text.
fn option(rest: &str) -> Option<(&str, &str, &str)> {
    let option = rest.strip_prefix('-')?;
    let option = option.strip_prefix('-').unwrap_or(option);
    let end = option.find(|c: char| c == '=' || c.is_whitespace())?;
    let (name, value) = (&option[..end], option[end + 1..].trim_start());
    let is_name =
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    let length = value.find(char::is_whitespace).unwrap_or(value.len());
    (is_name && length > 0 && is_known(name)).then(|| (name, &value[..length], &value[length..]))
}

/// An assignment: a name, a sign and the remaining text.
struct Assignment<'a> {
    name: &'a str,
    /// `NAME=value` without spaces, as in shells.
    is_tight: bool,
    rest: &'a str,
}

impl<'a> Assignment<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text =
            if starts_with_ignoring_case(text, "$env:") { &text[5..] } else { text.strip_prefix('$').unwrap_or(text) };
        let quote = text.chars().next().filter(|c| *c == '"' || *c == '\'');
        let text = if quote.is_some() { &text[1..] } else { text };
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let name = &text[..text.find(|c: char| !is_part(c)).unwrap_or(text.len())];
        let mut after = &text[name.len()..];
        if let Some(quote) = quote {
            after = after.strip_prefix(quote)?;
        }
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return None;
        }
        let sign = after.trim_start();
        let behind =
            sign.strip_prefix('=').or_else(|| sign.strip_prefix(':').filter(|rest| !rest.starts_with("//")))?;
        let rest = behind.trim_start();
        let is_tight = sign.starts_with('=') && sign.len() == after.len() && rest.len() == behind.len();
        Some(Self { name, is_tight, rest })
    }

    /// Returns the value and the remaining text. `plain` is the length of the text after the last word that is no
    /// connection string, so that a word with many assignments is searched only once.
    fn value(&self, plain: &mut Option<usize>) -> (String, &'a str) {
        if let Some((value, after)) = quoted(self.rest) {
            return (value, after);
        }
        if self.is_tight && !self.rest.starts_with('{') {
            let known = plain.filter(|left| *left < self.rest.len()).map(|left| self.rest.len() - left);
            let end = known.or_else(|| self.rest.find(char::is_whitespace)).unwrap_or(self.rest.len());
            let mut value = &self.rest[..end];
            if known.is_some() || !is_connection_string(value) {
                *plain = Some(self.rest.len() - end);
                value = value.split(';').next().unwrap_or_default();
            }
            return (value.strip_suffix([',', ';', '&']).unwrap_or(value).to_owned(), &self.rest[value.len()..]);
        }
        let comment = self.rest.match_indices('#').find(|(at, _)| self.rest[..*at].ends_with(char::is_whitespace));
        let value = &self.rest[..comment.map_or(self.rest.len(), |(at, _)| at)];
        (value.trim_end_matches(|c: char| c.is_whitespace() || c == ',' || c == ';').to_owned(), "")
    }
}

/// Parses a quoted string. Returns its content and the remaining text.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| *c == '"' || *c == '\'')?;
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            let after = &text[at + 1..];
            let ends = after.chars().next().is_none_or(|c| c.is_whitespace() || ";,&)}".contains(c));
            return ends.then_some((value, after));
        }
        if c == '\\' && quote == '"' {
            let (_, next) = chars.next()?;
            if !"\"\\$`".contains(next) {
                value.push(c);
            }
            value.push(next);
        } else {
            value.push(c);
        }
    }
    None
}
