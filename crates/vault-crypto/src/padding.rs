//! Plaintext padding, which limits the length that a blob discloses to steps of 256 bytes.
//!
//! ISO/IEC 7816-4: one byte `80`, then zeros. The padding is read only after the tag is verified.

/// Lengths are rounded up to multiples of this many bytes.
pub(crate) const STEP: usize = 256;

const MARK: u8 = 0x80;

/// Returns the padded length of `length` bytes.
pub(crate) const fn padded_length(length: usize) -> usize {
    (length / STEP + 1) * STEP
}

/// Pads the part of `buffer` that starts at `start`.
pub(crate) fn pad(buffer: &mut Vec<u8>, start: usize) {
    let end = start + padded_length(buffer.len() - start);
    buffer.push(MARK);
    buffer.resize(end, 0);
}

/// Returns the length without padding, or `None` if `bytes` are not padded correctly.
pub(crate) fn unpadded_length(bytes: &[u8]) -> Option<usize> {
    if !bytes.len().is_multiple_of(STEP) {
        return None;
    }
    let last_step = bytes.len().checked_sub(STEP)?;
    let mark = bytes.iter().rposition(|byte| *byte != 0)?;
    // Accept the mark only in the last step: otherwise, one text would have several valid paddings.
    (mark >= last_step && bytes[mark] == MARK).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn padding_is_removed(text in prop::collection::vec(any::<u8>(), 0..1100)) {
            let mut padded = b"header".to_vec();
            padded.extend_from_slice(&text);
            pad(&mut padded, 6);
            prop_assert_eq!(padded.len() - 6, padded_length(text.len()));
            prop_assert_eq!(unpadded_length(&padded[6..]), Some(text.len()));
        }
    }

    #[test]
    fn unpadded_data_is_refused() {
        let mut marked_too_early = [0; 512];
        marked_too_early[255] = MARK;
        let mut other_mark = [0; 256];
        other_mark[9] = 0x81;
        for bytes in [&[][..], &[0; 256], &[MARK; 255], &marked_too_early, &other_mark] {
            assert_eq!(unpadded_length(bytes), None);
        }
    }
}
