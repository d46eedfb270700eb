//! The recipes for root keys in `docs/operate`, as printed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use vault_testkit::stores::{Moto, Scripted, find_tool};
use vault_tests::binary::Run;
use vault_tests::skip;
use vault_tests::{Database, Vault, binary};

/// Pages with recipes.
const PAGES: [&str; 3] = ["root-key-kms.md", "root-key-hsm.md", "root-key-systemd.md"];
/// Recipes that do not run here, and why.
const ELSEWHERE: [(&str, &str); 4] = [
    ("Google Cloud KMS", "no emulator exists"),
    ("Azure Key Vault", "no emulator of its command line exists"),
    ("TPM 2.0", "needs a TPM"),
    ("1Password", "no emulator exists"),
];
const AWS: &str = "AWS KMS";
const BAO: &str = "OpenBao or Vault";
const PKCS11: &str = "PKCS#11";
const SYSTEMD: &str = "systemd-creds";

/// Returns the recipes: name and shell blocks.
fn recipes() -> Vec<(String, Vec<String>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operate");
    let blocks = |text: &str| -> Vec<String> {
        text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap().to_owned()).collect()
    };
    let mut all = Vec::new();
    for page in PAGES {
        let page = fs::read_to_string(directory.join(page)).unwrap();
        let (_, recipes) = page.split_once("\n## Recipes\n").unwrap();
        let recipes = recipes.split("\n## ").next().unwrap();
        let named = recipes.split("\n### ").skip(1).map(|recipe| recipe.split_once('\n').unwrap());
        all.extend(named.map(|(name, text)| (name.to_owned(), blocks(text))));
    }
    all
}

/// Returns the shell blocks of a recipe for a vault: one that creates the key, and one with the setting.
fn recipe(name: &str, vault: &Vault) -> [String; 2] {
    let blocks = recipes().into_iter().find(|(found, _)| found == name).unwrap().1;
    let blocks = blocks.into_iter().map(|block| block.replace("/etc/orgvault", vault.scratch(".").to_str().unwrap()));
    blocks.collect::<Vec<_>>().try_into().unwrap()
}

/// Runs shell commands with these variables, then uses the vault with the setting that they export.
fn create(vault: &Vault, commands: &str, variables: &[(&str, &str)]) {
    let uses = "orgvault init\norgvault org create Acme\norgvault org list";
    let script = format!("set -eu -o pipefail\n{commands}\n{uses}\n");
    let mut bash = binary::isolated(Command::new("bash"));
    let programs = [binary::path(), find_tool("aws")].map(|program| program.parent().unwrap().to_owned());
    let path = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let path = std::env::join_paths([vault.scratch("bin")].iter().chain(&programs).chain(&path)).unwrap();
    bash.args(["-c", &script]).current_dir(vault.scratch(".")).env("PATH", path);
    let run = Run::of(bash.env("ORGVAULT_DATA_DIR", vault.data_dir()).envs(variables.iter().copied())).done();
    assert!(run.stdout.contains("Acme") && !vault.data_dir().join("root.key").exists(), "{run:?}");
}

#[test]
fn every_recipe_runs_or_has_a_reason() {
    let found: Vec<_> = recipes().into_iter().map(|(name, _)| name).collect();
    let mut known: Vec<_> = ELSEWHERE.iter().map(|(name, _)| *name).chain([AWS, BAO, PKCS11, SYSTEMD]).collect();
    known.sort_by_key(|name| found.iter().position(|found| found == name));
    assert_eq!(found, known);
}

#[test]
fn aws_kms() {
    let (vault, moto) = (Vault::absent(Database::Sqlite), Moto::start());
    let endpoint = moto.endpoint();
    let variables = [
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ACCESS_KEY_ID", "AKIA"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "eu-central-1"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_MAX_ATTEMPTS", "1"),
    ];
    let [key, setting] = recipe(AWS, &vault);
    let prepare = "aws kms create-alias --alias-name alias/orgvault \
                   --target-key-id $(aws kms create-key --query KeyMetadata.KeyId --output text)";
    create(&vault, &[prepare, &key, &setting].join("\n"), &variables);
    // The service is unreachable.
    drop(moto);
    let command = setting.trim().strip_prefix("export ORGVAULT_ROOT_KEY='command:aws").unwrap();
    let aws = format!("--root-key=command:{}{}", find_tool("aws").display(), command.trim_end_matches('\''));
    let mut list = vault.command(&["org", "list", &aws]);
    Run::of(list.envs(variables)).refused().says("the command `aws` exited with status").says("Could not connect");
}

/// The command line of OpenBao: `bao write [-f] -field=FIELD PATH [NAME=@FILE]`.
const BAO_PROGRAM: &str = r#"#!/bin/sh
for word; do
    case $word in
    write | -f) ;;
    -field=*) field=${word#*=} ;;
    *=@*) data="{\"${word%%=*}\": \"$(cat "${word#*=@}")\"}" ;;
    *) path=$word ;;
    esac
done
curl -fsS -X PUT -H "X-Vault-Token: $BAO_TOKEN" -d "${data-}" "$BAO_ADDR/v1/$path" |
    sed "s/.*\"$field\": *\"\([^\"]*\)\".*/\1/"
"#;

#[test]
fn openbao_transit() {
    let vault = Vault::absent(Database::Sqlite);
    let server = Scripted::start(|request| {
        let key: Vec<u8> = (0..32u8).map(|n| n.wrapping_mul(97).rotate_left(3)).collect();
        let data = match &*request.path {
            _ if request.fields["x-vault-token"] != "s.token" => return (403, Vec::new(), String::new()),
            "/v1/transit/datakey/wrapped/orgvault" => r#""ciphertext": "vault:v1:c2VhbGVk""#.to_owned(),
            "/v1/transit/decrypt/orgvault" if request.body == r#"{"ciphertext": "vault:v1:c2VhbGVk"}"# => {
                format!("\"plaintext\": \"{}\"", STANDARD.encode(key))
            }
            _ => return (400, Vec::new(), String::new()),
        };
        (200, Vec::new(), format!("{{\"data\": {{{data}}}}}"))
    });
    fs::create_dir(vault.scratch("bin")).unwrap();
    fs::write(vault.scratch("bin/bao"), BAO_PROGRAM).unwrap();
    fs::set_permissions(vault.scratch("bin/bao"), Permissions::from_mode(0o755)).unwrap();
    let variables = [("BAO_ADDR", &*server.endpoint()), ("BAO_TOKEN", "s.token")];
    create(&vault, &recipe(BAO, &vault).join("\n"), &variables);
}

#[test]
fn pkcs11_token() {
    let vault = Vault::absent(Database::Sqlite);
    let (settings, pin) = (vault.scratch("softhsm2.conf"), "a-pin-4711");
    fs::create_dir(vault.scratch("tokens")).unwrap();
    fs::write(&settings, format!("directories.tokendir = {}\n", vault.scratch("tokens").display())).unwrap();
    let prepare = "softhsm2-util --init-token --free --label orgvault --so-pin so-pin-0815 --pin $PKCS11_PIN";
    let [key, setting] = recipe(PKCS11, &vault);
    let variables = [("SOFTHSM2_CONF", settings.to_str().unwrap()), ("PKCS11_PIN", pin)];
    create(&vault, &[prepare, &key, &setting].join("\n"), &variables);
}

/// With the credential as systemd passes it to the service.
#[test]
fn systemd_credential() {
    if !geteuid().is_root() {
        skip!("only root can encrypt credentials of the host");
    }
    let vault = Vault::absent(Database::Sqlite);
    let [key, unit] = recipe(SYSTEMD, &vault);
    let (name, file) =
        unit.split_once("LoadCredentialEncrypted=").unwrap().1.split_once("\\n").unwrap().0.split_once(':').unwrap();
    let start = format!(
        "mkdir credentials\nsystemd-creds decrypt --name={name} {file} credentials/{name}\nchmod 0400 credentials/{name}\n\
         export CREDENTIALS_DIRECTORY=$PWD/credentials ORGVAULT_ROOT_KEY=credential:{name}"
    );
    let secret = vault.scratch("host.secret");
    create(&vault, &[key, start].join("\n"), &[("SYSTEMD_CREDENTIAL_SECRET", secret.to_str().unwrap())]);
}
