//! Cases of sealing that only real encryption passes.

use super::crypto::CryptoSubject;
use super::sealing::{Deployment, INFORMATION, LINK, METADATA, is_damaged};
use vault_core::port::SealedContent;
use vault_core::sealed::{Blob, SealedCredential, SealedMetadata};

/// Sealed parts of a version.
const PARTS: [fn(&mut SealedCredential) -> &mut Blob; 3] =
    [|sealed| &mut sealed.data_key, |sealed| &mut sealed.data, |sealed| &mut sealed.information];

/// Asserts that a sealed credential is rejected after `alter` changed one of its parts, for each part.
async fn altered<S: CryptoSubject>(make: impl AsyncFn() -> S, alter: impl Fn(&[u8]) -> Vec<Vec<u8>>) {
    let deployment = Deployment::new(&make).await;
    let place = deployment.place().await;
    let (sealed, sealed_metadata) = (deployment.seal(place).await, deployment.seal_metadata(place).await);
    let to = deployment.next_key(place.organization).await;
    let ports = &deployment.ports;
    for (part, blob) in PARTS.iter().enumerate() {
        for (number, bytes) in alter(blob(&mut sealed.clone()).as_bytes()).into_iter().enumerate() {
            let mut damaged = sealed.clone();
            *blob(&mut damaged) = Blob::from_bytes(bytes);
            let refused = match part {
                2 => is_damaged(ports.list(place, &damaged).await),
                _ => is_damaged(ports.open(place, &damaged).await),
            };
            assert!(refused, "part {part}, alteration {number}");
            // Moving does not decrypt data.
            if part != 1 {
                let moved = deployment.rewrap(place, to, SealedContent::Version(damaged)).await;
                assert!(is_damaged(moved), "part {part}, alteration {number}");
            }
        }
    }
    for (number, bytes) in alter(sealed_metadata.blob.as_bytes()).into_iter().enumerate() {
        let damaged = SealedMetadata { blob: Blob::from_bytes(bytes), ..sealed_metadata.clone() };
        assert!(is_damaged(ports.read(place, &damaged).await), "alteration {number}");
        let moved = deployment.rewrap(place, to, SealedContent::Metadata(damaged)).await;
        assert!(is_damaged(moved), "alteration {number}");
    }
}

/// A change of any byte is detected when the blob is decrypted and when it is moved.
pub async fn every_flipped_byte_is_refused<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let flipped = |bytes: &[u8], place: usize| {
        let mut bytes = bytes.to_vec();
        bytes[place] ^= 0x10;
        bytes
    };
    altered(make, |bytes| (0..bytes.len()).map(|place| flipped(bytes, place)).collect()).await;
}

/// A truncated or extended blob cannot be decrypted.
pub async fn every_other_length_is_refused<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    altered(make, |bytes| {
        let mut others: Vec<_> = (0..bytes.len()).map(|end| bytes[..end].to_vec()).collect();
        others.extend([[bytes, &[0]].concat(), [&[0], bytes].concat(), [bytes, bytes].concat()]);
        others
    })
    .await;
}

/// Two blobs of one value have only their length in common.
pub async fn equal_data_has_different_ciphertexts<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let place = deployment.place().await;
    let (mut one, mut two) = (deployment.seal(place).await, deployment.seal(place).await);
    assert_eq!(one.key, two.key);
    let sealed_metadata = [deployment.seal_metadata(place).await.blob, deployment.seal_metadata(place).await.blob];
    let blobs = PARTS.map(|part| [part(&mut one).clone(), part(&mut two).clone()]);
    for [one, two] in blobs.into_iter().chain([sealed_metadata]) {
        let (one, two) = (one.as_bytes(), two.as_bytes());
        assert_eq!(one.len(), two.len());
        let (one, two) = (&one[one.len() - 16..], &two[two.len() - 16..]);
        assert_ne!(one, two);
    }
}

/// A blob contains no part of the plaintext.
pub async fn sealed_data_contains_no_plaintext<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let place = deployment.place().await;
    let SealedCredential { data_key, data, information, .. } = deployment.seal(place).await;
    let sealed_metadata = deployment.seal_metadata(place).await.blob;
    for plain in [LINK, INFORMATION.as_bytes(), METADATA.as_bytes()] {
        for piece in plain.windows(6) {
            for blob in [&data_key, &data, &information, &sealed_metadata] {
                assert!(!blob.as_bytes().windows(6).any(|bytes| bytes == piece), "{piece:?}");
            }
        }
    }
}

/// The rows cannot be decrypted without the keys of their instance.
pub async fn keys_of_another_deployment_open_nothing<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let place = deployment.place().await;
    let (sealed, sealed_metadata) = (deployment.seal(place).await, deployment.seal_metadata(place).await);
    let intruder = deployment.intruded(&make).await;
    assert!(intruder.open(place, &sealed).await.is_err());
    assert!(intruder.list(place, &sealed).await.is_err());
    assert!(intruder.read(place, &sealed_metadata).await.is_err());
}
