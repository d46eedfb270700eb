use super::*;
use crate::testing::{Bench, NOW, id};
use vault_core::credential::{CredentialData, CredentialType, Fingerprint, Information, Metadata, SecretBytes};
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{CredentialContext, SealError, SealedContent, SealedInformation, SealedRow};
use vault_core::sealed::{Blob, SealedCredential};

const LINK: &[u8] = br#"{"url":"https://example.com/drop?signature=c2VjcmV0"}"#;
const INFORMATION: &str = r#"{"secrets":["url"],"fingerprint":"000000000000"}"#;

fn context(organization: u128, credential: u128, version: i64) -> CredentialContext {
    CredentialContext {
        organization: OrganizationId::from_uuid(id(organization)),
        credential: CredentialId::from_uuid(id(credential)),
        version,
    }
}

async fn crypto(organizations: u128) -> (Bench, CredentialCrypto) {
    let bench = Bench::new().await;
    let crypto = bench.keyring.credentials(bench.keys.clone());
    for number in 1..=organizations {
        let organization = OrganizationId::from_uuid(id(number));
        let keys = crypto.sealer.new_organization_keys(organization, NOW).unwrap();
        bench.keys.rows.lock().unwrap().insert(organization, keys);
    }
    (bench, crypto)
}

fn namespace(name: &str) -> Namespace {
    Namespace::parse(name, "").unwrap()
}

async fn seal(bench: &Bench, crypto: &CredentialCrypto, context: CredentialContext) -> SealedCredential {
    let information = Information::from_json(INFORMATION.to_owned()).unwrap();
    let (key, data) = (bench.active_key(context.organization), SecretBytes::from(LINK.to_vec()));
    crypto.sealer.seal(key, context, &namespace("imports"), &data, &information).await.unwrap()
}

async fn list(
    crypto: &CredentialCrypto,
    context: CredentialContext,
    sealed: &SealedCredential,
) -> Result<Vec<Information>, SealError> {
    let row = SealedInformation { context, key: sealed.key, blob: &sealed.information };
    crypto.list_opener.open_information(context.organization, &[row]).await?.into_iter().collect()
}

async fn open(
    crypto: &CredentialCrypto,
    context: CredentialContext,
    sealed: &SealedCredential,
) -> Result<CredentialData, SealError> {
    crypto.opener.open(context, &namespace("imports"), CredentialType::DirectLink, sealed, true).await
}

/// Of another organization, the key is unknown.
fn is_damaged<T>(result: Result<T, SealError>) -> bool {
    matches!(result, Err(SealError::Integrity { .. } | SealError::UnknownKey { .. }))
}

fn is_unknown<T>(result: Result<T, SealError>) -> bool {
    matches!(result, Err(SealError::UnknownKey { .. }))
}

#[tokio::test]
async fn what_is_sealed_opens() {
    let (bench, crypto) = crypto(1).await;
    let place = context(1, 2, 3);
    let sealed = seal(&bench, &crypto, place).await;
    assert_eq!(list(&crypto, place, &sealed).await.unwrap()[0].as_json(), INFORMATION);
    let opened = open(&crypto, place, &sealed).await.unwrap();
    assert_eq!(opened.to_canonical_json().expose(), LINK);
    let other_type = crypto.opener.open(place, &namespace("imports"), CredentialType::S3, &sealed, true).await;
    assert!(is_damaged(other_type));
}

#[tokio::test]
async fn a_credential_is_sealed_under_the_key_that_is_named() {
    let (bench, crypto) = crypto(2).await;
    let place = context(1, 2, 3);
    let next = crypto.sealer.new_organization_key(place.organization, NOW).unwrap();
    let named = next.id;
    bench.keys.rows.lock().unwrap().get_mut(&place.organization).unwrap().keys.push(next);
    let (data, information) = (SecretBytes::from(LINK.to_vec()), Information::from_json("{}".to_owned()).unwrap());
    let sealed = crypto.sealer.seal(named, place, &namespace("imports"), &data, &information).await.unwrap();
    assert_eq!(sealed.key, named);
    open(&crypto, place, &sealed).await.unwrap();
    let foreign = bench.active_key(context(2, 0, 0).organization);
    let refused = crypto.sealer.seal(foreign, place, &namespace("imports"), &data, &information).await;
    assert!(matches!(refused, Err(SealError::UnknownKey { key, .. }) if key == foreign));
}

#[tokio::test]
async fn lengths_tell_nothing_and_nothing_is_sealed_twice_alike() {
    let (bench, crypto) = crypto(1).await;
    let (one, two) = (seal(&bench, &crypto, context(1, 2, 3)).await, seal(&bench, &crypto, context(1, 2, 3)).await);
    assert_eq!(one.key, two.key);
    for (one, two) in [(&one.data_key, &two.data_key), (&one.data, &two.data), (&one.information, &two.information)] {
        assert_eq!(one.as_bytes().len(), two.as_bytes().len());
        assert_ne!(one.as_bytes()[2..], two.as_bytes()[2..]);
    }
    assert_eq!(one.data.as_bytes().len(), 30 + 256 + 16);
    // Each version has a data key of its own.
    assert_ne!(one.data.as_bytes()[2..18], two.data.as_bytes()[2..18]);
    let window = one.data.as_bytes().windows(7).chain(one.information.as_bytes().windows(7));
    assert!(window.into_iter().all(|window| window != b"example" && window != b"secrets"));
}

/// A62
#[tokio::test]
async fn every_flipped_byte_is_refused() {
    let (bench, crypto) = crypto(1).await;
    let place = context(1, 2, 3);
    let sealed = seal(&bench, &crypto, place).await;
    let parts: [fn(&mut SealedCredential) -> &mut Blob; 3] =
        [|sealed| &mut sealed.data_key, |sealed| &mut sealed.data, |sealed| &mut sealed.information];
    for (index, part) in parts.iter().enumerate() {
        for byte in 0..part(&mut sealed.clone()).as_bytes().len() {
            let mut damaged = sealed.clone();
            let mut bytes = part(&mut damaged).as_bytes().to_vec();
            bytes[byte] ^= 0x10;
            *part(&mut damaged) = Blob::from_bytes(bytes);
            let refused = match index {
                2 => is_damaged(list(&crypto, place, &damaged).await),
                _ => is_damaged(open(&crypto, place, &damaged).await),
            };
            assert!(refused, "part {index}, byte {byte}");
        }
    }
    let renamed = SealedCredential { key: KeyId::from_uuid(id(99)), ..sealed };
    assert!(is_unknown(open(&crypto, place, &renamed).await) && is_unknown(list(&crypto, place, &renamed).await));
}

#[tokio::test]
async fn a_credential_opens_in_its_place_only() {
    let (bench, crypto) = crypto(2).await;
    let place = context(1, 2, 3);
    let sealed = seal(&bench, &crypto, place).await;
    for other in [context(1, 2, 4), context(1, 3, 3), context(2, 2, 3)] {
        assert!(is_damaged(open(&crypto, other, &sealed).await), "{other:?}");
        assert!(is_damaged(list(&crypto, other, &sealed).await), "{other:?}");
    }
    for other in ["Imports", "imports/a", "import"].map(namespace) {
        let moved = crypto.opener.open(place, &other, CredentialType::DirectLink, &sealed, true).await;
        assert!(is_damaged(moved), "{other}");
    }
    // Parts of two versions of one credential do not mix.
    let next = seal(&bench, &crypto, context(1, 2, 4)).await;
    let mixed = SealedCredential { data_key: next.data_key, ..sealed.clone() };
    assert!(is_damaged(open(&crypto, place, &mixed).await));
    let exchanged = SealedCredential { data: sealed.information.clone(), information: sealed.data.clone(), ..sealed };
    assert!(is_damaged(open(&crypto, place, &exchanged).await) && is_damaged(list(&crypto, place, &exchanged).await));
}

#[tokio::test]
async fn another_deployment_opens_nothing() {
    let (bench, ours) = crypto(1).await;
    let sealed = seal(&bench, &ours, context(1, 2, 3)).await;
    let (_directory, root) = crate::testing::root();
    let instance = vault_core::id::InstanceId::from_uuid(id(2));
    let other = crate::Keyring::create(&root, Arc::new(crate::OsEntropy), instance, NOW).await.unwrap();
    let other = other.keyring.credentials(bench.keys.clone());
    assert!(is_damaged(open(&other, context(1, 2, 3), &sealed).await));
}

#[tokio::test]
async fn a_list_is_of_one_organization() {
    let (bench, crypto) = crypto(2).await;
    let places = [context(1, 2, 3), context(2, 4, 1)];
    let sealed = [seal(&bench, &crypto, places[0]).await, seal(&bench, &crypto, places[1]).await];
    let rows: Vec<_> = std::iter::zip(places, &sealed)
        .map(|(context, sealed)| SealedInformation { context, key: sealed.key, blob: &sealed.information })
        .collect();
    let organization = places[0].organization;
    assert_eq!(crypto.list_opener.open_information(organization, &rows[..1]).await.unwrap().len(), 1);
    let opened = crypto.list_opener.open_information(organization, &rows).await.unwrap();
    assert!(opened[0].is_ok(), "a row of another organization keeps no other from being opened");
    assert!(matches!(opened[1], Err(SealError::Integrity { .. })));
    assert!(crypto.list_opener.open_information(organization, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_list_may_lie_under_several_keys() {
    let (bench, crypto) = crypto(1).await;
    let organization = context(1, 0, 0).organization;
    let mut rows = Vec::new();
    for number in 0..6 {
        rows.push((context(1, number, 1), seal(&bench, &crypto, context(1, number, 1)).await));
        if number % 2 == 1 {
            let next = crypto.sealer.new_organization_key(organization, NOW).unwrap();
            let mut stored = bench.keys.rows.lock().unwrap();
            let keys = &mut stored.get_mut(&organization).unwrap().keys;
            keys.iter_mut().for_each(|row| row.state = vault_core::sealed::KeyState::Retiring);
            keys.push(next);
        }
    }
    let rows: Vec<_> = rows
        .iter()
        .map(|(context, sealed)| SealedInformation { context: *context, key: sealed.key, blob: &sealed.information })
        .collect();
    let opened = crypto.list_opener.open_information(organization, &rows).await.unwrap();
    assert!(
        opened.len() == 6 && opened.iter().all(|information| information.as_ref().unwrap().as_json() == INFORMATION)
    );
    assert_eq!(rows.iter().map(|row| row.key).collect::<std::collections::HashSet<_>>().len(), 3);
}

#[tokio::test]
async fn fingerprints_tell_data_apart_within_an_organization() {
    let (_bench, crypto) = crypto(2).await;
    let [one, two] = [1, 2].map(|number| context(number, 0, 0).organization);
    let fingerprint = async |organization, data: &[u8]| -> Fingerprint {
        crypto.sealer.fingerprint(organization, &SecretBytes::from(data.to_vec())).await.unwrap()
    };
    assert_eq!(fingerprint(one, LINK).await, fingerprint(one, LINK).await);
    assert_ne!(fingerprint(one, LINK).await, fingerprint(two, LINK).await);
    assert_ne!(fingerprint(one, LINK).await, fingerprint(one, b"{}").await);
}

#[tokio::test]
async fn an_organization_without_keys_neither_seals_nor_opens() {
    let (bench, crypto) = crypto(1).await;
    let place = context(1, 2, 3);
    let sealed = seal(&bench, &crypto, place).await;
    let key = bench.active_key(place.organization);
    bench.keys.rows.lock().unwrap().clear();
    let crypto = bench.keyring.credentials(bench.keys.clone());
    assert!(matches!(open(&crypto, place, &sealed).await, Err(SealError::NoKeys)));
    assert!(matches!(list(&crypto, place, &sealed).await, Err(SealError::NoKeys)));
    let data = SecretBytes::from(LINK.to_vec());
    assert!(matches!(crypto.sealer.fingerprint(place.organization, &data).await, Err(SealError::NoKeys)));
    let information = Information::from_json(INFORMATION.to_owned()).unwrap();
    let sealed = crypto.sealer.seal(key, place, &namespace("imports"), &data, &information).await;
    assert!(matches!(sealed, Err(SealError::NoKeys)));
}

/// Adds another key to the organization's.
fn add_key(bench: &Bench, crypto: &CredentialCrypto, organization: OrganizationId) -> KeyId {
    let next = crypto.sealer.new_organization_key(organization, NOW).unwrap();
    let id = next.id;
    bench.keys.rows.lock().unwrap().get_mut(&organization).unwrap().keys.push(next);
    id
}

fn version_row(place: CredentialContext, sealed: &SealedCredential) -> SealedRow {
    let CredentialContext { credential, version, .. } = place;
    SealedRow { credential, version, content: SealedContent::Version(sealed.clone()) }
}

async fn rewrap(crypto: &CredentialCrypto, to: KeyId, row: SealedRow) -> Result<SealedContent, SealError> {
    let organization = OrganizationId::from_uuid(id(1));
    let mut rewrapped = crypto.rewrapper.rewrap(organization, to, vec![row]).await?;
    Ok(rewrapped.remove(0)?.content)
}

/// Once the old key is gone, everything opens with the new one alone; the data is the same bytes as before.
#[tokio::test]
async fn what_was_moved_to_another_key_opens_with_that_key_alone() {
    let (bench, crypto) = crypto(1).await;
    let place = context(1, 2, 3);
    let before = seal(&bench, &crypto, place).await;
    let metadata = Metadata::from_json(r#"{"labels":{"stage":"test"}}"#).unwrap();
    let described = crypto.sealer.seal_metadata(before.key, place, &metadata).await.unwrap();
    let to = add_key(&bench, &crypto, place.organization);
    let SealedContent::Version(after) = rewrap(&crypto, to, version_row(place, &before)).await.unwrap() else {
        panic!("a version stays one")
    };
    let row = SealedRow { content: SealedContent::Metadata(described.clone()), ..version_row(place, &before) };
    let SealedContent::Metadata(described_after) = rewrap(&crypto, to, row).await.unwrap() else {
        panic!("metadata stays metadata")
    };
    assert_eq!((after.key, &after.data), (to, &before.data));
    assert_eq!((described_after.key, described_after.revision), (to, described.revision));
    // As a process opens it that starts after the old key was destroyed.
    bench.keys.rows.lock().unwrap().get_mut(&place.organization).unwrap().keys.retain(|key| key.id == to);
    let fresh = bench.keyring.credentials(bench.keys.clone());
    assert_eq!(open(&fresh, place, &after).await.unwrap().to_canonical_json().expose(), LINK);
    assert_eq!(list(&fresh, place, &after).await.unwrap()[0].as_json(), INFORMATION);
    let row = SealedInformation { context: place, key: to, blob: &described_after.blob };
    let opened = fresh.list_opener.open_metadata(place.organization, &[row]).await.unwrap().remove(0);
    assert_eq!(opened.unwrap(), metadata);
    assert!(is_unknown(open(&fresh, place, &before).await) && is_unknown(list(&fresh, place, &before).await));
    assert!(is_unknown(rewrap(&fresh, before.key, version_row(place, &after)).await), "to a key that is gone");
    assert!(is_unknown(rewrap(&fresh, to, version_row(place, &before)).await), "from a key that is gone");
}

/// Rows of several keys are moved at once, in any order.
#[tokio::test]
async fn each_row_is_moved_from_its_own_key() {
    let (bench, crypto) = crypto(1).await;
    let (place, other) = (context(1, 2, 3), context(1, 4, 1));
    let first = seal(&bench, &crypto, place).await;
    let second = add_key(&bench, &crypto, place.organization);
    let SealedContent::Version(beside) = rewrap(&crypto, second, version_row(place, &first)).await.unwrap() else {
        panic!("a version stays one")
    };
    let third = add_key(&bench, &crypto, place.organization);
    let rows = [&first, &beside, &beside, &first].map(|sealed| version_row(place, sealed));
    let moved = crypto.rewrapper.rewrap(place.organization, third, rows.to_vec()).await.unwrap();
    assert!(moved.iter().all(Result::is_ok));
    let elsewhere = vec![version_row(place, &first), version_row(other, &beside), version_row(place, &beside)];
    let moved = crypto.rewrapper.rewrap(place.organization, third, elsewhere).await.unwrap();
    assert_eq!(moved.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
}

/// Nothing is moved that would not open where it is: a blob from another row, or a damaged one.
#[tokio::test]
async fn what_does_not_open_is_not_moved() {
    let (bench, crypto) = crypto(1).await;
    let place = context(1, 2, 3);
    let sealed = seal(&bench, &crypto, place).await;
    let to = add_key(&bench, &crypto, place.organization);
    for elsewhere in [context(1, 2, 4), context(1, 3, 3)] {
        assert!(is_damaged(rewrap(&crypto, to, version_row(elsewhere, &sealed)).await), "{elsewhere:?}");
    }
    let parts: [fn(&mut SealedCredential) -> &mut Blob; 2] =
        [|sealed| &mut sealed.data_key, |sealed| &mut sealed.information];
    for part in parts {
        for byte in 0..part(&mut sealed.clone()).as_bytes().len() {
            let mut damaged = sealed.clone();
            let mut bytes = part(&mut damaged).as_bytes().to_vec();
            bytes[byte] ^= 0x10;
            *part(&mut damaged) = Blob::from_bytes(bytes);
            assert!(is_damaged(rewrap(&crypto, to, version_row(place, &damaged)).await), "byte {byte}");
        }
    }
    // A row that does not open keeps no other from being moved.
    let rows = vec![version_row(context(1, 3, 3), &sealed), version_row(place, &sealed)];
    let moved = crypto.rewrapper.rewrap(place.organization, to, rows).await.unwrap();
    assert!(moved[0].is_err() && moved[1].is_ok());
}
