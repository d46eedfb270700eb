//! Serialization of responses: secrets that are shown once, and lists of credentials.

use crate::answer::time_text;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;
use vault_api::{CredentialItem, HealthItem, Totp, VersionItem, WireSecret};
use vault_core::credential::{Description, Health, HealthState, Information, Labels, LastCheck};
use vault_core::id::CredentialId;
use vault_core::passcode::{PasscodeSecret, RecoveryCode};
use vault_core::time::Timestamp;
use vault_core::usecase::{ListedCredential, ListedVersion};

/// Converts the data for setting up an authenticator.
pub(super) fn totp(passcode: PasscodeSecret) -> Totp {
    Totp { secret: passcode.secret.into(), uri: passcode.uri.into() }
}

/// Converts recovery codes, with their digits in groups.
pub(super) fn recovery_codes(codes: Vec<RecoveryCode>) -> Vec<WireSecret> {
    codes.into_iter().map(|RecoveryCode(code)| code.into()).collect()
}

/// A text that is serialized without allocation, because a list of a thousand credentials has five thousand of them.
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

/// A page of credentials.
pub(super) struct Credentials<'a>(pub(super) &'a [ListedCredential]);

impl Serialize for Credentials<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(credential))
    }
}

/// Converts a credential for lists. Its information is already JSON and not parsed again.
pub(super) fn credential(listed: &ListedCredential) -> CredentialItem<Text<'_>, &RawValue, &Labels> {
    let metadata = listed.metadata.as_ref();
    let description = metadata.and_then(|metadata| metadata.description.as_ref());
    CredentialItem {
        id: Text::Id(listed.id),
        kind: Text::Plain(listed.kind.as_str()),
        namespace: Text::Plain(listed.namespace.as_str()),
        information: listed.information.as_ref().map(Information::as_raw),
        damaged: listed.information.is_none() || listed.metadata.is_none(),
        version: listed.version,
        created_at: Text::Time(listed.created_at),
        updated_at: Text::Time(listed.updated_at),
        labels: metadata.map(|metadata| &metadata.labels),
        vend: Text::Plain(listed.vend.as_str()),
        health: health(&listed.health),
        description: description.map(|description| Text::Plain(description.as_str())),
        expires_at: listed.expires_at.map(Text::Time),
        last_activated_at: listed.last_activated_at.map(Text::Time),
        staged_version: listed.staged,
        previous_version: listed.previous.map(|previous| previous.number),
        previous_version_until: listed.previous.map(|previous| Text::Time(previous.until)),
    }
}

fn health(health: &Health) -> HealthItem<Text<'_>> {
    HealthItem {
        state: Text::Plain(health.state.as_str()),
        reason: health.reason.map(|reason| Text::Plain(reason.as_str())),
        checked_at: health.checked_at.map(Text::Time),
        since: health.since.map(Text::Time),
    }
}

/// Converts a version for lists.
pub(super) fn version(listed: &ListedVersion) -> VersionItem<Text<'_>, &RawValue> {
    VersionItem {
        version: listed.number,
        state: Text::Plain(listed.state.as_str()),
        information: listed.information.as_ref().map(Information::as_raw),
        damaged: listed.information.is_none(),
        created_at: Text::Time(listed.created_at),
        health: listed.check.as_ref().map(last_check),
    }
}

/// Converts the result of a version's last check, without its expiry.
fn last_check(check: &LastCheck) -> HealthItem<Text<'_>> {
    let state = if check.failed.is_some() { HealthState::Failing } else { HealthState::Healthy };
    HealthItem {
        state: Text::Plain(state.as_str()),
        reason: check.failed.map(|reason| Text::Plain(reason.as_str())),
        checked_at: Some(Text::Time(check.at)),
        since: Some(Text::Time(check.since)),
    }
}

/// Returns an upper estimate of the size of [`credential`] as JSON, in bytes.
pub(super) fn size(listed: &ListedCredential) -> usize {
    /// All except namespace, information, labels and description.
    const FRAME: usize = 740;
    let information = listed.information.as_ref().map_or(0, |information| information.as_json().len());
    let metadata = listed.metadata.as_ref();
    let labels = metadata.map_or(0, |said| said.labels.iter().map(|(name, value)| name.len() + value.len() + 6).sum());
    // JSON escaping at most doubles the size.
    let description = metadata.and_then(|said| said.description.as_ref());
    let description = description.map_or(0, |text: &Description| 2 * text.as_str().len());
    FRAME + listed.namespace.as_str().len() + information + labels + description
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_core::activation::VendRule;
    use vault_core::check::CheckReason;
    use vault_core::credential::{CredentialType, Metadata};
    use vault_core::namespace::Namespace;
    use vault_core::port::PreviousVersion;

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
            previous: None,
            information: Information::from_json("{\"host\":\"a\\u00e4\", \"secrets\":[]}".into()).ok(),
            metadata: Some(Metadata::default()),
            vend: VendRule::Any,
            expires_at: None,
            health: Health { state: HealthState::Unchecked, reason: None, checked_at: None, since: None },
            last_activated_at: None,
        };
        let text = |listed: &ListedCredential| serde_json::to_string(&credential(listed)).unwrap_or_default();
        let sound = text(&listed);
        assert_eq!(
            sound,
            r#"{"id":"abababab-abab-abab-abab-abababababab","type":"direct-link","namespace":"imports/nightly","information":{"host":"a\u00e4", "secrets":[]},"version":7,"created_at":"2026-11-20T12:00:00Z","updated_at":"2026-11-20T12:00:01Z","labels":{},"vend":"any","health":{"state":"unchecked"}}"#
        );
        assert!(sound.len() <= size(&listed), "the buffer is large enough at once");
        let item = serde_json::from_str::<CredentialItem>(&sound).ok();
        assert!(item.is_some_and(|item| item.information.is_some_and(|shown| shown["host"] == "a\u{e4}")));
        assert_eq!(serde_json::to_string(&Credentials(&[])).ok().as_deref(), Some("[]"));
        let at = Some(Timestamp::from_millis(1_795_176_000_000));
        let labels =
            format!("{{\"labels\":{{\"{0}\":\"{0}\"}},\"description\":\"{1}\"}}", "a".repeat(63), "\u{e4}".repeat(500));
        let failing = Health {
            state: HealthState::Unchecked,
            reason: Some(CheckReason::SignatureMismatch),
            checked_at: at,
            since: at,
        };
        let full = ListedCredential {
            staged: Some(i64::MAX),
            previous: at.map(|until| PreviousVersion { number: i64::MAX, until }),
            version: i64::MAX,
            expires_at: at,
            last_activated_at: at,
            health: failing,
            metadata: Metadata::from_json(&labels).ok(),
            ..listed.clone()
        };
        let found = text(&full);
        let end = r#","expires_at":"2026-11-20T12:00:00Z","last_activated_at":"2026-11-20T12:00:00Z","staged_version":9223372036854775807,"previous_version":9223372036854775807,"previous_version_until":"2026-11-20T12:00:00Z"}"#;
        assert!(found.ends_with(end), "{found}");
        assert!(found.len() <= size(&full));
        let unsaid = text(&ListedCredential { metadata: None, ..listed.clone() });
        assert!(unsaid.contains("\"damaged\":true") && !unsaid.contains("labels"), "{unsaid}");
        let damaged = text(&ListedCredential { information: None, ..listed });
        assert!(damaged.contains("\"damaged\":true") && !damaged.contains("information"), "{damaged}");
    }
}
