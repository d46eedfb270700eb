//! Plaintext of a credential's data: its canonical JSON, one line feed, its namespace.
//!
//! Neither part contains a line feed, so the line feed separates them. The namespace is authenticated with the data: a
//! row moved to another namespace does not open.

use vault_core::credential::SecretBytes;
use vault_core::namespace::Namespace;
use zeroize::Zeroizing;

const LINE_FEED: u8 = b'\n';

/// Returns the plaintext for `data` in `namespace`.
pub(super) fn join(data: &SecretBytes, namespace: &Namespace) -> Zeroizing<Vec<u8>> {
    let (data, namespace) = (data.expose(), namespace.as_str().as_bytes()); // the plaintext to seal
    // Allocate the final size: a buffer that grows would leave copies of the data in memory.
    let mut text = Zeroizing::new(Vec::with_capacity(data.len() + namespace.len() + 1));
    text.extend_from_slice(data);
    text.push(LINE_FEED);
    text.extend_from_slice(namespace);
    text
}

/// Returns the data in the plaintext `text` of a row in `namespace`.
///
/// # Errors
/// Returns the reason why the data does not belong to the row.
pub(super) fn split<'a>(text: &'a [u8], namespace: &Namespace) -> Result<&'a [u8], &'static str> {
    const ELSEWHERE: &str = "sealed for another namespace";
    let end = text.iter().position(|byte| *byte == LINE_FEED).ok_or(ELSEWHERE)?;
    if &text[end + 1..] != namespace.as_str().as_bytes() {
        return Err(ELSEWHERE);
    }
    Ok(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn namespace(name: &str) -> Namespace {
        Namespace::parse(name, "").unwrap()
    }

    proptest! {
        #[test]
        fn data_opens_only_in_its_namespace(
            data in "[ -~]{0,60}", here in "[a-c][a-c/]{0,4}", there in "[a-c][a-c/]{0,4}",
        ) {
            let (here, there) = (namespace(&here), namespace(&there));
            let text = join(&SecretBytes::from(data.clone().into_bytes()), &here);
            prop_assert_eq!(split(&text, &here), Ok(data.as_bytes()));
            prop_assert_eq!(split(&text, &there).is_ok(), here == there);
        }

        #[test]
        fn data_without_namespace_does_not_open(data in "[ -~]{0,60}") {
            prop_assert!(split(data.as_bytes(), &namespace("imports")).is_err());
        }
    }
}
