//! Writes JSON in pieces, without intermediate copies of secrets.

use super::{Member, Node};

/// Writes `text` as a JSON string.
pub fn write_text<S: FnMut(&str) + ?Sized>(text: &str, sink: &mut S) {
    sink("\"");
    let mut clean = 0;
    for (index, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        sink(&text[clean..index]);
        if escape.is_empty() {
            sink(&format!("\\u{byte:04x}"));
        } else {
            sink(escape);
        }
        clean = index + 1;
    }
    sink(&text[clean..]);
    sink("\"");
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
    begun: bool,
}

impl<'a, S: FnMut(&str) + ?Sized> ObjectWriter<'a, S> {
    /// Starts an object.
    pub fn new(sink: &'a mut S) -> Self {
        sink("{");
        Self { sink, begun: false }
    }

    /// Starts the member `name`. Write its value to the returned sink.
    pub fn member(&mut self, name: &str) -> &mut S {
        if self.begun {
            (self.sink)(",");
        }
        self.begun = true;
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
