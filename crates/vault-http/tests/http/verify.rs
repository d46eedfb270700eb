//! Checks of a credential before it is saved.

use crate::support::{World, WorldBuilder, assert_problem, s3};
use serde_json::{Value, json};
use vault_core::check::CheckReason;
use vault_core::role::Role;

const JSON: &str = "Content-Type: application/json";
const SAVE: &str = "PATCH /v1/organization-vault";
const VERIFIED: &str = "PATCH /v1/organization-vault?verify=true";

fn saved(world: &World, token: &str) -> usize {
    world.send("GET /v1/organization-vault", &[token], "").json().as_array().expect("an array").len()
}

#[test]
fn credential_accepted_by_store_is_saved() {
    let world = WorldBuilder::default().verifying().start();
    let token = world.token(Role::Editor);
    let response = world.send(VERIFIED, &[&token, JSON], s3("a", "b"));
    assert_eq!(response.status, 201, "{}", response.text());
    let probed = world.storage.probed();
    assert_eq!((probed.len(), probed[0].operations.len(), probed[0].until), (1, 0, None), "it only authenticates");
    for line in [SAVE, "PATCH /v1/organization-vault?verify=false"] {
        assert_eq!(world.send(line, &[&token, JSON], s3("a", "b")).status, 201);
    }
    assert_eq!((world.storage.probed().len(), saved(&world, &token)), (1, 3));
}

#[test]
fn check_before_save_sets_first_health() {
    let world = WorldBuilder::default().verifying().start();
    let token = world.token(Role::Editor);
    let id = world.send(VERIFIED, &[&token, JSON], s3("a", "b")).json()["id"].as_str().unwrap().to_owned();
    let show = |path: &str| world.send(&format!("GET /v1/organization-vault/{id}{path}"), &[&token], "").json();
    let healthy = |at: &str| json!({"state": "healthy", "checked_at": at, "since": at});
    assert_eq!(show("")["health"], healthy("2030-01-01T00:00:00Z"));
    let data = &serde_json::from_str::<Value>(&s3("a", "b")).unwrap()["data"];
    for (stage, at) in [(true, "2030-01-01T00:01:00Z"), (false, "2030-01-01T00:02:00Z")] {
        world.clock.advance_seconds(60);
        let body = json!({"data": data, "stage": stage}).to_string();
        let line = format!("POST /v1/organization-vault/{id}/versions?verify=true");
        assert_eq!(world.send(&line, &[&token, JSON], &*body).status, 201);
        let versions = show("/versions");
        assert_eq!(versions[usize::from(stage)]["health"], healthy(at), "{versions}");
    }
    assert_eq!(show("")["health"], healthy("2030-01-01T00:02:00Z"));
}

#[test]
fn import_skips_credentials_that_fail_checks() {
    let world = WorldBuilder::default().verifying().start();
    let token = world.token(Role::Editor);
    world.storage.fail(Some(CheckReason::SignatureMismatch));
    let response = world.send(VERIFIED, &[&token, JSON, "Idempotency-Key: a"], s3("a", "secret-bucket"));
    let problem = assert_problem(&response, 422, "not-usable", "a wrong secret");
    let checks: Vec<_> = problem.checks.iter().map(|check| (&*check.check, &*check.result)).collect();
    assert_eq!(checks, [("settings", "warning"), ("authenticate", "failed")]);
    let failed = &problem.checks[1];
    assert_eq!(failed.reason.as_deref(), Some("signature-mismatch"));
    assert_eq!(failed.remedy.as_deref(), Some(CheckReason::SignatureMismatch.remedy()));
    assert!(problem.errors.is_empty());
    for value in ["secret-bucket", "wJalrXUtnFEMI", "AKIA"] {
        assert!(!response.text().contains(value), "{}", response.text());
    }
    assert_eq!(saved(&world, &token), 0);
    world.storage.fail(None);
    let response = world.send(VERIFIED, &[&token, JSON, "Idempotency-Key: a"], s3("a", "b"));
    assert_eq!(response.status, 201, "the key was not spent");
}

#[test]
fn violations_and_roles_are_checked_before_store() {
    let world = WorldBuilder::default().verifying().start();
    let token = world.token(Role::Editor);
    for query in ["verify", "verify=", "verify=1", "verify=True", "verify=true&verify=true", "verify=true&x=1"] {
        let response = world.send(&format!("{SAVE}?{query}"), &[&token, JSON], s3("a", "b"));
        assert_problem(&response, 400, "malformed-request", query);
    }
    assert_problem(&world.send(VERIFIED, &[&token, JSON], s3("..", "b")), 422, "refused-value", "a namespace");
    assert_problem(&world.send(VERIFIED, &[&token, JSON], "{"), 400, "malformed-request", "no document");
    assert_problem(&world.send(VERIFIED, &[], ""), 401, "invalid-token", "no token");
    let viewer = world.token(Role::Viewer);
    assert_problem(&world.send(VERIFIED, &[&viewer, JSON], s3("a", "b")), 403, "insufficient-role", "a viewer");
    world.send("POST /v1/logout", &[&token], "");
    assert_problem(&world.send(VERIFIED, &[&token, JSON], s3("a", "b")), 401, "invalid-token", "logged out");
    assert!(world.storage.probed().is_empty());
}

#[test]
fn check_without_configuration_is_refused_before_body() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let response = world.send(VERIFIED, &[&token, JSON], "{");
    let problem = assert_problem(&response, 400, "malformed-request", "not configured");
    assert_eq!(problem.errors.iter().map(|error| &*error.pointer).collect::<Vec<_>>(), ["/verify"]);
    let response = world.send("PATCH /v1/organization-vault?verify=false", &[&token, JSON], s3("a", "b"));
    assert_eq!(response.status, 201, "nothing was asked for");
}
