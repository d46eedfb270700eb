//! Limits by network, account and organization.

use super::app::{App, JSON};
use super::log::logged;
use serde_json::json;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;
use vault_http::Rate;
use vault_testkit::faulty::Fault;
use vault_tests::wire::request;

/// Far more than a rate of one per second permits in this time.
const MANY: usize = 40;

/// Starts an app with a rate of one per second.
fn slow(trusted: &str) -> App {
    App::with(|setup| {
        let rate = NonZeroU32::new(1).zip(NonZeroU32::new(2));
        setup.settings.rate = rate.map(|(per_second, burst)| Rate { per_second, burst });
        setup.settings.listener.trusted_proxies = trusted.parse().into_iter().collect();
    })
}

/// Returns the statuses of logins that each claim to be from a different network.
fn statuses(app: &App) -> Vec<u16> {
    let claims = |number: usize| {
        let address = format!("203.0.{number}.7");
        ["X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP"]
            .map(|name| format!("{name}: {address}"))
    };
    let from = |number| {
        let (claims, forwarded) = (claims(number), format!("Forwarded: for=203.0.{number}.7"));
        let headers: Vec<_> = claims.iter().map(String::as_str).chain([JSON, &*forwarded]).collect();
        app.send("POST /v1/login", &headers, "{}").status
    };
    (0..MANY).map(from).collect()
}

#[test]
fn logins_of_one_network_are_limited_despite_forged_headers() {
    let app = slow("10.0.0.0/8");
    let statuses = statuses(&app);
    assert_eq!(statuses[..2], [400, 400]);
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn a85_clients_behind_trusted_proxy_have_separate_limits() {
    let app = slow("127.0.0.0/8");
    assert_eq!(statuses(&app), [400; MANY]);
    // The client controls the part to the left of the proxy's own entry.
    let one = |number: usize| {
        let header = format!("X-Forwarded-For: 203.{number}.113.7, 198.51.100.{number}");
        app.send("POST /v1/login", &[JSON, &header], "{}").status
    };
    assert!((0..MANY).any(|number| one(number) == 429), "a /24 is one network");
}

#[test]
fn untrusted_proxy_is_reported() {
    let log = logged();
    slow("10.0.0.0/8").send("GET /livez", &["X-Forwarded-For: 198.51.100.7"], "");
    let log = log.lock().unwrap();
    assert!(
        log.contains("127.0.0.1, which is not a trusted proxy") && log.contains("--trusted-proxy 127.0.0.1/32"),
        "{log}"
    );
    assert!(!log.contains("198.51.100.7"), "what a client wrote is not logged");
}

#[test]
fn cross_site_requests_do_not_count() {
    let app = slow("10.0.0.0/8");
    for _ in 0..MANY {
        for form in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"] {
            let header = format!("Content-Type: {form}");
            app.send("POST /v1/login", &[&header], "{}").problem("unsupported-media-type");
        }
        app.send("POST /v1/login", &[JSON, "Sec-Fetch-Site: cross-site"], "{}").problem("cross-site");
    }
    app.send("POST /v1/login", &[JSON, "Sec-Fetch-Site: same-origin"], "{}").expect(400);
}

#[test]
fn rate_limit_refuses_before_body() {
    let app = slow("10.0.0.0/8");
    let refused = (0..MANY).find_map(|_| {
        statuses(&app); // uses up what the network may send
        let mut wire = app.wire();
        let head = [JSON, "Expect: 100-continue", "Content-Length: 1000"];
        let answer = wire.exchange(request("POST /v1/login", &head, ""));
        (answer.status == 429).then_some((wire, answer))
    });
    let (mut wire, answer) = refused.expect("a refusal");
    let answer = answer.problem("too-many-requests");
    assert_eq!((answer.header("retry-after"), answer.header("connection")), (Some("1"), Some("close")));
    assert!(wire.is_closed());
}

#[test]
fn authenticated_requests_are_not_rate_limited() {
    let app = slow("127.0.0.0/8");
    let account = app.account("viewer");
    let client = app.client();
    let login = client.request("POST", "/v1/login").header("x-forwarded-for", "203.0.113.7");
    let viewer = vault_tests::Session::new(&client, &login.json(&account.sound_login()).send().expect(200));
    for _ in 0..MANY {
        assert!(viewer.is_live());
        app.send("GET /livez", &[], "").expect(200);
        app.send("GET /v1/login", &[], "").expect(405);
    }
    // Without a rate, nothing is limited.
    assert_eq!(statuses(&App::start()), [400; MANY]);
}

#[test]
fn concurrent_requests_are_limited_by_account_and_organization() {
    // The limits, and which callers are refused during a request: its account, another user, another organization.
    for ((account, organization), refused) in [((1, 2), [true, false, false]), ((2, 1), [true, true, false])] {
        let ((started, begins), (release, released)) = (channel(), channel::<()>());
        let released = Mutex::new(released);
        let blocks = move |method| {
            (method == "ListCredentials").then(|| {
                started.send(()).unwrap();
                released.lock().unwrap().recv().unwrap();
                Fault::Delayed(0)
            })
        };
        let app = App::with(|setup| {
            setup.faulty(|store| store.faults(blocks));
            (setup.settings.requests_per_account, setup.settings.requests_per_organization) = (account, organization);
            // The store blocks the thread of its request. Each of the following connections is accepted by the next one.
            setup.settings.listener.workers = NonZeroUsize::new(4);
        });
        let others = [app.viewer(), app.account_in("Other", "viewer").log_in(&app.client())];
        let own = app.viewer();
        let mut wire = app.wire();
        wire.send(request("GET /v1/organization-vault", &[&own.header()], ""));
        begins.recv_timeout(Duration::from_secs(60)).expect("it is carried out");
        // The request of a disconnected client counts until it has finished.
        drop(wire);
        let ask = |token: &str| app.send("GET /v1/account", &[token], "");
        for (session, refused) in [&own, &others[0], &others[1]].into_iter().zip(refused) {
            let answer = ask(&session.header());
            assert_eq!(answer.status, if refused { 429 } else { 200 }, "{}", json!(answer.text()));
        }
        release.send(()).unwrap();
        while ask(&own.header()).status == 429 {}
    }
}
