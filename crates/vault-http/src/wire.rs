//! Parsing of request bodies to the types of `vault-api`. Reports all format errors together.
//!
//! serde stops at the first error. Therefore, a missing member, or one of the wrong type, is recorded as an error and
//! read as an empty value. A request with an error is never executed, so the empty value is not used.
//! [`FieldErrors::check`] skips the validation of such members.

use crate::problem_response::ProblemResponse;
use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt;
use vault_core::field::{FieldCode, FieldError, child};
use vault_core::json::{self, Limits, Member, Node, SyntaxError, pointer_to};

/// The JSON object in a body.
pub(crate) struct Document {
    members: Vec<Member>,
    violations: FieldErrors,
}

impl Document {
    /// # Errors
    /// The body is not a JSON object within the limits of requests.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ProblemResponse> {
        let document = json::parse(body, Limits::REQUEST).map_err(|error| {
            ProblemResponse::malformed(match error {
                SyntaxError::NotUtf8 => "The body is not UTF-8.",
                SyntaxError::TooDeep => "The body is nested too deeply.",
                SyntaxError::TooManyMembers => "The body has too many fields.",
                _ => {
                    "The body is not valid JSON. In strings, write \\\" for a quotation mark and \\\\ for a backslash."
                }
            })
        })?;
        let mut violations = FieldErrors { errors: document.duplicates, unreadable: Vec::new() };
        match document.root {
            Node::Object(members) => Ok(Self { members, violations }),
            _ => {
                violations.errors.push(wrong_type(String::new(), "must be an object"));
                Err(ProblemResponse::fields(violations.errors))
            }
        }
    }

    /// Takes the value of the member `name` for separate parsing, and keeps the member itself. Returns `None` if it is
    /// missing or `null`.
    pub(crate) fn take(&mut self, name: &str) -> Option<Node> {
        let member = self.members.iter_mut().find(|member| member.name == name)?;
        match member.value {
            Node::Null => None,
            _ => Some(std::mem::replace(&mut member.value, Node::Bool(true))),
        }
    }

    /// Removes the member `name` and returns its value, including `null`, for separate parsing.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Node> {
        let place = self.members.iter().position(|member| member.name == name)?;
        Some(self.members.remove(place).value)
    }

    /// Removes the member `name` if it is `null`. Returns whether it was.
    pub(crate) fn take_null(&mut self, name: &str) -> bool {
        let before = self.members.len();
        self.members.retain(|member| member.name != name || !matches!(member.value, Node::Null));
        self.members.len() < before
    }

    /// Returns the members for separate parsing.
    ///
    /// # Errors
    /// A member is repeated.
    pub(crate) fn into_members(self) -> Result<Vec<Member>, ProblemResponse> {
        self.violations.finish(Some(self.members))
    }

    /// Parses the members as a `T`. Returns it with the format errors.
    ///
    /// # Errors
    /// `T` has an unsupported type, which is an internal error.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<(T, FieldErrors), ProblemResponse> {
        let Self { members, mut violations } = self;
        let request = T::deserialize(Object { members, violations: &mut violations })
            .map_err(|error: Unsupported| ProblemResponse::internal().caused_by(error))?;
        Ok((request, violations))
    }
}

/// Parses `body` as a `T`. Returns it with the format errors.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<(T, FieldErrors), ProblemResponse> {
    Document::parse(body)?.read()
}

/// The errors in the members of a request.
pub(crate) struct FieldErrors {
    errors: Vec<FieldError>,
    /// Pointers of the members that could not be parsed.
    unreadable: Vec<String>,
}

impl FieldErrors {
    /// Validates the member at `pointer`, unless it could not be parsed.
    pub(crate) fn check<V>(&mut self, pointer: &str, check: impl FnOnce() -> Result<V, FieldError>) -> Option<V> {
        self.check_all(pointer, || check().map_err(|error| vec![error]))
    }

    /// Same as [`FieldErrors::check`], for a validation that can return several errors.
    pub(crate) fn check_all<V>(
        &mut self,
        pointer: &str,
        check: impl FnOnce() -> Result<V, Vec<FieldError>>,
    ) -> Option<V> {
        if self.unreadable.iter().any(|unreadable| unreadable == pointer) {
            return None;
        }
        check().map_err(|errors| self.errors.extend(errors)).ok()
    }

    /// Adds an error.
    pub(crate) fn report(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    /// Returns whether there are no errors.
    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns `checked` if the request is valid. `None` means that a validation failed.
    ///
    /// # Errors
    /// All errors of the request.
    pub(crate) fn finish<V>(self, checked: Option<V>) -> Result<V, ProblemResponse> {
        match checked {
            Some(checked) if self.errors.is_empty() => Ok(checked),
            _ => Err(ProblemResponse::fields(self.errors)),
        }
    }

    fn unreadable(&mut self, member: &FieldPointer, error: FieldError) {
        self.errors.push(error);
        self.unreadable.push(member.member.clone());
    }
}

fn wrong_type(pointer: String, detail: &'static str) -> FieldError {
    FieldError::new(pointer, FieldCode::WrongType, detail)
}

/// The pointer of a value, and that of the member that contains it.
#[derive(Clone)]
struct FieldPointer {
    pointer: String,
    member: String,
}

/// Deserializes an object, in the order of the target type's fields.
struct Object<'a> {
    members: Vec<Member>,
    violations: &'a mut FieldErrors,
}

impl<'de> Deserializer<'de> for Object<'_> {
    type Error = Unsupported;

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unsupported> {
        let mut values = Vec::with_capacity(fields.len());
        for &field in fields {
            let place = self.members.iter().position(|member| member.name == field);
            values.push((field, place.map(|place| self.members.remove(place).value)));
        }
        let value =
            visitor.visit_map(Members { values: values.into_iter(), next: None, violations: &mut *self.violations })?;
        for member in &self.members {
            let pointer = pointer_to("", &member.name);
            let error = FieldError::new(pointer, FieldCode::Unknown, json::unknown_field(fields));
            // Names that must not be repeated in the response share the object's pointer. Report this once.
            if self.violations.errors.last() != Some(&error) {
                self.violations.errors.push(error);
            }
        }
        Ok(value)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Unsupported> {
        Err(Unsupported)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Names and values of the target type's fields. Missing members have no value.
struct Members<'a> {
    values: std::vec::IntoIter<(&'static str, Option<Node>)>,
    next: Option<(&'static str, Option<Node>)>,
    violations: &'a mut FieldErrors,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Unsupported;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Unsupported> {
        self.next = self.values.next();
        self.next.as_ref().map(|(name, _)| seed.deserialize(StrDeserializer::new(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Unsupported> {
        let (name, node) = self.next.take().ok_or(Unsupported)?;
        let pointer = child("", name);
        seed.deserialize(Value {
            node,
            place: FieldPointer { member: pointer.clone(), pointer },
            violations: &mut *self.violations,
        })
    }
}

/// The value of a member or an array element, if it exists.
struct Value<'a> {
    node: Option<Node>,
    place: FieldPointer,
    violations: &'a mut FieldErrors,
}

impl Value<'_> {
    /// Records that the value is missing or has the wrong type.
    fn refuse(self, expected: &'static str) {
        let pointer = self.place.pointer.clone();
        let error = match self.node {
            None => FieldError::new(pointer, FieldCode::Required, "is required"),
            Some(Node::Null) => wrong_type(pointer, "must not be null"),
            Some(_) => wrong_type(pointer, expected),
        };
        self.violations.unreadable(&self.place, error);
    }
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Unsupported;

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsupported> {
        if let Some(Node::String(text)) = &self.node {
            return visitor.visit_str(text.expose()); // the request's own type protects secrets
        }
        self.refuse("must be a string");
        visitor.visit_str("")
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsupported> {
        self.deserialize_str(visitor)
    }

    /// Clamps integers to 64 bits, so that the range check of the member rejects them.
    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsupported> {
        if let Some(integer) = self.node.as_ref().and_then(Node::as_integer) {
            return visitor.visit_i64(integer);
        }
        self.refuse("must be a whole number");
        visitor.visit_i64(0)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsupported> {
        if let Some(Node::Bool(value)) = self.node {
            return visitor.visit_bool(value);
        }
        self.refuse("must be true or false");
        visitor.visit_bool(false)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsupported> {
        match self.node {
            None => visitor.visit_none(),
            Some(Node::Null) => {
                let error = wrong_type(self.place.pointer.clone(), "must not be null: omit the field instead");
                self.violations.unreadable(&self.place, error);
                visitor.visit_none()
            }
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsupported> {
        match self.node {
            Some(Node::Array(elements)) => visitor.visit_seq(Elements {
                elements: elements.into_iter().enumerate(),
                place: self.place,
                violations: self.violations,
            }),
            _ => {
                self.refuse("must be an array");
                visitor.visit_seq(SeqDeserializer::new(std::iter::empty::<()>()))
            }
        }
    }

    /// Accepts any value, which is parsed separately.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsupported> {
        if matches!(self.node, None | Some(Node::Null)) {
            self.refuse("");
        }
        visitor.visit_unit()
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Unsupported> {
        Err(Unsupported)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 u8 u16 u32 u64 f32 f64 char bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct map
        struct enum identifier
    }
}

struct Elements<'a> {
    elements: std::iter::Enumerate<std::vec::IntoIter<Node>>,
    place: FieldPointer,
    violations: &'a mut FieldErrors,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Unsupported;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Unsupported> {
        let Some((index, node)) = self.elements.next() else { return Ok(None) };
        let place = FieldPointer { pointer: child(&self.place.pointer, &index.to_string()), ..self.place.clone() };
        seed.deserialize(Value { node: Some(node), place, violations: &mut *self.violations }).map(Some)
    }
}

/// A type of `vault-api` contains an unsupported field type.
#[derive(Clone, Copy, Debug)]
struct Unsupported;

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request's type has a member of a kind that is not read")
    }
}

impl std::error::Error for Unsupported {}

impl serde::de::Error for Unsupported {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self // the message could contain a value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IgnoredAny;
    use vault_api::{CreateIntegrationRequest, LoginRequest, ReplaceRequest, RotateIntegrationRequest, SaveRequest};

    type Found = Vec<(String, &'static str)>;

    /// Returns the parsed value of `body` and the format errors.
    fn found<T: DeserializeOwned>(body: &str) -> (Option<T>, Found) {
        let Ok((request, violations)) = read::<T>(body.as_bytes()) else { panic!("an object: {body}") };
        let errors: Found =
            violations.errors.iter().map(|error| (error.pointer.clone(), error.code.as_str())).collect();
        (violations.finish(Some(request)).ok(), errors)
    }

    fn violations<T: DeserializeOwned>(body: &str) -> Found {
        let (request, errors) = found::<T>(body);
        assert_eq!(request.is_none(), !errors.is_empty());
        errors
    }

    fn named(violations: &[(&str, &'static str)]) -> Found {
        violations.iter().map(|(pointer, code)| ((*pointer).to_owned(), *code)).collect()
    }

    #[test]
    fn request_is_parsed_as_sent() {
        let (request, _) = found::<CreateIntegrationRequest>(r#"{"namespaces": ["a", "b/*"], "name": "n\u00e4"}"#);
        let expected = CreateIntegrationRequest {
            name: "n\u{e4}".into(),
            namespaces: vec!["a".into(), "b/*".into()],
            expires_at: None,
            token: None,
            trusts: None,
            managed_by: None,
        };
        assert_eq!(request, Some(expected));
        let stage = |text: &str| {
            let (request, violations) =
                found::<ReplaceRequest<IgnoredAny>>(&format!("{{\"data\": 1, \"stage\": {text}}}"));
            request.map(|request| request.stage).ok_or(violations)
        };
        assert_eq!((stage("true"), stage("false")), (Ok(Some(true)), Ok(Some(false))));
        for wrong in ["null", "\"true\"", "1", "0", "[]", "{}"] {
            assert_eq!(stage(wrong), Err(named(&[("/stage", "wrong-type")])), "{wrong}");
        }
        let overlap = |text: &str| {
            let (request, violations) = found::<RotateIntegrationRequest>(&format!("{{\"overlap\": {text}}}"));
            request.map(|request| request.overlap).ok_or(violations)
        };
        assert_eq!(overlap("60"), Ok(Some(60)));
        assert_eq!(overlap("99999999999999999999"), Ok(Some(i64::MAX)));
        assert_eq!(overlap("-1e300"), Ok(Some(i64::MIN)));
        for wrong in ["null", "\"60\"", "1.5", "60.0", "true", "[]", "{}"] {
            assert_eq!(overlap(wrong), Err(named(&[("/overlap", "wrong-type")])), "{wrong}");
        }
    }

    #[test]
    fn all_violations_are_reported_together() {
        let all = violations::<LoginRequest>(
            r#"{"email": 1, "password": "b", "password": 2, "ttl": null, "role": "admin", "~": 1}"#,
        );
        let expected = [
            ("/password", "duplicate"),
            ("/email", "wrong-type"),
            ("/passcode", "required"),
            ("/ttl", "wrong-type"),
            ("/role", "unknown"),
            ("", "unknown"),
        ];
        assert_eq!(all, named(&expected));
        let lists = violations::<CreateIntegrationRequest>(r#"{"name": "n", "namespaces": [null, "x", ["y"]]}"#);
        assert_eq!(lists, named(&[("/namespaces/0", "wrong-type"), ("/namespaces/2", "wrong-type")]));
        for wrong in ["null", "\"x\"", "{}", "1", "true"] {
            let body = format!(r#"{{"name": "n", "namespaces": {wrong}}}"#);
            assert_eq!(
                violations::<CreateIntegrationRequest>(&body),
                named(&[("/namespaces", "wrong-type")]),
                "{wrong}"
            );
        }
    }

    #[test]
    fn unparsed_fields_are_not_validated() {
        let Ok((_, mut violations)) =
            read::<LoginRequest>(br#"{"email": "", "password": 1, "passcode": "", "ttl": "x"}"#)
        else {
            panic!("an object")
        };
        let refuse = |pointer: &'static str| move || Err::<(), _>(FieldError::new(pointer, FieldCode::Blank, "blank"));
        for pointer in ["/email", "/password", "/ttl"] {
            assert_eq!(violations.check(pointer, refuse(pointer)), None);
        }
        assert_eq!(violations.check("/passcode", || Ok("x")), Some("x"));
        let blank: Vec<_> = violations.errors.iter().filter(|error| error.code == FieldCode::Blank).collect();
        assert_eq!(blank.iter().map(|error| &*error.pointer).collect::<Vec<_>>(), ["/email"]);
    }

    #[test]
    fn field_may_have_its_own_rules() {
        let taken = |data: &str| {
            let body = format!("{{\"type\": \"s3\", \"namespace\": \"a\"{data}}}");
            let Ok(mut document) = Document::parse(body.as_bytes()) else { panic!("an object") };
            let taken = document.take("data").is_some();
            let Ok((_, violations)) = document.read::<SaveRequest<IgnoredAny>>() else { panic!("a type that is read") };
            (taken, violations.errors.iter().map(|error| error.code.as_str()).collect::<Vec<_>>())
        };
        assert_eq!(taken(", \"data\": {\"a\": 1}"), (true, vec![]));
        assert_eq!(taken(", \"data\": 1"), (true, vec![]));
        assert_eq!(taken(", \"data\": null"), (false, vec!["wrong-type"]));
        assert_eq!(taken(""), (false, vec!["required"]));
    }
}
