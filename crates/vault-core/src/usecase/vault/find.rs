//! Search of the versions that contain a key, for example one that leaked.

use super::{ListedCredential, Vault};
use crate::credential::{CredentialData, CredentialType, FieldClass, Information, ListFilter, VersionState};
use crate::cursor::PageRequest;
use crate::error::{Error, Refusal};
use crate::id::CredentialId;
use crate::namespace::Namespace;
use crate::organization::{Organization, ReadOrganization};
use crate::principal::{Denial, Principal};
use crate::role::Action;
use serde_json::{Map, Value};
use strum::{EnumString, IntoStaticStr, VariantArray};
use zeroize::Zeroizing;

/// Least number of characters of a key ID that are searched, and the number that the information shows.
pub const KEY_ID_END: usize = 4;
/// Fields that identify a key.
const KEY_IDS: [&str; 4] = ["access_key_id", "private_key_id", "client_id", "client_email"];

/// Key to search for.
#[derive(Default)]
pub struct WantedKey {
    /// A fingerprint, or a key ID of which at least the last [`KEY_ID_END`] characters are given.
    pub text: Zeroizing<String>,
    /// Data that may be that of a version: its type, and a JSON object with its secrets. Locations may be missing.
    pub data: Vec<(CredentialType, Zeroizing<String>)>,
}

/// Common part of a version and the wanted key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum KeyMatch {
    /// All of its data.
    Data,
    /// The fingerprint.
    Fingerprint,
    /// The end of the key ID.
    KeyId,
}

named!(KeyMatch);

/// A version that contains the wanted key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKey {
    /// ID of the credential.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Version number.
    pub version: i64,
    /// State of the version.
    pub state: VersionState,
    /// What it has in common with the wanted key.
    pub matched: KeyMatch,
}

impl Vault {
    /// Searches all versions that are kept, of all credentials of the organization. Compares fingerprints and the visible ends
    /// of key IDs, and decrypts no data.
    ///
    /// # Errors
    /// The principal is not authorized.
    pub async fn find_key(&self, principal: &Principal, wanted: &WantedKey) -> Result<Vec<FoundKey>, Error> {
        let organization = principal.member(Action::Save)?;
        let owner = ReadOrganization(organization);
        let owner =
            self.operations.run(&self.environment, principal, owner).await?.ok_or(Denial::OrganizationDisabled)?;
        let (mut found, mut page) = (Vec::new(), PageRequest::default());
        loop {
            let listed = self.list(principal, ListFilter::default(), page).await?;
            for item in listed.items {
                let (id, kind) = (item.id, item.kind);
                let namespace = item.namespace.clone();
                for (version, state, information) in self.kept(principal, item).await? {
                    let matched = self.matched(&owner, kind, &information, wanted)?;
                    let namespace = namespace.clone();
                    found.extend(matched.map(|matched| FoundKey { id, kind, namespace, version, state, matched }));
                }
            }
            match listed.next {
                Some(cursor) => page = PageRequest { cursor: Some(cursor), ..PageRequest::default() },
                None => return Ok(found),
            }
        }
    }

    /// Returns the information of the versions that are kept and open.
    async fn kept(
        &self,
        principal: &Principal,
        item: ListedCredential,
    ) -> Result<Vec<(i64, VersionState, Information)>, Error> {
        if item.staged.is_none() && item.previous.is_none() {
            let current = item.information.map(|information| (item.version, VersionState::Current, information));
            return Ok(current.into_iter().collect());
        }
        match self.versions(principal, item.id).await {
            Ok(versions) => {
                Ok(versions.into_iter().filter_map(|one| Some((one.number, one.state, one.information?))).collect())
            }
            Err(Error::Refused(Refusal::NotFound)) => Ok(Vec::new()), // deleted in the meantime
            Err(error) => Err(error),
        }
    }

    fn matched(
        &self,
        owner: &Organization,
        kind: CredentialType,
        information: &Information,
        wanted: &WantedKey,
    ) -> Result<Option<KeyMatch>, Error> {
        let Ok(facts) = serde_json::from_str::<Map<String, Value>>(information.as_json()) else { return Ok(None) };
        let (credentials, fingerprint) = (&self.operations.ports.credentials, information.fingerprint());
        if fingerprint.as_ref().is_some_and(|stored| *stored == *wanted.text) {
            return Ok(Some(KeyMatch::Fingerprint));
        }
        let mut has_id = is_id(&facts, &wanted.text);
        for (_, data) in wanted.data.iter().filter(|(of, _)| *of == kind) {
            let Ok(Value::Object(mut members)) = serde_json::from_str(data) else { continue };
            has_id |= KEY_IDS.iter().any(|name| text_of(&members, name).is_some_and(|id| is_id(&facts, &id)));
            for field in kind.fields().iter().filter(|field| field.class == FieldClass::Location) {
                if let Some(value) = facts.get(field.name).filter(|_| !members.contains_key(field.name)) {
                    members.insert(field.name.to_owned(), value.clone());
                }
            }
            let whole = Zeroizing::new(Value::Object(members).to_string());
            if let Ok(data) = CredentialData::from_json(kind, whole.as_bytes()) {
                let computed = credentials.fingerprint(owner.id, &owner.keys, &data.to_canonical_json())?;
                if fingerprint.as_ref().is_some_and(|stored| *stored == computed.to_string()) {
                    return Ok(Some(KeyMatch::Data));
                }
            }
        }
        Ok(has_id.then_some(KeyMatch::KeyId))
    }
}

/// Returns whether the information shows this key ID: as a whole, or its end.
fn is_id(facts: &Map<String, Value>, id: &str) -> bool {
    let is_its = |shown: &str| match shown.strip_prefix('…') {
        Some(end) => end.chars().count() >= KEY_ID_END && id.ends_with(end),
        None => shown == id,
    };
    KEY_IDS.iter().filter_map(|name| facts.get(*name)?.as_str()).any(is_its)
}

/// Returns a field of data, also of the key file in it.
fn text_of(data: &Map<String, Value>, name: &str) -> Option<Zeroizing<String>> {
    let text = |value: &Value| value.as_str().map(|text| Zeroizing::new(text.to_owned()));
    data.get(name).and_then(text).or_else(|| match data.get("service_account_key")? {
        Value::Object(file) => file.get(name).and_then(text),
        Value::String(file) => serde_json::from_str::<Map<String, Value>>(file).ok()?.get(name).and_then(text),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_ids_are_recognized_by_their_end() {
        let facts = |text: &str| serde_json::from_str::<Map<String, Value>>(text).expect("an object");
        let shown = facts(r#"{"access_key_id":"…PK3E","bucket":"PK3E","client_id":"11111111-2222"}"#);
        let cases =
            [("AKIAEXAMPLEPK3E", true), ("PK3E", true), ("K3E", false), ("PK3F", false), ("11111111-2222", true)];
        for (id, expected) in cases {
            assert_eq!(is_id(&shown, id), expected, "{id}");
        }
        assert!(!is_id(&facts(r#"{"access_key_id":"…E"}"#), "AKIAE"), "too short an end");
        for file in [r#"{"private_key_id":"abcd"}"#.to_owned(), r#""{\"private_key_id\":\"abcd\"}""#.to_owned()] {
            let data = facts(&format!(r#"{{"service_account_key":{file}}}"#));
            assert_eq!(text_of(&data, "private_key_id").as_deref().map(String::as_str), Some("abcd"));
        }
    }
}
