//! Cursors of lists of credentials, for all positions and filters.

use crate::support::HASHES;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use vault_core::credential::{CredentialType, HealthState, LabelFilter, ListFilter, ListPosition};
use vault_core::cursor::{decode, encode};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::time::Timestamp;
use vault_core::{Error, Refusal};

/// Decodes a cursor. The future of a digester without keys is always ready.
fn read(organization: OrganizationId, filter: &ListFilter, text: &str) -> Result<ListPosition, Error> {
    match pin!(decode(&HASHES, organization, filter, text)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(read) => read,
        Poll::Pending => panic!("waits for keys"),
    }
}

fn organization(number: u8) -> OrganizationId {
    OrganizationId::from_bytes([number; 16])
}

#[expect(clippy::needless_update, reason = "another filter needs no change here: cursors are bound to all")]
fn filters() -> impl Strategy<Value = ListFilter> {
    let label = ("[ab]", "[ab]{0,1}").prop_map(|(name, value)| LabelFilter { name, value });
    let namespace = option::of(select(vec!["a", "b"]));
    let health = option::of(select(&HealthState::ALL[..]));
    let before = option::of((0_i64..3).prop_map(Timestamp::from_millis));
    (namespace, option::of(select(&CredentialType::ALL[..])), vec(label, 0..3), health, before).prop_map(
        |(namespace, kind, labels, health, expires_before)| ListFilter {
            namespace: namespace.map(|text| Namespace::parse(text, "").unwrap()),
            kind,
            labels,
            health,
            expires_before,
            ..ListFilter::default()
        },
    )
}

fn positions() -> impl Strategy<Value = ListPosition> {
    (option::of(any::<i64>()), any::<[u8; 16]>()).prop_map(|(end, id)| ListPosition {
        expires_at: end.map(Timestamp::from_millis),
        id: CredentialId::from_bytes(id),
    })
}

proptest! {
    /// A position contains the expiry only in lists that are ordered by expiry.
    #[test]
    fn cursor_returns_its_position(filter in filters(), last in positions()) {
        let text = encode(&HASHES, organization(1), &filter, last);
        let ordered = filter.expires_before.is_some();
        let expires_at = ordered.then(|| last.expires_at.unwrap_or(Timestamp::from_millis(0)));
        prop_assert_eq!(read(organization(1), &filter, &text).unwrap(), ListPosition { expires_at, id: last.id });
    }

    #[test]
    fn cursor_of_another_list_is_refused(filter in filters(), other in filters(), last in positions()) {
        let text = encode(&HASHES, organization(1), &filter, last);
        let refused = |organization, filter: &ListFilter| {
            matches!(read(organization, filter, &text), Err(Error::Refused(Refusal::Cursor)))
        };
        prop_assert!(refused(organization(2), &filter), "of another organization");
        // One filter is replaced by that of another list.
        let exchanged = [
            ListFilter { namespace: other.namespace.clone(), ..filter.clone() },
            ListFilter { kind: other.kind, ..filter.clone() },
            ListFilter { labels: other.labels.clone(), ..filter.clone() },
            ListFilter { health: other.health, ..filter.clone() },
            ListFilter { expires_before: other.expires_before, ..filter.clone() },
        ];
        for exchanged in exchanged {
            prop_assert_eq!(refused(organization(1), &exchanged), exchanged != filter);
        }
    }

    #[test]
    fn modified_cursor_is_refused(filter in filters(), last in positions(), place in any::<prop::sample::Index>()) {
        let mut text = encode(&HASHES, organization(1), &filter, last).into_bytes();
        let place = place.index(text.len());
        text[place] = if text[place] == b'A' { b'B' } else { b'A' };
        let text = String::from_utf8(text).unwrap();
        prop_assert!(matches!(read(organization(1), &filter, &text), Err(Error::Refused(Refusal::Cursor))));
        prop_assert!(matches!(read(organization(1), &filter, &text[..place]), Err(Error::Refused(Refusal::Cursor))));
    }
}
