//! The seeds of the fuzz targets in `tests/fuzz`, with a few random modifications. This is the short form of fuzzing
//! for every test run.

use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::path::Path;

/// Returns the seeds of one target, in the order of their names.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds").join(target);
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{target} has no seeds");
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Generates the seeds of one target with up to four modifications, or none.
pub fn edited_seeds(target: &str) -> impl Strategy<Value = Vec<u8>> {
    (proptest::sample::select(seeds(target)), proptest::collection::vec(edit(), 0..5))
        .prop_map(|(seed, edits)| edits.iter().fold(seed, |bytes, edit| edit.apply(bytes)))
}

/// Generates seeds as text. Invalid UTF-8 is replaced.
pub fn edited_text_seeds(target: &str) -> impl Strategy<Value = String> {
    edited_seeds(target).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Clone, Debug)]
enum Edit {
    Flip(Index, u8),
    Put(Index, Vec<u8>),
    Cut(Index, usize),
    Repeat(Index, usize),
    End(Index),
}

/// Input that parsers often mishandle: punctuation of JSON and URLs, escapes, boundary numbers, look-alikes, controls.
const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "-1",
    "1e400",
    "9223372036854775808",
    "0.5",
    "\0",
    "\u{feff}",
    "\u{e9}",
    "\u{3002}",
    "@",
    ".",
    "%00",
    "=",
    "~",
];

fn edit() -> impl Strategy<Value = Edit> {
    let piece = proptest::sample::select(PIECES.to_vec()).prop_map(|piece| piece.as_bytes().to_vec());
    prop_oneof![
        3 => (any::<Index>(), 0_u8..8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        3 => (any::<Index>(), piece).prop_map(|(at, piece)| Edit::Put(at, piece)),
        2 => (any::<Index>(), 1_usize..24).prop_map(|(at, length)| Edit::Cut(at, length)),
        1 => (any::<Index>(), 1_usize..64).prop_map(|(at, length)| Edit::Repeat(at, length)),
        1 => any::<Index>().prop_map(Edit::End),
    ]
}

impl Edit {
    fn apply(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let place = |at: &Index| at.index(bytes.len() + 1);
        match self {
            Self::Flip(at, bit) => {
                let place = place(at);
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << bit;
                }
            }
            Self::Put(at, piece) => {
                let place = place(at);
                bytes.splice(place..place, piece.iter().copied());
            }
            Self::Cut(at, length) => {
                let place = place(at);
                bytes.drain(place..(place + length).min(bytes.len()));
            }
            Self::Repeat(at, length) => {
                let place = place(at);
                let piece = bytes[place..(place + length).min(bytes.len())].to_vec();
                bytes.splice(place..place, piece);
            }
            Self::End(at) => bytes.truncate(place(at)),
        }
        bytes
    }
}
