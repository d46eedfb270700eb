//! Credentials as JSON. Written by hand into one buffer: their information is JSON already, and every other
//! value is of an alphabet that JSON need not escape.

use crate::answer::write_time;
use std::fmt::Write as _;
use vault_core::cursor::ListFilter;
use vault_core::usecase::ListedCredential;

/// What a list item takes besides its namespace and its information, in bytes, and a little more.
const FRAME: usize = 256;

/// The array of `credentials`.
pub(crate) fn array(credentials: &[ListedCredential]) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(2 + credentials.iter().map(size).sum::<usize>());
    buffer.push(b'[');
    for (index, credential) in credentials.iter().enumerate() {
        if index > 0 {
            buffer.push(b',');
        }
        write(&mut buffer, credential);
    }
    buffer.push(b']');
    buffer
}

/// The object of one credential.
pub(crate) fn item(credential: &ListedCredential) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(size(credential));
    write(&mut buffer, credential);
    buffer
}

/// The address of the page that begins at `cursor`, with the filters and the limit of this one.
pub(crate) fn next_page(base: &str, filter: &ListFilter, limit: usize, cursor: &str) -> String {
    let mut link = format!("<{base}/organization-vault?");
    // Neither namespaces, types nor cursors hold anything that a query would have to escape.
    if let Some(namespace) = &filter.namespace {
        let _ = write!(link, "namespace={namespace}&"); // a String takes everything
    }
    if let Some(kind) = filter.kind {
        let _ = write!(link, "type={kind}&");
    }
    let _ = write!(link, "limit={limit}&cursor={cursor}>; rel=\"next\"");
    link
}

fn size(credential: &ListedCredential) -> usize {
    FRAME
        + credential.namespace.as_str().len()
        + credential.information.as_ref().map_or(0, |information| information.as_json().len())
}

fn write(buffer: &mut Vec<u8>, credential: &ListedCredential) {
    let mut id = [0; 36];
    buffer.extend_from_slice(b"{\"id\":\"");
    buffer.extend_from_slice(credential.id.as_uuid().hyphenated().encode_lower(&mut id).as_bytes());
    buffer.extend_from_slice(b"\",\"type\":\"");
    buffer.extend_from_slice(credential.kind.as_str().as_bytes());
    buffer.extend_from_slice(b"\",\"namespace\":\"");
    buffer.extend_from_slice(credential.namespace.as_str().as_bytes());
    match &credential.information {
        Some(information) => {
            buffer.extend_from_slice(b"\",\"information\":");
            buffer.extend_from_slice(information.as_json().as_bytes());
        }
        None => buffer.extend_from_slice(b"\",\"damaged\":true"),
    }
    buffer.extend_from_slice(b",\"version\":");
    buffer.extend_from_slice(credential.version.to_string().as_bytes());
    buffer.extend_from_slice(b",\"created_at\":\"");
    write_time(buffer, credential.created_at);
    buffer.extend_from_slice(b"\",\"updated_at\":\"");
    write_time(buffer, credential.updated_at);
    buffer.extend_from_slice(b"\"}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_api::CredentialItem;
    use vault_core::credential::{CredentialType, Information};
    use vault_core::id::CredentialId;
    use vault_core::namespace::Namespace;
    use vault_core::time::Timestamp;

    fn credential() -> Option<ListedCredential> {
        Some(ListedCredential {
            id: CredentialId::from_bytes([0xab; 16]),
            kind: CredentialType::DirectLink,
            namespace: Namespace::parse("imports/nightly", "").ok()?,
            version: 7,
            created_at: Timestamp::from_millis(1_795_176_000_123),
            updated_at: Timestamp::from_millis(1_795_176_001_000),
            information: Information::from_json("{\"host\":\"a\\u00e4\",\"secrets\":[]}".into()).ok(),
        })
    }

    #[test]
    fn items_read_back_as_the_wire_type_and_information_is_spliced() {
        let Some(credential) = credential() else { panic!("sound parts") };
        let text = item(&credential);
        assert_eq!(
            String::from_utf8_lossy(&text),
            r#"{"id":"abababab-abab-abab-abab-abababababab","type":"direct-link","namespace":"imports/nightly","information":{"host":"a\u00e4","secrets":[]},"version":7,"created_at":"2026-11-20T12:00:00Z","updated_at":"2026-11-20T12:00:01Z"}"#
        );
        assert!(text.len() <= size(&credential), "the buffer is large enough at once");
        let items: Option<Vec<CredentialItem>> = serde_json::from_slice(&array(&[credential.clone(), credential])).ok();
        assert_eq!(items.map(|items| items.len()), Some(2));
        assert_eq!(array(&[]), b"[]");
    }

    #[test]
    fn the_next_page_has_the_filters_and_the_limit_of_this_one() {
        let filter = ListFilter { namespace: Namespace::parse("a/b", "").ok(), kind: Some(CredentialType::S3) };
        let link = next_page("/v1", &filter, 2, "Zm9v-_");
        assert_eq!(link, "</v1/organization-vault?namespace=a/b&type=s3&limit=2&cursor=Zm9v-_>; rel=\"next\"");
        let link = next_page("/v1", &ListFilter::default(), 1000, "x");
        assert_eq!(link, "</v1/organization-vault?limit=1000&cursor=x>; rel=\"next\"");
    }
}
