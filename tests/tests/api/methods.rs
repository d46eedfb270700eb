//! Methods and addresses.

use super::app::{App, s3};
use super::tokens::line;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use vault_http::{Route, routes};
use vault_tests::wire::{Wire, request};

/// Asserts that every other method is refused, and names the permitted ones.
pub(crate) fn assert_methods_are_checked(routes: impl Iterator<Item = Route>, address: SocketAddr) {
    let mut places: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for route in routes {
        let path = line(&route, "x").split_once(' ').unwrap().1.to_owned();
        let methods = places.entry(path).or_default();
        methods.extend([route.method].into_iter().chain((route.method == "GET").then_some("HEAD")));
    }
    let methods =
        ["TRACE", "PROPFIND", "get", "Post", "QUERY", "MKCOL", "PUT", "OPTIONS", "POST", "PATCH", "DELETE", "GET"];
    for (path, allow) in places {
        for method in methods.iter().filter(|method| !allow.contains(method)) {
            let headers = [
                "X-HTTP-Method-Override: GET",
                "X-Method-Override: GET",
                "X-Canary: h7Qz",
                "Origin: https://evil.example",
                "Access-Control-Request-Method: PATCH",
            ];
            let answer = Wire::once(address, request(&format!("{method} {path}"), &headers, "")).expect("an answer");
            answer.check_common();
            let answer = answer.problem("method-not-allowed");
            assert_eq!(answer.header("allow"), Some(&*allow.join(", ")), "{method} {path}");
            assert!(!answer.text().contains("h7Qz"), "{method} {path} reflects the request");
        }
    }
}

#[test]
fn a86_only_the_method_in_the_line_counts() {
    let app = App::start();
    assert_methods_are_checked(routes(), app.address);
    let editor = app.editor();
    let id = editor.save(&s3("a", "b"));
    let path = format!("/v1/organization-vault/{id}");
    for name in ["x-http-method-override", "x-http-method", "x-method-override", "_method"] {
        editor.call("GET", &path).header(name, "DELETE").send().expect(200);
    }
    editor.call("GET", &format!("{path}?_method=DELETE")).send().problem("malformed-request");
    assert_eq!(editor.ids(), [id]);
}

#[test]
fn every_address_is_found_in_its_one_spelling() {
    let app = App::start();
    let unknown = |line: &str| drop(app.send(line, &[], "").problem("not-found"));
    for line in [
        "GET //",
        "GET /console",
        "GET /console/",
        "GET /console/none.js",
        "GET /console/../console/app.js",
        "POST /v1",
        "PATCH /v1/organization-vault/",
        "GET /v1/organization-vault/a/b",
        "OPTIONS *",
        "CONNECT vault:443",
        "GET /metrics",
    ] {
        unknown(line);
    }
    for route in routes() {
        let whole = line(&route, "x");
        let path = whole.split_once(' ').unwrap().1;
        for other in [
            format!("{path}/"),
            format!("/{path}"),
            path.to_uppercase(),
            path.replacen('l', "%6c", 1).replacen('c', "%63", 1).replacen('r', "%72", 1),
            path.replace("/v1/", "/v1//"),
            path.replace("/v1/", "/v1/./"),
            path.replace("/v1/", "/v2/"),
            path.replace("/v1/", "/v1"),
            path.replace("/v1/", "/"),
            format!("{path}/a/b"),
        ] {
            if other != path {
                unknown(&format!("{} {other}", route.method));
            }
        }
    }
}

#[test]
fn head_is_get_without_the_body() {
    let app = App::start();
    let viewer = app.viewer();
    for path in
        ["/livez", "/readyz", "/v1/organization-vault", "/v1/organization-vault?limit=0", "/v1/organization-vault/x"]
    {
        let [get, head] = ["GET", "HEAD"].map(|method| app.send(&format!("{method} {path}"), &[&viewer.header()], ""));
        let [(status, headers, body), (same, others, none)] = [get.indistinct(), head.indistinct()];
        assert_eq!((status, headers), (same, others), "{path}");
        assert!(!body.is_empty() && none.is_empty(), "{path}");
    }
}

#[test]
fn base_path_is_a_setting() {
    let app = App::with(|setup| setup.settings.base_path = "/vault/v7".parse().unwrap());
    app.send("GET /vault/v7/organization-vault", &[], "").problem("invalid-token");
    app.send("GET /v1/organization-vault", &[], "").problem("not-found");
    let (account, client) = (app.account("editor"), app.client());
    let login = client.request("POST", "/vault/v7/login").json(&account.sound_login()).send().expect(200).json();
    let call = |method: &str, path: &str| {
        let call = client.request(method, path).bearer(login["access_token"].as_str().unwrap());
        // What proxies add changes no address.
        let call = call.header("x-forwarded-host", "evil.example").header("x-forwarded-prefix", "/evil");
        call.header("forwarded", "host=evil.example;proto=https").header("x-original-url", "/evil")
    };
    for _ in 0..2 {
        let saved = call("PATCH", "/vault/v7/organization-vault").json(&s3("a", "b")).send();
        assert!(saved.header("location").unwrap().starts_with("/vault/v7/organization-vault/"));
    }
    let page = call("GET", "/vault/v7/organization-vault?limit=1").send();
    assert!(page.header("link").unwrap().starts_with("</vault/v7/organization-vault?"));
    app.send("GET /livez", &[], "").expect(200);
    app.send("GET http://elsewhere/livez", &[], "").expect(200); // reduced to its path
}
