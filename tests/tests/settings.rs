//! Settings and usage errors.

use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use vault_tests::binary::{self, Run};
use vault_tests::integration::write_private;
use vault_tests::process::Server;
use vault_tests::{Database, Vault};

#[test]
fn wrong_usage_has_its_own_exit_status() {
    let vault = Vault::init(Database::Sqlite);
    let commands: [&[&str]; 10] = [
        &[],
        &["nonsense"],
        &["org"],
        &["org", "create"],
        &["account", "create", "--org", "Acme"],
        &["serve", "--no-such-flag"],
        &["serve", "--listen", "nonsense"],
        &["serve", "--max-ttl", "0"],
        &["serve", "--base-path", "v1/"],
        &["completions", "nonsense"],
    ];
    for command in commands {
        vault.run(command).misused();
    }
    for url in ["mysql://localhost/x", "nonsense", "sqlite://", "postgres:/x"] {
        Run::of(binary::command().args(["org", "list", "--database-url", url])).misused();
    }
}

#[test]
fn settings_come_from_flags_then_environment_then_file() {
    let mut vault = Vault::init(Database::Sqlite);
    let file = vault.data_dir().join("orgvault.toml");
    let account = vault.admin();
    let longest = |vault: &Vault| {
        let client = vault.client();
        [7300, 7200, 100].map(|ttl| {
            let mut body = account.login("");
            body["ttl"] = json!(ttl);
            client.log_in(&body).status == 401 // rejected for its passcode, so the lifetime was accepted
        })
    };
    fs::write(&file, "max-ttl = 100\n").unwrap();
    vault.serve();
    assert_eq!(longest(&vault), [false, false, true], "the file");
    vault.stop();
    let mut from_environment = vault.serve_command();
    from_environment.env("ORGVAULT_MAX_TTL", "7200");
    let server = Server::start(from_environment, &vault.scratch("output"), &vault.scratch("log"));
    let mut body = account.login("");
    body["ttl"] = json!(7200);
    assert_eq!(server.client().log_in(&body).status, 401, "the environment");
    drop(server);
    vault.run(&["account", "unlock", "--email", &account.email]).done();
    vault.serve_with(&["--max-ttl", "7300"]);
    assert_eq!(longest(&vault), [true, true, true], "the flag");
    vault.stop();

    for (text, place) in [
        ("max-ttl = 100\nsecret-sauce = \"h7Qz\"\n", "line 2, secret-sauce: "),
        ("max_ttl = 100\n", "line 1, max_ttl: "),
        ("config = \"h7Qz\"\n", "line 1, config: "),
        ("\n[serve]\nlisten = \"h7Qz\"\n", "line 2, serve: "),
        ("max-ttl = \"h7Qz\"\n", "line 1, max-ttl: must be a duration"),
        ("listen = 7\n", "line 1, listen: must be an IP address"),
        ("listen = { host = \"h7Qz\" }\n", "line 1, listen: must be text"),
        ("trusted-proxy = [\n  \"10.0.0.1\", \"h7Qz\"]\n", "line 1, trusted-proxy: must be a network"),
        ("listen = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\n", "line 1, listen: accepts one value"),
        ("role = \"h7Qz\"\n", "line 1, role: must be one of all, api, activation"),
        ("max-ttl = \n", "line 1: not valid TOML"),
        ("# h7Qz\n\ndatabase-url = \"postgres://a:h7Qz@b\n", "line 3: not valid TOML"),
    ] {
        fs::write(&file, text).unwrap();
        let output = vault.run(&["org", "list"]).misused().stderr;
        assert!(output.contains(&format!("orgvault.toml {place}")), "{text:?}: {output}");
        assert!(!output.contains("h7Qz"), "a value was repeated: {output}");
    }
    fs::remove_file(&file).unwrap();
    vault.run(&["org", "list", "--config", "/nowhere/orgvault.toml"]).misused();
}

#[test]
fn invalid_value_is_reported_with_source() {
    let vault = Vault::init(Database::Sqlite);
    let output = vault.run(&["serve", "--max-ttl", "h7Qz"]).misused().stderr;
    assert!(
        output.starts_with("orgvault: --max-ttl: must be a duration from 1m to 1day") && !output.contains("h7Qz"),
        "{output}"
    );
    let mut command = vault.command(&["org", "list"]);
    let output = Run::of(command.env("ORGVAULT_DATABASE_URL", "mysql://a:h7Qz@b")).misused().stderr;
    assert!(
        output.starts_with("orgvault: ORGVAULT_DATABASE_URL: must be sqlite://PATH") && !output.contains("h7Qz"),
        "{output}"
    );
    // A flag overrides the environment.
    let mut command = vault.serve_command();
    command.args(["--max-ttl", "2h", "--listen", "h7Qz"]).env("ORGVAULT_MAX_TTL", "h7Qz");
    let output = Run::of(&mut command).misused().stderr;
    assert!(output.starts_with("orgvault: --listen: "), "{output}");
}

#[test]
fn settings_are_printed_with_sources_and_without_secrets() {
    let vault = Vault::init(Database::Sqlite);
    let file = vault.data_dir().join("orgvault.toml");
    write_private(&file, "max-ttl = \"24h\"\nkeep-versions = 3\nsmtp-password = \"h7Qz\"\n");
    let token = vault.scratch("token");
    write_private(&token, "h7Qz\n");
    let mut command = vault.command(&["serve", "--print-settings", "--json", "--listen", "127.0.0.1:8080"]);
    command.env("ORGVAULT_DATABASE_URL", "postgres://a:h7Qz@b/c").env("ORGVAULT_AUDIT_SINK_TOKEN_FILE", &token);
    command.env("ORGVAULT_KEEP_VERSIONS", "4").env("ORGVAULT_AUDIT_SINK", "https://sink.example");
    command.env("ORGVAULT_SMTP_URL", "smtps://a@mail.example").env("ORGVAULT_SMTP_FROM", "a@mail.example");
    let run = Run::of(&mut command).done();
    assert!(!run.stdout.contains("h7Qz"), "{}", run.stdout);
    let document = run.json();
    let shown = |name: &str| {
        let setting = document.as_array().unwrap().iter().find(|setting| setting["name"] == name).unwrap().clone();
        (setting["value"].as_str().unwrap().to_owned(), setting["source"].as_str().unwrap().to_owned())
    };
    for (name, value, source) in [
        ("listen", "127.0.0.1:8080", "--listen"),
        ("keep-versions", "4", "ORGVAULT_KEEP_VERSIONS"),
        ("max-ttl", "24h", &format!("{} line 1, max-ttl", file.display())),
        ("keep-previous", "30d", "default"),
        ("root-key", "file:<data-dir>/root.key", "default"),
        ("audit-sink-token", "(secret)", "ORGVAULT_AUDIT_SINK_TOKEN_FILE"),
        ("smtp-password", "(secret)", &format!("{} line 3, smtp-password", file.display())),
        ("database-url", "(contains a password)", "ORGVAULT_DATABASE_URL"),
    ] {
        assert_eq!(shown(name), (value.to_owned(), source.to_owned()), "{name}");
    }
}

#[test]
fn unknown_variable_is_reported() {
    let vault = Vault::init(Database::Sqlite);
    let mut command = vault.command(&["org", "list"]);
    command.env("ORGVAULT_LISTN", "h7Qz").env("ORGVAULT_LISTEN", "127.0.0.1:1");
    // These variables belong to commands of the activation process.
    command.env("ORGVAULT_ACTIVATION_URL", "unix:/nowhere").env("ORGVAULT_INTEGRATION_TOKEN_FILE", "/nowhere");
    let output = Run::of(&mut command).done().stderr;
    assert_eq!(output.matches("is not a setting").count(), 1, "{output}");
    assert!(output.contains("ORGVAULT_LISTN ") && !output.contains("h7Qz"), "{output}");
}

#[test]
fn paths_in_the_file_are_relative_to_the_file() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Acme");
    let directory = vault.scratch("etc");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("settings.toml");
    for text in [
        "data-dir = \"../data\"\n",
        "data-dir = \"/nowhere\"\ndatabase-url = \"sqlite://../data/orgvault.db\"\nroot-key = \"../data/root.key\"\n",
    ] {
        fs::write(&file, text).unwrap();
        let mut command = binary::command();
        command.args(["org", "list", "--json", "--config", "etc/settings.toml"]).current_dir(vault.scratch("."));
        assert_eq!(Run::of(&mut command).done().json()[0]["name"], "Acme", "{text}");
    }
}

#[test]
fn database_url_with_a_password_comes_from_a_file() {
    let vault = Vault::init(Database::Postgres);
    let url = vault.url().to_owned();
    let with_password = match url.contains('?') {
        true => format!("{url}&password=hunter2"),
        false => format!("{url}?password=hunter2"),
    };
    let file = vault.scratch("database-url");
    fs::write(&file, format!("{with_password}\n")).unwrap();
    let list = |variable: &str, value: &str| {
        let mut command = binary::command();
        Run::of(command.args(["org", "list", "--data-dir"]).arg(vault.data_dir()).env(variable, value))
    };
    let (variable, path) = ("ORGVAULT_DATABASE_URL_FILE", file.to_str().unwrap());
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    list(variable, path).refused().says(variable).says("0644");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let output = list(variable, path).done();
    assert!(!output.stderr.contains("password"), "{}", output.stderr);
    vault.run(&["org", "list", "--database-url", &with_password]).done().says(variable).omits("hunter2");
    fs::write(&file, "not a url with hunter2").unwrap();
    list(variable, path).misused().says(variable).omits("hunter2");
}

#[test]
fn secrets_come_from_the_environment_or_a_private_file() {
    let vault = Vault::init(Database::Sqlite);
    let secret = vault.scratch("secret");
    write_private(&secret, "no colon\n");
    let run = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = vault.command(&["doctor", "--json"]);
        Run::of(command.args(flags).env("ORGVAULT_EGRESS_PROXY", "http://127.0.0.1:1").envs(variables.iter().copied()))
    };
    let name = "ORGVAULT_EGRESS_PROXY_CREDENTIALS";
    let file = format!("{name}_FILE");
    let path = secret.to_str().unwrap();
    for (variables, expected) in [
        (&[(name, "h7Qz")][..], "USER:PASSWORD"),
        (&[(&*file, path)], "USER:PASSWORD"),
        (&[(name, "h7Qz"), (&*file, path)], "both set"),
    ] {
        let shown = format!("{:?}", run(&[], variables));
        assert!(shown.contains(expected) && !shown.contains("h7Qz") && !shown.contains("no colon"), "{shown}");
    }
    let config = vault.data_dir().join("orgvault.toml");
    write_private(&config, "egress-proxy-credentials = \"h7Qz\"\n");
    let shown = format!("{:?}", run(&[], &[]));
    assert!(shown.contains("USER:PASSWORD") && !shown.contains("h7Qz"), "{shown}");
    fs::set_permissions(&config, Permissions::from_mode(0o644)).unwrap();
    run(&[], &[]).misused().says("orgvault.toml").says("0644");
    let mut serve = vault.serve_command();
    Run::of(serve.args(["--egress-proxy-credentials", "a:h7Qz"])).misused().says(&file).omits("h7Qz");
}
