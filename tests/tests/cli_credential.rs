//! `orgvault login`, `credential` and `logout`: a client of the HTTP API.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use vault_tests::binary::Run;
use vault_tests::samples::{s3, small};
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
fn credential_is_rotated_from_the_command_line() {
    let vault = Vault::start(Database::Sqlite);
    let machine = Desk::of(&vault, "home");
    let account = vault.account("Acme", "editor");
    machine.run(&["credential", "list"]).refused().says("orgvault login");
    let login = machine.log_in(&vault, &account, &[]).done();
    assert_eq!((&login.json()["email"], &login.json()["url"]), (&json!(account.email), &json!(url(&vault))));
    assert!(!login.stdout.contains("v4.local"), "{}", login.stdout);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(machine.kept("default")), mode(machine.kept("default").parent().unwrap().to_owned())),
        (0o600, 0o700)
    );

    let (first, second) = (data(&machine, 1), data(&machine, 2));
    let save = ["credential", "save", "--namespace", "a", "--type", "s3", "--data-file", &first];
    let id = machine.json(&save)["id"].as_str().unwrap().to_owned();
    // A second credential makes the selection of jobs ambiguous.
    let refused = machine.run(&save).refused().stderr;
    assert!(refused.contains(&format!("a already has a credential ({id}, s3)")), "{refused}");
    assert!(refused.contains("--allow-several") && refused.contains("--bucket"), "{refused}");
    let listed = machine.json(&["credential", "list", "--namespace", "a"]);
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &json!(id)));
    assert_eq!(machine.json(&["credential", "list", "--type", "gcs"]), json!([]));

    let replace = ["credential", "replace", &id, "--data-file"];
    let staged =
        machine.run(&[&replace[..], &[&second, "--stage", "--expires-at", "2031-01-31"]].concat()).done().stdout;
    assert!(staged.contains(&format!("orgvault credential promote {id}")), "{staged}");
    assert_eq!(machine.json(&["credential", "show", &id])["staged_version"], 2);
    let promoted = machine.json(&["credential", "promote", &id]);
    assert_eq!((&promoted["version"], &promoted["expires_at"]), (&json!(2), &json!("2031-01-31T00:00:00Z")));
    machine.run(&["credential", "promote", &id]).refused().says("no staged version").says("--version");
    assert_eq!(machine.json(&["credential", "promote", &id, "--version", "1"])["version"], 1);
    let versions = machine.json(&["credential", "show", &id, "--versions"]);
    assert_eq!((&versions[0]["version"], &versions[1]["state"]), (&json!(1), &json!("previous")));
    assert_eq!(machine.json(&[&replace[..], &[&second]].concat()), json!({"id": id, "version": 3, "state": "current"}));
    // From standard input, as providers' tools write it.
    let mut piped = machine.command(&[&replace[..], &["-"]].concat());
    piped.stdin(fs::File::open(&first).unwrap());
    assert!(Run::of(&mut piped).done().stdout.contains("version 4 of credential"));

    let shown = machine.run(&["credential", "show", &id]).done().stdout;
    let table = machine.run(&["credential", "show", &id, "--versions"]).done().stdout;
    let list = machine.run(&["credential", "list"]).done().stdout;
    assert!(shown.contains("exports-1") && table.contains("current") && list.contains(&id), "{shown}{table}{list}");
    let secret = small("a", 1)["data"]["secret_access_key"].as_str().unwrap().to_owned();
    assert!(![&shown, &table, &list].iter().any(|text| text.contains(&secret)));

    // Its metadata and its uses.
    let labelled = machine.json(&["credential", "set", &id, "--label", "team=data", "--label", "env=prod"]);
    assert_eq!(labelled["labels"], json!({"team": "data", "env": "prod"}));
    assert_eq!(machine.json(&["credential", "set", &id, "--label", "env-"])["labels"], json!({"team": "data"}));
    let describe = ["credential", "set", &id, "--description", "the nightly import", "--expires-at", "2031-01-31"];
    assert_eq!(machine.json(&describe)["description"], "the nightly import");
    assert_eq!(
        machine.json(&["credential", "list", "--label", "team=data", "--expires-before", "2032-01-01"])[0]["id"],
        *id
    );
    assert_eq!(machine.json(&["credential", "list", "--health", "failing"]), json!([]));
    assert_eq!(machine.json(&["credential", "set", &id, "--no-expires-at"]).get("expires_at"), None);
    machine.run(&["credential", "set", &id]).misused();
    machine.run(&["credential", "set", &id, "--label", "team"]).misused();
    let found = |args: &[&str]| {
        let found = machine.json(&[&["credential", "find"], args].concat());
        found.as_array().unwrap().iter().map(|one| format!("{} {}", one["version"], one["matched"])).collect::<Vec<_>>()
    };
    assert_eq!(found(&["--file", &first]), ["4 \"data\"", "1 \"data\""]);
    assert_eq!(found(&["0001"]), ["4 \"key-id\"", "1 \"key-id\""]);
    assert_eq!(found(&["AKIAQ3EGRIYLK9999999"]), [""; 0]);
    machine.run(&["credential", "find", "001"]).refused();
    machine.run(&["credential", "find"]).misused();
    assert_eq!(machine.json(&["credential", "show", &id, "--uses"]), json!([]));
    assert_eq!(machine.json(&["credential", "show", &id, "--holders"]), json!([]));
    let dry = machine.json(&[&replace[..], &[&second, "--dry-run"]].concat());
    let changes = ["Changed: access_key_id from …0001 to …0002.", "Changed: bucket from exports-1 to exports-2."];
    assert_eq!(
        (dry, &machine.json(&["credential", "show", &id])["version"]),
        (json!({"id": id, "changes": changes, "used_by": []}), &json!(4))
    );
    machine.json(&["credential", "delete", &id, "--dry-run"]);
    // A dry run rejects the same data as a replacement, and explains why a region cannot be corrected without the
    // secret.
    let region = machine.file("region.json", &json!({"region": "eu-central-1"}).to_string());
    for flags in [&["--dry-run"][..], &["--yes"]] {
        let output = machine.run(&[&replace[..], &[&region], flags].concat()).refused().stderr;
        assert!(output.contains("data field secret_access_key is required"), "{output}");
        assert!(output.contains("cannot decrypt the stored secret") && !output.contains("errors"), "{output}");
    }
    let wrong = ["credential", "save", "--namespace", "not allowed", "--type", "s4", "--data-file", &second];
    let output = machine.run(&wrong).refused().stderr;
    assert!(output.starts_with("orgvault: cannot save the credential: "), "{output}");
    assert!(output.contains("--namespace may contain only") && output.contains("--type must be s3"), "{output}");
    machine.run(&["credential", "check", &id]).refused().says("--activation-listen");

    // Destructive commands require a confirmation.
    machine.run(&["credential", "destroy-version", &id, "3"]).misused();
    machine.run(&["credential", "delete", &id]).misused();
    assert_eq!(machine.json(&["credential", "destroy-version", &id, "3", "--yes"]), json!({"id": id, "version": 3}));
    machine.run(&["credential", "destroy-version", &id, "4", "--yes"]).refused().says("current version");
    assert_eq!(machine.json(&["credential", "delete", &id, "--yes"]), json!({"id": id}));
    machine.run(&["credential", "show", &id]).refused().says(&format!("cannot show credential {id}"));

    assert_eq!(machine.json(&["logout"])["ended"], true);
    assert!(!machine.kept("default").exists());
    machine.run(&["logout"]).refused();
}

#[test]
fn data_and_login_violations_omit_values() {
    let vault = Vault::start(Database::Sqlite);
    let machine = Desk::of(&vault, "home");
    let account = vault.account("Acme", "editor");
    machine.log_in(&vault, &account, &[]).done();
    let id = vault.admin_session().save(&s3().request);
    let replace = |data: &str, more: &[&str]| {
        let file = machine.file("new.json", data);
        machine.run(&[&["credential", "replace", &id, "--data-file", &file][..], more].concat())
    };
    for flawed in ["", "h7Qz-secret", "[\"h7Qz-secret\"]", "{\"secret_access_key\": \"h7Qz-secret\""] {
        replace(flawed, &[]).refused().says("does not contain a JSON object").omits("h7Qz");
    }
    let output = replace("{\"secret_access_key\": \"h7Qz-secret\", \"bucket\": 7}", &[]).refused().stderr;
    assert!(
        output.contains("data field access_key_id is required") && output.contains("data field bucket must"),
        "{output}"
    );
    assert!(!output.contains("h7Qz"), "{output}");
    for wrong in [&["--promote"][..], &["--verify", "--promote", "--stage"], &["--expires-at", "2031"]] {
        replace("{}", wrong).misused();
    }
    machine.run(&["credential", "promote", &id, "--version", "0"]).misused();
    // A file that others can read.
    let file = machine.file("open.json", "{}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let output = machine.run(&["credential", "replace", &id, "--data-file", &file]).refused().stderr;
    assert!(output.contains("--data-file") && output.contains("other users"), "{output}");
    assert_eq!(vault.admin_session().versions(&id).len(), 1);

    // A login that has ended.
    vault.run(&["account", "set", "--state", "disabled", "--email", &account.email]).done();
    machine.run(&["credential", "list"]).refused().says("Run `orgvault login`");
    assert_eq!(machine.json(&["logout"])["ended"], false);
    let password = machine.file("password", "h7Qz-wrong");
    let login = ["login", "--url", &url(&vault), "--email", &account.email, "--password-file", &password];
    machine.run(&login).misused();
    machine.run(&[&login[..], &["--passcode-file", &password]].concat()).refused();
    machine.run(&["login", "--email", "a@example.com", "--password-file", "-", "--passcode-file", "-"]).misused();
    machine.run(&["credential", "list", "--data-dir", "/nowhere"]).misused();
}

#[test]
fn several_logins_are_kept_under_their_profiles() {
    let vault = Vault::start(Database::Sqlite);
    let machine = Desk::of(&vault, "home");
    let (first, second) = (vault.account("Acme", "editor"), vault.account("Umbrella", "editor"));
    assert_eq!(machine.json(&["profiles"]), json!([]));
    machine.log_in(&vault, &first, &[]).done();
    let login = machine.log_in(&vault, &second, &["--profile", "umbrella"]).done();
    assert_eq!(login.json()["profile"], "umbrella");
    let listed = machine.json(&["profiles"]);
    let emails: Vec<&Value> = listed.as_array().unwrap().iter().map(|login| &login["email"]).collect();
    assert_eq!(emails, [&json!(first.email), &json!(second.email)]);
    assert_eq!((&listed[0]["profile"], &listed[1]["profile"]), (&json!("default"), &json!("umbrella")));
    assert_eq!(listed[1]["expired"], false);
    let kept = machine.kept("default").with_file_name("umbrella.json");
    let token = fs::read_to_string(&kept).unwrap();
    assert!(token.contains("v4.local") && !listed.to_string().contains("v4.local"), "{listed}");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);

    // Each profile works in its own organization. The flag may precede or follow the subcommand.
    let data = data(&machine, 1);
    let save = ["credential", "save", "--namespace", "a", "--type", "s3", "--data-file", &data];
    machine.json(&[&save[..], &["--profile", "umbrella"]].concat());
    assert_eq!(machine.json(&["credential", "list"]), json!([]));
    assert_eq!(machine.json(&["credential", "--profile", "umbrella", "list"]).as_array().unwrap().len(), 1);
    let mut by_variable = machine.command(&["credential", "list", "--json"]);
    let listed = Run::of(by_variable.env("ORGVAULT_PROFILE", "umbrella")).done().json();
    assert_eq!(listed.as_array().unwrap().len(), 1);

    // Server and account are remembered.
    let (password, passcode) =
        (machine.file("password", &second.password), machine.file("passcode", &second.recovery_code()));
    let files = ["--password-file", &password, "--passcode-file", &passcode];
    let again = machine.json(&[&["login", "--profile", "umbrella"][..], &files].concat());
    assert_eq!((&again["email"], &again["url"]), (&json!(second.email), &json!(url(&vault))));

    machine.json(&["logout", "--profile", "umbrella"]);
    assert!(!kept.exists() && machine.kept("default").exists());
    let output = machine.run(&["credential", "list", "--profile", "umbrella"]).refused().stderr;
    assert!(output.contains("orgvault login --profile umbrella") && output.contains("orgvault profiles"), "{output}");
    for wrong in ["../default", "", ".x"] {
        machine.run(&["credential", "list", "--profile", wrong]).misused();
    }
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

    // A script cannot answer prompts.
    machine.run(&["credential", "save", "--namespace", "a", "--type", "s3"]).misused().says("--data-file");
    machine.run(&["login", "--url", &url(&vault), "--profile", "new"]).misused().says("--email");
}

#[test]
fn shell_completes_credentials_and_profiles_of_a_login() {
    let vault = Vault::start(Database::Sqlite);
    let machine = Desk::of(&vault, "home");
    let account = vault.account("Acme", "editor");
    let complete = |words: &[&str]| {
        let mut command = machine.command(&[&["--", "orgvault"], words].concat());
        Run::of(command.env("ORGVAULT_COMPLETE", "fish")).done().stdout
    };
    let shown = complete(&["credential", "show", ""]);
    assert!(shown.lines().all(|line| line.starts_with("--")), "there is no login: {shown}");
    machine.log_in(&vault, &account, &[]).done();
    machine.log_in(&vault, &account, &["--profile", "second"]).done();
    let data = data(&machine, 1);
    let save = ["credential", "save", "--namespace", "imports/a", "--type", "s3", "--data-file", &data];
    let id = machine.json(&save)["id"].as_str().unwrap().to_owned();
    for (words, expected) in [
        (&["credential", "show", ""][..], id.as_str()),
        (&["credential", "--profile", "second", "show", &id[..6]], &id),
        (&["credential", "list", "--namespace", "imp"], "imports/a"),
        (&["credential", "list", "--profile", ""], "second"),
        (&["credential", "save", "--type", "a"], "azure_identity"),
        (&["credential", "list", "--health", ""], "failing"),
    ] {
        let offered = complete(words);
        assert!(offered.lines().any(|line| line.split('\t').next() == Some(expected)), "{words:?}: {offered}");
        assert!(!offered.contains("v4.local"), "{offered}");
    }
}

/// A new key alone is sufficient: the location is copied, and differences are shown.
#[test]
fn locations_are_kept_unless_given() {
    let vault = Vault::start(Database::Sqlite);
    let machine = Desk::of(&vault, "home");
    machine.log_in(&vault, &vault.account("Acme", "editor"), &[]).done();
    let data = json!({
        "access_key_id": "AKIAQ3EGRIYLK0000001", "secret_access_key": "first", "bucket": "exports", "region": "eu-central-1",
        "endpoint": "https://storage.example.com",
    });
    let first = machine.file("first.json", &data.to_string());
    let save = ["credential", "save", "--namespace", "a", "--type", "s3", "--data-file", &first];
    let id = machine.json(&save)["id"].as_str().unwrap().to_owned();
    let only = json!({"access_key_id": "AKIAQ3EGRIYLK0000001", "secret_access_key": "first"});
    let only = machine.file("only.json", &only.to_string());
    assert_eq!(machine.json(&["credential", "find", "--file", &only])[0]["matched"], "data");

    let key = json!({"access_key_id": "AKIAQ3EGRIYLK0000002", "secret_access_key": "second", "region": null, "bucket": "other"});
    let key = machine.file("key.json", &key.to_string());
    let replace = ["credential", "replace", &id, "--data-file", &key];
    let tried = machine.json(&[&replace[..], &["--dry-run"]].concat());
    let reported = tried["changes"].to_string();
    for line in [
        "Copied from version 1: endpoint.",
        "Changed: bucket from exports to other.",
        "Changed: region from eu-central-1 to none.",
        "Changed: access_key_id from",
    ] {
        assert!(reported.contains(line), "{line}: {reported}");
    }
    assert!(!reported.contains("AKIAQ3EGRIYLK") && !reported.contains("second"), "{reported}");
    let replaced = machine.run(&replace).done();
    assert!(replaced.stderr.contains("Copied from version 1: endpoint."), "{}", replaced.stderr);
    let information = &machine.json(&["credential", "show", &id])["information"];
    let places = ["bucket", "endpoint", "region"].map(|place| &information[place]);
    assert_eq!(places, [&json!("other"), &json!("https://storage.example.com"), &Value::Null]);
}
