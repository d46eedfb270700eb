//! Events for receivers, and the results of delivery attempts.

use proptest::prelude::*;
use std::collections::BTreeSet;
use vault_core::id::{CredentialId, EventId, IntegrationId, OrganizationId, ReceiverId};
use vault_core::receiver::{
    Channel, DeliveryFailure, DeliveryState, EventDelivery, EventKind, EventKinds, Expiring, ExpiringObject,
    FIRST_RETRY_SECONDS, GIVE_UP_SECONDS, LONGEST_PAUSE_SECONDS, MAIL_EVERY_SECONDS, Occurrence, ReceiverKey,
    ReceiverStatus, check_url, decide_attempt,
};
use vault_core::time::Timestamp;
use vault_testkit::crypto::FakeDigester;
use vault_testkit::strategy;

const DAY: i64 = 24 * 3600;
const NOW: Timestamp = Timestamp::from_millis(1_900_000_000_000);

const RECEIVER: ReceiverKey =
    ReceiverKey { owner: Some(OrganizationId::from_bytes([2; 16])), id: ReceiverId::from_bytes([1; 16]) };

fn delivery(id: [u8; 16]) -> EventDelivery {
    let test = Occurrence::test(EventId::from_bytes(id), RECEIVER, NOW);
    let occurrence = Occurrence { kind: EventKind::NamespaceFrozen, ..test };
    occurrence.to_delivery(RECEIVER, 1, NOW, &FakeDigester::default())
}

fn outcome() -> impl Strategy<Value = Result<(), DeliveryFailure>> {
    prop_oneof![1 => Just(Ok(())), 4 => proptest::sample::select(DeliveryFailure::ALL.to_vec()).prop_map(Err)]
}

fn expiring(at: Timestamp, known_since: Timestamp, credential: bool) -> Expiring {
    let object = match credential {
        true => ExpiringObject::Credential(CredentialId::from_bytes([3; 16]), "s3".to_owned(), "imports".to_owned()),
        false => ExpiringObject::Integration(IntegrationId::from_bytes([3; 16]), "nightly".to_owned()),
    };
    Expiring { organization: OrganizationId::from_bytes([2; 16]), object, expires_at: at, known_since }
}

proptest! {
    /// Attempts continue at increasing times until one is accepted or a day has passed. Then they stop.
    #[test]
    fn delivery_attempts_are_limited(id: [u8; 16], failures in prop::collection::vec(proptest::sample::select(DeliveryFailure::ALL.to_vec()), 300)) {
        let (mut delivery, mut status, mut now) = (delivery(id), ReceiverStatus::NEW, NOW);
        let mut ended = false;
        for failure in failures {
            let attempted = decide_attempt(Channel::Webhook, &status, &delivery, Err(failure), now);
            prop_assert_eq!(attempted.delivery.attempts, delivery.attempts + 1);
            prop_assert_eq!(attempted.delivery.failure, Some(failure));
            prop_assert_eq!(attempted.receiver.status.last_failure, Some(failure));
            prop_assert!(attempted.delivery.next_at > now);
            if attempted.delivery.state == DeliveryState::Failed {
                prop_assert!(attempted.receiver.status.failing_since.is_some());
                let last = attempted.delivery.next_at > NOW.plus_seconds(GIVE_UP_SECONDS);
                prop_assert!(last || attempted.receiver.disables);
                ended = true;
                break;
            }
            prop_assert!(attempted.delivery.next_at <= NOW.plus_seconds(GIVE_UP_SECONDS));
            if attempted.delivery.attempts == 1 {
                let waits = attempted.delivery.next_at.millis_since(now) / 1_000;
                prop_assert!((5..=60).contains(&waits), "{}", waits);
            }
            (now, delivery, status) = (attempted.delivery.next_at, attempted.delivery, attempted.receiver.status);
        }
        prop_assert!(ended, "it is given up");
    }

    /// An accepted event is not attempted again and resets the failures of its receiver. A failure never shortens the pause of
    /// a receiver. A response that refuses one message does not delay others.
    #[test]
    fn attempt_updates_its_receiver(
        id: [u8; 16],
        outcome in outcome(),
        wait in 0_i64..10_000,
        mails: bool,
        since in prop::option::of(0_i64..1_000),
    ) {
        let channel = if mails { Channel::Email } else { Channel::Webhook };
        let before = ReceiverStatus {
            not_before: NOW.plus_seconds(wait),
            failing_since: since.map(|since| NOW.plus_seconds(-since)),
            ..ReceiverStatus::NEW
        };
        let attempted = decide_attempt(channel, &before, &delivery(id), outcome, NOW);
        let after = attempted.receiver.status;
        match outcome {
            Ok(()) => {
                prop_assert_eq!(attempted.delivery.state, DeliveryState::Delivered);
                prop_assert_eq!((after.failing_since, after.last_failure), (None, None));
                prop_assert_eq!(after.last_delivered_at, Some(NOW));
                let expected = if mails { NOW.plus_seconds(MAIL_EVERY_SECONDS) } else { before.not_before };
                prop_assert_eq!(after.not_before, expected);
            }
            Err(failure) => {
                prop_assert!(after.not_before >= before.not_before);
                let delays = !matches!(failure, DeliveryFailure::Refused | DeliveryFailure::Damaged);
                prop_assert_eq!(attempted.continues, !delays);
                let pause = after.not_before.millis_since(NOW) / 1_000;
                prop_assert_eq!(pause > wait, delays && wait < pause);
                prop_assert!(pause <= wait.max(LONGEST_PAUSE_SECONDS));
                if failure == DeliveryFailure::Unreachable && channel == Channel::Webhook {
                    prop_assert_eq!(pause, wait.max(FIRST_RETRY_SECONDS));
                }
                prop_assert_eq!(
                    attempted.receiver.disables,
                    matches!(failure, DeliveryFailure::Gone | DeliveryFailure::NoMember)
                );
            }
        }
    }

    /// Each future threshold is reported once, whatever the intervals between checks. If one check passes several thresholds,
    /// only the last one is reported. An expired integration is not reported.
    #[test]
    fn each_threshold_is_reported_once(
        ends_in in -5_i64..40 * DAY,
        mut looks in prop::collection::vec(1_i64..50 * DAY, 1..30),
        credential: bool,
    ) {
        let end = NOW.plus_seconds(ends_in);
        let thing = expiring(end, NOW, credential);
        looks.sort_unstable();
        let (mut after, mut reported) = (NOW, Vec::new());
        for look in looks.iter().map(|look| NOW.plus_seconds(*look)) {
            if let Some(occurrence) = Occurrence::of_expiry(&thing, after, look, &FakeDigester::default()) {
                prop_assert!(occurrence.at > after && occurrence.at <= look);
                reported.push(occurrence);
            }
            after = look;
        }
        let ids: BTreeSet<_> = reported.iter().map(|occurrence| occurrence.id).collect();
        prop_assert_eq!(ids.len(), reported.len());
        prop_assert!(reported.is_sorted_by_key(|occurrence| occurrence.at));
        // Checks every second miss no threshold.
        let passed = |days: &i64| {
            let at = end.plus_seconds(-days * DAY);
            at > NOW && at <= after
        };
        let all: Vec<i64> = [30, 7, 1, 0].into_iter().filter(passed).filter(|days| credential || *days > 0).collect();
        prop_assert!(reported.len() <= all.len());
        let days = |occurrence: &Occurrence| occurrence.data.get("days").and_then(|days| days.as_i64()).unwrap_or(0);
        let last = reported.last().map(days);
        prop_assert_eq!(last, all.last().copied());
    }

    /// An expiry that is set within thresholds is announced once, when it is set, for the nearest of them. The remaining thresholds
    /// follow at their times.
    #[test]
    fn nearest_missed_threshold_is_announced_once(ends_in in -5_i64..40 * DAY, credential: bool) {
        let digester = FakeDigester::default();
        let thing = expiring(NOW.plus_seconds(ends_in), NOW, credential);
        let missed = Occurrence::of_missed_threshold(&thing, NOW, &digester);
        let nearest = [1, 7, 30].into_iter().find(|days| ends_in > 0 && ends_in < days * DAY);
        let days = |occurrence: &Occurrence| occurrence.data["days"].as_i64();
        prop_assert_eq!(missed.as_ref().and_then(days), nearest);
        prop_assert!(missed.iter().all(|occurrence| occurrence.at == NOW && occurrence.kind != EventKind::CredentialExpired));
        // Every later check announces another threshold, with another ID.
        let mut ids: Vec<_> = missed.iter().map(|occurrence| occurrence.id).collect();
        for hours in 0..41 * 24 {
            let (after, now) = (NOW.plus_seconds(hours * 3600 - 1), NOW.plus_seconds((hours + 1) * 3600 - 1));
            ids.extend(Occurrence::of_expiry(&thing, after, now, &digester).map(|occurrence| occurrence.id));
        }
        prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        // The event for one threshold of one expiry always has the same ID.
        if let (Some(missed), Some(days)) = (missed, nearest) {
            let earlier = expiring(thing.expires_at, NOW.plus_seconds(-100 * DAY), credential);
            let at = thing.expires_at.plus_seconds(-days * DAY);
            let read = Occurrence::of_expiry(&earlier, at.plus_seconds(-1), at, &digester);
            prop_assert_eq!(read.map(|occurrence| occurrence.id), Some(missed.id));
        }
    }

    /// Event kinds round-trip. A receiver of an organization gets no event of the instance's.
    #[test]
    fn events_are_read_as_they_were_stored(kinds in strategy::event_kinds(), organization: bool) {
        let stored = serde_json::to_string(&kinds).unwrap();
        prop_assert_eq!(serde_json::from_str::<EventKinds>(&stored).unwrap(), kinds.clone());
        let names: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
        let read = EventKinds::parse(&names, organization, "/events");
        let fit = kinds.iter().all(|kind| EventKinds::all(organization).contains(kind));
        match read {
            Ok(read) => prop_assert!(fit && read == kinds),
            Err(errors) => {
                prop_assert!(!fit);
                prop_assert!(errors.iter().all(|error| error.pointer.starts_with("/events/")));
            }
        }
    }

    /// Only the host of a webhook's URL is shown, without path and query.
    #[test]
    fn only_host_of_url_is_shown(host in "[a-z]{1,10}", path in "[A-Z0-9]{8,20}", query in "[A-Z0-9]{8,20}") {
        let url = check_url(&format!("https://{host}.example/{path}?{query}"), "").unwrap();
        prop_assert_eq!(url.masked(), format!("https://{host}.example/…"));
        prop_assert_eq!(url.as_str(), format!("https://{host}.example/{path}?{query}"));
    }
}

#[test]
fn invalid_webhook_urls_are_refused() {
    for wrong in [
        "",
        "unknown.test",
        "ftp://unknown.test",
        "http://unknown.test",
        "http://10.0.0.1/x",
        "https://user@unknown.test",
        "https://unknown.test/#part",
        "mailto:a@example.com",
        "https:///x",
        "https:unknown.test",
        "https://unknown.test:0/",
        "https://unknown.test/a\r\nb",
        " https://unknown.test/",
        "https://unknown.test/a b",
        "https://unknown\u{202e}.test/",
        "https://unknown.test\\x",
    ] {
        let error = check_url(wrong, "/url").unwrap_err();
        assert_eq!(error.pointer, "/url");
        assert!(wrong.is_empty() || !error.detail.contains(wrong), "{wrong}");
    }
    assert!(check_url(&format!("https://unknown.test/{}", "x".repeat(2_048)), "/url").is_err());
    for right in ["https://unknown.test", "https://[2001:db8::1]:8443/x?y", "http://127.0.0.1:9/x", "http://localhost/"]
    {
        assert!(check_url(right, "/url").is_ok(), "{right}");
    }
}

/// The MAC of a changed receiver or delivery row does not verify.
#[test]
fn changed_rows_fail_their_macs() {
    let digester = FakeDigester::default();
    let sound = delivery([7; 16]);
    assert!(sound.mac_is_valid(&digester));
    for changed in [
        EventDelivery { body: sound.body.replace("namespace", "x"), ..sound.clone() },
        EventDelivery { receiver: ReceiverId::from_bytes([9; 16]), ..sound.clone() },
        EventDelivery { organization: None, ..sound.clone() },
        EventDelivery { kind: EventKind::NamespaceThawed, ..sound.clone() },
        EventDelivery { position: 2, ..sound.clone() },
        EventDelivery { subject: String::new(), ..sound },
    ] {
        assert!(!changed.mac_is_valid(&digester), "{changed:?}");
    }
}
