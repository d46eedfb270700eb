//! The server's log of user and integration actions: one line per event at level `info`. Bursts are summarized by a
//! count.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::field::display;
use tracing::{info, warn};
use vault_core::audit::{Actor, AuditRecord};
use vault_core::id::AccountId;
use vault_core::port::{Clock, Event, EventSink as _};
use vault_core::time::Timestamp;
use vault_embed::{LoggedEvents, SystemClock};

/// Maximum number of lines of one kind per [`WINDOW`].
const LINES: u64 = 20;
/// Length of a window in milliseconds.
const WINDOW: i64 = 1_000;

/// The event log.
#[derive(Default)]
pub(crate) struct EventLog {
    windows: Mutex<Windows>,
    lockouts: Mutex<Lockouts>,
}

/// The unit of rate limiting: lines with the same message and reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    message: &'static str,
    reason: Option<&'static str>,
}

/// The end of a temporary lockout.
const LOCKOUT_ENDED: Kind = Kind { message: "login.lock-ended", reason: None };

/// The current window of each kind.
#[derive(Default)]
struct Windows(HashMap<Kind, Window>);

struct Window {
    began: Timestamp,
    lines: u64,
}

/// Maximum number of pending lockouts.
const LOCKOUTS: usize = 1_024;

/// The end of temporary lockouts that this process caused.
#[derive(Default)]
struct Lockouts(HashMap<AccountId, Timestamp>);

impl Lockouts {
    fn note(&mut self, event: &Event) {
        match event {
            // An account can be locked for one network and for all others. The latest end applies.
            Event::LoginLocked { account, until, .. } if self.0.len() < LOCKOUTS || self.0.contains_key(account) => {
                let known = self.0.entry(*account).or_insert(*until);
                *known = (*known).max(*until);
            }
            // This lockout does not expire.
            Event::LoginBucketLocked { account, .. } => {
                self.0.remove(account);
            }
            _ => {}
        }
    }

    /// Removes expired lockouts and returns their accounts.
    fn end(&mut self, now: Timestamp) -> Vec<AccountId> {
        self.0.extract_if(|_, until| *until <= now).map(|(account, _)| account).collect()
    }
}

impl EventLog {
    /// Writes the line of an event, unless the limit of its kind is reached.
    pub(crate) fn write(&self, event: &Event) {
        self.write_at(event, SystemClock.now());
    }

    fn write_at(&self, event: &Event, now: Timestamp) {
        let Some(kind) = Kind::of(event) else { return };
        self.lockouts.lock().unwrap_or_else(PoisonError::into_inner).note(event);
        let mut windows = self.lock();
        let (admitted, suppressed) = windows.admit(kind, now);
        drop(windows);
        write_suppressed(kind, suppressed);
        if admitted {
            write_line(kind.message, event);
        }
    }

    /// Writes expired lockouts, and the number of suppressed lines of completed windows. With `everything`, includes
    /// open windows.
    pub(crate) fn write_ended(&self, everything: bool) {
        let now = SystemClock.now();
        for account in self.lockouts.lock().unwrap_or_else(PoisonError::into_inner).end(now) {
            let (admitted, suppressed) = self.lock().admit(LOCKOUT_ENDED, now);
            write_suppressed(LOCKOUT_ENDED, suppressed);
            if admitted {
                info!(parent: None, %account, "{}", LOCKOUT_ENDED.message);
            }
        }
        let over = self.lock().end(now, everything);
        for (kind, suppressed) in over {
            write_suppressed(kind, suppressed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Windows> {
        // A count is consistent after every operation, so a poisoned lock can still be used.
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kind {
    /// Returns the kind of an event, or `None` if it is not logged.
    fn of(event: &Event) -> Option<Self> {
        let plain = |message| Some(Self { message, reason: None });
        let because = |message, reason| Some(Self { message, reason: Some(reason) });
        match event {
            Event::LoginSucceeded { session: Some(_), .. } => plain("login.succeeded"),
            Event::LoginRefused { refusal, .. } => because("login.refused", refusal.as_str()),
            Event::LoginLocked { .. } | Event::LoginBucketLocked { .. } => plain("login.locked"),
            Event::LoginPasscodeDisabled { .. } => plain("login.passcode-disabled"),
            Event::LoginUnlocked { .. } => plain("login.unlocked"),
            Event::IntegrationRefused { refusal, .. } => because("integration.refused", refusal.as_str()),
            Event::WorkloadRefused { refusal, .. } => because("workload.refused", refusal.as_str()),
            Event::IssuerUnreachable { .. } => plain("issuer.unreachable"),
            Event::Recorded(record) => plain(record.action.as_str()),
            Event::IntegrityFailure { table, .. } => because("integrity.failure", table),
            Event::OrganizationKeyReplaced(_) => plain("organization.key-replaced"),
            _ => None,
        }
    }
}

impl Windows {
    /// Counts a line. Returns whether to write it, and how many lines were suppressed before it.
    fn admit(&mut self, kind: Kind, now: Timestamp) -> (bool, u64) {
        let window = self.0.entry(kind).or_insert(Window { began: now, lines: 0 });
        let mut suppressed = 0;
        if window.is_over(now) {
            suppressed = window.suppressed();
            *window = Window { began: now, lines: 0 };
        }
        window.lines += 1;
        (window.lines <= LINES, suppressed)
    }

    /// Removes completed windows, or all. Returns the number of suppressed lines of each kind.
    fn end(&mut self, now: Timestamp, everything: bool) -> Vec<(Kind, u64)> {
        let ended = self.0.extract_if(|_, window| everything || window.is_over(now));
        ended.map(|(kind, window)| (kind, window.suppressed())).collect()
    }
}

impl Window {
    /// Returns whether the window is complete. It is also complete if the clock was moved back.
    fn is_over(&self, now: Timestamp) -> bool {
        !(0..WINDOW).contains(&now.millis_since(self.began))
    }

    const fn suppressed(&self) -> u64 {
        self.lines.saturating_sub(LINES)
    }
}

/// Without a parent span, because the count belongs to no request.
fn write_suppressed(kind: Kind, suppressed: u64) {
    if suppressed > 0 {
        let Kind { message, reason } = kind;
        info!(parent: None, event = message, reason, suppressed, "log.suppressed");
    }
}

fn write_line(message: &'static str, event: &Event) {
    match event {
        Event::LoginSucceeded { account, session, network } => {
            info!(%account, session = session.map(display), %network, "{message}");
        }
        Event::LoginRefused { refusal, account, network } => {
            info!(reason = refusal.as_str(), account = account.map(display), %network, "{message}");
        }
        Event::LoginLocked { account, network, attempts, until } => {
            let until = until.to_rfc3339();
            info!(%account, %network, attempts, until, "{message}");
        }
        Event::LoginBucketLocked { account, network }
        | Event::LoginPasscodeDisabled { account, network }
        | Event::LoginUnlocked { account, network } => info!(%account, %network, "{message}"),
        Event::IntegrationRefused { refusal, integration, network } => {
            let (integration, network) = (integration.map(display), network.map(display));
            info!(reason = refusal.as_str(), integration, network, "{message}");
        }
        Event::WorkloadRefused { refusal, integration, network } => {
            let (integration, network) = (integration.map(display), network.map(display));
            info!(reason = refusal.as_str(), cause = refusal.cause(), integration, network, "{message}");
        }
        Event::IssuerUnreachable { issuer, reason } => warn!(%issuer, %reason, "{message}"),
        Event::Recorded(record) => write_record(message, record),
        event => LoggedEvents.emit(event.clone()),
    }
}

/// Omits the integration's purpose text, which is untrusted input. The audit log contains it.
fn write_record(message: &'static str, record: &AuditRecord) {
    let note = record.note.as_ref();
    info!(
        actor = actor(record.actor),
        session = record.actor.session().map(display),
        organization = record.organization.map(display),
        subject = record.subject.text(),
        namespace = note.map(|note| note.namespace.as_str()),
        network = note.and_then(|note| note.network).map(|network| network.to_string()),
        credentials = note.and_then(|note| note.credentials_text()).map(|lines| lines.replace('\n', ", ")),
        "{message}"
    );
}

fn actor(actor: Actor) -> String {
    let kind = actor.kind();
    match (actor.account(), actor.integration()) {
        (Some(account), _) => format!("{kind}:{account}"),
        (_, Some(integration)) => format!("{kind}:{integration}"),
        _ => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use vault_core::network::Network;
    use vault_core::port::LoginRefusal;

    const BEGAN: Timestamp = Timestamp::from_millis(1_893_456_000_000);
    const REFUSED: Kind = Kind { message: "login.refused", reason: Some("wrong-password") };
    const SAVED: Kind = Kind { message: "credential.saved", reason: None };

    const fn after(millis: i64) -> Timestamp {
        Timestamp::from_millis(BEGAN.as_millis() + millis)
    }

    #[test]
    fn log_lines_are_rate_limited_by_kind_and_counted() {
        let mut windows = Windows::default();
        let storm = |windows: &mut Windows, kind, now| (0..100).filter(|_| windows.admit(kind, now).0).count();
        assert_eq!(storm(&mut windows, REFUSED, BEGAN), 20);
        assert_eq!(storm(&mut windows, REFUSED, after(999)), 0);
        assert_eq!(storm(&mut windows, SAVED, after(999)), 20, "another kind has lines of its own");
        assert_eq!(
            windows.admit(REFUSED, after(1_000)),
            (true, 180),
            "the first line of the next second tells the count"
        );
        assert_eq!(windows.admit(REFUSED, after(1_001)), (true, 0), "which is told once");
    }

    #[test]
    fn suppressed_count_is_logged_without_further_lines() {
        let mut windows = Windows::default();
        for _ in 0..25 {
            windows.admit(REFUSED, BEGAN);
        }
        windows.admit(SAVED, BEGAN);
        assert_eq!(windows.end(after(999), false), [], "the second is not over");
        let mut ended = windows.end(after(1_000), false);
        ended.sort_by_key(|(kind, _)| kind.message);
        assert_eq!(ended, [(SAVED, 0), (REFUSED, 5)]);
        assert_eq!(windows.end(after(5_000), true), [], "and once");
        for _ in 0..21 {
            windows.admit(SAVED, after(6_000));
        }
        assert_eq!(windows.end(after(6_000), true), [(SAVED, 1)], "at the end, all are told");
    }

    #[test]
    fn clock_moved_back_suppresses_no_line() {
        let mut windows = Windows::default();
        for _ in 0..30 {
            windows.admit(REFUSED, BEGAN);
        }
        assert_eq!(windows.admit(REFUSED, after(-3_600_000)), (true, 10));
    }

    #[test]
    fn lockout_end_is_reported_once() {
        let mut lockouts = Lockouts::default();
        let [one, other, closed] = [1, 2, 3].map(|byte| AccountId::from_bytes([byte; 16]));
        let network = Network::of(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut lock = |account, until| {
            lockouts.note(&Event::LoginLocked { account, network, attempts: 5, until: after(until) });
        };
        lock(one, 60_000);
        lock(one, 30_000);
        lock(other, 40_000);
        lock(closed, 10_000);
        lockouts.note(&Event::LoginBucketLocked { account: closed, network });
        assert_eq!(lockouts.end(after(39_999)), []);
        assert_eq!(lockouts.end(after(40_000)), [other]);
        assert_eq!(lockouts.end(after(90_000)), [one]);
        assert_eq!(lockouts.end(after(90_000)), []);
        for number in 0..2 * LOCKOUTS {
            let account = AccountId::from_bytes(u128::try_from(number).unwrap().to_be_bytes());
            lockouts.note(&Event::LoginLocked { account, network, attempts: 5, until: after(0) });
        }
        assert_eq!(lockouts.end(after(0)).len(), LOCKOUTS, "nobody makes it grow without bounds");
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no writer panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn line_contains_account_network_reason_and_request() {
        let lines = Lines::default();
        let written = lines.clone();
        let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_span_list(false);
        let subscriber = subscriber.with_writer(move || written.clone()).finish();
        let (account, refusal) = (AccountId::from_bytes([7; 16]), LoginRefusal::ReusedPasscode);
        let network = Network::of(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
        let log = EventLog::default();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::error_span!("request", request_id = "an id");
            span.in_scope(|| {
                log.write_at(&Event::LoginRefused { refusal, account: Some(account), network }, BEGAN);
                let refusal = LoginRefusal::UnknownAddress;
                log.write_at(&Event::LoginRefused { refusal, account: None, network }, BEGAN);
                log.write_at(&Event::PasswordEvaluated, BEGAN);
                (0..30).for_each(|_| log.write_at(&Event::LoginUnlocked { account, network }, BEGAN));
            });
            log.write_ended(true);
        });
        let text = String::from_utf8(lines.0.lock().expect("no writer panics").clone()).expect("UTF-8");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let of = |message: &str| lines.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
        let [known, unknown] = of("login.refused")[..] else { panic!("{text}") };
        assert_eq!((&known["reason"], &known["level"]), (&"reused-passcode".into(), &"INFO".into()));
        assert_eq!(known["account"], account.to_string());
        assert_eq!(known["network"], "192.0.2.0/24");
        assert_eq!(known["span"]["request_id"], "an id");
        assert_eq!((&unknown["reason"], unknown.get("account")), (&"unknown-address".into(), None));
        assert_eq!(of("login.unlocked").len(), 20);
        let [suppressed] = of("log.suppressed")[..] else { panic!("{text}") };
        assert_eq!((&suppressed["event"], &suppressed["suppressed"]), (&"login.unlocked".into(), &10.into()));
        assert_eq!(suppressed.get("span"), None, "it belongs to no request");
        assert_eq!(lines.len(), 23);
    }
}
