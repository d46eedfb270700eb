//! Activation by the running program: commands and roles of processes.

use vault_tests::binary::Run;
use vault_tests::process::{Server, free_address};
use vault_tests::samples::small;
use vault_tests::{ActivationListener, Database, Integration, Vault};

#[test]
fn reenabled_organization_keeps_tokens_but_no_sessions() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    let account = vault.admin();
    let session = account.log_in(&vault.client());
    session.save(&small("imports", 1));
    let integration = Integration::make(&vault, "import", &["imports"]);
    let works = || (integration.activate(&activation_listener.client(), "imports").status, session.is_live());
    assert_eq!(works(), (201, true));

    let disabled = vault.run(&["org", "set", "--state", "disabled", "Acme"]).done().stdout;
    assert_eq!(works(), (401, false));
    assert!(disabled.contains("With `--state enabled`, the tokens work again; the sessions do not."), "{disabled}");
    let enabled = vault.run(&["org", "set", "--state", "enabled", "Acme"]).done().stdout;
    assert_eq!(works(), (201, false));
    assert!(enabled.contains("its integration tokens work again. Sessions stay ended."), "{enabled}");
    assert_eq!(account.log_in(&vault.client()).ids().len(), 1);
}

#[test]
fn processes_by_role_share_one_database() {
    let vault = Vault::init(Database::Postgres);
    let activation_listener = ActivationListener { address: free_address() };
    let listen = format!("--activation-listen={}", activation_listener.address);
    let start = |flags: &[&str]| {
        let mut command = vault.serve_command();
        command.args(flags);
        command
    };
    let api = Server::start(start(&["--role=api", &listen]), &vault.scratch("out"), &vault.scratch("log"));
    let mut activation =
        Server::spawn(start(&["--role=activation", &listen]), &vault.scratch("out-2"), &vault.scratch("log-2"));
    activation.wait_until_ready_by(&activation_listener.client());

    let session = vault.admin().log_in(&api.client());
    session.save(&small("imports", 1));
    let integration = Integration::make(&vault, "import", &["imports"]);
    integration.activate(&activation_listener.client(), "imports").expect(201);
    // The server for activations has no public listener, and vice versa.
    assert!(activation.client().get("/livez").try_send().is_err());
    assert_eq!(activation.stop(), Some(0));
    assert!(activation_listener.client().get("/livez").try_send().is_err());
    assert_eq!(session.list().len(), 1);

    let refused = Server::fail(start(&["--role=activation"])).misused();
    assert!(refused.stderr.contains("--activation-listen"), "{}", refused.stderr);
}

/// Jobs that start together run one after another.
#[test]
fn rate_limit_delays_jobs_that_wait() {
    let (vault, activation_listener) = ActivationListener::open_with(Database::Sqlite, &["--activation-rate=1"]);
    vault.admin_session().save(&small("imports", 1));
    let integration = Integration::make(&vault, "a", &["imports"]);
    let jobs: Vec<_> = (0..6)
        .map(|_| {
            let mut job =
                integration.command(activation_listener, &["exec", "--namespace", "imports", "--wait", "10m"]);
            std::thread::spawn(move || Run::of(job.args(["--", "true"])).done())
        })
        .collect();
    jobs.into_iter().for_each(|job| drop(job.join().unwrap()));
}
