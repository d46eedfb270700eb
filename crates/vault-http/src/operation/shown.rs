//! What is shown to its owner once: secrets that an answer carries.

use crate::answer::time_text;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;
use vault_api::{CredentialItem, Totp, VersionItem, WireSecret};
use vault_core::credential::Information;
use vault_core::id::CredentialId;
use vault_core::passcode::{PasscodeSecret, RecoveryCode};
use vault_core::time::Timestamp;
use vault_core::usecase::{ListedCredential, ListedVersion};

/// What an authenticator is set up with.
pub(super) fn totp(passcode: PasscodeSecret) -> Totp {
    Totp { secret: passcode.secret.into(), uri: passcode.uri.into() }
}

/// Recovery codes in their groups of digits.
pub(super) fn recovery_codes(codes: Vec<RecoveryCode>) -> Vec<WireSecret> {
    codes.into_iter().map(|RecoveryCode(code)| code.into()).collect()
}

/// A text of a list, written where it goes: a list of a thousand has five thousand of them.
pub(super) enum Text<'a> {
    Plain(&'a str),
    Id(CredentialId),
    Time(Timestamp),
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(text) => serializer.serialize_str(text),
            Self::Id(id) => {
                serializer.serialize_str(id.as_uuid().hyphenated().encode_lower(&mut Uuid::encode_buffer()))
            }
            Self::Time(time) => serializer.serialize_str(&time_text(*time)),
        }
    }
}

/// A page of a list.
pub(super) struct Credentials<'a>(pub(super) &'a [ListedCredential]);

impl Serialize for Credentials<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(credential))
    }
}

/// A credential as lists show it. Its information is not parsed again.
pub(super) fn credential(listed: &ListedCredential) -> CredentialItem<Text<'_>, &RawValue> {
    CredentialItem {
        id: Text::Id(listed.id),
        kind: Text::Plain(listed.kind.as_str()),
        namespace: Text::Plain(listed.namespace.as_str()),
        information: listed.information.as_ref().map(Information::as_raw),
        damaged: listed.information.is_none(),
        version: listed.version,
        created_at: Text::Time(listed.created_at),
        updated_at: Text::Time(listed.updated_at),
        expires_at: listed.information.as_ref().and_then(Information::expires_at).map(Text::Time),
        staged_version: listed.staged,
    }
}

/// A version as lists show it.
pub(super) fn version(listed: &ListedVersion) -> VersionItem<Text<'_>, &RawValue> {
    VersionItem {
        version: listed.number,
        state: Text::Plain(listed.state.as_str()),
        information: listed.information.as_ref().map(Information::as_raw),
        damaged: listed.information.is_none(),
        created_at: Text::Time(listed.created_at),
    }
}

/// About how many bytes [`credential`] takes as JSON; rather more.
pub(super) fn size(listed: &ListedCredential) -> usize {
    /// All but namespace and information.
    const FRAME: usize = 384;
    let information = listed.information.as_ref().map_or(0, |information| information.as_json().len());
    FRAME + listed.namespace.as_str().len() + information
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_core::credential::CredentialType;
    use vault_core::namespace::Namespace;

    #[test]
    fn information_is_spliced_and_items_read_back_as_the_clients_type() {
        let listed = ListedCredential {
            id: CredentialId::from_bytes([0xab; 16]),
            kind: CredentialType::DirectLink,
            namespace: Namespace::parse("imports/nightly", "").unwrap_or_else(|_| panic!("a namespace")),
            version: 7,
            created_at: Timestamp::from_millis(1_795_176_000_123),
            updated_at: Timestamp::from_millis(1_795_176_001_000),
            revision: 9,
            staged: None,
            information: Information::from_json("{\"host\":\"a\\u00e4\", \"secrets\":[]}".into()).ok(),
        };
        let text = |listed: &ListedCredential| serde_json::to_string(&credential(listed)).unwrap_or_default();
        let sound = text(&listed);
        assert_eq!(
            sound,
            r#"{"id":"abababab-abab-abab-abab-abababababab","type":"direct-link","namespace":"imports/nightly","information":{"host":"a\u00e4", "secrets":[]},"version":7,"created_at":"2026-11-20T12:00:00Z","updated_at":"2026-11-20T12:00:01Z"}"#
        );
        assert!(sound.len() <= size(&listed), "the buffer is large enough at once");
        let item = serde_json::from_str::<CredentialItem>(&sound).ok();
        assert!(item.is_some_and(|item| item.information.is_some_and(|shown| shown["host"] == "a\u{e4}")));
        assert_eq!(serde_json::to_string(&Credentials(&[])).ok().as_deref(), Some("[]"));
        let expiring = Information::from_json("{\"expires_at\":\"2026-11-20T12:00:00Z\"}".into()).ok();
        let full =
            ListedCredential { staged: Some(i64::MAX), revision: i64::MAX, information: expiring, ..listed.clone() };
        let found = text(&full);
        assert!(
            found.ends_with(r#","expires_at":"2026-11-20T12:00:00Z","staged_version":9223372036854775807}"#),
            "{found}"
        );
        assert!(found.len() <= size(&full));
        let damaged = text(&ListedCredential { information: None, ..listed });
        assert!(damaged.contains("\"damaged\":true") && !damaged.contains("information"), "{damaged}");
    }
}
