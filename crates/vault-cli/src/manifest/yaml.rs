//! Documents as JSON values with line numbers. Accepts the unambiguous part of YAML and JSON: no anchors, aliases, merge
//! keys or tags.

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use vault_core::field::child;

/// Line numbers of values, by path: `credentials/0/data`.
pub(super) type Lines = BTreeMap<String, usize>;

/// A line number and a syntax error.
pub(super) type SyntaxErrorKind = (usize, String);

/// Maximum nesting depth.
const MAX_DEPTH: usize = 16;

/// Parses the documents in a text.
pub(super) fn documents(text: &str) -> Result<Vec<(Value, Lines)>, SyntaxErrorKind> {
    let mut events = Parser::new_from_str(text);
    let mut documents = Vec::new();
    loop {
        match next(&mut events)? {
            (_, Event::StreamEnd) => return Ok(documents),
            (_, Event::DocumentStart(_)) => {
                let mut reader = Reader { events: &mut events, lines: Lines::new() };
                let (line, event) = next(reader.events)?;
                let value = reader.value("", line, event, 0)?;
                if !value.is_null() {
                    documents.push((value, reader.lines));
                }
            }
            _ => {}
        }
    }
}

type Events<'input> = Parser<'input, StrInput<'input>>;

fn next<'input>(events: &mut Events<'input>) -> Result<(usize, Event<'input>), SyntaxErrorKind> {
    match events.next() {
        Some(Ok((event, span))) => Ok((span.start.line(), event)),
        // The scanner's message may contain a part of the text.
        Some(Err(error)) => {
            let marker = error.marker();
            Err((marker.line(), format!("it is no YAML (column {})", marker.col() + 1)))
        }
        None => Ok((0, Event::StreamEnd)),
    }
}

struct Reader<'a, 'input> {
    events: &'a mut Events<'input>,
    lines: Lines,
}

impl<'input> Reader<'_, 'input> {
    /// Reads the value at `path`, which begins with `event`.
    fn value(&mut self, path: &str, line: usize, event: Event<'input>, depth: usize) -> Result<Value, SyntaxErrorKind> {
        let refused = |what: &str| Err((line, format!("{what} are not supported: write the value out")));
        if depth > MAX_DEPTH {
            return Err((line, "values lie too deep in each other".to_owned()));
        }
        self.lines.entry(path.trim_start_matches('/').to_owned()).or_insert(line);
        match event {
            Event::Alias(_) => refused("aliases"),
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _)
                if anchor > 0 =>
            {
                refused("anchors")
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                refused("tags")
            }
            Event::Scalar(text, style, ..) => Ok(scalar(&text, style)),
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match next(self.events)? {
                        (_, Event::SequenceEnd) => return Ok(Value::Array(list)),
                        (line, event) => {
                            let path = child(path, &list.len().to_string());
                            list.push(self.value(&path, line, event, depth + 1)?);
                        }
                    }
                }
            }
            Event::MappingStart(..) => self.object(path, depth),
            _ => Err((line, "it is no YAML".to_owned())),
        }
    }

    fn object(&mut self, path: &str, depth: usize) -> Result<Value, SyntaxErrorKind> {
        let mut members = Map::new();
        loop {
            let (line, name) = match next(self.events)? {
                (_, Event::MappingEnd) => return Ok(Value::Object(members)),
                (line, Event::Scalar(name, _, 0, None)) => (line, name.into_owned()),
                (line, _) => return Err((line, "a name must be text".to_owned())),
            };
            if name == "<<" {
                return Err((line, "merge keys are not supported: write the fields out".to_owned()));
            }
            if members.contains_key(&name) {
                return Err((line, format!("{name} is defined twice")));
            }
            let (_, event) = next(self.events)?;
            let value = self.value(&child(path, &name), line, event, depth + 1)?;
            members.insert(name, value);
        }
    }
}

/// Parses null, booleans and decimal integers of the core schema (YAML 1.2.2, section 10.3). Other scalars are text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::from(text);
    }
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::from(true),
        "false" => Value::from(false),
        _ => text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
    }
}
