//! Every route responds to every kind of caller according to the table, and the table contains every route.

use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use vault_http::{Access, routes};
use vault_tests::policy::{Caller, POLICY, Rule};
use vault_tests::samples::small;
use vault_tests::{Account, ActivationListener, Answer, Client, Database, Session, Vault};

/// The ID of no object.
const UNKNOWN: &str = "0193aaaa-0000-7000-8000-000000000000";

#[test]
fn table_contains_exactly_the_routes() {
    let compiled: BTreeSet<_> = routes().map(|route| (route.template, route.method)).collect();
    let reviewed: BTreeSet<_> = POLICY.iter().map(|rule| (rule.template, rule.method)).collect();
    assert_eq!(reviewed.len(), POLICY.len(), "no route stands twice");
    assert_eq!(compiled, reviewed);
}

#[test]
fn public_routes_are_marked_public() {
    for route in routes() {
        let rule = POLICY.iter().find(|rule| (rule.template, rule.method) == (route.template, route.method)).unwrap();
        let public = Caller::ALL.iter().all(|caller| rule.expected(*caller) == rule.granted);
        assert_eq!(public, rule.expected(Caller::Anonymous) == rule.granted, "public or with a token: {route:?}");
        let free = ["live", "ready", "openapi", "docs", "console", "console-file", "console-module"]
            .contains(&route.operation)
            || route.operation.starts_with("show-federation-");
        assert_eq!(route.access == Access::Limited, public && !free, "{route:?}");
    }
}

#[test]
fn every_route_responds_as_in_table() {
    // With an activation listener that runs requested checks.
    let (vault, _) = ActivationListener::open(Database::Sqlite);
    let stage = Stage::of(&vault);
    for rule in &POLICY {
        for caller in Caller::ALL {
            let answer = stage.ask(rule, caller);
            let expected = rule.expected(caller);
            let found = match answer.status {
                200..300 => answer.status.to_string(),
                _ => answer.json()["code"].as_str().unwrap().to_owned(),
            };
            assert_eq!(found, expected, "{} {} by {caller:?}: {}", rule.method, rule.template, answer.text());
            // A refusal does not reveal whether the object exists.
            if rule.template.contains("/{id}") && matches!(expected, "not-found" | "insufficient-role") {
                let unknown = stage.send(rule.method, &path_of(rule, UNKNOWN), caller, stage.body(rule));
                assert_eq!(
                    unknown.indistinct(),
                    answer.indistinct(),
                    "{} {} by {caller:?}",
                    rule.method,
                    rule.template
                );
            }
            if rule.method == "GET" {
                let head = stage.send("HEAD", &stage.path(rule, caller), caller, None);
                assert_eq!(head.status, answer.status, "HEAD {} by {caller:?}", rule.template);
            }
        }
    }
    stage.check_untouched();
}

/// Returns the path with the ID of an object.
fn path_of(rule: &Rule, id: &str) -> String {
    let path = rule.template.replace("{base}", "/v1").replace("{id}", id);
    path.replace("{version}", "2").replace("{trust}", "7").replace("{delivery}", "7")
}

/// Returns a receiver to add.
fn receiver() -> Value {
    json!({"kind": "webhook", "url": "https://hooks.example/policy"})
}

/// The callers and their objects.
struct Stage {
    client: Client,
    viewer: Account,
    editor: Account,
    admin: Account,
    stranger: Account,
    sessions: [Session; 4],
    logged_out: String,
    disabled: String,
    deleted: String,
    invited: String,
    /// Account of Acme that is unlocked and re-enrolled.
    colleague: Account,
    created: Cell<u32>,
}

impl Stage {
    fn of(vault: &Vault) -> Self {
        let client = vault.client();
        let [viewer, editor, admin] = ["viewer", "editor", "admin"].map(|role| vault.account("Acme", role));
        let (stranger, colleague) = (vault.account("Globex", "admin"), vault.account("Acme", "viewer"));
        let sessions = [&viewer, &editor, &admin, &stranger].map(|account| account.log_in(&client));
        let [logged_out, disabled, deleted] = [0; 3].map(|_| vault.admin());
        let tokens = [&logged_out, &disabled, &deleted].map(|account| account.log_in(&client));
        tokens[0].log_out().expect(204);
        vault.run(&["account", "set", "--state", "disabled", "--email", &disabled.email]).done();
        vault.run(&["account", "delete", "--yes", "--email", &deleted.email]).done();
        let invited = sessions[2].invite("invited@example.com", "admin").expect(201);
        let invited = invited.json()["enrolment_code"].as_str().unwrap().to_owned();
        let [logged_out, disabled, deleted] = tokens.map(|session| session.token);
        let created = Cell::new(0);
        Self {
            client,
            viewer,
            editor,
            admin,
            stranger,
            sessions,
            logged_out,
            disabled,
            deleted,
            invited,
            colleague,
            created,
        }
    }

    fn session(&self, caller: Caller) -> Option<&Session> {
        let [viewer, editor, admin, stranger] = &self.sessions;
        match caller {
            Caller::Viewer => Some(viewer),
            Caller::Editor => Some(editor),
            Caller::Admin => Some(admin),
            Caller::Stranger => Some(stranger),
            _ => None,
        }
    }

    /// Creates a session of the caller that the test ends.
    fn fresh_session(&self, caller: Caller) -> Option<Session> {
        let account = match caller {
            Caller::Viewer => &self.viewer,
            Caller::Editor => &self.editor,
            Caller::Admin => &self.admin,
            Caller::Stranger => &self.stranger,
            _ => return None,
        };
        Some(account.log_in(&self.client))
    }

    fn token(&self, caller: Caller) -> Option<String> {
        let forged = || {
            let token = &self.sessions[2].token;
            // Change a character within the sealed part.
            let (before, after) = token.split_at(60);
            let other = if after.starts_with('A') { "B" } else { "A" };
            [before, other, &after[1..]].concat()
        };
        match caller {
            Caller::Anonymous => None,
            Caller::Forger => Some(forged()),
            Caller::LoggedOut => Some(self.logged_out.clone()),
            Caller::Disabled => Some(self.disabled.clone()),
            Caller::Deleted => Some(self.deleted.clone()),
            Caller::Invited => Some(self.invited.clone()),
            _ => self.session(caller).map(|session| session.token.clone()),
        }
    }

    fn number(&self) -> u32 {
        self.created.set(self.created.get() + 1);
        self.created.get()
    }

    fn ask(&self, rule: &Rule, caller: Caller) -> Answer {
        let path = self.path(rule, caller);
        if rule.template == "{base}/logout"
            && let Some(session) = self.fresh_session(caller)
        {
            return session.log_out();
        }
        self.send(rule.method, &path, caller, self.body(rule))
    }

    fn send(&self, method: &str, path: &str, caller: Caller, body: Option<Value>) -> Answer {
        let mut call = self.client.request(method, path);
        if let Some(token) = self.token(caller) {
            call = call.bearer(&token);
        }
        match body {
            Some(body) => call.json(&body).send(),
            None => call.send(),
        }
    }

    /// Returns the path, with the ID of a new object.
    fn path(&self, rule: &Rule, caller: Caller) -> String {
        let path = rule.template.replace("{base}", "/v1").replace("{folder}/{id}", "parts/api.js");
        let Some((collection, rest)) = path.split_once("{id}") else { return path };
        let admin = &self.sessions[2];
        let id = match collection {
            "/v1/organization-vault/" => {
                let id = admin.save(&small("policy", self.number() as usize));
                // Stages a version to promote or destroy.
                admin.replace(&id, &small("policy", self.number() as usize), true).expect(201);
                id
            }
            "/console/" => "app.js".to_owned(),
            "/v1/accounts/" if !rest.is_empty() => self.colleague.id.clone(),
            "/v1/accounts/" => {
                let email = format!("target.{}@example.com", self.number());
                let invited = admin.invite(&email, "viewer").expect(201).json();
                invited["id"].as_str().unwrap().to_owned()
            }
            "/v1/integrations/" => {
                let created = admin.post("/integrations", &self.integration()).expect(201).json();
                created["id"].as_str().unwrap().to_owned()
            }
            "/v1/receivers/" => {
                // An organization has at most ten receivers, so delete the previous one.
                for receiver in admin.get("/receivers").expect(200).json().as_array().unwrap() {
                    let path = format!("/v1/receivers/{}", receiver["id"].as_str().unwrap());
                    admin.call("DELETE", &path).send().expect(204);
                }
                let created = admin.post("/receivers", &receiver()).expect(201).json();
                created["id"].as_str().unwrap().to_owned()
            }
            "/v1/account/sessions/" => {
                let own = matches!(caller, Caller::Viewer | Caller::Editor | Caller::Admin);
                let session = self.fresh_session(caller).filter(|_| own).unwrap_or_else(|| admin.clone());
                let sessions = session.get("/account/sessions").expect(200).json();
                let sessions = sessions.as_array().unwrap();
                let current = sessions.iter().find(|session| session["current"] == true).unwrap();
                current["id"].as_str().unwrap().to_owned()
            }
            other => panic!("what does an id below {other} name?"),
        };
        path_of(rule, &id)
    }

    /// Returns an integration to create.
    fn integration(&self) -> Value {
        json!({"name": format!("policy {}", self.number()), "namespaces": ["policy"]})
    }

    /// Returns a valid body, if the route accepts one.
    fn body(&self, rule: &Rule) -> Option<Value> {
        let (password, passcode) = ("not the password", "000000");
        Some(match (rule.method, rule.template) {
            ("POST", "{base}/login") => {
                json!({"email": "unknown@example.com", "password": password, "passcode": passcode})
            }
            ("POST", "{base}/enrol") => json!({"enrolment_code": "no code", "password": password}),
            ("POST", "{base}/enrol/invitation") => json!({"enrolment_code": "no code"}),
            ("POST", "{base}/enrol/confirm") => json!({"enrolment_code": "no code", "passcode": passcode}),
            ("PATCH", "{base}/organization-vault") => small("policy", self.number() as usize),
            ("POST", "{base}/organization-vault/find") => json!({"text": "PK3E"}),
            ("POST", "{base}/organization-vault/read") => json!({"text": "https://files.example/a"}),
            ("POST", "{base}/organization-vault/{id}/versions") => {
                json!({"data": small("policy", self.number() as usize)["data"]})
            }
            ("POST", "{base}/organization-vault/{id}/promote") => json!({"version": 2}),
            ("PATCH", "{base}/organization-vault/{id}") => json!({"labels": {"team": "data"}}),
            ("POST", "{base}/organization-vault/{id}/match") => json!({"data": small("policy", 1)["data"]}),
            ("POST", "{base}/organization-vault/{id}/check") => json!({}),
            ("POST", "{base}/accounts") => {
                json!({"email": format!("new.{}@example.com", self.number()), "role": "viewer"})
            }
            ("POST", "{base}/integrations") => self.integration(),
            ("POST", "{base}/integrations/{id}/rotate") => json!({"overlap": 60}),
            ("POST", "{base}/integrations/{id}/trusts") => json!({"issuer": "absent", "claims": {"/sub": "job"}}),
            ("POST", "{base}/receivers") => receiver(),
            ("PATCH", "{base}/receivers/{id}") => json!({"state": "active"}),
            ("POST", template) if template.starts_with("{base}/receivers/") => return None,
            ("PATCH", "{base}/integrations/{id}") => json!({"state": "active"}),
            ("POST", "{base}/namespaces/freeze" | "{base}/namespaces/thaw") => json!({"namespace": "policy/frozen"}),
            ("PATCH", "{base}/accounts/{id}") => json!({"role": "editor"}),
            ("POST", "{base}/account/password") => {
                json!({"password": password, "passcode": passcode, "new_password": "a horse of another colour"})
            }
            ("POST", "{base}/account/passcode" | "{base}/account/recovery-codes") => {
                json!({"password": password, "passcode": passcode})
            }
            ("PUT", "{base}/account/set-aside") => json!({"concern": "expires", "until": null}),
            ("POST", "{base}/account/passcode/confirm") => json!({"passcode": passcode}),
            ("GET" | "DELETE", _) | ("POST", "{base}/logout") => return None,
            ("POST", "{base}/accounts/{id}/unlock" | "{base}/accounts/{id}/re-enrol") => return None,
            other => panic!("no body is defined for {other:?}"),
        })
    }

    /// Asserts that rejected requests have ended no session.
    fn check_untouched(&self) {
        for session in &self.sessions {
            assert!(session.is_live());
        }
    }
}
