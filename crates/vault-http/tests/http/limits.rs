//! Rate limits by network for operations without a token.

use crate::support::{World, WorldBuilder, assert_problem, logged, request};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;
use vault_core::role::Role;
use vault_http::Rate;
use vault_testkit::faulty::Fault;

const JSON: &str = "Content-Type: application/json";
/// Far more than a rate of one per second permits in this time.
const MANY: usize = 40;

fn world(trusted: &'static str) -> World {
    WorldBuilder::default()
        .settings(move |settings| {
            settings.rate =
                NonZeroU32::new(1).zip(NonZeroU32::new(2)).map(|(per_second, burst)| Rate { per_second, burst });
            settings.listener.trusted_proxies = trusted.parse().into_iter().collect();
        })
        .start()
}

/// Returns the statuses of logins that each claim to be from a different network.
fn statuses(world: &World) -> Vec<u16> {
    let from = |number| format!("X-Forwarded-For: 203.0.{number}.7");
    (0..MANY).map(|number| world.send("POST /v1/login", &[JSON, &from(number)], "{}").status).collect()
}

#[test]
fn logins_of_one_network_are_limited_despite_forged_headers() {
    let world = world("10.0.0.0/8");
    let statuses = statuses(&world);
    assert_eq!(statuses[..2], [400, 400]);
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn untrusted_proxy_is_reported() {
    let log = logged();
    let forwarded = "X-Forwarded-For: 198.51.100.7";
    world("10.0.0.0/8").send("GET /livez", &[forwarded], "");
    let log = log.lock().unwrap();
    assert!(
        log.contains("127.0.0.1, which is not a trusted proxy") && log.contains("--trusted-proxy 127.0.0.1/32"),
        "{log}"
    );
    assert!(!log.contains("198.51.100.7"), "what a client wrote is not logged");
}

#[test]
fn cross_site_requests_do_not_count() {
    let world = world("10.0.0.0/8");
    for _ in 0..MANY {
        for form in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"] {
            let response = world.send("POST /v1/login", &[&format!("Content-Type: {form}")], "{}");
            assert_problem(&response, 415, "unsupported-media-type", form);
        }
        let response = world.send("POST /v1/login", &[JSON, "Sec-Fetch-Site: cross-site"], "{}");
        assert_problem(&response, 403, "cross-site", "permitted by a faulty browser");
    }
    assert_eq!(world.send("POST /v1/login", &[JSON, "Sec-Fetch-Site: same-origin"], "{}").status, 400);
}

#[test]
fn rate_limit_refuses_before_body() {
    let world = world("10.0.0.0/8");
    let body = "Content-Length: 1000";
    let refused = (0..MANY).find_map(|_| {
        statuses(&world); // uses up what the network may send
        let mut wire = world.wire();
        wire.send(request("POST /v1/login", &[JSON, "Expect: 100-continue", body], ""));
        let response = wire.receive();
        (response.status == 429).then_some((wire, response))
    });
    let (mut wire, response) = refused.expect("a refusal");
    assert_problem(&response, 429, "too-many-requests", "a login too many");
    assert_eq!(response.header("retry-after"), Some("1"));
    assert_eq!(response.header("connection"), Some("close"));
    assert!(wire.is_closed());
}

#[test]
fn authenticated_requests_are_not_rate_limited() {
    let world = world("10.0.0.0/8");
    let token = world.token(Role::Viewer);
    for _ in 0..MANY {
        assert_eq!(world.send("GET /v1/organization-vault", &[&token], "").status, 200);
        assert_eq!(world.send("GET /livez", &[], "").status, 200);
        assert_eq!(world.send("GET /v1/login", &[], "").status, 405);
    }
}

#[test]
fn routes_without_token_require_a_rate() {
    let world = World::start();
    assert_eq!(statuses(&world), [400; MANY]);
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
        let bounds = move |settings: &mut vault_http::ServerSettings| {
            (settings.requests_per_account, settings.requests_per_organization) = (account, organization);
            // The store blocks the thread of its request. Each of the following connections is accepted by the next one.
            settings.listener.workers = NonZeroUsize::new(4);
        };
        let world = WorldBuilder::default().credentials(move |store| store.faults(blocks)).settings(bounds).start();
        let others = [world.token(Role::Viewer), world.token_in("Other", Role::Viewer)];
        let token = world.token(Role::Viewer);
        let list = || request("GET /v1/organization-vault", &[&token], "");
        let mut wire = world.wire();
        wire.send(list());
        begins.recv_timeout(Duration::from_secs(60)).expect("it is carried out");
        // The request of a disconnected client counts until it has finished.
        drop(wire);
        for (token, refused) in [&token, &others[0], &others[1]].into_iter().zip(refused) {
            let response = world.send("GET /v1/account", &[token], "");
            match refused {
                true => drop(assert_problem(&response, 429, "too-many-requests", token)),
                false => assert_eq!(response.status, 200, "{token}"),
            }
        }
        release.send(()).unwrap();
        while world.send("GET /v1/account", &[&token], "").status == 429 {}
    }
}
