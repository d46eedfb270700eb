//! Writes JSON in pieces, without intermediate copies of secrets.

use super::{Member, Node};

/// Writes `text` as a JSON string.
pub fn write_text<S: FnMut(&str) + ?Sized>(text: &str, sink: &mut S) {
    sink("\"");
    // Nearly all texts need no escape. Without an early exit, the compiler compares many bytes with one instruction.
    if text.bytes().fold(false, |found, byte| found | needs_escape(byte)) {
        write_escaped(text, sink);
    } else {
        sink(text);
    }
    sink("\"");
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn write_escaped<S: FnMut(&str) + ?Sized>(text: &str, sink: &mut S) {
    let mut clean = 0;
    for (index, byte) in text.bytes().enumerate().filter(|(_, byte)| needs_escape(*byte)) {
        sink(&text[clean..index]);
        match byte {
            b'"' => sink("\\\""),
            b'\\' => sink("\\\\"),
            b'\n' => sink("\\n"),
            b'\r' => sink("\\r"),
            b'\t' => sink("\\t"),
            other => sink(&format!("\\u{other:04x}")),
        }
        clean = index + 1;
    }
    sink(&text[clean..]);
}

/// Writes `node` in canonical form: no white space, members sorted by the bytes of their names.
fn write_node(node: &Node, sink: &mut dyn FnMut(&str)) {
    match node {
        Node::Null => sink("null"),
        Node::Bool(value) => sink(if *value { "true" } else { "false" }),
        Node::Number(number) => sink(&number.to_string()),
        Node::String(text) => write_text(text.expose(), sink), // The caller's sink determines the destination.
        Node::Array(elements) => {
            sink("[");
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    sink(",");
                }
                write_node(element, sink);
            }
            sink("]");
        }
        Node::Object(members) => write_members(members, sink),
    }
}

/// Writes the object with these `members` in canonical form.
pub(crate) fn write_members(members: &[Member], sink: &mut dyn FnMut(&str)) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut object = ObjectWriter::new(sink);
    for member in sorted {
        write_node(&member.value, object.member(&member.name));
    }
    object.end();
}

/// Writes an object with its members in the given order.
#[allow(missing_debug_implementations, reason = "a sink has none")]
pub struct ObjectWriter<'a, S: ?Sized = dyn FnMut(&str) + 'a> {
    sink: &'a mut S,
    started: bool,
}

impl<'a, S: FnMut(&str) + ?Sized> ObjectWriter<'a, S> {
    /// Starts an object.
    pub fn new(sink: &'a mut S) -> Self {
        sink("{");
        Self { sink, started: false }
    }

    /// Starts the member `name`. Write its value to the returned sink.
    pub fn member(&mut self, name: &str) -> &mut S {
        if self.started {
            (self.sink)(",");
        }
        self.started = true;
        write_text(name, self.sink);
        (self.sink)(":");
        self.sink
    }

    /// Writes the member `name` with a string.
    pub fn text(&mut self, name: &str, value: &str) {
        write_text(value, self.member(name));
    }

    /// Ends the object.
    pub fn end(self) {
        (self.sink)("}");
    }
}
