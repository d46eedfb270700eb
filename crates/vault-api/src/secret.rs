//! Secrets in requests and responses.

use secrecy::{ExposeSecret, SecretString};
use serde::de::{Error as DeError, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;

/// A secret text in a request or a response. Unlike other secrets, it can be serialized, because it is sent over the
/// wire. It implements neither `Display` nor `Clone`, and `Debug` does not show it.
pub struct WireSecret(SecretString);

impl WireSecret {
    /// Returns the secret.
    pub const fn secret(&self) -> &SecretString {
        &self.0
    }

    /// Converts it into a secret of the process.
    pub fn into_secret(self) -> SecretString {
        self.0
    }
}

impl From<SecretString> for WireSecret {
    fn from(secret: SecretString) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for WireSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WireSecret(..)")
    }
}

impl Serialize for WireSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose_secret()) // sent over the wire
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for WireSecret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "password"})
    }
}

impl<'de> Deserialize<'de> for WireSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = WireSecret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: DeError>(self, text: &str) -> Result<WireSecret, E> {
                Ok(WireSecret(SecretString::from(text)))
            }

            fn visit_string<E: DeError>(self, text: String) -> Result<WireSecret, E> {
                Ok(WireSecret(SecretString::from(text)))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

/// JSON text with secrets, sent unchanged. It implements neither `Display` nor `Clone`, and `Debug` does not show it.
pub struct WireJson(SecretString);

impl WireJson {
    /// Converts it into a secret of the process.
    pub fn into_secret(self) -> SecretString {
        self.0
    }
}

impl From<SecretString> for WireJson {
    /// Wraps the JSON in `text`. Malformed JSON is detected only by the serialization.
    fn from(text: SecretString) -> Self {
        Self(text)
    }
}

impl fmt::Debug for WireJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WireJson(..)")
    }
}

impl Serialize for WireJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Sent over the wire. The parser's message could contain a part of the text, so it is dropped.
        let raw: &RawValue =
            serde_json::from_str(self.0.expose_secret()).map_err(|_| S::Error::custom("the data is not valid JSON"))?;
        raw.serialize(serializer)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for WireJson {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Data".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object", "description": "The data of a credential, in the shape of its type."})
    }
}

impl<'de> Deserialize<'de> for WireJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer).map_err(|_| D::Error::custom("not JSON"))?;
        Ok(Self(SecretString::from(String::from(Box::<str>::from(raw)))))
    }
}
