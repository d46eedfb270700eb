//! Responses: secrets that are shown once, and lists of credentials.

use crate::answer::EPOCH;
use uuid::Uuid;
use vault_api::{Totp, WireSecret};
use vault_core::check::CheckReason;
use vault_core::credential::{Description, Health, HealthState, Information, Labels, LastCheck};
use vault_core::id::CredentialId;
use vault_core::json::ObjectWriter;
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

/// Writes an object that shows a credential or version. A list has up to a thousand of them, so texts are not allocated, and
/// information, which is JSON already, is copied. [`vault_api::CredentialItem`] and [`vault_api::VersionItem`] describe the
/// members.
struct Item<'a, S: ?Sized>(ObjectWriter<'a, S>);

impl<'a, S: FnMut(&str) + ?Sized> Item<'a, S> {
    fn new(sink: &'a mut S) -> Self {
        Self(ObjectWriter::new(sink))
    }

    fn optional_text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.0.text(name, text);
        }
    }

    fn id(&mut self, name: &str, id: CredentialId) {
        self.0.text(name, id.as_uuid().hyphenated().encode_lower(&mut Uuid::encode_buffer()));
    }

    fn number(&mut self, name: &str, number: Option<i64>) {
        if let Some(number) = number {
            (self.0.member(name))(&number.to_string());
        }
    }

    fn time(&mut self, name: &str, time: Option<Timestamp>) {
        if let Some(time) = time {
            let ascii = time.rfc3339_ascii();
            self.0.text(name, ascii.as_ref().and_then(|ascii| str::from_utf8(ascii).ok()).unwrap_or(EPOCH));
        }
    }

    fn information(&mut self, information: Option<&Information>) {
        if let Some(information) = information {
            (self.0.member("information"))(information.as_json());
        }
    }

    fn damaged(&mut self, damaged: bool) {
        if damaged {
            (self.0.member("damaged"))("true");
        }
    }

    fn labels(&mut self, labels: Option<&Labels>) {
        if let Some(labels) = labels {
            let mut object = ObjectWriter::new(self.0.member("labels"));
            labels.iter().for_each(|(name, value)| object.text(name, value));
            object.end();
        }
    }

    fn health(&mut self, health: &Health) {
        let mut item = Item::new(self.0.member("health"));
        item.0.text("state", health.state.as_str());
        item.optional_text("reason", health.reason.map(CheckReason::as_str));
        item.time("checked_at", health.checked_at);
        item.time("since", health.since);
        item.0.end();
    }
}

fn write_credential(listed: &ListedCredential, text: &mut String) {
    let metadata = listed.metadata.as_ref();
    let mut sink = |piece: &str| text.push_str(piece);
    let mut item = Item::new(&mut sink);
    item.id("id", listed.id);
    item.0.text("type", listed.kind.as_str());
    item.0.text("namespace", listed.namespace.as_str());
    item.information(listed.information.as_ref());
    item.damaged(listed.information.is_none() || listed.metadata.is_none());
    item.number("version", Some(listed.version));
    item.time("created_at", Some(listed.created_at));
    item.time("updated_at", Some(listed.updated_at));
    item.labels(metadata.map(|metadata| &metadata.labels));
    item.0.text("vend", listed.vend.as_str());
    item.health(&listed.health);
    let description = metadata.and_then(|metadata| metadata.description.as_ref());
    item.optional_text("description", description.map(Description::as_str));
    item.time("expires_at", listed.expires_at);
    item.time("last_activated_at", listed.last_activated_at);
    item.number("staged_version", listed.staged);
    item.number("previous_version", listed.previous.map(|previous| previous.number));
    item.time("previous_version_until", listed.previous.map(|previous| previous.until));
    item.0.end();
}

fn write_version(listed: &ListedVersion, text: &mut String) {
    let mut sink = |piece: &str| text.push_str(piece);
    let mut item = Item::new(&mut sink);
    item.number("version", Some(listed.number));
    item.0.text("state", listed.state.as_str());
    item.information(listed.information.as_ref());
    item.damaged(listed.information.is_none());
    item.time("created_at", Some(listed.created_at));
    // The result of the check itself: an expiry belongs to the credential.
    if let Some(LastCheck { at, since, failed }) = listed.check {
        let state = if failed.is_some() { HealthState::Failing } else { HealthState::Healthy };
        item.health(&Health { state, reason: failed, checked_at: Some(at), since: Some(since) });
    }
    item.0.end();
}

/// Returns a credential as JSON.
pub(super) fn credential(listed: &ListedCredential) -> String {
    let mut text = String::with_capacity(size(listed));
    write_credential(listed, &mut text);
    text
}

/// Returns a page of credentials as a JSON array.
pub(super) fn credentials(page: &[ListedCredential]) -> String {
    array(page, page.iter().map(size).sum(), write_credential)
}

/// Returns the versions of a credential as a JSON array.
pub(super) fn versions(versions: &[ListedVersion]) -> String {
    array(versions, 0, write_version)
}

fn array<T>(items: &[T], size: usize, write: impl Fn(&T, &mut String)) -> String {
    let mut text = String::with_capacity(size + items.len() + 2);
    text.push('[');
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        write(item, &mut text);
    }
    text.push(']');
    text
}

/// Returns an upper estimate of the size of [`credential`] as JSON, in bytes.
fn size(listed: &ListedCredential) -> usize {
    /// All except namespace, information, labels and description.
    const FRAME: usize = 740;
    let information = listed.information.as_ref().map_or(0, |information| information.as_json().len());
    let metadata = listed.metadata.as_ref();
    let labels =
        metadata.map_or(0, |metadata| metadata.labels.iter().map(|(name, value)| name.len() + value.len() + 6).sum());
    // JSON escaping at most doubles the size.
    let description = metadata.and_then(|metadata| metadata.description.as_ref());
    let description = description.map_or(0, |text: &Description| 2 * text.as_str().len());
    FRAME + listed.namespace.as_str().len() + information + labels + description
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_api::{CredentialItem, VersionItem};
    use vault_core::activation::VendRule;
    use vault_core::credential::{CredentialType, Metadata, VersionState};
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
        let text = credential;
        let sound = text(&listed);
        assert_eq!(
            sound,
            r#"{"id":"abababab-abab-abab-abab-abababababab","type":"direct-link","namespace":"imports/nightly","information":{"host":"a\u00e4", "secrets":[]},"version":7,"created_at":"2026-11-20T12:00:00Z","updated_at":"2026-11-20T12:00:01Z","labels":{},"vend":"any","health":{"state":"unchecked"}}"#
        );
        assert!(sound.len() <= size(&listed), "the initial buffer is large enough");
        let item = serde_json::from_str::<CredentialItem>(&sound).ok();
        assert!(item.is_some_and(|item| item.information.is_some_and(|shown| shown["host"] == "a\u{e4}")));
        assert_eq!(credentials(&[]), "[]");
        assert_eq!(credentials(&[listed.clone(), listed.clone()]), format!("[{sound},{sound}]"));
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
        let read = |text: &str| serde_json::from_str::<CredentialItem>(text).unwrap_or_else(|error| panic!("{error}"));
        for text in [&sound, &found, &unsaid] {
            let again = serde_json::to_value(read(text)).ok();
            assert_eq!(again, serde_json::from_str(text).ok(), "every member is one of the client's type");
        }
        let damaged = text(&ListedCredential { information: None, ..listed });
        assert!(damaged.contains("\"damaged\":true") && !damaged.contains("information"), "{damaged}");
    }

    #[test]
    fn versions_read_back_as_the_clients_type() {
        let at = Timestamp::from_millis(1_795_176_000_000);
        let check = |failed| Some(LastCheck { at, since: at, failed });
        let version = |state, information: Option<&str>, check| ListedVersion {
            number: 2,
            state,
            information: information.and_then(|text| Information::from_json(text.into()).ok()),
            check,
            created_at: at,
            superseded_at: None,
            destroy_at: None,
        };
        let listed = [
            version(VersionState::Current, Some("{\"host\":\"a\"}"), check(Some(CheckReason::SignatureMismatch))),
            version(VersionState::Staged, None, check(None)),
            version(VersionState::Previous, Some("{}"), None),
        ];
        let text = versions(&listed);
        let items: Vec<VersionItem> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(serde_json::to_value(&items).ok(), serde_json::from_str(&text).ok());
        let states: Vec<_> = items.iter().map(|item| (item.state.as_str(), item.damaged)).collect();
        assert_eq!(states, [("current", false), ("staged", true), ("previous", false)]);
        let health: Vec<_> =
            items.iter().map(|item| item.health.as_ref().map(|health| health.state.as_str())).collect();
        assert_eq!(health, [Some("failing"), Some("healthy"), None]);
    }
}
