//! The QR code in a terminal, decoded like by a camera.

use std::process::Command;
use vault_tests::binary::Run;
use vault_tests::passcode::Authenticator;
use vault_tests::{Database, Vault};

/// Pixels per module of the code.
const MODULE: usize = 6;

/// Returns an image of `lines` as a terminal shows them, with two modules per character. Text is light on a dark
/// background, or the other way round with `dark_on_light`.
fn picture(lines: &[&str], dark_on_light: bool) -> Vec<u8> {
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap();
    let mut pixels = Vec::new();
    for line in lines {
        for lower in [false, true] {
            let inked = line.chars().chain(std::iter::repeat(' ')).take(width).map(|c| match c {
                ' ' => false,
                '\u{2588}' => true,
                '\u{2580}' => !lower,
                '\u{2584}' => lower,
                other => panic!("{other:?} in a QR code"),
            });
            let row: Vec<u8> = inked.flat_map(|ink| [if ink == dark_on_light { 0 } else { 255 }; MODULE]).collect();
            pixels.extend(row.repeat(MODULE));
        }
    }
    let header = format!("P5 {} {} 255\n", width * MODULE, lines.len() * 2 * MODULE);
    [header.as_bytes(), &pixels].concat()
}

/// Decodes the QR code in the image, if there is one.
fn read(vault: &Vault, picture: &[u8]) -> Option<String> {
    let file = vault.scratch("qr.pgm");
    std::fs::write(&file, picture).unwrap();
    let mut reader = Command::new("zbarimg");
    let run = Run::of(reader.args(["--quiet", "--raw", "--set", "*.enable=0", "--set", "qr.enable=1"]).arg(&file));
    (run.status == Some(0)).then(|| run.stdout.trim_end().to_owned())
}

#[test]
fn qr_code_is_the_authenticator_s_address() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Acme & Söhne: Imports/2026");
    let long = format!("{}@{}.example.com", "batch-import+nightly".repeat(3), "a-rather-long-label".repeat(3));
    for email in ["a@example.com", "user+tag@b\u{fc}cher.example", &long] {
        let create = ["account", "create", "--org", "Acme & Söhne: Imports/2026", "--email", email, "--role", "editor"];
        let text = vault.run(&create).done().stdout;
        let uri = text
            .split_whitespace()
            .find(|word| word.starts_with("otpauth://totp/"))
            .unwrap_or_else(|| panic!("no address in {text}"));
        let is_code = |line: &&str| !line.is_empty() && line.chars().all(|c| " \u{2580}\u{2584}\u{2588}".contains(c));
        let code: Vec<&str> = text
            .lines()
            .skip_while(|line| !line.contains(['\u{2580}', '\u{2584}', '\u{2588}']))
            .take_while(is_code)
            .collect();
        assert!(code.len() > 12, "no QR code in {text}");
        // Light on dark, like most terminals. Many readers support only one polarity, usually the other one.
        assert_eq!(read(&vault, &picture(&code, false)).as_deref(), Some(uri), "as a dark terminal shows it");

        // The URI has the RFC 6238 parameters that the server uses, and names the account.
        let query = uri.split_once('?').unwrap().1;
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        assert_eq!(value("digits").unwrap_or("6"), "6");
        assert_eq!(value("period").unwrap_or("30"), "30");
        assert_eq!(value("algorithm").unwrap_or("SHA1"), "SHA1");
        assert!(value("issuer").is_some_and(|issuer| !issuer.is_empty()), "{uri}");
        assert_eq!(Authenticator::new(value("secret").unwrap()).code(1).len(), 6);
    }
}
