//! The plaintext of a credential's data: its canonical JSON, one line feed, its namespace, one line feed. Canonical JSON
//! and namespaces have no line feed, so each separates two parts. The namespace is authenticated with the data: a row
//! moved to another namespace does not open.
//!
//! What was sealed before credentials had rules ends with the namespace. The last line feed tells the two apart: newer
//! data opens only for a row with a code over its rule, so that nobody lifts a rule by removing it.

use vault_core::credential::SecretBytes;
use vault_core::namespace::Namespace;
use zeroize::Zeroizing;

const LINE_FEED: u8 = b'\n';

/// The plaintext for `data` in `namespace`.
pub(super) fn join(data: &SecretBytes, namespace: &Namespace) -> Zeroizing<Vec<u8>> {
    let (data, namespace) = (data.expose(), namespace.as_str().as_bytes()); // the plaintext to seal
    // Allocated at its final size: growing would leave a copy of the data behind.
    let mut text = Zeroizing::new(Vec::with_capacity(data.len() + namespace.len() + 2));
    text.extend_from_slice(data);
    text.push(LINE_FEED);
    text.extend_from_slice(namespace);
    text.push(LINE_FEED);
    text
}

/// The data in the plaintext `text`, for a row that has a code over its rule or, if not `ruled`, has none.
///
/// # Errors
/// Why it does not belong there.
pub(super) fn split<'a>(text: &'a [u8], namespace: &Namespace, ruled: bool) -> Result<&'a [u8], &'static str> {
    const ELSEWHERE: &str = "sealed for another namespace";
    let end = text.iter().position(|byte| *byte == LINE_FEED).ok_or(ELSEWHERE)?;
    let place = &text[end + 1..];
    let (place, needs_rule) = place.strip_suffix(&[LINE_FEED]).map_or((place, false), |place| (place, true));
    if place != namespace.as_str().as_bytes() {
        return Err(ELSEWHERE);
    }
    if needs_rule && !ruled {
        return Err("its row has lost the code over its rule");
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
        fn data_opens_in_its_own_namespace_only(
            data in "[ -~]{0,60}", here in "[a-c][a-c/]{0,4}", there in "[a-c][a-c/]{0,4}",
        ) {
            let (here, there) = (namespace(&here), namespace(&there));
            let text = join(&SecretBytes::from(data.clone().into_bytes()), &here);
            prop_assert_eq!(split(&text, &here, true), Ok(data.as_bytes()));
            prop_assert_eq!(split(&text, &there, true).is_ok(), here == there);
        }

        #[test]
        fn data_without_a_namespace_opens_nowhere(data in "[ -~]{0,60}", ruled in any::<bool>()) {
            prop_assert!(split(data.as_bytes(), &namespace("imports"), ruled).is_err());
        }

        #[test]
        fn only_data_older_than_rules_opens_without_one(data in "[ -~]{0,60}", here in "[a-c][a-c/]{0,4}") {
            let here = namespace(&here);
            let newer = join(&SecretBytes::from(data.clone().into_bytes()), &here);
            prop_assert!(split(&newer, &here, false).is_err());
            let older = &newer[..newer.len() - 1];
            prop_assert_eq!(split(older, &here, false), Ok(data.as_bytes()));
            prop_assert_eq!(split(older, &here, true), Ok(data.as_bytes()));
        }
    }
}
