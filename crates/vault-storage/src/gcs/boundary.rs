//! The scope of a downscoped token: a credential access boundary.
//!
//! <https://cloud.google.com/iam/docs/downscoping-short-lived-credentials>

use serde_json::{Value, json};
use vault_core::credential::Buckets;

/// Read, write, list and delete objects, without permissions on the bucket or on access control.
const RIGHTS: &str = "inRole:roles/storage.objectUser";

/// Returns the boundary: the buckets, limited to objects with the prefix.
pub(super) fn of(buckets: &Buckets, key_prefix: Option<&str>) -> Value {
    let rules: Vec<Value> = buckets.iter().map(|bucket| rule(bucket, key_prefix)).collect();
    json!({"accessBoundary": {"accessBoundaryRules": rules}})
}

fn rule(bucket: &str, prefix: Option<&str>) -> Value {
    let mut rule = json!({
        "availableResource": format!("//storage.googleapis.com/projects/_/buckets/{bucket}"),
        "availablePermissions": [RIGHTS],
    });
    if let (Some(prefix), Some(members)) = (prefix.filter(|prefix| !prefix.is_empty()), rule.as_object_mut()) {
        let objects = literal(&format!("projects/_/buckets/{bucket}/objects/{prefix}"));
        let prefix = literal(prefix);
        let expression = format!(
            "resource.name.startsWith({objects}) || \
             api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith({prefix})"
        );
        members.insert("availabilityCondition".to_owned(), json!({ "expression": expression }));
    }
    rule
}

/// Quotes `text` as a string of the Common Expression Language.
fn literal(text: &str) -> String {
    let mut literal = String::from("'");
    for character in text.chars() {
        match character {
            '\'' | '\\' => literal.extend(['\\', character]),
            character if character.is_control() => literal.push_str(&format!("\\u{:04x}", u32::from(character))),
            character => literal.push(character),
        }
    }
    literal.push('\'');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Parses a string literal of the language.
    fn read(literal: &str) -> Option<String> {
        let mut inside = literal.strip_prefix('\'')?.strip_suffix('\'')?.chars();
        let mut text = String::new();
        while let Some(character) = inside.next() {
            match character {
                '\'' => return None,
                '\\' => match inside.next()? {
                    'u' => {
                        let digits: String = inside.by_ref().take(4).collect();
                        text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                    }
                    character => text.push(character),
                },
                character => text.push(character),
            }
        }
        Some(text)
    }

    proptest! {
        /// No prefix can change the expression.
        #[test]
        fn prefix_is_escaped_in_string_literal(text in any::<String>()) {
            prop_assert_eq!(read(&literal(&text)), Some(text));
        }
    }
}
