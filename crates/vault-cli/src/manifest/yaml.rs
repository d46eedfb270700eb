//! Documents as trees with line numbers. Accepts the unambiguous part of YAML and JSON: no anchors, aliases, merge keys
//! or tags.

use saphyr_parser::{Event, Parser, ScalarStyle};

/// A value and its line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A missing value.
    Null,
    Flag(bool),
    Number(i64),
    Text(String),
    List(Vec<Node>),
    /// Fields in order. Names are unique.
    Map(Vec<(String, Node)>),
}

/// A line number and a syntax error.
pub(super) type SyntaxErrorKind = (usize, String);

/// Maximum nesting depth.
const MAX_DEPTH: usize = 16;

/// Parses the documents in a text.
pub(super) fn documents(text: &str) -> Result<Vec<Node>, SyntaxErrorKind> {
    let mut reader = Reader { events: Parser::new_from_str(text) };
    let mut documents = Vec::new();
    loop {
        match reader.next()? {
            (_, Event::StreamEnd) => return Ok(documents),
            (_, Event::DocumentStart(_)) => {
                let (line, event) = reader.next()?;
                let node = reader.node(line, event, 0)?;
                if node.value != Value::Null {
                    documents.push(node);
                }
            }
            _ => {}
        }
    }
}

struct Reader<'input> {
    events: Parser<'input, saphyr_parser::StrInput<'input>>,
}

impl<'input> Reader<'input> {
    fn next(&mut self) -> Result<(usize, Event<'input>), SyntaxErrorKind> {
        match self.events.next() {
            Some(Ok((event, span))) => Ok((span.start.line(), event)),
            // The scanner's message may contain a part of the text.
            Some(Err(error)) => {
                let marker = error.marker();
                Err((marker.line(), format!("it is no YAML (column {})", marker.col() + 1)))
            }
            None => Ok((0, Event::StreamEnd)),
        }
    }

    fn node(&mut self, line: usize, event: Event<'input>, depth: usize) -> Result<Node, SyntaxErrorKind> {
        let refused = |what: &str| Err((line, format!("{what} are not supported: write the value out")));
        if depth > MAX_DEPTH {
            return Err((line, "values lie too deep in each other".to_owned()));
        }
        let value = match event {
            Event::Alias(_) => return refused("aliases"),
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _)
                if anchor > 0 =>
            {
                return refused("anchors");
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return refused("tags");
            }
            Event::Scalar(text, style, ..) => scalar(&text, style),
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match self.next()? {
                        (_, Event::SequenceEnd) => break Value::List(list),
                        (line, event) => list.push(self.node(line, event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => self.map(depth)?,
            _ => return Err((line, "it is no YAML".to_owned())),
        };
        Ok(Node { line, value })
    }

    fn map(&mut self, depth: usize) -> Result<Value, SyntaxErrorKind> {
        let mut members: Vec<(String, Node)> = Vec::new();
        loop {
            let (line, name) = match self.next()? {
                (_, Event::MappingEnd) => return Ok(Value::Map(members)),
                (line, Event::Scalar(name, _, 0, None)) => (line, name.into_owned()),
                (line, _) => return Err((line, "a name must be text".to_owned())),
            };
            if name == "<<" {
                return Err((line, "merge keys are not supported: write the fields out".to_owned()));
            }
            if members.iter().any(|(other, _)| *other == name) {
                return Err((line, format!("{name} is defined twice")));
            }
            let (below, event) = self.next()?;
            let mut node = self.node(below, event, depth + 1)?;
            node.line = line;
            members.push((name, node));
        }
    }
}

/// Parses null, booleans and decimal integers of the core schema (YAML 1.2.2, section 10.3). Other scalars are text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Flag(true),
        "false" => Value::Flag(false),
        _ => text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Number),
    }
}
