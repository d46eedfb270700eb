//! URIs of keys in tokens (PKCS#11 URIs, RFC 7512).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Minimum length of a key's id, in bytes. Shorter ids, such as 01 and 02 of some tools, are not unique.
const SHORTEST_ID: usize = 8;
/// Characters that are not percent-encoded in an attribute.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PLAIN_PATH: AsciiSet = PLAIN.remove(b'/');

/// A key in a token, the module that reaches the token, and the file of the PIN:
/// `pkcs11:token=LABEL;id=%01%23…?module-path=/FILE&pin-source=/FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenUri {
    pub(crate) token: Option<String>,
    pub(crate) serial: Option<String>,
    pub(crate) slot: Option<u64>,
    pub(crate) id: Vec<u8>,
    pub(crate) label: Option<String>,
    module: PathBuf,
    pin: PathBuf,
}

/// The text is not a valid URI of a key. The message does not contain the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidUri(&'static str);

impl TokenUri {
    /// Returns the path of the module.
    pub fn module(&self) -> &Path {
        &self.module
    }

    /// Returns the path of the file with the PIN.
    pub fn pin(&self) -> &Path {
        &self.pin
    }
}

impl FromStr for TokenUri {
    type Err = InvalidUri;

    fn from_str(text: &str) -> Result<Self, InvalidUri> {
        let rest = text.strip_prefix("pkcs11:").ok_or(InvalidUri("must begin with pkcs11:"))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (mut token, mut serial, mut slot, mut label) = (None, None, None, None);
        let mut id: Option<Vec<u8>> = None;
        for (name, value) in attributes(path, ';')? {
            match name {
                "token" => set(&mut token, text_of(value)?)?,
                "serial" => set(&mut serial, text_of(value)?)?,
                "slot-id" => {
                    let number = value.parse().map_err(|_| InvalidUri("slot-id= must be a number"))?;
                    set(&mut slot, number)?;
                }
                "id" => set(&mut id, percent_decode_str(value).collect())?,
                "object" => set(&mut label, text_of(value)?)?,
                "type" if value == "secret-key" => {}
                "type" => return Err(InvalidUri("type= must be secret-key")),
                _ => {
                    return Err(InvalidUri(
                        "supports token, serial, slot-id, id, object and type=secret-key before the ?",
                    ));
                }
            }
        }
        let (mut module, mut pin) = (None, None);
        for (name, value) in attributes(query, '&')? {
            match name {
                "module-path" => set(&mut module, file(value)?)?,
                "pin-source" => set(&mut pin, file(value.strip_prefix("file:").unwrap_or(value))?)?,
                "pin-value" => {
                    return Err(InvalidUri(
                        "must not contain the PIN: write it to a file and name it with pin-source=",
                    ));
                }
                _ => return Err(InvalidUri("supports module-path and pin-source after the ?")),
            }
        }
        if token.is_none() && serial.is_none() && slot.is_none() {
            return Err(InvalidUri("needs the token: token=LABEL, serial=NUMBER or slot-id=NUMBER"));
        }
        let id = id.ok_or(InvalidUri("needs the key's id: id=%01%23…"))?;
        if id.len() < SHORTEST_ID {
            return Err(InvalidUri(
                "needs a key with an id of at least 8 bytes that no other key has, such as 16 random ones",
            ));
        }
        Ok(Self {
            token,
            serial,
            slot,
            id,
            label,
            module: module.ok_or(InvalidUri("needs the module: ?module-path=/FILE"))?,
            pin: pin.ok_or(InvalidUri("needs the file of the PIN: pin-source=/FILE"))?,
        })
    }
}

fn attributes(text: &str, separator: char) -> Result<Vec<(&str, &str)>, InvalidUri> {
    let parts = text.split(separator).filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').ok_or(InvalidUri("must be a list of NAME=VALUE"))).collect()
}

fn set<T>(place: &mut Option<T>, value: T) -> Result<(), InvalidUri> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(InvalidUri("names something twice")),
    }
}

fn text_of(value: &str) -> Result<String, InvalidUri> {
    let text = percent_decode_str(value).decode_utf8().map_err(|_| InvalidUri("contains bytes that are not text"))?;
    if text.is_empty() { Err(InvalidUri("contains an empty name")) } else { Ok(text.into_owned()) }
}

fn file(value: &str) -> Result<PathBuf, InvalidUri> {
    let path = PathBuf::from(text_of(value)?);
    if path.is_absolute() { Ok(path) } else { Err(InvalidUri("module-path= and pin-source= need absolute paths")) }
}

impl fmt::Display for TokenUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "pkcs11:";
        for (name, value) in [("token", &self.token), ("serial", &self.serial)] {
            if let Some(value) = value {
                write!(f, "{before}{name}={}", percent_encode(value.as_bytes(), &PLAIN))?;
                before = ";";
            }
        }
        if let Some(slot) = self.slot {
            write!(f, "{before}slot-id={slot}")?;
            before = ";";
        }
        write!(f, "{before}id=")?;
        for byte in &self.id {
            write!(f, "%{byte:02X}")?;
        }
        if let Some(label) = &self.label {
            write!(f, ";object={}", percent_encode(label.as_bytes(), &PLAIN))?;
        }
        let path = |path: &Path| percent_encode(path.as_os_str().as_encoded_bytes(), &PLAIN_PATH).to_string();
        write!(f, "?module-path={}&pin-source={}", path(&self.module), path(&self.pin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "pkcs11:token=the%20vault;serial=12;slot-id=3;id=%01%23%45%67%89%AB%CD%EF;object=root%2Fkey;\
                         type=secret-key?module-path=/usr/lib/softhsm/libsofthsm2.so&pin-source=file:/etc/orgvault/pin";

    fn refused(text: &str) -> String {
        text.parse::<TokenUri>().unwrap_err().to_string()
    }

    #[test]
    fn uri_names_token_key_module_and_pin() {
        let uri: TokenUri = WHOLE.parse().unwrap();
        assert_eq!((uri.token.as_deref(), uri.serial.as_deref(), uri.slot), (Some("the vault"), Some("12"), Some(3)));
        assert_eq!(uri.id, [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
        assert_eq!(uri.label.as_deref(), Some("root/key"));
        assert_eq!(uri.module(), Path::new("/usr/lib/softhsm/libsofthsm2.so"));
        assert_eq!(uri.pin(), Path::new("/etc/orgvault/pin"));
        assert_eq!(uri.to_string().parse::<TokenUri>(), Ok(uri));
    }

    #[test]
    fn uri_errors_name_parameter_without_value() {
        let least = "pkcs11:token=a;id=12345678?module-path=/m&pin-source=/p";
        assert!(least.parse::<TokenUri>().is_ok());
        for (from, to, expected) in [
            ("pkcs11:", "pkcs12:", "begin with pkcs11:"),
            ("token=a;", "", "needs the token"),
            (";id=12345678", "", "needs the key's id"),
            ("12345678", "1234567", "at least 8 bytes"),
            ("module-path=/m", "", "needs the module"),
            ("&pin-source=/p", "", "needs the file of the PIN"),
            ("pin-source=/p", "pin-value=4711", "must not contain the PIN"),
            ("/p", "p", "absolute"),
            ("token=a", "token=a;token=b", "twice"),
            ("token=a", "token=a;type=private", "secret-key"),
            ("token=a", "token=a;color=red", "supports token"),
            ("token=a", "slot-id=x", "number"),
            ("token=a", "token=%ff", "not text"),
            ("token=a", "token", "NAME=VALUE"),
        ] {
            let text = least.replace(from, to);
            let refusal = refused(&text);
            assert!(refusal.contains(expected), "{text}: {refusal}");
            assert!(!refusal.contains("4711"), "{refusal}");
        }
    }
}
