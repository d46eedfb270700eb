//! A PKCS#11 token: SoftHSM 2, from Debian.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Paths of the module on Debian and other systems.
const MODULES: [&str; 3] =
    ["/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/pkcs11/libsofthsm2.so", "/usr/local/lib/softhsm/libsofthsm2.so"];

/// A separate token for one test. Processes that use it need [`SoftHsm::variable`] in their environment.
#[derive(Debug)]
pub struct SoftHsm {
    home: PathBuf,
}

impl SoftHsm {
    /// The PIN of every token.
    pub const PIN: &str = "a-pin-4711";

    /// Creates the directory `home` for tokens.
    ///
    /// # Panics
    /// It exists, or cannot be written.
    pub fn at(home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        let tokens = home.join("tokens");
        fs::create_dir(&home).unwrap();
        fs::create_dir(&tokens).unwrap();
        let settings =
            format!("directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\n", tokens.display());
        fs::write(home.join("softhsm2.conf"), settings).unwrap();
        Self { home }
    }

    /// The module.
    ///
    /// # Panics
    ///
    /// SoftHSM is not installed.
    pub fn module() -> &'static Path {
        let found = MODULES.iter().map(Path::new).find(|path| path.exists());
        found.expect("SoftHSM is missing: apt-get install softhsm2, or run tests/run")
    }

    /// Returns the environment variable with the configuration of the module.
    pub fn variable(&self) -> (&'static str, PathBuf) {
        ("SOFTHSM2_CONF", self.home.join("softhsm2.conf"))
    }

    /// Creates a token.
    pub fn create_token(&self, label: &str) {
        self.run(&["--init-token", "--free", "--label", label, "--so-pin", "so-pin-0815", "--pin", Self::PIN]);
    }

    /// Imports an AES-256 key into a token. `id` is hexadecimal.
    pub fn import_key(&self, token: &str, label: &str, id: &str, key: &[u8; 32]) {
        let file = self.home.join("key");
        fs::write(&file, key).unwrap();
        let path = file.to_str().unwrap();
        self.run(&["--import", path, "--aes", "--token", token, "--label", label, "--id", id, "--pin", Self::PIN]);
        fs::remove_file(file).unwrap();
    }

    /// Returns the directory of the tokens, so that a test can remove and restore it.
    pub fn tokens(&self) -> PathBuf {
        self.home.join("tokens")
    }

    /// Returns the URI of a key whose PIN is in the file `pin`. `id` is hexadecimal.
    pub fn uri(token: &str, id: &str, pin: &Path) -> String {
        let id: String =
            id.to_uppercase().as_bytes().chunks(2).map(|byte| format!("%{}", String::from_utf8_lossy(byte))).collect();
        format!("pkcs11:token={token};id={id}?module-path={}&pin-source={}", Self::module().display(), pin.display())
    }

    fn run(&self, arguments: &[&str]) {
        let (name, value) = self.variable();
        let done = Command::new("softhsm2-util").args(arguments).env(name, value).output();
        let done = done.expect("softhsm2-util is missing: apt-get install softhsm2, or run tests/run");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
