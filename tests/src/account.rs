//! Accounts and their sessions.

use crate::answer::Answer;
use crate::client::{Call, Client};
use crate::passcode::{Authenticator, current_step};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// An account with the login details of its owner.
pub struct Account {
    /// Account ID.
    pub id: String,
    /// E-mail address.
    pub email: String,
    /// Name of the organization.
    pub organization: String,
    /// Password.
    pub password: String,
    /// TOTP secret in Base32.
    pub secret: String,
    /// URI for an authenticator app.
    pub uri: String,
    /// Authenticator with this secret.
    pub authenticator: Authenticator,
    recovery_codes: Mutex<VecDeque<String>>,
}

impl Account {
    /// Creates the account from the output of `account create --json`. `password` is `None` if it was generated.
    #[track_caller]
    pub fn new(created: &Value, password: Option<&str>) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
        let secret = text(&created["totp"]["secret"]);
        let codes = created["recovery_codes"].as_array().expect("recovery codes");
        Self {
            id: text(&created["id"]),
            email: text(&created["email"]),
            organization: text(&created["organization"]),
            password: password.map_or_else(|| text(&created["password"]), str::to_owned),
            authenticator: Authenticator::new(&secret),
            secret,
            uri: text(&created["totp"]["uri"]),
            recovery_codes: Mutex::new(codes.iter().map(text).collect()),
        }
    }

    /// Takes an unused recovery code. There are ten.
    #[track_caller]
    pub fn recovery_code(&self) -> String {
        self.recovery_codes
            .lock()
            .unwrap()
            .pop_front()
            .expect("an account has ten recovery codes; make another account")
    }

    /// Returns the body of a login with this passcode.
    pub fn login(&self, passcode: &str) -> Value {
        json!({"email": self.email, "password": self.password, "passcode": passcode})
    }

    /// Returns the body of a valid login. It uses a recovery code, which does not depend on the time.
    #[track_caller]
    pub fn sound_login(&self) -> Value {
        self.login(&self.recovery_code())
    }

    /// Creates the account of `invited` (ID and address), which was enrolled with `drafted`.
    #[track_caller]
    pub fn enrolled(organization: &str, invited: &Value, drafted: &Value, password: &str) -> Self {
        let created = json!({
            "id": invited["id"], "email": drafted["email"], "organization": organization,
            "totp": drafted["totp"], "recovery_codes": drafted["recovery_codes"],
        });
        Self::new(&created, Some(password))
    }

    /// Returns re-authentication data.
    #[track_caller]
    pub fn proof(&self) -> Value {
        json!({"password": self.password, "passcode": self.recovery_code()})
    }

    /// Enrols again with the code that `account re-enrol` printed and the same password. The current passcode stays
    /// unused.
    #[track_caller]
    pub fn enrolled_again(&self, printed: &Value, client: &Client) -> Self {
        let code = printed["enrolment_code"].as_str().unwrap_or_else(|| panic!("{printed}"));
        let drafted = client.enrol(code, &self.password).expect(200).json();
        let account = Self::enrolled(&self.organization, &json!({"id": self.id}), &drafted, &self.password);
        client.confirm_enrolment(code, &account.authenticator.code(current_step() - 1)).expect(204);
        account
    }

    /// Logs in.
    #[track_caller]
    pub fn log_in(&self, client: &Client) -> Session {
        Session::new(client, &client.log_in(&self.sound_login()).expect(200))
    }
}

/// A client with an access token.
#[derive(Clone)]
pub struct Session {
    client: Client,
    /// Access token.
    pub token: String,
}

impl Session {
    /// Creates the session from the response to a login.
    #[track_caller]
    pub fn new(client: &Client, answer: &Answer) -> Self {
        let token = answer.json()["access_token"].as_str().expect("an access token").to_owned();
        Self { client: client.clone(), token }
    }

    /// Returns the client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the same session with another client.
    pub fn on(&self, client: &Client) -> Self {
        Self { client: client.clone(), token: self.token.clone() }
    }

    /// Creates a request with the token.
    pub fn call(&self, method: &str, path: &str) -> Call<'_> {
        self.client.request(method, path).bearer(&self.token)
    }

    /// Returns the header with the token.
    pub fn header(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// Sends `GET` to a path below the base path.
    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.call("GET", &format!("/v1{path}")).send()
    }

    /// Sends `POST` with a body, which is `null` for none.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let call = self.call("POST", &format!("/v1{path}"));
        if body.is_null() { call.send() } else { call.json(body).send() }
    }

    /// Sends `PATCH`.
    #[track_caller]
    pub fn patch(&self, path: &str, body: &Value) -> Answer {
        self.call("PATCH", &format!("/v1{path}")).json(body).send()
    }

    /// Sends `DELETE`.
    #[track_caller]
    pub fn remove(&self, path: &str) -> Answer {
        self.call("DELETE", &format!("/v1{path}")).send()
    }

    /// Sends a save.
    #[track_caller]
    pub fn try_save(&self, body: &Value) -> Answer {
        self.call("PATCH", "/v1/organization-vault").json(body).send()
    }

    /// Saves a credential and returns its ID.
    #[track_caller]
    pub fn save(&self, body: &Value) -> String {
        self.try_save(body).expect(201).json()["id"].as_str().expect("an id").to_owned()
    }

    /// Returns the complete list of credentials.
    #[track_caller]
    pub fn list(&self) -> Vec<Value> {
        let answer = self.try_list().expect(200);
        assert_eq!(answer.header("link"), None, "more than one page");
        answer.json().as_array().expect("an array").clone()
    }

    /// Requests the list.
    #[track_caller]
    pub fn try_list(&self) -> Answer {
        self.call("GET", "/v1/organization-vault").send()
    }

    /// Returns the IDs in the list, in order.
    #[track_caller]
    pub fn ids(&self) -> Vec<String> {
        self.list().iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// Requests a credential.
    #[track_caller]
    pub fn show(&self, id: &str) -> Answer {
        self.call("GET", &format!("/v1/organization-vault/{id}")).send()
    }

    /// Deletes a credential.
    #[track_caller]
    pub fn delete(&self, id: &str) -> Answer {
        self.call("DELETE", &format!("/v1/organization-vault/{id}")).send()
    }

    /// Replaces a credential's data by that of `save`, the body of a save, or stages it.
    #[track_caller]
    pub fn replace(&self, id: &str, save: &Value, stage: bool) -> Answer {
        let body = json!({"data": save["data"], "stage": stage});
        self.call("POST", &format!("/v1/organization-vault/{id}/versions")).json(&body).send()
    }

    /// Changes the metadata of a credential.
    #[track_caller]
    pub fn describe(&self, id: &str, patch: &Value) -> Answer {
        self.call("PATCH", &format!("/v1/organization-vault/{id}")).json(patch).send()
    }

    /// Compares data with that of a credential.
    #[track_caller]
    pub fn matches(&self, id: &str, save: &Value) -> Answer {
        let body = json!({"data": save["data"]});
        self.call("POST", &format!("/v1/organization-vault/{id}/match")).json(&body).send()
    }

    /// Promotes a version.
    #[track_caller]
    pub fn promote(&self, id: &str, version: i64) -> Answer {
        self.call("POST", &format!("/v1/organization-vault/{id}/promote")).json(&json!({"version": version})).send()
    }

    /// Returns numbers and states of a credential's versions, in the order of the list.
    #[track_caller]
    pub fn versions(&self, id: &str) -> Vec<(i64, String)> {
        let answer = self.call("GET", &format!("/v1/organization-vault/{id}/versions")).send().expect(200).json();
        let versions = answer.as_array().expect("an array").iter();
        let shown = versions.map(|version| {
            (version["version"].as_i64().expect("a number"), version["state"].as_str().expect("a state").to_owned())
        });
        shown.collect()
    }

    /// Invites a user.
    #[track_caller]
    pub fn invite(&self, email: &str, role: &str) -> Answer {
        self.call("POST", "/v1/accounts").json(&json!({"email": email, "role": role})).send()
    }

    /// Returns all accounts of the organization by address.
    #[track_caller]
    pub fn accounts(&self) -> BTreeMap<String, Value> {
        let answer = self.call("GET", "/v1/accounts").send().expect(200);
        let accounts = answer.json().as_array().expect("an array").clone();
        accounts
            .into_iter()
            .map(|account| (account["email"].as_str().expect("an address").to_owned(), account))
            .collect()
    }

    /// Changes an account.
    #[track_caller]
    pub fn change_account(&self, id: &str, change: &Value) -> Answer {
        self.call("PATCH", &format!("/v1/accounts/{id}")).json(change).send()
    }

    /// Requires an account's owner to enrol again.
    #[track_caller]
    pub fn re_enrol(&self, id: &str) -> Answer {
        self.call("POST", &format!("/v1/accounts/{id}/re-enrol")).send()
    }

    /// Returns the user's own account.
    #[track_caller]
    pub fn own_account(&self) -> Value {
        self.call("GET", "/v1/account").send().expect(200).json()
    }

    /// Returns the sessions of the user's own account.
    #[track_caller]
    pub fn sessions(&self) -> Vec<Value> {
        let answer = self.call("GET", "/v1/account/sessions").send().expect(200);
        answer.json().as_array().expect("an array").clone()
    }

    /// Sends a `POST` request below `…/account`.
    #[track_caller]
    pub fn post_account(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", &format!("/v1/account/{path}")).json(body).send()
    }

    /// Logs out.
    #[track_caller]
    pub fn log_out(&self) -> Answer {
        self.call("POST", "/v1/logout").send()
    }

    /// Returns whether the token is valid.
    #[track_caller]
    pub fn is_live(&self) -> bool {
        match self.try_list().status {
            200 => true,
            401 => false,
            status => panic!("a list answered {status}"),
        }
    }
}
