//! Secrets on their way over the wire.

use secrecy::{ExposeSecret, SecretString};
use serde::de::{Error as DeError, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;

/// A secret string in a request or an answer: unlike every other secret it serialises, because crossing the
/// wire is what it is for. No `Display` or `Clone`; `Debug` shows nothing of it.
pub struct WireSecret(SecretString);

impl WireSecret {
    /// The secret, to be kept.
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
        serializer.serialize_str(self.0.expose_secret()) // crosses the wire
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

/// JSON text with secrets, sent unchanged. No `Display` or `Clone`; `Debug` shows nothing of it.
pub struct WireJson(SecretString);

impl WireJson {
    /// The JSON text, to be kept.
    pub fn into_secret(self) -> SecretString {
        self.0
    }
}

impl From<SecretString> for WireJson {
    /// The JSON in `text`. That it is JSON shows only when it is serialised.
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
        // Crosses the wire. The parser's message could quote the text, so it is not passed on.
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
