//! A root key in AWS KMS: against moto with its judgement of signatures and rights on, and against documented answers.

use serde_json::json;
use std::sync::{Arc, Mutex};
use url::form_urlencoded;
use vault_core::credential::SecretBytes;
use vault_core::port::{KeyService as _, KeyServiceError};
use vault_storage::{Egress, KmsKey, KmsUri, ReadCredentials};
use vault_testkit::stores::{AccessKey, Asked, Moto, Scripted};
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
    KmsKey::new(uri, read, &Egress::default()).unwrap()
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

const ROLE: &str = "arn:aws:iam::111122223333:role/vault";

/// STS and KMS. The token selects the response of STS.
fn sts_and_kms(asked: &Asked) -> (u16, Vec<(&'static str, String)>, String) {
    if asked.fields.contains_key("x-amz-target") {
        return (200, vec![], json!({"Plaintext": "c2VjcmV0"}).to_string());
    }
    let token = field(asked, "WebIdentityToken").unwrap();
    let refused = |status, code: &str| {
        (
            status,
            vec![],
            format!("<ErrorResponse><Error><Code>{code}</Code><Message>{token}</Message></Error></ErrorResponse>"),
        )
    };
    match &*token {
        "unknown" => refused(403, "AccessDenied"),
        "later" => refused(503, "ServiceUnavailable"),
        name => {
            let body = format!(
                "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
                 <AccessKeyId>ASIA{name}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session-{name}\
                 </SessionToken><Expiration>2030-01-01T00:00:00Z</Expiration></Credentials>\
                 </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
            );
            (200, vec![], body)
        }
    }
}

fn field(asked: &Asked, name: &str) -> Option<String> {
    let mut fields = form_urlencoded::parse(asked.body.as_bytes());
    fields.find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}

#[tokio::test]
async fn role_is_assumed_with_the_current_identity_token() {
    let server = Scripted::start(sts_and_kms);
    let token = Arc::new(Mutex::new("first\n"));
    let stored = Arc::clone(&token);
    let read: ReadCredentials = Arc::new(move || Ok(Zeroizing::new(stored.lock().unwrap().as_bytes().to_vec())));
    let endpoint = server.endpoint();
    let uri = format!(
        "aws-kms:arn:aws:kms:eu-central-1:111122223333:key/one?web-identity-token-file=/token&role-arn={ROLE}\
         &sts-endpoint={endpoint}&endpoint={endpoint}"
    );
    let root = KmsKey::new(uri.parse().unwrap(), read, &Egress::default()).unwrap();
    for name in ["first", "second"] {
        *token.lock().unwrap() = name;
        assert_eq!(root.open(b"sealed", b"here").await.unwrap().expose(), b"secret");
        let asked = server.asked();
        let [sts, kms] = &asked[asked.len() - 2..] else { panic!("{asked:?}") };
        assert!(!sts.fields.contains_key("authorization"));
        let found = ["Action", "RoleArn", "RoleSessionName", "DurationSeconds", "WebIdentityToken", "Policy"]
            .map(|name| field(sts, name).unwrap_or_default());
        assert_eq!(found, ["AssumeRoleWithWebIdentity", ROLE, "orgvault-kms", "900", name, ""]);
        assert_eq!(kms.fields["x-amz-security-token"], format!("session-{name}"));
        assert!(kms.fields["authorization"].contains(&format!("Credential=ASIA{name}/")));
    }
    *token.lock().unwrap() = "unknown";
    let said = refusal(root.open(b"sealed", b"here").await);
    assert_eq!(said, format!("AWS STS at {endpoint} rejects {ROLE}: AccessDenied"));
    *token.lock().unwrap() = "later";
    let later = root.open(b"sealed", b"here").await.unwrap_err();
    assert!(matches!(later, KeyServiceError::Unavailable(_)), "{later:?}");
    *token.lock().unwrap() = "\n";
    assert_eq!(refusal(root.open(b"sealed", b"here").await), "/token contains no identity token");
}

#[test]
fn uri_names_key_and_credentials() {
    let uri = "aws-kms:arn:aws:kms:eu-central-1:111122223333:key/mrk-1?credentials-file=/c&profile=vault";
    assert_eq!(uri.parse::<KmsUri>().unwrap().to_string(), uri);
    let uri = format!(
        "aws-kms:arn:aws:kms:eu-central-1:111122223333:key/one?web-identity-token-file=/t&role-arn={ROLE}\
         &sts-endpoint=https://sts.example&endpoint=https://kms.example"
    );
    assert_eq!(uri.parse::<KmsUri>().unwrap().to_string(), uri);
    for (wrong, said) in [
        ("aws-kms:arn:aws:kms:r:1:key/x?web-identity-token-file=t&role-arn=arn:aws:iam::1:role/x", "absolute"),
        ("aws-kms:arn:aws:kms:r:1:key/x?web-identity-token-file=/t", "role-arn"),
        ("aws-kms:arn:aws:kms:r:1:key/x?web-identity-token-file=/t&role-arn=arn:aws:iam::1:user/x", "ARN of a role"),
        ("aws-kms:arn:aws:kms:r:1:key/x?role-arn=arn:aws:iam::1:role/x", "needs the file"),
        ("aws-kms:arn:aws:kms:r:1:key/x?credentials-file=/c&role-arn=arn:aws:iam::1:role/x", "exclude"),
        ("aws-kms:arn:aws:kms:r:1:key/x?credentials-file=/c&sts-endpoint=https://sts.example", "exclude"),
        (
            "aws-kms:arn:aws:kms:r:1:key/x?web-identity-token-file=/t&role-arn=arn:aws:iam::1:role/x&profile=a",
            "exclude",
        ),
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
