//! Properties of every token, cursor and blob, of any origin, under fixed keys. The fuzz targets in
//! `tests/fuzz` check them on any input, the tests on edited seeds; no other build contains this module.

#![allow(clippy::unwrap_used, reason = "a property fails by panicking")]

use crate::HmacDigester;
use crate::aead::AeadKey;
use crate::blob::{self, Format, HEADER};
use crate::context::Context;
use crate::instance_keys::{Document, InstanceKeyring, InstanceKeys};
use crate::jwt::JwtVerifier;
use crate::key::SymmetricKey;
use crate::padding;
use crate::purpose_keys::Given;
use crate::token::PasetoIssuer;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{self, Poll, Waker};
use uuid::Uuid;
use vault_core::credential::{CredentialType, ListFilter, ListPosition};
use vault_core::cursor;
use vault_core::id::{CredentialId, InstanceId, KeyId, OrganizationId, VersionId};
use vault_core::keyring::KeyringDocument;
use vault_core::namespace::Namespace;
use vault_core::port::{
    CredentialContext, Entropy, KeyUse, NoEntropy, TokenIssuer as _, TokenRefusal, TokenVerifier as _,
};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

/// 2026-11-20T12:00:00Z
const NOW: Timestamp = Timestamp::from_millis(1_795_176_000_000);

/// Tokens that were issued under these keys; each is a seed too. The second is under the older key.
const ISSUED: [&str; 2] = [
    include_str!("../../../../tests/fuzz/seeds/access_token/issued"),
    include_str!("../../../../tests/fuzz/seeds/access_token/issued-under-the-older-key"),
];

static ISSUER: LazyLock<PasetoIssuer> = LazyLock::new(|| PasetoIssuer::new(Arc::clone(&KEYS), 7));

/// A token is accepted exactly if it was issued. Of any other nothing but its authentication is checked.
pub fn access_token(text: &str) {
    match ISSUER.verify(text, NOW) {
        Ok(_) => assert!(ISSUED.contains(&text)),
        Err(TokenRefusal::Malformed | TokenRefusal::UnknownKey | TokenRefusal::NotAuthentic) => {
            assert!(!ISSUED.contains(&text));
        }
        Err(other) => unreachable!("{other} of data that was not issued"),
    }
}

/// The claims of a token have one reading: written and read again, they are the same.
pub fn token_payload(text: &str) {
    if let Ok(claims) = ISSUER.read_payload(text, NOW) {
        let written = ISSUER.write_payload(&claims).unwrap();
        assert_eq!(ISSUER.read_payload(&written, NOW), Ok(claims.clone()));
        assert_eq!(ISSUER.write_payload(&claims).unwrap(), written);
        assert!(NOW < claims.expires_at && claims.issued_at < claims.expires_at);
    }
}

/// A token has the one footer that it was issued with. Any other, plain or encoded, names no key of ours or not the
/// token's.
pub fn token_footer(footer: &[u8]) {
    let footers = ISSUED.map(|token| token.rsplit_once('.').unwrap());
    let encoded = URL_SAFE_NO_PAD.encode(footer);
    for footer in [Some(&*encoded), std::str::from_utf8(footer).ok()].into_iter().flatten() {
        for (body, issued) in footers {
            let token = format!("{body}.{footer}");
            let expected = if footer == issued {
                None
            } else if token.len() > PasetoIssuer::LONGEST {
                Some(TokenRefusal::Malformed)
            } else if footers.iter().any(|(_, other)| footer == *other) {
                Some(TokenRefusal::NotAuthentic)
            } else {
                Some(TokenRefusal::UnknownKey)
            };
            assert_eq!(ISSUER.verify(&token, NOW).err(), expected);
        }
    }
}

/// Identity tokens under these keys, one of each kind; each is a seed too.
const IDENTITIES: [&str; 4] = [
    include_str!("../../../../tests/fuzz/seeds/identity_token/issued-es256"),
    include_str!("../../../../tests/fuzz/seeds/identity_token/issued-eddsa"),
    include_str!("../../../../tests/fuzz/seeds/identity_token/issued-rs256"),
    include_str!("../../../../tests/fuzz/seeds/identity_token/issued-ps256"),
];
const ISSUERS_KEYS: &str = include_str!("../../../../tests/fuzz/seeds/identity_token/keys");

/// The header and claims of an accepted token equal the signed ones, although a signature on a curve has two spellings.
/// Fields that are read before verification equal the signed ones, too.
pub fn identity_token(text: &str) {
    let token = SecretString::from(text);
    let unverified = JwtVerifier.read_unverified(&token);
    let signed = |text: &str| text.rsplit_once('.').map(|(signed, _)| signed.to_owned());
    match JwtVerifier.verify(&token, ISSUERS_KEYS, KeyUse::Signature) {
        Ok(claims) => {
            assert!(IDENTITIES.iter().any(|issued| signed(issued) == signed(text)));
            let unverified = unverified.unwrap();
            assert_eq!(unverified.issuer.as_deref(), claims.get("iss").and_then(|issuer| issuer.as_str()));
            assert_eq!(unverified.audience.as_deref(), claims.get("aud").and_then(|audience| audience.as_str()));
        }
        Err(_) => assert!(!IDENTITIES.contains(&text)),
    }
}

/// A key set has at most 100 usable keys, and no key that is not of these verifies a token of theirs.
pub fn key_set(text: &str) {
    for key_use in [KeyUse::Signature, KeyUse::JwtSvid] {
        let count = JwtVerifier.count_keys(text, key_use).unwrap_or_default();
        assert!(count.usable + count.others.values().sum::<usize>() <= 100);
        for issued in IDENTITIES {
            let is_verified = JwtVerifier.verify(&SecretString::from(issued), text, key_use).is_ok();
            let parts = ["\"x\"", "\"n\""];
            assert!(!is_verified || count.usable > 0 && parts.iter().any(|part| text.contains(part)), "{text}");
        }
    }
}

static DIGESTER: LazyLock<HmacDigester> = LazyLock::new(|| HmacDigester::new(Arc::clone(&KEYS), Arc::new(NOW)));

static KEYS: LazyLock<Arc<InstanceKeyring>> = LazyLock::new(|| keys_with(&[1, 2]));

/// Returns a keyring with these token keys.
fn keys_with(tokens: &[u8]) -> Arc<InstanceKeyring> {
    let own = KeyId::from_uuid(id(3));
    let document = KeyringDocument::first([3, 5, 6, 7].map(|number| KeyId::from_uuid(id(number))), NOW);
    let keys = InstanceKeys::derive(own, &key(3));
    let numbered = |number: u8| (KeyId::from_uuid(id(number.into())), key(number));
    let lookup = numbered(4);
    let tokens: Vec<_> = tokens.iter().copied().map(numbered).collect();
    let given = Given { lookup: &[lookup], audit: &[numbered(6)], token: &tokens };
    Arc::new(InstanceKeyring::of(instance(), keys, Document::new(document), given.into()))
}

/// Returns the output of a future that is ready.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut task::Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing is read from a store"),
    }
}

/// A cursor is accepted exactly if its list issued it, and by no other list.
pub fn cursor(text: &str) {
    let organizations = [1, 2].map(|number| OrganizationId::from_uuid(id(number)));
    let filters = [
        ListFilter::default(),
        ListFilter { kind: Some(CredentialType::S3), ..ListFilter::default() },
        ListFilter { expires_before: Some(NOW), ..ListFilter::default() },
        ListFilter { namespace: Namespace::parse("s3", "").ok(), ..ListFilter::default() },
    ];
    let lists =
        || organizations.into_iter().flat_map(|organization| filters.iter().map(move |filter| (organization, filter)));
    let taken: Vec<_> = lists()
        .filter_map(|(organization, filter)| {
            let last = ready(cursor::decode(&*DIGESTER, organization, filter, text)).ok()?;
            assert_eq!(cursor::encode(&*DIGESTER, organization, filter, last), text);
            Some(last)
        })
        .collect();
    assert!(taken.len() <= 1, "one cursor for two lists");
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(text.bytes()).for_each(|(byte, value)| *byte = value);
    let id = CredentialId::from_bytes(bytes);
    for (organization, filter) in lists() {
        let last = ListPosition { expires_at: filter.expires_before, id };
        let given = cursor::encode(&*DIGESTER, organization, filter, last);
        assert_eq!(ready(cursor::decode(&*DIGESTER, organization, filter, &given)).ok(), Some(last));
    }
}

/// The plaintext of the sealed blobs; each is a seed too.
const TEXT: &[u8] = br#"{"url":"https://example.com/drop?signature=c2VjcmV0"}"#;

struct Sealed {
    key: AeadKey,
    contexts: [Context; 3],
    text: Blob,
    wrapped: Blob,
}

static SEALED: LazyLock<Sealed> = LazyLock::new(|| {
    let place = |version| CredentialContext {
        organization: OrganizationId::from_uuid(id(2)),
        credential: CredentialId::from_uuid(id(3)),
        version,
        id: VersionId::from_uuid(id(6)),
    };
    let data_key = KeyId::from_uuid(id(9));
    let contexts = [
        Context::data(instance(), place(4)),
        Context::data(instance(), place(5)),
        Context::data_key(instance(), place(4), data_key),
    ];
    let sealing = AeadKey::new(KeyId::from_uuid(id(7)), &key(5));
    let text = sealing.seal(&SameBytes, &contexts[0], TEXT).unwrap();
    let wrapped = sealing.wrap(&SameBytes, &contexts[2], &key(6)).unwrap();
    Sealed { key: sealing, contexts, text, wrapped }
});

/// A blob opens exactly if it was sealed, in its place and format. The parts of any other blob are its bytes.
pub fn blob(bytes: &[u8]) {
    let given = Blob::from_bytes(bytes.to_vec());
    let [place, other_place, key_place] = &SEALED.contexts;
    assert_eq!(SEALED.key.open(place, &given).is_ok(), given == SEALED.text);
    if let Ok(opened) = SEALED.key.open(place, &given) {
        assert_eq!(*opened, TEXT);
    }
    assert_eq!(SEALED.key.unwrap(key_place, &given).is_ok(), given == SEALED.wrapped);
    assert!(SEALED.key.open(other_place, &given).is_err() && SEALED.key.open(key_place, &given).is_err());
    assert!(SEALED.key.unwrap(place, &given).is_err() && SEALED.key.unwrap(other_place, &given).is_err());
    for format in [Format::Padded, Format::Key] {
        if let Ok(parts) = blob::read(bytes, format) {
            let mut written = Vec::new();
            blob::begin(&mut written, format, parts.key, parts.nonce);
            assert_eq!(written.len(), HEADER);
            assert_eq!(blob::sealing_key(&given), Some(parts.key));
            assert_eq!([&written, parts.ciphertext, parts.tag].concat(), bytes);
        }
    }
}

/// Padding is removed in one way: the rest, padded again, is equal.
pub fn padding(bytes: &[u8]) {
    if let Some(length) = padding::unpadded_length(bytes) {
        let mut again = bytes[..length].to_vec();
        padding::pad(&mut again, 0);
        assert_eq!(again, bytes);
    }
}

/// Always the same nonce: everything sealed here is public, as its keys are.
struct SameBytes;

impl Entropy for SameBytes {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        bytes.fill(0x5a);
        Ok(())
    }
}

fn key(first: u8) -> SymmetricKey {
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(first..).for_each(|(byte, value)| *byte = value);
    SymmetricKey::take(&mut bytes)
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn instance() -> InstanceId {
    InstanceId::from_uuid(id(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use secrecy::ExposeSecret as _;
    use std::fs;
    use std::path::Path;
    use vault_testkit::seed::{edited_seeds, edited_text_seeds, seeds};

    #[test]
    fn fuzzing_seeds_reach_their_targets() {
        assert!(ISSUED.iter().all(|token| ISSUER.verify(token, NOW).is_ok()));
        let payload = |seed: &Vec<u8>| ISSUER.read_payload(std::str::from_utf8(seed).unwrap(), NOW).is_ok();
        assert!(seeds("access_token").iter().any(payload));
        let footers = ISSUED.map(|token| token.rsplit_once('.').unwrap().1.as_bytes().to_vec());
        assert!(footers.iter().all(|footer| seeds("token_footer").contains(footer)));
        let sealed = [&SEALED.text, &SEALED.wrapped].map(|blob| blob.as_bytes().to_vec());
        assert!(sealed.iter().all(|blob| seeds("blob").contains(blob)));
        let list = |text: &str| {
            ready(cursor::decode(&*DIGESTER, OrganizationId::from_uuid(id(1)), &ListFilter::default(), text)).is_ok()
        };
        assert!(seeds("cursor").iter().any(|seed| std::str::from_utf8(seed).is_ok_and(list)));
    }

    /// Writes the blobs, the cursors, and the issued tokens after a change of their claims: those of the seed `payload`, which is changed first.
    #[test]
    #[ignore = "writes the seeds of a new version"]
    fn write_seeds() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds");
        for (name, blob) in [("padded-text", &SEALED.text), ("wrapped-key", &SEALED.wrapped)] {
            fs::write(seeds.join("blob").join(name), blob.as_bytes()).unwrap();
        }
        for (name, kind) in [("issued", None), ("issued-for-a-type", Some(CredentialType::S3))] {
            let last = ListPosition { expires_at: None, id: CredentialId::from_bytes([0; 16]) };
            let filter = ListFilter { kind, ..ListFilter::default() };
            let cursor = cursor::encode(&*DIGESTER, OrganizationId::from_uuid(id(1)), &filter, last);
            fs::write(seeds.join("cursor").join(name), cursor).unwrap();
        }
        let seeds = seeds.join("access_token");
        let payload = fs::read_to_string(seeds.join("payload")).unwrap();
        let claims = ISSUER.read_payload(&payload, NOW).unwrap();
        for number in [1, 2] {
            let token = PasetoIssuer::new(keys_with(&[number]), 7).issue(&claims).unwrap().0;
            let token = token.expose_secret();
            let footer = |token: &str| token.rsplit_once('.').map(|(_, footer)| footer.to_owned());
            for (name, issued) in ["issued", "issued-under-the-older-key"].into_iter().zip(ISSUED) {
                if footer(issued) == footer(token) {
                    fs::write(seeds.join(name), token).unwrap();
                }
            }
        }
    }

    proptest! {
        #[test]
        fn only_issued_tokens_parse(text in edited_text_seeds("access_token")) {
            access_token(&text);
            token_payload(&text);
        }

        #[test]
        fn only_signed_tokens_are_identities(text in edited_text_seeds("identity_token")) {
            identity_token(&text);
            key_set(&text);
        }

        #[test]
        fn only_original_footer_matches_token(footer in edited_seeds("token_footer")) {
            token_footer(&footer);
        }

        #[test]
        fn only_issued_cursors_are_accepted(text in edited_text_seeds("cursor")) {
            cursor(&text);
        }

        #[test]
        fn only_sealed_bytes_parse_as_blob(bytes in edited_seeds("blob")) {
            blob(&bytes);
            padding(&bytes);
        }
    }
}
