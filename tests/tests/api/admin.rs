//! The operators' listener.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vault_http::{AdminParts, AdminSettings, ListenerSettings, Readiness, admin_server};
use vault_testkit::clock::SequentialIds;
use vault_tests::wire::{Wire, request};

#[test]
fn admin_listener_has_only_metrics_and_probes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut settings = AdminSettings { listener: ListenerSettings::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))]) };
    settings.listener.shutdown_timeout = Duration::from_secs(300);
    let parts = AdminParts {
        runtime: runtime.handle().clone(),
        metrics: Arc::new(|| "up 1\n".to_owned()),
        readiness: Readiness::new(|| std::future::ready(Err("no space left on device".to_owned()))),
        ids: Arc::new(SequentialIds::default()),
    };
    let bound = runtime.block_on(async { admin_server(&settings, parts) }).unwrap();
    let handle = bound.server.handle();
    let running = runtime.spawn(bound.server);
    let mut wire = Wire::connect(bound.addresses[0]);
    let mut ask = |line: &str| {
        let answer = wire.exchange(request(line, &[], ""));
        answer.check_common();
        answer
    };
    let metrics = ask("GET /metrics").expect(200);
    assert_eq!(metrics.text(), "up 1\n");
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    ask("GET /livez").expect(200);
    let unready = ask("GET /readyz").problem("unavailable").text();
    assert!(unready.contains("Not ready: no space left on device."), "{unready}");
    for line in ["GET /v1/organization-vault", "POST /v1/login", "GET /", "GET /nonsense"] {
        ask(line).problem("not-found");
    }
    ask("POST /metrics").problem("method-not-allowed");

    // A stop closes idle connections immediately.
    let began = Instant::now();
    runtime.block_on(handle.stop(true));
    runtime.block_on(running).unwrap().unwrap();
    assert!(wire.is_closed());
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
