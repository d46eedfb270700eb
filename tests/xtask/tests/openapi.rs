//! The description that the server serves is the one that the code generates.

use std::process::Command;

#[test]
fn committed_description_matches_code() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("openapi").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let committed = include_bytes!("../../../crates/vault-http/openapi.json");
    let remedy = "openapi.json is out of date: run `cargo xtask openapi > crates/vault-http/openapi.json`";
    assert!(output.stdout == committed, "{remedy}");
}
