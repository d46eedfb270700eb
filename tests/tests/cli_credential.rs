//! `orgvault login` and `credential` at a terminal.

use serde_json::json;
use vault_tests::samples::small;
use vault_tests::terminal::Terminal;
use vault_tests::{ActivationListener, Database, Desk, Integration, Vault};

/// Runs a command on a terminal, where the user types `typed` at the prompt. Returns its status and the terminal's
/// content.
fn run_on_terminal(desk: &Desk, arguments: &[&str], typed: Option<&str>) -> (Option<i32>, String) {
    let mut terminal = Terminal::start(desk.command(arguments), 400);
    if let Some(typed) = typed {
        terminal.wait_for(" to continue: ");
        terminal.type_line(typed);
    }
    terminal.end()
}

/// Writes data of a credential to a file.
fn data(desk: &Desk, number: usize) -> String {
    desk.file(&format!("data-{number}.json"), &small("a", number)["data"].to_string())
}

fn url(vault: &Vault) -> String {
    format!("http://{}/v1", vault.address())
}

#[test]
fn terminal_lists_users_of_credential_before_change() {
    let (vault, listener) = ActivationListener::open(Database::Sqlite);
    let machine = Desk::of(&vault, "desk");
    let admin = vault.admin();
    machine.log_in(&vault, &admin, &[]).done();
    let session = admin.log_in(&vault.client());
    let [used, unused] = ["imports", "exports"].map(|namespace| session.save(&small(namespace, 1)));
    let integration = Integration::make(&vault, "nightly import", &["imports"]);
    integration.activate(&listener.client(), "imports").expect(201);
    let version = |id: &str| session.show(id).expect(200).json()["version"].as_i64().unwrap();
    let users = "Activated in the last 30 days by: nightly import.";

    let data = data(&machine, 2);
    let replace = ["credential", "replace", &used, "--data-file", &data];
    let (status, shown) = run_on_terminal(&machine, &replace, Some("no"));
    assert!(shown.contains(users) && shown.contains("Nothing was changed"), "{shown}");
    assert_eq!((status, version(&used)), (Some(1), 1));
    let (status, shown) = run_on_terminal(&machine, &replace, Some("yes"));
    assert_eq!((status, version(&used)), (Some(0), 2), "{shown}");
    // A staged version affects no job, and --yes disables the prompt.
    for asks_nothing in ["--stage", "--yes"] {
        let (status, shown) = run_on_terminal(&machine, &[&replace[..], &[asks_nothing]].concat(), None);
        assert_eq!(status, Some(0), "{shown}");
        assert!(!shown.contains("to continue"), "{shown}");
    }

    let delete = |id: &str, typed: &str| run_on_terminal(&machine, &["credential", "delete", id], Some(typed));
    let (status, shown) = delete(&used, "exports");
    assert!(shown.contains(users) && shown.contains("Type imports to continue: "), "{shown}");
    assert_eq!((status, session.ids().len()), (Some(1), 2));
    let (status, shown) = delete(&unused, "exports");
    assert!(shown.contains("No integration activated this credential in the last 30 days."), "{shown}");
    assert_eq!((status, session.ids()), (Some(0), vec![used.clone()]));
    assert_eq!((delete(&used, "imports").0, session.ids().len()), (Some(0), 0));
}

#[test]
fn terminal_prompts_for_missing_values_without_echo() {
    let vault = Vault::start(Database::Sqlite);
    let machine = Desk::of(&vault, "home");
    let account = vault.account("Acme", "editor");
    let passcode = account.recovery_code();
    let mut login = Terminal::start(machine.command(&["login", "--url", &url(&vault)]), 80);
    login.wait_for("E-mail address: ");
    login.type_line(&account.email);
    login.wait_for("Password: ");
    login.type_line(&account.password);
    login.wait_for("Passcode (each works once): ");
    login.type_line(&passcode);
    let (status, shown) = login.end();
    assert_eq!(status, Some(0), "{shown}");
    assert!(shown.contains("Logged in to") && shown.contains(&account.email), "{shown}");
    assert!(!shown.contains(&account.password) && !shown.contains(&passcode), "{shown}");

    let namespace = "imports/a-namespace-of-many-words-that-is-wider-than-a-terminal-of-eighty";
    let save = ["credential", "save", "--namespace", namespace, "--type", "s3"];
    let mut save = Terminal::start(machine.command(&save), 80);
    save.wait_for("access_key_id: ");
    save.type_line("EXAMPLE-KEY-ID");
    save.wait_for("secret_access_key (hidden): ");
    save.type_line("h7Qz-secret");
    save.wait_for("bucket (several: separated by commas): ");
    save.type_line("nightly-imports");
    save.wait_for("Optional: region, endpoint, ");
    save.type_line("buckets");
    save.wait_for("buckets is not one of region, ");
    save.type_line("region");
    save.wait_for("region: ");
    save.type_line("eu central 1");
    save.wait_for("or Enter to finish: ");
    save.type_line("");
    // Only the rejected field is requested again.
    save.wait_for("region: must ");
    save.wait_for("region: ");
    save.type_line("eu-central-1");
    let (status, shown) = save.end();
    assert!(status == Some(0) && shown.contains("Saved credential") && !shown.contains("h7Qz"), "{shown}");
    let saved = &machine.json(&["credential", "list"])[0];
    let id = saved["id"].as_str().unwrap();
    let information = (&saved["information"]["bucket"], &saved["information"]["region"]);
    assert_eq!(information, (&json!("nightly-imports"), &json!("eu-central-1")));
    let secret = json!({
        "access_key_id": "EXAMPLE-KEY-ID", "secret_access_key": "h7Qz-secret", "bucket": "nightly-imports",
        "region": "eu-central-1"
    });
    let file = machine.file("data.json", &secret.to_string());
    assert_eq!(machine.json(&["credential", "find", "--file", &file])[0]["matched"], "data");

    // A table fits the terminal's width, with complete IDs.
    let (status, table) = Terminal::start(machine.command(&["credential", "list"]), 80).end();
    assert_eq!(status, Some(0), "{table}");
    assert!(table.contains(id) && table.contains('\u{2026}') && !table.contains("EXPIRES"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    machine.run(&["credential", "list"]).done().prints(namespace).prints("EXPIRES");
}
