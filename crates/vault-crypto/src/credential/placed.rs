//! Data with the namespace that it lies in, as it is sealed: canonical JSON, which holds no line end, then one, then the
//! namespace. So it is authenticated where a credential lies, and whoever moves its row gains nothing by it. Data that was
//! sealed before has no line end.

use vault_core::credential::SecretBytes;
use vault_core::namespace::Namespace;
use zeroize::Zeroizing;

const LINE_END: u8 = b'\n';

/// `data` with its namespace.
pub(super) fn join(data: &SecretBytes, namespace: &Namespace) -> Zeroizing<Vec<u8>> {
    let (data, namespace) = (data.expose(), namespace.as_str().as_bytes()); // what is sealed
    // Of the final size at once: growing would leave a copy of the data behind.
    let mut text = Zeroizing::new(Vec::with_capacity(data.len() + 1 + namespace.len()));
    text.extend_from_slice(data);
    text.push(LINE_END);
    text.extend_from_slice(namespace);
    text
}

/// The data of `text`, unless it was sealed in another namespace.
pub(super) fn split<'a>(text: &'a [u8], namespace: &Namespace) -> Option<&'a [u8]> {
    match text.iter().position(|byte| *byte == LINE_END) {
        None => Some(text),
        Some(end) => (text.get(end + 1..) == Some(namespace.as_str().as_bytes())).then(|| &text[..end]),
    }
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
        fn what_lies_in_a_namespace_opens_there_and_nowhere_else(
            data in "[ -~]{0,60}", here in "[a-c][a-c/]{0,4}", there in "[a-c][a-c/]{0,4}",
        ) {
            let (here, there) = (namespace(&here), namespace(&there));
            let text = join(&SecretBytes::from(data.clone().into_bytes()), &here);
            prop_assert_eq!(split(&text, &here), Some(data.as_bytes()));
            prop_assert_eq!(split(&text, &there).is_some(), here == there);
        }

        #[test]
        fn what_was_sealed_before_opens_wherever_it_lies(data in "[ -~]{0,60}") {
            prop_assert_eq!(split(data.as_bytes(), &namespace("imports")), Some(data.as_bytes()));
        }
    }
}
