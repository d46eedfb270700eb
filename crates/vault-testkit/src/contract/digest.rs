//! Cases of [`KeyedDigester`](vault_core::port::KeyedDigester) that fakes also pass.

use super::crypto::CryptoSubject;
use std::collections::HashSet;
use vault_core::digest::{Digest, DigestPurpose, RowMac};
use vault_core::id::KeyId;

/// Purposes for which rows and cursors are signed.
pub(super) const SIGNED: [DigestPurpose; 4] = [
    DigestPurpose::AccountRights,
    DigestPurpose::InvitationGrant,
    DigestPurpose::UnconfirmedSecrets,
    DigestPurpose::Cursor,
];

/// Equal parts have equal digests in every process of the instance.
pub async fn equal_parts_have_equal_digests<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let subject = make().await;
    for purpose in DigestPurpose::ALL {
        for parts in [&[b"one".as_slice(), b"two"][..], &[b""], &[]] {
            let digest = subject.digester().digest(purpose, parts);
            assert_eq!(subject.digester().digest(purpose, parts), digest);
            let looked_up = subject.digester().lookup(purpose, parts);
            assert_eq!((looked_up.current(), looked_up.entered().first()), (&digest, Some(&digest)));
            assert!(subject.digester().fits(purpose, parts, &digest));
            let mut other = *digest.as_bytes();
            other[0] ^= 1;
            assert!(!subject.digester().fits(purpose, parts, &Digest::from_bytes(other)));
        }
    }
}

/// Equal parts have different digests for different purposes.
pub async fn digests_of_different_purposes_differ<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let digester = make().await.digester();
    let digests: HashSet<_> =
        DigestPurpose::ALL.iter().map(|purpose| *digester.digest(*purpose, &[b"same"]).as_bytes()).collect();
    assert_eq!(digests.len(), DigestPurpose::ALL.len());
}

/// Digests of different parts differ, even if the concatenated bytes are equal, such as one label in two organizations
/// or one code of two accounts.
pub async fn digest_parts_are_separated<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let digester = make().await.digester();
    let all: [&[&[u8]]; 12] = [
        &[b"organization 1", b"stage=nightly"],
        &[b"organization 2", b"stage=nightly"],
        &[b"organization 1", b"stage=nightlY"],
        &[b"organization 1stage=nightly"],
        &[b"organization 1s", b"tage=nightly"],
        &[b"organization 1", b"stage=nightly", b""],
        &[b"", b"organization 1", b"stage=nightly"],
        &[b"stage=nightly", b"organization 1"],
        &[b"organization 1", b"stage=nightly\0"],
        &[b""],
        &[b"", b""],
        &[],
    ];
    for purpose in DigestPurpose::ALL {
        let digests: HashSet<_> = all.iter().map(|parts| *digester.digest(purpose, parts).as_bytes()).collect();
        assert_eq!(digests.len(), all.len(), "{purpose:?}");
    }
}

/// A MAC verifies only for these parts, this purpose and the key that it names.
pub async fn mac_verifies_only_for_signed_values<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let subject = make().await;
    let digester = subject.digester();
    for purpose in SIGNED {
        let code = digester.sign(purpose, &[b"row 1", b"viewer"]);
        digester.load_keys(&[code.key]).await.unwrap();
        assert_eq!(code.key, digester.active_key());
        assert!(subject.digester().is_signed(purpose, &[b"row 1", b"viewer"], &code), "{purpose:?}");
        for parts in [&[b"row 1".as_slice(), b"editor"][..], &[b"row 2", b"viewer"], &[b"row 1viewer"], &[]] {
            assert!(!digester.is_signed(purpose, parts, &code), "{purpose:?}");
        }
        for other in SIGNED.into_iter().filter(|other| *other != purpose) {
            assert!(!digester.is_signed(other, &[b"row 1", b"viewer"], &code), "{purpose:?} for {other:?}");
        }
        let mut bytes = *code.code.as_bytes();
        bytes[31] ^= 1;
        let renamed = RowMac { key: KeyId::from_bytes([9; 16]), ..code };
        for wrong in [RowMac { code: Digest::from_bytes(bytes), ..code }, renamed] {
            assert!(!digester.is_signed(purpose, &[b"row 1", b"viewer"], &wrong), "{purpose:?}");
        }
    }
}

/// Guessable values have different digests in different instances. Values that cannot be guessed need no key.
pub async fn digests_of_different_deployments_differ<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let (ours, strange) = (make().await.digester(), make().await.digester());
    for purpose in DigestPurpose::ALL {
        let agree = ours.digest(purpose, &[b"same"]) == strange.digest(purpose, &[b"same"]);
        assert_eq!(agree, !purpose.is_keyed(), "{purpose:?}");
    }
}
