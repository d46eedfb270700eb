use crate::testing::{Bench, NOW, id};
use vault_core::credential::{Information, SecretBytes};
use vault_core::id::{CredentialId, OrganizationId, VersionId};
use vault_core::namespace::Namespace;
use vault_core::port::{CredentialContext, SealedContent, SealedRow};
use vault_core::sealed::SealedCredential;

/// The contract tests in `tests/contract.rs` cover every adapter; these tests cover only this one.
#[tokio::test]
async fn lengths_are_padded_and_each_version_has_its_data_key() {
    let bench = Bench::new().await;
    let crypto = bench.keyring.credentials(bench.keys.clone());
    let organization = OrganizationId::from_uuid(id(1));
    let keys = crypto.sealer.new_organization_keys(organization, NOW).unwrap();
    bench.keys.rows.lock().unwrap().insert(organization, keys);
    let (credential, version) = (CredentialId::from_uuid(id(2)), VersionId::from_uuid(id(5)));
    let place = CredentialContext { organization, credential, version: 3, id: Some(version) };
    let (key, namespace) = (bench.active_key(organization), Namespace::parse("imports", "").unwrap());
    let information = Information::from_json("{}".to_owned()).unwrap();
    let mut sealed = Vec::new();
    for url in ["https://example.com/drop", "https://example.com/drop?signature=c2VjcmV0"] {
        let data = SecretBytes::from(format!(r#"{{"url":"{url}"}}"#).into_bytes());
        sealed.push(crypto.sealer.seal(key, place, &namespace, &data, &information).await.unwrap().data);
    }
    assert!(sealed.iter().all(|data| data.as_bytes().len() == 30 + 256 + 16));
    assert_ne!(sealed[0].as_bytes()[2..18], sealed[1].as_bytes()[2..18], "the id of the data key");
}

/// Rows under several keys are resealed concurrently, in any order.
#[tokio::test]
async fn each_row_is_moved_from_its_own_key() {
    let bench = Bench::new().await;
    let crypto = bench.keyring.credentials(bench.keys.clone());
    let organization = OrganizationId::from_uuid(id(1));
    let keys = crypto.sealer.new_organization_keys(organization, NOW).unwrap();
    bench.keys.rows.lock().unwrap().insert(organization, keys);
    let add_key = async || {
        let next = crypto.sealer.new_organization_key(organization, NOW).unwrap();
        let id = next.id;
        let before = bench.keys.rows.lock().unwrap()[&organization].clone();
        let after = before.with_next(&next);
        let bound = crypto.sealer.bind_organization_keys(organization, &before, &after).await.unwrap();
        let after = vault_core::sealed::OrganizationKeys { fingerprint_wrapped: bound.after, ..after };
        bench.keys.rows.lock().unwrap().insert(organization, after);
        id
    };
    let (credential, version) = (CredentialId::from_uuid(id(2)), VersionId::from_uuid(id(5)));
    let place = CredentialContext { organization, credential, version: 3, id: Some(version) };
    let row = |sealed: &SealedCredential, credential: u128| SealedRow {
        credential: CredentialId::from_uuid(id(credential)),
        version: place.version,
        id: place.id,
        content: SealedContent::Version(sealed.clone()),
    };
    let (data, information) = (SecretBytes::from(b"{}".to_vec()), Information::from_json("{}".to_owned()).unwrap());
    let (key, namespace) = (bench.active_key(organization), Namespace::parse("imports", "").unwrap());
    let first = crypto.sealer.seal(key, place, &namespace, &data, &information).await.unwrap();
    let moved = crypto.rewrapper.rewrap(organization, add_key().await, vec![row(&first, 2)]).await.unwrap().remove(0);
    let SealedContent::Version(second) = moved.unwrap().content else { panic!("a version stays one") };
    let third = add_key().await;
    let own = [&first, &second, &second, &first].map(|sealed| row(sealed, 2)).to_vec();
    let moved = crypto.rewrapper.rewrap(organization, third, own).await.unwrap();
    assert!(moved.iter().all(Result::is_ok));
    let elsewhere = vec![row(&first, 2), row(&second, 4), row(&second, 2)];
    let moved = crypto.rewrapper.rewrap(organization, third, elsewhere).await.unwrap();
    assert_eq!(moved.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
}
