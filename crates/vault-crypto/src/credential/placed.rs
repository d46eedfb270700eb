//! The plaintext of a credential's data: its canonical JSON, one line feed, its namespace. Canonical JSON has no line
//! feed, so the first one separates the two. The namespace is authenticated with the data: a row moved to another
//! namespace does not open.

use vault_core::credential::SecretBytes;
use vault_core::namespace::Namespace;
use zeroize::Zeroizing;

const LINE_FEED: u8 = b'\n';

/// The plaintext for `data` in `namespace`.
pub(super) fn join(data: &SecretBytes, namespace: &Namespace) -> Zeroizing<Vec<u8>> {
    let (data, namespace) = (data.expose(), namespace.as_str().as_bytes()); // the plaintext to seal
    // Allocated at its final size: growing would leave a copy of the data behind.
    let mut text = Zeroizing::new(Vec::with_capacity(data.len() + 1 + namespace.len()));
    text.extend_from_slice(data);
    text.push(LINE_FEED);
    text.extend_from_slice(namespace);
    text
}

/// The data in the plaintext `text`. `None` if it names another namespace or none.
pub(super) fn split<'a>(text: &'a [u8], namespace: &Namespace) -> Option<&'a [u8]> {
    let end = text.iter().position(|byte| *byte == LINE_FEED)?;
    (&text[end + 1..] == namespace.as_str().as_bytes()).then(|| &text[..end])
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
        fn data_opens_in_its_own_namespace_only(
            data in "[ -~]{0,60}", here in "[a-c][a-c/]{0,4}", there in "[a-c][a-c/]{0,4}",
        ) {
            let (here, there) = (namespace(&here), namespace(&there));
            let text = join(&SecretBytes::from(data.clone().into_bytes()), &here);
            prop_assert_eq!(split(&text, &here), Some(data.as_bytes()));
            prop_assert_eq!(split(&text, &there).is_some(), here == there);
        }

        #[test]
        fn data_without_a_namespace_opens_nowhere(data in "[ -~]{0,60}") {
            prop_assert_eq!(split(data.as_bytes(), &namespace("imports")), None);
        }
    }
}
