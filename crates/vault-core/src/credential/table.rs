//! The table from which a type's struct, its parsing and its serialisation are made.

use super::SecretText;
use super::rule::Flaw;
use crate::field::{FieldCode, FieldError, child};
use crate::json::{Node, ObjectReader, write_text};

/// What an operator may allow beyond the defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataPolicy {
    /// Whether a direct link may be `http`.
    pub allow_http_links: bool,
}

/// What of a field may be seen once it is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldClass {
    /// Nothing but that it is set.
    Secret,
    /// Its last characters, at most four.
    Id,
    /// All of it: it says where, not how.
    Place,
}

/// What a field's value is, which decides what is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// Any secret text.
    Secret,
    /// An access key's id: printable ASCII without white space, at most 255 characters.
    AccessKeyId,
    /// A bucket: letters, digits and `. _ : -`, at most 255 characters.
    Bucket,
    /// A container of Azure storage: as a bucket, and may begin with `$`.
    Container,
    /// A region: letters, digits and `. _ -`, at most 64 characters.
    Region,
    /// The address of a store: `http` or `https`, with neither user, query nor fragment.
    Endpoint,
    /// The beginning of object names, at most 1,024 bytes.
    KeyPrefix,
    /// An Amazon resource name.
    RoleArn,
    /// A GUID or a domain name, at most 255 characters.
    Tenant,
    /// A GUID or another token of letters, digits and `. _ -`, at most 255 characters.
    ClientId,
    /// A JSON boolean.
    Flag,
    /// A connection string of Azure storage.
    ConnectionString,
    /// A service account's key file: a JSON object, or the same as a JSON string.
    KeyFile,
    /// The address behind a direct link.
    Link,
    /// An object of header fields.
    Headers,
}

/// One row of a type's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSpec {
    /// The member's name.
    pub name: &'static str,
    /// What of it may be seen.
    pub class: FieldClass,
    /// Whether it must be given.
    pub required: bool,
    /// What its value is.
    pub kind: ValueKind,
}

/// How much of a value is looked at.
#[derive(Clone, Copy)]
pub(super) enum Checks {
    /// Its shape: it was accepted once, and whatever rules came since must not shut it in.
    Stored,
    /// Its shape and every rule of today.
    New(DataPolicy),
}

/// A field being read: its row, and the pointer of the object in which it stands.
#[derive(Clone, Copy)]
pub(super) struct FieldAt<'a> {
    pub(super) spec: &'static FieldSpec,
    pub(super) parent: &'a str,
    pub(super) checks: Checks,
}

impl FieldAt<'_> {
    pub(super) fn pointer(&self) -> String {
        child(self.parent, self.spec.name)
    }

    pub(super) fn wrong_type(&self, detail: &'static str) -> Vec<FieldError> {
        vec![FieldError::new(self.pointer(), FieldCode::WrongType, detail)]
    }

    pub(super) fn refuse(&self, flaw: Flaw) -> Vec<FieldError> {
        vec![FieldError::new(self.pointer(), flaw.code, flaw.detail)]
    }

    /// The text of a string that passes the field's rule.
    pub(super) fn text(&self, node: Node) -> Result<SecretText, Vec<FieldError>> {
        let Node::String(text) = node else { return Err(self.wrong_type("must be a string")) };
        if let Checks::New(policy) = self.checks {
            // Looked at by the rule, which answers with fixed text only.
            self.spec.check(text.expose(), policy).map_err(|flaw| self.refuse(flaw))?;
        }
        Ok(text)
    }
}

/// A type that a field's value can have.
pub(super) trait FieldValue {
    /// The value in `node`.
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>>
    where
        Self: Sized;

    /// Writes the value in canonical JSON.
    fn write(&self, sink: &mut dyn FnMut(&str));

    /// Gives `each` the texts within the value: of a secret, those that may stand in no other field.
    fn texts(&self, each: &mut dyn FnMut(&str));
}

impl FieldValue for SecretText {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        field.text(node)
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        write_text(self.expose(), sink); // The caller's sink decides where it may go.
    }

    fn texts(&self, each: &mut dyn FnMut(&str)) {
        each(self.expose()); // For comparison with the fields that can be seen.
    }
}

impl FieldValue for String {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        // Used for places alone, which are shown in full.
        field.text(node).map(|text| text.expose().to_owned())
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        write_text(self, sink);
    }

    fn texts(&self, each: &mut dyn FnMut(&str)) {
        each(self);
    }
}

impl FieldValue for bool {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        match node {
            Node::Bool(value) => Ok(value),
            _ => Err(field.wrong_type("must be true or false")),
        }
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        sink(if *self { "true" } else { "false" });
    }

    fn texts(&self, _: &mut dyn FnMut(&str)) {}
}

/// A field that is set.
pub(super) struct Entry<'a> {
    pub(super) spec: &'static FieldSpec,
    pub(super) value: &'a dyn FieldValue,
}

/// Something that information may say beside the fields themselves, because the fields' shapes keep it safe.
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: FactValue,
}

pub(super) enum FactValue {
    /// Shown in full.
    Text(String),
    /// Shown masked.
    Masked(SecretText),
    Flag(bool),
}

impl Fact {
    pub(super) fn text(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: FactValue::Text(value.into()) }
    }
}

/// Reads the fields of one table from one object.
pub(super) struct FieldReader {
    object: ObjectReader,
    checks: Checks,
}

impl FieldReader {
    pub(super) fn new(object: ObjectReader, checks: Checks) -> Self {
        Self { object, checks }
    }

    pub(super) fn read<T: FieldValue>(&mut self, spec: &'static FieldSpec) -> Option<T> {
        let node = if spec.required { self.object.node(spec.name) } else { self.object.optional_node(spec.name) }?;
        match T::read(node, &FieldAt { spec, parent: self.object.pointer(), checks: self.checks }) {
            Ok(value) => Some(value),
            Err(errors) => {
                self.object.report_all(errors);
                None
            }
        }
    }

    /// Refuses a field that can be seen and holds a secret of the same credential: two fields were mixed up,
    /// and the list would show the secret.
    pub(super) fn refuse_exposed_secrets(&mut self, entries: &[Entry<'_>]) {
        if let Checks::Stored = self.checks {
            return;
        }
        let (secrets, seen): (Vec<&Entry<'_>>, Vec<&Entry<'_>>) =
            entries.iter().partition(|entry| entry.spec.class == FieldClass::Secret);
        for entry in seen {
            let mut exposes = false;
            entry.value.texts(&mut |text| {
                for secret in &secrets {
                    secret.value.texts(&mut |secret| exposes |= holds(text, secret));
                }
            });
            if exposes {
                let detail = "must not hold a secret of this credential, since it can be seen in lists";
                let pointer = child(self.object.pointer(), entry.spec.name);
                self.object.report(FieldError::new(pointer, FieldCode::NotAllowed, detail));
            }
        }
    }

    pub(super) fn finish(self) -> Vec<FieldError> {
        self.object.finish()
    }
}

fn holds(text: &str, secret: &str) -> bool {
    /// Shorter secrets, such as an external id, may be words that stand within a place by right.
    const LONG: usize = 16;
    text == secret || (secret.len() >= LONG && text.contains(secret))
}

/// Makes a struct, its table and the passage between the two from rows `name: need class kind -> type`.
macro_rules! credential_table {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $need:ident $class:ident $kind:ident -> $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name {
            $($(#[$doc])* pub $field: $crate::credential::table::credential_table!(@held $need $ty),)*
        }

        impl $name {
            /// The type's fields, in the order of the documentation.
            pub const FIELDS: &'static [$crate::credential::table::FieldSpec] =
                &[$($crate::credential::table::credential_table!(@spec $field $need $class $kind)),*];

            /// The fields in `source`; `None` only where something was reported.
            pub(super) fn read(source: &mut $crate::credential::table::FieldReader) -> Option<Self> {
                $(let $field = source.read::<$ty>(
                    &$crate::credential::table::credential_table!(@spec $field $need $class $kind),
                );)*
                let entries: Vec<_> = [$(
                    $crate::credential::table::credential_table!(@entry $field $need $class $kind, $field.as_ref())
                ),*].into_iter().flatten().collect();
                source.refuse_exposed_secrets(&entries);
                Some(Self { $($field: $crate::credential::table::credential_table!(@take $need $field)),* })
            }

            /// The fields that are set, in the order of the table.
            pub(super) fn entries(&self) -> Vec<$crate::credential::table::Entry<'_>> {
                [$(
                    $crate::credential::table::credential_table!(
                        @entry $field $need $class $kind,
                        $crate::credential::table::credential_table!(@borrow $need self.$field)
                    )
                ),*].into_iter().flatten().collect()
            }
        }
    };
    (@held required $ty:ty) => { $ty };
    (@held optional $ty:ty) => { Option<$ty> };
    (@take required $field:ident) => { $field? };
    (@take optional $field:ident) => { $field };
    (@borrow required $value:expr) => { Some(&$value) };
    (@borrow optional $value:expr) => { $value.as_ref() };
    (@is required) => { true };
    (@is optional) => { false };
    (@spec $field:ident $need:ident $class:ident $kind:ident) => {
        $crate::credential::table::FieldSpec {
            name: stringify!($field),
            class: $crate::credential::table::FieldClass::$class,
            required: $crate::credential::table::credential_table!(@is $need),
            kind: $crate::credential::table::ValueKind::$kind,
        }
    };
    (@entry $field:ident $need:ident $class:ident $kind:ident, $value:expr) => {
        $value.map(|value| $crate::credential::table::Entry {
            spec: &$crate::credential::table::credential_table!(@spec $field $need $class $kind),
            value: value as &dyn $crate::credential::table::FieldValue,
        })
    };
}
pub(super) use credential_table;
