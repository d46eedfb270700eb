//! Properties of the keyring document, which lists the keys of a deployment.

use proptest::prelude::*;
use proptest::sample::Index;
use vault_core::digest::Digest;
use vault_core::id::KeyId;
use vault_core::keyring::{KeyPurpose, KeyringDocument, KeyringEntry, KeyringError, KeyringRef};
use vault_core::sealed::KeyState;
use vault_core::time::Timestamp;

/// A change of the keyring.
#[derive(Clone, Debug)]
enum Change {
    Replace(KeyPurpose),
    Drop(Index),
}

fn changes(most: usize) -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        prop::sample::select(KeyPurpose::ALL.to_vec()).prop_map(Change::Replace),
        any::<Index>().prop_map(Change::Drop),
    ];
    prop::collection::vec(change, 0..most)
}

fn key(number: usize) -> KeyId {
    KeyId::from_bytes(u128::try_from(number).unwrap().to_be_bytes())
}

/// A stand-in for SHA-256 that distinguishes the documents of these tests.
fn hash(document: &KeyringDocument) -> Digest {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    document.to_bytes().hash(&mut hasher);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&hasher.finish().to_be_bytes());
    Digest::from_bytes(bytes)
}

fn mark(document: &KeyringDocument) -> KeyringRef {
    KeyringRef { number: document.number(), hash: hash(document) }
}

fn first() -> KeyringDocument {
    KeyringDocument::first([1, 2, 3, 4].map(key), Timestamp::from_millis(0))
}

/// Returns all documents of a history, and every key that was dropped in it.
fn history(changes: &[Change], begin: usize) -> (Vec<KeyringDocument>, Vec<KeyId>) {
    let (mut documents, mut dropped) = (vec![first()], Vec::new());
    for (number, change) in changes.iter().enumerate() {
        let last = documents.last().unwrap();
        let now = Timestamp::from_millis(i64::try_from(number).unwrap());
        let next = match change {
            Change::Replace(purpose) => last.with_entries(hash(last), &[(*purpose, key(begin + number))], now).unwrap(),
            Change::Drop(index) => {
                let entry = *index.get(last.entries());
                match last.without_entry(hash(last), entry.id) {
                    Ok(next) => {
                        assert_eq!(entry.state, KeyState::Retiring);
                        dropped.push(entry.id);
                        next
                    }
                    Err(error) => {
                        assert_eq!((entry.state, error), (KeyState::Active, KeyringError::NotRetiring(entry.id)));
                        continue;
                    }
                }
            }
        };
        documents.push(next);
    }
    (documents, dropped)
}

proptest! {
    /// After any changes, each purpose has one active key, no key is listed twice, and dropped keys do not return.
    #[test]
    fn every_keyring_history_is_valid(changes in changes(40)) {
        let (documents, dropped) = history(&changes, 10);
        for (number, document) in (1..).zip(&documents) {
            prop_assert_eq!(document.number(), number);
            for purpose in KeyPurpose::ALL {
                let active = document.active(purpose).unwrap();
                prop_assert!(document.has(purpose, active.id));
                let all = document.entries().iter().filter(|entry| entry.purpose == purpose && entry.state == KeyState::Active);
                prop_assert_eq!(all.count(), 1);
            }
            let mut ids: Vec<KeyId> = document.entries().iter().map(|entry| entry.id).collect();
            ids.sort();
            ids.dedup();
            prop_assert_eq!(ids.len(), document.entries().len());
        }
        let last = documents.last().unwrap();
        for id in dropped {
            prop_assert!(last.entries().iter().all(|entry| entry.id != id));
            prop_assert_eq!(last.without_entry(hash(last), id), Err(KeyringError::NotRetiring(id)));
        }
        let known = last.entries()[0].id;
        let twice = last.with_entries(hash(last), &[(KeyPurpose::Audit, known)], Timestamp::from_millis(0));
        prop_assert_eq!(twice, Err(KeyringError::Known(known)));
    }

    /// Only later documents of the same history are accepted, at any distance.
    #[test]
    fn only_successor_keyring_is_accepted(changes in changes(40), others in changes(40), from: Index, to: Index) {
        let (documents, _) = history(&changes, 10);
        let (from, to) = (from.index(documents.len()), to.index(documents.len()));
        let later = &documents[to];
        prop_assert_eq!(later.is_at_or_after(hash(later), mark(&documents[from])), to >= from);
        let (strange, _) = history(&others, 1_000);
        for other in strange.iter().skip(1).filter(|other| !documents.contains(other)) {
            prop_assert!(!later.is_at_or_after(hash(later), mark(other)));
        }
    }

    /// A key signs only after every server has loaded it. It is drained only long after it retires.
    #[test]
    fn entry_settles_before_it_drains(since in 0..1_000_000_i64, after in -10_000..200_000_i64, retires: bool) {
        let state = if retires { KeyState::Retiring } else { KeyState::Active };
        let entry = KeyringEntry { purpose: KeyPurpose::Token, id: key(1), state, since: Timestamp::from_millis(since) };
        let now = Timestamp::from_millis(since + after);
        prop_assert_eq!(entry.is_settled(now), after >= KeyringEntry::SETTLED_SECONDS * 1_000);
        prop_assert_eq!(entry.is_drained(now), retires && after >= KeyringEntry::DRAINED_SECONDS * 1_000);
        prop_assert!(!entry.is_drained(now) || entry.is_settled(now));
    }

    #[test]
    fn keyring_round_trips(changes in changes(40)) {
        let (documents, _) = history(&changes, 10);
        for document in &documents {
            let bytes = document.to_bytes();
            prop_assert_eq!(KeyringDocument::from_bytes(&bytes), Some(document.clone()));
            prop_assert_eq!(KeyringDocument::from_bytes(&[bytes.as_slice(), &[0]].concat()), None);
            prop_assert_eq!(KeyringDocument::from_bytes(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(read) = KeyringDocument::from_bytes(&bytes) {
            prop_assert_eq!(read.to_bytes(), bytes);
        }
    }
}

/// A server that missed more changes than a document lists does not accept the document.
#[test]
fn document_lists_256_predecessors() {
    let changes: Vec<_> = (0..300).map(|_| Change::Replace(KeyPurpose::Token)).collect();
    let (documents, _) = history(&changes, 10);
    let last = documents.last().unwrap();
    let known = |number: usize| last.is_at_or_after(hash(last), mark(&documents[number]));
    assert!(known(300) && known(299) && known(300 - 256) && !known(300 - 257) && !known(0));
    assert_eq!(KeyringDocument::from_bytes(&last.to_bytes()).as_ref(), Some(last));
}
