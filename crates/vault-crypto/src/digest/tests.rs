use super::*;
use crate::testing::{NOW, instance_keys};

#[test]
fn lookup_digests_survive_replacement_of_instance_key() {
    let [before, after] = [1, 9].map(|number| HmacDigester::new(instance_keys(number), Arc::new(NOW)));
    for purpose in DigestPurpose::ALL {
        let kept = before.digest(purpose, &[b"same"]) == after.digest(purpose, &[b"same"]);
        assert_eq!(kept, purpose != DigestPurpose::Cursor, "{purpose:?}");
    }
}

/// A MAC verifies only for its parts, its purpose and the key that it names.
#[test]
fn mac_verifies_only_for_signed_values() {
    const PURPOSE: DigestPurpose = DigestPurpose::Cursor;
    let [digester, strange] = [1, 9].map(|number| HmacDigester::new(instance_keys(number), Arc::new(NOW)));
    let mac = digester.sign(PURPOSE, &[b"row 1", b"viewer"]);
    assert_eq!(mac.key, digester.active_key());
    let parts: [&[&[u8]]; 5] =
        [&[b"row 1", b"viewer"], &[b"row 1", b"editor"], &[b"row 2", b"viewer"], &[b"row 1viewer"], &[]];
    for (number, parts) in parts.into_iter().enumerate() {
        assert_eq!(digester.is_signed(PURPOSE, parts, &mac), number == 0, "{number}");
    }
    let mut bytes = *mac.mac.as_bytes();
    bytes[31] ^= 1;
    let foreign = RowMac { key: mac.key, ..strange.sign(PURPOSE, &[b"row 1", b"viewer"]) };
    let renamed = RowMac { key: strange.active_key(), ..mac };
    for wrong in [RowMac { mac: Digest::from_bytes(bytes), ..mac }, renamed, foreign] {
        assert!(!digester.is_signed(PURPOSE, &[b"row 1", b"viewer"], &wrong));
    }
}

#[test]
fn equal_parts_have_one_digest_for_each_purpose() {
    let [own, same] = [(); 2].map(|()| HmacDigester::new(instance_keys(1), Arc::new(NOW)));
    let mut seen = std::collections::HashSet::new();
    for purpose in DigestPurpose::ALL {
        let digest = own.digest(purpose, &[b"same"]);
        assert!(seen.insert(*digest.as_bytes()), "{purpose:?}");
        assert!(same.fits(purpose, &[b"same"], &digest) && !same.fits(purpose, &[b"other"], &digest), "{purpose:?}");
        assert_eq!(own.lookup(purpose, &[b"same"]).current(), &digest);
    }
}
