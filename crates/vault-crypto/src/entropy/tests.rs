use super::*;
use crate::testing::{NoEntropyLeft, SameEntropy};

#[test]
fn random_bytes_are_returned_once() {
    let mut expected = [0; 32];
    SameEntropy::default().fill(&mut expected).unwrap();
    let source = SameEntropy::default();
    let drawn = Drawn::<32>::from(&source).unwrap();
    let mut parts = [[0; 12]; 4];
    parts.iter_mut().for_each(|part| drawn.fill(part).unwrap());
    assert_eq!(parts[..2].concat(), expected[..24]);
    // The rest is too short for a third part: this part and later ones come from the source.
    for part in &parts[2..] {
        assert!(!expected.windows(12).any(|window| window == part));
    }
    assert_ne!(parts[2], parts[3]);
}

#[test]
fn drawing_fails_without_entropy() {
    assert!(Drawn::<32>::from(&NoEntropyLeft).is_err());
    assert!(random_key(&NoEntropyLeft).is_err());
    assert!(random_key_id(&NoEntropyLeft).is_err());
}

#[test]
fn operating_system_returns_different_bytes_each_time() {
    let draw = || {
        let mut bytes = [0; 32];
        OsEntropy.fill(&mut bytes).unwrap();
        bytes
    };
    assert_ne!(draw(), draw());
    assert_eq!(random_key_id(&OsEntropy).unwrap().as_uuid().get_version_num(), 4);
}
