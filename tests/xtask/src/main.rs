//! `cargo xtask openapi` prints `crates/vault-http/openapi.json`, which the server serves.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "prints a file, or fails")]

mod openapi;

fn main() {
    assert!(std::env::args().skip(1).eq(["openapi"]), "usage: cargo xtask openapi");
    let document = openapi::document();
    openapi::check(&document);
    println!("{}", serde_json::to_string_pretty(&document).unwrap());
}
