//! A root key in AWS KMS: against moto with its judgement of signatures and rights on, and against documented answers.

use serde_json::json;
use std::sync::Arc;
use vault_core::credential::SecretBytes;
use vault_core::port::{KeyService as _, KeyServiceError};
use vault_storage::{Egress, KmsKey, KmsUri, ReadCredentials};
use vault_testkit::stores::{AccessKey, Moto};
use zeroize::Zeroizing;

fn allow(actions: &[&str]) -> String {
    let statement = json!({"Effect": "Allow", "Action": actions, "Resource": "*"});
    json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
}

fn file(content: String) -> ReadCredentials {
    Arc::new(move || Ok(Zeroizing::new(content.clone().into_bytes())))
}

fn keys(key: &AccessKey) -> ReadCredentials {
    file(format!(
        "# of a tool\n[other]\naws_access_key_id = x\naws_secret_access_key = y\n[default]\naws_access_key_id = {}\n\
         aws_secret_access_key={}\nregion = eu-central-1\n",
        key.id, key.secret
    ))
}

fn key(arn: &str, endpoint: &str, read: ReadCredentials) -> KmsKey {
    let uri: KmsUri = format!("aws-kms:{arn}?credentials-file=/nowhere&endpoint={endpoint}").parse().unwrap();
    KmsKey::new(uri, read, &Egress::default(), None).unwrap()
}

fn secret(text: &str) -> SecretBytes {
    SecretBytes::from(text.as_bytes().to_vec())
}

#[track_caller]
fn refusal<T>(result: Result<T, KeyServiceError>) -> String {
    match result.err().unwrap() {
        KeyServiceError::Refused(cause) => cause.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn moto_seals_and_opens_in_context() {
    let moto = Moto::start();
    let (arn, other) = (moto.create_kms_key(), moto.create_kms_key());
    let user = moto.create_user("vault", &allow(&["kms:Encrypt", "kms:Decrypt"]));
    let stranger = moto.create_user("stranger", &allow(&["s3:*"]));
    moto.evaluate();
    let root = key(&arn, &moto.endpoint(), keys(&user));
    assert!(
        root.key().starts_with("aws-kms:123456789012:key/") && arn.ends_with(root.key().rsplit('/').next().unwrap())
    );
    let text = "thirty-two bytes of a key, exact";
    let sealed = root.seal(&secret(text), b"here").await.unwrap();
    assert_eq!(root.open(&sealed, b"here").await.unwrap().expose(), text.as_bytes());

    let refused = root.open(&sealed, b"there").await;
    assert!(matches!(refused, Err(KeyServiceError::DoesNotOpen)), "{:?}", refused.err());
    let mut changed = sealed.clone();
    *changed.last_mut().unwrap() ^= 1;
    let refused = root.open(&changed, b"here").await;
    assert!(matches!(refused, Err(KeyServiceError::DoesNotOpen)), "{:?}", refused.err());
    let _ = other;

    let said = refusal(key(&arn, &moto.endpoint(), keys(&stranger)).open(&sealed, b"here").await);
    assert!(said.contains("AccessDenied") && said.contains(&arn), "{said}");
    let wrong = AccessKey { secret: "wrong".to_owned(), ..user.clone() };
    let said = refusal(key(&arn, &moto.endpoint(), keys(&wrong)).open(&sealed, b"here").await);
    assert!(said.contains("rejects") && !said.contains("wrong"), "{said}");
    let said = refusal(
        key(&arn, &moto.endpoint(), file("[default]\naws_access_key_id = a\n".into())).seal(&secret("x"), b"").await,
    );
    assert!(said.contains("/nowhere has no aws_access_key_id") && said.contains("[default]"), "{said}");
    let said =
        refusal(key(&arn, &moto.endpoint(), Arc::new(|| Err("no such file".into()))).seal(&secret("x"), b"").await);
    assert_eq!(said, "credentials for AWS KMS: no such file");
    let missing = arn.replace("key/", "key/0");
    let said = refusal(key(&missing, &moto.endpoint(), keys(&user)).seal(&secret("x"), b"").await);
    assert!(said.contains("NotFoundException"), "{said}");
}

#[tokio::test]
async fn unavailable_kms_may_be_retried() {
    let user = AccessKey { id: "a".to_owned(), secret: "b".to_owned() };
    // Nobody listens there.
    let root = key("arn:aws:kms:eu-central-1:111122223333:key/one", "http://127.0.0.1:1", keys(&user));
    let refused = root.seal(&secret("x"), b"").await.unwrap_err();
    assert!(matches!(refused, KeyServiceError::Unavailable(_)), "{refused:?}");
    assert!(refused.to_string().contains("http://127.0.0.1:1 does not respond"), "{refused}");
}

#[test]
fn uri_names_key_and_credentials() {
    let uri = "aws-kms:arn:aws:kms:eu-central-1:111122223333:key/mrk-1?credentials-file=/c&profile=vault";
    assert_eq!(uri.parse::<KmsUri>().unwrap().to_string(), uri);
    for (wrong, said) in [
        ("aws-kms:key/1", "ARN"),
        ("aws-kms:arn:aws:kms:r:1:alias/x?credentials-file=/c", "alias"),
        ("aws-kms:arn:aws:kms:r:1:key/x", "credentials-file"),
        ("aws-kms:arn:aws:kms:r:1:key/x?credentials-file=c", "absolute"),
        ("aws-kms:arn:aws:kms:r:1:key/x?credentials-file=/c&credentials-file=/d", "twice"),
        ("aws-kms:arn:aws:kms:r:1:key/x?credentials-file=/c&endpoint=http://kms.example", "https"),
        ("aws-kms:arn:aws:kms:r:1:key/x?credentials-file=/c&endpoint=https://a:b@kms.example", "https"),
        ("aws-kms:arn:aws:kms:r:1:key/x?credentials-file=/c&secret=x", "supports credentials-file"),
    ] {
        let refused = wrong.parse::<KmsUri>().unwrap_err().to_string();
        assert!(refused.contains(said), "{wrong}: {refused}");
    }
}
