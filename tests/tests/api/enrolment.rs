//! `{base_url}/enrol`, for invited users and for those who must enrol again.

use super::app::{App, NOW, PASSWORD, assert_same, members, text};
use serde_json::{Value, json};
use vault_core::organization::OrganizationState;
use vault_core::port::PasswordHasher;
use vault_testkit::crypto::FakeHasher;
use vault_tests::{Account, Answer, Client, Session};

const EMAIL: &str = "new@acme.example";
const NEW_PASSWORD: &str = "another long password";

/// Invites an editor. Returns the enrolment code.
#[track_caller]
fn invite(admin: &Session, email: &str) -> String {
    text(&admin.invite(email, "editor").expect(201).json()["enrolment_code"]).to_owned()
}

/// Requires a user to enrol again. Returns the enrolment code.
#[track_caller]
fn re_enrol(admin: &Session, id: &str) -> String {
    text(&admin.re_enrol(id).expect(201).json()["enrolment_code"]).to_owned()
}

/// Enrols, and returns the one-time secrets.
#[track_caller]
fn drafted(client: &Client, code: &str, password: &str) -> Value {
    client.enrol(code, password).expect(200).json()
}

fn shown(client: &Client, code: &str) -> Answer {
    client.request("POST", "/v1/enrol/invitation").json(&json!({"enrolment_code": code})).send()
}

#[test]
fn invitation_becomes_an_account() {
    let app = App::start();
    let (admin, client) = (app.admin(), app.client());
    let code = invite(&admin, EMAIL);
    let first = drafted(&client, &code, PASSWORD);
    assert_eq!((members(&first), text(&first["email"])), (vec!["email", "recovery_codes", "totp"], EMAIL));
    let uri = text(&first["totp"]["uri"]);
    assert!(uri.starts_with("otpauth://totp/") && uri.contains(text(&first["totp"]["secret"])), "{uri}");
    let codes = first["recovery_codes"].as_array().unwrap();
    assert_eq!(codes.len(), 10);
    assert!(codes.iter().all(|code| text(code).len() == 23), "in groups");

    let second = drafted(&client, &code, PASSWORD);
    assert!(second["totp"]["secret"] != first["totp"]["secret"]);
    client.confirm_enrolment(&code, &app.passcode(&first["totp"])).problem("invalid-enrolment"); // an older one
    let passcode = app.passcode(&second["totp"]);
    let log_in = |email: &str, passcode: &str| {
        client.log_in(&json!({"email": email, "password": PASSWORD, "passcode": passcode}))
    };
    let unknown = log_in("unknown@acme.example", &passcode);
    let recovery = text(&second["recovery_codes"][0]);
    assert_same([unknown, log_in(EMAIL, &passcode), log_in(EMAIL, recovery), log_in(EMAIL, &code)]);
    for token in [&code, text(&second["totp"]["secret"])] {
        client.get("/v1/account").bearer(token).send().problem("invalid-token");
    }
    app.set_organization_state("Acme", OrganizationState::Disabled);
    client.enrol(&code, PASSWORD).problem("invalid-enrolment");
    client.confirm_enrolment(&code, &passcode).problem("invalid-enrolment");
    app.set_organization_state("Acme", OrganizationState::Active);
    client.confirm_enrolment(&code, &passcode).empty(204);
    log_in(EMAIL, &passcode).problem("invalid-login"); // the code that enrolled is spent
    app.clock.advance_seconds(60);
    let session = Session::new(&client, &log_in(EMAIL, &app.passcode(&second["totp"])).expect(200));
    let account = session.own_account();
    assert_eq!((text(&account["email"]), text(&account["role"])), (EMAIL, "editor"));
    log_in(EMAIL, recovery).expect(200);
    log_in(EMAIL, text(&codes[0])).problem("invalid-login"); // the older ones are dead
    for answer in [shown(&client, &code), client.enrol(&code, PASSWORD), client.confirm_enrolment(&code, &passcode)] {
        answer.problem("invalid-enrolment");
    }
}

#[test]
fn invitation_shows_address_organization_and_inviter() {
    let app = App::start();
    let (admin, client) = (app.admin(), app.client());
    let own = admin.own_account();
    let code = invite(&admin, EMAIL);
    app.seal_audit();
    let entries = || admin.get("/audit?reads=false").expect(200).json().as_array().unwrap().len();
    let before = entries();
    let expected = json!({
        "email": EMAIL, "organization": own["organization"], "invited_by": own["email"],
        "expires_at": "2030-01-04T00:00:00Z",
    });
    for _ in 0..2 {
        assert_eq!(shown(&client, &code).expect(200).json(), expected, "it may be repeated");
    }
    app.seal_audit();
    assert_eq!(entries(), before, "nothing is recorded");

    let passcode = app.passcode(&drafted(&client, &code, PASSWORD)["totp"]);
    client.confirm_enrolment(&code, &passcode).empty(204);
    let again = re_enrol(&admin, text(&admin.accounts()[EMAIL]["id"]));
    let again = shown(&client, &again).json();
    assert_eq!((&again["email"], &again["invited_by"]), (&json!(EMAIL), &own["email"]));
}

#[test]
fn invalid_codes_get_same_response() {
    let app = App::start();
    let (admin, client) = (app.admin(), app.client());
    let [open, undrafted, withdrawn] = ["a", "b", "c"].map(|name| invite(&admin, &format!("{name}@acme.example")));
    admin.remove(&format!("/accounts/{}", text(&admin.accounts()["c@acme.example"]["id"]))).empty(204);
    let passcode = app.passcode(&drafted(&client, &open, PASSWORD)["totp"]);
    let (unknown, long, upper, padded) = ("a".repeat(26), "a".repeat(10_000), open.to_uppercase(), format!(" {open}"));
    let mut answers = Vec::new();
    for code in ["", "x", &unknown, &long, &withdrawn, &upper, &padded, "\u{0}", "é"] {
        answers.extend([shown(&client, code), client.enrol(code, PASSWORD), client.enrol(code, "short")]);
        answers.push(client.confirm_enrolment(code, &passcode));
    }
    for wrong in ["", "000000", " 123456", "12345", "00000-00000-00000-00000"] {
        answers.push(client.confirm_enrolment(&open, wrong));
    }
    answers.push(client.confirm_enrolment(&undrafted, &passcode));
    app.clock.advance_seconds(72 * 3600);
    answers.extend([shown(&client, &open), client.enrol(&open, PASSWORD), client.confirm_enrolment(&open, &passcode)]);
    // A token in the header changes nothing.
    let enrol = client.request("POST", "/v1/enrol").bearer("nonsense");
    answers.push(enrol.json(&json!({"enrolment_code": "a", "password": "b"})).send());
    assert_eq!(answers[0].header("www-authenticate"), Some("Bearer"), "no `error=`: no token was sent");
    assert_same(answers.into_iter().map(|answer| answer.problem("invalid-enrolment")));
}

#[test]
fn weak_password_is_reported_to_invited_user() {
    let app = App::start();
    let code = invite(&app.admin(), EMAIL);
    let long = "x".repeat(1_025);
    for password in ["", "seven77", "password1", "12345678", EMAIL, "NEW@acme.example", "OrgVault1", "Acme!", &long] {
        app.client().enrol(&code, password).refuses(422, &["/password"]);
    }
    app.client().confirm_enrolment(&code, "123456").problem("invalid-enrolment"); // nothing was drafted
}

#[test]
fn unknown_code_is_refused_before_any_work() {
    let app = App::with(|setup| setup.ports(|ports| ports.hasher = busy()));
    app.client().enrol(&"a".repeat(26), PASSWORD).problem("invalid-enrolment");
}

/// Returns a hasher without a free slot.
pub(crate) fn busy() -> std::sync::Arc<dyn PasswordHasher> {
    std::sync::Arc::new(FakeHasher::with_permits(0))
}

#[test]
fn user_without_phone_and_codes_re_enrols() {
    let app = App::start();
    let (admin, client) = (app.admin(), app.client());
    let zoe = app.account("editor");
    let theirs = zoe.log_in(&client);
    let before = admin.accounts()[&zoe.email].clone();
    let created = admin.re_enrol(&zoe.id).expect(201).json();
    let code = text(&created["enrolment_code"]);
    assert_eq!((members(&created), code.len()), (vec!["enrolment_code", "expires_at"], 26));
    let mut expected = before.clone();
    expected["state"] = json!("re-enrolling");
    expected["invitation_expires_at"] = json!("2030-01-04T00:00:00Z");
    assert_eq!((&admin.accounts()[&zoe.email], admin.accounts().len()), (&expected, 2), "it is listed once");

    theirs.get("/account").problem("invalid-token");
    let unknown = json!({"email": "unknown@acme.example", "password": PASSWORD, "passcode": "123456"});
    assert_same([client.log_in(&zoe.sound_login()).problem("invalid-login"), client.log_in(&unknown)]);
    let drafted = drafted(&client, code, NEW_PASSWORD);
    assert_eq!(text(&drafted["email"]), zoe.email);
    client.confirm_enrolment(code, &app.passcode(&drafted["totp"])).empty(204);
    client.log_in(&zoe.sound_login()).problem("invalid-login");
    client.enrol(code, NEW_PASSWORD).problem("invalid-enrolment"); // the code is spent
    let mut after = admin.accounts()[&zoe.email].clone();
    assert_eq!(after["failed_logins"], 1, "what they had");
    for counter in ["failed_logins", "last_failed_login_at"] {
        after.as_object_mut().unwrap().remove(counter);
    }
    assert_eq!(after, before, "id, role, age and last login are what they were");
    let again = Account::enrolled("Acme", &before, &drafted, NEW_PASSWORD).log_in(&client);
    assert!(!theirs.is_live());

    let own = again.own_account();
    assert_eq!((&own["id"], &own["role"]), (&before["id"], &json!("editor")));
    let notices = |account: &Value| {
        let notices = account["notices"].as_array().unwrap().iter();
        let shown = |notice: &Value| json!([notice["code"], notice["at"], notice["account"]]);
        notices.filter(|notice| notice["code"] != "recovery-code-used").map(shown).collect::<Vec<_>>()
    };
    assert_eq!(notices(&own), [json!(["re-enrolled", NOW, null])]);
    assert_eq!(notices(&admin.own_account()), [json!(["colleague-re-enrolled", NOW, zoe.id])]);
}

/// The account is disabled, enabled and demoted. The old password, passcode and codes stay invalid, and the role is the
/// last one that an admin set.
#[test]
fn a45_old_secrets_stay_revoked_during_re_enrolment() {
    let app = App::start();
    let (admin, client) = (app.admin(), app.client());
    let grace = app.account("admin");
    let session = grace.log_in(&client);
    let first = re_enrol(&admin, &grace.id);
    drafted(&client, &first, NEW_PASSWORD);
    let second = re_enrol(&admin, &grace.id);
    client.enrol(&first, NEW_PASSWORD).problem("invalid-enrolment"); // the earlier code
    let draft = drafted(&client, &second, NEW_PASSWORD);
    for (change, state) in [
        (json!({"state": "active"}), "re-enrolling"),
        (json!({"state": "disabled"}), "disabled"),
        (json!({"state": "active"}), "re-enrolling"),
        (json!({"role": "viewer"}), "re-enrolling"),
        (json!({"state": "disabled"}), "disabled"),
    ] {
        assert_eq!(admin.change_account(&grace.id, &change).expect(200).json()["state"], state, "{change}");
        client.log_in(&grace.sound_login()).problem("invalid-login");
    }
    client.confirm_enrolment(&second, &app.passcode(&draft["totp"])).empty(204);
    let again = Account::enrolled("Acme", &json!({"id": grace.id}), &draft, NEW_PASSWORD);
    client.log_in(&again.sound_login()).problem("invalid-login");
    let listed = admin.accounts()[&grace.email].clone();
    assert_eq!((text(&listed["state"]), text(&listed["role"])), ("disabled", "viewer"));
    admin.change_account(&grace.id, &json!({"state": "active"})).expect(200);
    again.log_in(&client).try_save(&super::app::s3("a", "b")).problem("insufficient-role");
    client.log_in(&grace.sound_login()).problem("invalid-login");
    assert!(!session.is_live());
    // No one can use the code after 72 hours, or of a deleted account.
    let third = re_enrol(&admin, &grace.id);
    drafted(&client, &third, NEW_PASSWORD);
    app.clock.advance_seconds(72 * 3600);
    client.enrol(&third, NEW_PASSWORD).problem("invalid-enrolment");
    let admin = app.admin();
    let listed = &admin.accounts()[&grace.email];
    assert_eq!((&listed["state"], listed.get("invitation_expires_at")), (&json!("re-enrolling"), None));
    client.log_in(&again.sound_login()).problem("invalid-login");
    let fourth = re_enrol(&admin, &grace.id);
    drafted(&client, &fourth, NEW_PASSWORD);
    admin.remove(&format!("/accounts/{}", grace.id)).empty(204);
    client.enrol(&fourth, NEW_PASSWORD).problem("invalid-enrolment");
    admin.invite(&grace.email, "viewer").expect(201);
}

#[test]
fn users_cannot_re_enrol_themselves() {
    let app = App::start();
    let accounts = [0; 2].map(|_| app.account("admin"));
    let [first, second] = accounts.each_ref().map(|account| account.log_in(&app.client()));
    let refused = first.re_enrol(&accounts[0].id).problem("conflict").text();
    assert!(refused.contains("your own account"), "{refused}");
    assert!(first.is_live() && second.is_live());
    re_enrol(&second, &accounts[0].id);
    first.re_enrol(&accounts[0].id).problem("invalid-token");
    // The other one is the last active admin now.
    for change in [json!({"role": "viewer"}), json!({"state": "disabled"})] {
        second.change_account(&accounts[1].id, &change).problem("conflict");
    }
}
