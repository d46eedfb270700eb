//! `cargo xtask openapi` prints `crates/vault-http/openapi.json`, which the server serves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a description with an error is not printed")]

mod openapi;

use std::io::Write;

fn main() {
    assert!(std::env::args().skip(1).eq(["openapi"]), "usage: cargo xtask openapi");
    let document = openapi::document();
    openapi::check(&document);
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&document).unwrap()).unwrap();
}
