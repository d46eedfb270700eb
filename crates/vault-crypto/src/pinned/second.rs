//! Formats that came later, in the deployment of the first vectors: committed as `tests/vectors/v2.txt`.

use super::*;
use vault_core::audit::AuditNote;

/// Purposes that came with integrations.
const LATER_PURPOSES: [DigestPurpose; 2] = [DigestPurpose::IntegrationToken, DigestPurpose::IntegrationGrant];

fn later_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/v2.txt")
}

fn noted() -> AuditRecord {
    AuditRecord { note: Some(AuditNote::of(namespace())), ..record() }
}

async fn deployment(directory: &Path) -> (Vectors, Keyring, Bench, CredentialCrypto) {
    let vectors = Vectors::read();
    let root = load_root(directory, vectors.bytes("root-key"));
    let (keyring, bench, crypto) = open(&vectors, &root).await;
    (vectors, keyring, bench, crypto)
}

#[tokio::test]
async fn later_codes_stay_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let (_, keyring, _bench, _) = deployment(directory.path()).await;
    let later = Vectors::of(&later_file());
    for purpose in LATER_PURPOSES {
        let name = format!("digest.{}", purpose.label().replace(' ', "-"));
        assert_eq!(keyring.digester().digest(purpose, &[b"one", b"two"]), later.digest(&name), "{name}");
    }
    assert_eq!(keyring.audit_sealer().seal(noted()).code, later.digest("audit-code-of-a-note"));
}

#[tokio::test]
async fn data_bound_to_its_namespace_opens_for_ever_and_there_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (vectors, _, _bench, crypto) = deployment(directory.path()).await;
    let later = Vectors::of(&later_file());
    let sealed = SealedCredential {
        key: vectors.key("organization-key.id"),
        data_key: later.blob("credential.data-key"),
        data: later.blob("credential.data"),
        information: vectors.blob("credential.information"),
    };
    let opened = crypto.opener.open(context(), &namespace(), CredentialType::DirectLink, &sealed, true).await.unwrap();
    assert_eq!(opened.to_canonical_json().expose(), DATA);
    let other = Namespace::parse("imports/daily", "").unwrap();
    assert!(crypto.opener.open(context(), &other, CredentialType::DirectLink, &sealed, true).await.is_err());
}

/// Writes the file, once. Run by hand.
#[tokio::test]
#[ignore = "writes the vectors of a new version"]
async fn write_later() {
    assert!(!later_file().exists(), "committed vectors never change");
    let directory = tempfile::tempdir().unwrap();
    let (_, keyring, bench, crypto) = deployment(directory.path()).await;
    let mut later = Vectors(BTreeMap::new());
    for purpose in LATER_PURPOSES {
        let digest = keyring.digester().digest(purpose, &[b"one", b"two"]);
        later.put(&format!("digest.{}", purpose.label().replace(' ', "-")), digest.as_bytes());
    }
    later.put("audit-code-of-a-note", keyring.audit_sealer().seal(noted()).code.as_bytes());
    let information = Information::from_json(INFORMATION.to_owned()).unwrap();
    let data = SecretBytes::from(DATA.to_vec());
    let key = bench.active_key(context().organization);
    let sealed = crypto.sealer.seal(key, context(), &namespace(), &data, &information).await.unwrap();
    later.put("credential.data-key", sealed.data_key.as_bytes());
    later.put("credential.data", sealed.data.as_bytes());
    later.write(&later_file());
}
