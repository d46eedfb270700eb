//! Tests of contradictory settings and of the settings documentation.

use super::*;
use vault_http::UnixSocket;

fn server(words: &[&str]) -> Result<ServerSettings, String> {
    let command = Command::new("settings").no_binary_name(true).args(server_flags());
    let matches = command.try_get_matches_from(words).map_err(|error| crate::flag_error::violation(&error))?;
    let settings = ServerSettings::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    settings.check().map_err(|failure| failure.to_string())?;
    Ok(settings)
}

const TLS: [&str; 4] = ["--tls-cert-file", "tls.pem", "--tls-key-file", "tls.key"];

#[test]
fn activation_is_off_unless_set_and_in_api_process() {
    let listener = |words: &[&str]| server(words).map(|settings| settings.activation().map(|found| found.listen));
    assert_eq!(listener(&[]), Ok(None));
    assert_eq!(listener(&["--role", "api", "--activation-listen", "unix:/run/orgvault"]), Ok(None));
    let socket = UnixSocket { path: "/run/orgvault".into(), mode: 0o660 };
    assert_eq!(
        listener(&["--role", "activation", "--activation-listen", "unix:/run/orgvault"]),
        Ok(Some(ActivationListen::Unix(socket)))
    );
    assert!(listener(&["--role", "activation"]).is_err_and(|violation| violation.contains("--activation-listen")));
}

#[test]
fn plaintext_is_refused_beyond_this_host() {
    for (listen, tls, allowed) in [
        ("127.0.0.1:8443", false, true),
        ("[::1]:8443", false, true),
        ("localhost:8443", false, true),
        ("0.0.0.0:8443", false, false),
        ("192.0.2.1:8443", false, false),
        ("192.0.2.1:8443", true, true),
        ("unix:/run/orgvault", true, true),
    ] {
        let tls: &[&str] = if tls { &TLS } else { &[] };
        let activation = server(&[&["--activation-listen", listen], tls].concat());
        assert_eq!(activation.is_ok(), allowed, "{listen}");
        if !listen.starts_with("unix:") {
            let public = server(&[&["--listen", listen], tls].concat());
            assert_eq!(public.is_ok(), allowed, "{listen}");
        }
    }
    assert!(server(&["--listen", "0.0.0.0:80", "--trusted-proxy", "10.0.0.1"]).is_ok());
}

#[test]
fn client_certificates_require_tls() {
    for (listen, tls, allowed) in [("127.0.0.1:1", true, true), ("127.0.0.1:1", false, false), ("unix:/a", true, false)]
    {
        let tls: &[&str] = if tls { &TLS } else { &[] };
        let words = [&["--activation-client-ca-file", "ca.pem", "--activation-listen", listen], tls].concat();
        assert_eq!(server(&words).is_ok(), allowed, "{listen} {tls:?}");
    }
    for half in [&TLS[..2], &TLS[2..]] {
        assert!(server(half).is_err_and(|violation| violation.contains("needs --tls-")));
    }
}

#[test]
fn invalid_values_are_refused_with_expected_format() {
    for (words, expected) in [
        (["--listen", "foo"], "localhost"),
        (["--trusted-proxy", "not a network"], "10.0.0.0/8"),
        (["--egress-proxy", "http://user:h7Qz@proxy.example"], "without user"),
        (["--egress-proxy", "proxy.example:3128"], "http://HOST"),
        (["--egress-direct", "*"], "*.SUFFIX"),
        (["--allow-egress", "127.1"], "*.SUFFIX"),
        (["--allow-egress", "*.internal"], "whole name"),
        (["--allow-egress", "minio.corp"], "needs --egress-proxy"),
        (["--egress-direct", "minio.corp"], "needs --egress-proxy"),
        (["--egress-proxy-credentials", "a:b"], "needs --egress-proxy"),
        (["--max-ttl", "59"], "from 1m to 1day"),
        (["--max-ttl", "2d"], "from 1m to 1day"),
        (["--max-credentials", "0"], "from 1 to"),
        (["--keep-versions", "1"], "from 2 to 1000"),
        (["--keep-previous", "11y"], "from 0s to 10years"),
        (["--login-rate", "-1"], "from 0 to 1000000"),
        (["--activation-rate", "1000001"], "from 0 to 1000000"),
        (["--max-activations", "0"], "from 1 to"),
        (["--activation-listen", "unix:"], "needs a path"),
        (["--activation-listen", "example.org:1"], "unix:/PATH"),
        (["--public-url", "vault.example.com"], "https://vault.example.com"),
        (["--base-path", "v1/"], "/v1"),
        (["--role", "admin"], "must be one of all, api, activation"),
    ] {
        let [name, value] = words;
        let violation = server(&[&format!("{name}={value}")]).map(|_| ()).expect_err(value);
        assert!(violation.contains(expected), "{name} {value}: {violation}");
    }
}

#[test]
fn printed_urls_can_be_connected_to() {
    let shown = |words: &[&str]| server(words).map(|settings| settings.base_url(settings.listen));
    assert_eq!(shown(&[]).as_deref(), Ok("http://127.0.0.1:8080/v1"));
    assert_eq!(shown(&[&["--listen", "0.0.0.0:8443"], &TLS[..]].concat()).as_deref(), Ok("https://127.0.0.1:8443/v1"));
    assert_eq!(shown(&[&["--listen", "[::]:8443"], &TLS[..]].concat()).as_deref(), Ok("https://[::1]:8443/v1"));
    let public = ["--public-url", "https://vault.example.com/", "--base-path", "/vault/v1"];
    assert_eq!(shown(&public).as_deref(), Ok("https://vault.example.com/vault/v1"));
}

#[test]
fn previous_versions_are_kept_for_configured_time() {
    let limits = |words: &[&str]| server(words).map(|settings| settings.version_limits());
    assert_eq!(limits(&[]), Ok(VersionLimits::default()));
    let set = VersionLimits { versions: 2, previous_seconds: 0 };
    assert_eq!(limits(&["--keep-versions", "2", "--keep-previous", "0"]), Ok(set));
}

/// Returns the row of a setting in `docs/operate/settings.md`.
fn documented(setting: &Arg) -> String {
    let help = setting.get_help().map(ToString::to_string).unwrap_or_default();
    let (help, default) = match help.rsplit_once(" [default: ") {
        Some((help, _)) => (help.to_owned(), default_of(setting).replace('<', "\\<")), // avoids HTML tags
        None => (help, format!("`{}`", default_of(setting))),
    };
    let possible: Vec<String> =
        setting.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    let possible = match possible.as_slice() {
        // For true and false, the name of the setting is sufficient.
        [] | [_, _] if setting.get_id() != "log_format" => String::new(),
        possible => format!(": {}", possible.join(", ")),
    };
    let name = sources::name(setting);
    let dashes = if sources::is_secret(setting) { "" } else { "--" };
    format!("| `{dashes}{}` | `{}` | {help}{possible} | {default} |", name, sources::variable(name))
}

#[test]
fn settings_reference_matches_declarations() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate/settings.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let settings: Vec<Arg> = vault_flags().into_iter().chain(server_flags()).collect();
    let expected: Vec<String> = settings.iter().map(documented).collect();
    let found: Vec<&str> = page.lines().filter(|line| line.contains("` | `ORGVAULT_")).collect();
    assert_eq!(found, expected, "put these rows into docs/operate/settings.md:\n{}\n", expected.join("\n"));
}
