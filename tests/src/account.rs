//! Accounts and their sessions.

use crate::answer::Answer;
use crate::client::{Call, Client};
use crate::passcode::Authenticator;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// An account, with everything its owner was given.
pub struct Account {
    /// Its id.
    pub id: String,
    /// Its address.
    pub email: String,
    /// Its organization's name.
    pub organization: String,
    /// Its password.
    pub password: String,
    /// The secret of its authenticator, as Base32 text.
    pub secret: String,
    /// The address that an authenticator app scans.
    pub uri: String,
    /// Its authenticator.
    pub authenticator: Authenticator,
    recovery_codes: Mutex<VecDeque<String>>,
}

impl Account {
    /// The account that `account create --json` printed. `password` is the one that was given, if one was.
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

    /// A recovery code that was not taken before. There are ten.
    #[track_caller]
    pub fn recovery_code(&self) -> String {
        self.recovery_codes
            .lock()
            .unwrap()
            .pop_front()
            .expect("an account has ten recovery codes; make another account")
    }

    /// A login's body with this passcode.
    pub fn login(&self, passcode: &str) -> Value {
        json!({"email": self.email, "password": self.password, "passcode": passcode})
    }

    /// A login's body that succeeds: with a recovery code, since those know no time.
    #[track_caller]
    pub fn sound_login(&self) -> Value {
        self.login(&self.recovery_code())
    }

    /// The account of `invited` (id and address) that was enrolled with what `drafted` shows.
    #[track_caller]
    pub fn enrolled(organization: &str, invited: &Value, drafted: &Value, password: &str) -> Self {
        let created = json!({
            "id": invited["id"], "email": drafted["email"], "organization": organization,
            "totp": drafted["totp"], "recovery_codes": drafted["recovery_codes"],
        });
        Self::new(&created, Some(password))
    }

    /// What proves in a request that its owner sent it.
    #[track_caller]
    pub fn proof(&self) -> Value {
        json!({"password": self.password, "passcode": self.recovery_code()})
    }

    /// The same account with the passcode and the recovery codes that a command printed anew.
    #[track_caller]
    pub fn with_new_passcode(&self, printed: &Value) -> Self {
        Self::new(printed, Some(&self.password))
    }

    /// Logs in.
    #[track_caller]
    pub fn log_in(&self, client: &Client) -> Session {
        Session::new(client, &client.log_in(&self.sound_login()).expect(200))
    }
}

/// A session: a client with a token.
#[derive(Clone)]
pub struct Session {
    client: Client,
    /// Its token.
    pub token: String,
}

impl Session {
    /// The session that a login's answer began.
    #[track_caller]
    pub fn new(client: &Client, answer: &Answer) -> Self {
        let token = answer.json()["access_token"].as_str().expect("an access token").to_owned();
        Self { client: client.clone(), token }
    }

    /// The client it speaks through.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The same session, elsewhere.
    pub fn on(&self, client: &Client) -> Self {
        Self { client: client.clone(), token: self.token.clone() }
    }

    /// A request with the token.
    pub fn call(&self, method: &str, path: &str) -> Call<'_> {
        self.client.request(method, path).bearer(&self.token)
    }

    /// Saves, or tries to.
    #[track_caller]
    pub fn try_save(&self, body: &Value) -> Answer {
        self.call("PATCH", "/v1/organization-vault").json(body).send()
    }

    /// Saves, and gives the credential's id.
    #[track_caller]
    pub fn save(&self, body: &Value) -> String {
        self.try_save(body).expect(201).json()["id"].as_str().expect("an id").to_owned()
    }

    /// The whole list.
    #[track_caller]
    pub fn list(&self) -> Vec<Value> {
        let answer = self.try_list().expect(200);
        assert_eq!(answer.header("link"), None, "more than one page");
        answer.json().as_array().expect("an array").clone()
    }

    /// Lists, or tries to.
    #[track_caller]
    pub fn try_list(&self) -> Answer {
        self.call("GET", "/v1/organization-vault").send()
    }

    /// The ids in the list, in its order.
    #[track_caller]
    pub fn ids(&self) -> Vec<String> {
        self.list().iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// One credential.
    #[track_caller]
    pub fn show(&self, id: &str) -> Answer {
        self.call("GET", &format!("/v1/organization-vault/{id}")).send()
    }

    /// Deletes one credential.
    #[track_caller]
    pub fn delete(&self, id: &str) -> Answer {
        self.call("DELETE", &format!("/v1/organization-vault/{id}")).send()
    }

    /// Replaces a credential's data by that of `save`, the body of a save, or stages it; or tries to.
    #[track_caller]
    pub fn replace(&self, id: &str, save: &Value, stage: bool) -> Answer {
        let body = json!({"data": save["data"], "stage": stage});
        self.call("POST", &format!("/v1/organization-vault/{id}/versions")).json(&body).send()
    }

    /// Changes what is said of a credential, or tries to.
    #[track_caller]
    pub fn describe(&self, id: &str, patch: &Value) -> Answer {
        self.call("PATCH", &format!("/v1/organization-vault/{id}")).json(patch).send()
    }

    /// Compares data with a credential's, or tries to.
    #[track_caller]
    pub fn matches(&self, id: &str, save: &Value) -> Answer {
        let body = json!({"data": save["data"]});
        self.call("POST", &format!("/v1/organization-vault/{id}/match")).json(&body).send()
    }

    /// Promotes a version, or tries to.
    #[track_caller]
    pub fn promote(&self, id: &str, version: i64) -> Answer {
        self.call("POST", &format!("/v1/organization-vault/{id}/promote")).json(&json!({"version": version})).send()
    }

    /// Destroys a version, or tries to.
    #[track_caller]
    pub fn destroy_version(&self, id: &str, version: i64) -> Answer {
        self.call("DELETE", &format!("/v1/organization-vault/{id}/versions/{version}")).send()
    }

    /// Numbers and states of a credential's versions, in the order of the list.
    #[track_caller]
    pub fn versions(&self, id: &str) -> Vec<(i64, String)> {
        let answer = self.call("GET", &format!("/v1/organization-vault/{id}/versions")).send().expect(200).json();
        let versions = answer.as_array().expect("an array").iter();
        let shown = versions.map(|version| {
            (version["version"].as_i64().expect("a number"), version["state"].as_str().expect("a state").to_owned())
        });
        shown.collect()
    }

    /// Invites, or tries to.
    #[track_caller]
    pub fn invite(&self, email: &str, role: &str) -> Answer {
        self.call("POST", "/v1/accounts").json(&json!({"email": email, "role": role})).send()
    }

    /// All accounts of the organization, by their addresses.
    #[track_caller]
    pub fn accounts(&self) -> BTreeMap<String, Value> {
        let answer = self.call("GET", "/v1/accounts").send().expect(200);
        let accounts = answer.json().as_array().expect("an array").clone();
        accounts
            .into_iter()
            .map(|account| (account["email"].as_str().expect("an address").to_owned(), account))
            .collect()
    }

    /// Changes an account, or tries to.
    #[track_caller]
    pub fn change_account(&self, id: &str, change: &Value) -> Answer {
        self.call("PATCH", &format!("/v1/accounts/{id}")).json(change).send()
    }

    /// Has an account's owner enrol again, or tries to.
    #[track_caller]
    pub fn re_enrol(&self, id: &str) -> Answer {
        self.call("POST", &format!("/v1/accounts/{id}/re-enrol")).send()
    }

    /// One's own account.
    #[track_caller]
    pub fn own_account(&self) -> Value {
        self.call("GET", "/v1/account").send().expect(200).json()
    }

    /// The sessions of one's own account.
    #[track_caller]
    pub fn sessions(&self) -> Vec<Value> {
        let answer = self.call("GET", "/v1/account/sessions").send().expect(200);
        answer.json().as_array().expect("an array").clone()
    }

    /// `POST` below `…/account`.
    #[track_caller]
    pub fn post_account(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", &format!("/v1/account/{path}")).json(body).send()
    }

    /// Ends the session.
    #[track_caller]
    pub fn log_out(&self) -> Answer {
        self.call("POST", "/v1/logout").send()
    }

    /// Whether the token works.
    #[track_caller]
    pub fn is_live(&self) -> bool {
        match self.try_list().status {
            200 => true,
            401 => false,
            status => panic!("a list answered {status}"),
        }
    }
}
