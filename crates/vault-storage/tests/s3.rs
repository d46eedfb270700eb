//! S3-style stores: against moto with its judgement of signatures and rights on, and against documented answers.

use crate::support;

use self::support::tls::Authority;
use self::support::{ALL, check, check_short, data, order, storage};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vault_core::activation::ShortData;
use vault_core::check::{CheckReason, StorageOperation};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::port::CredentialVendor;
use vault_storage::{Deadlines, EgressPolicy, Places, Resolve, Storage, StorageSettings};
use vault_testkit::clock::SequentialIds;
use vault_testkit::stores::{AccessKey, Moto, Scripted};

const BUCKET: &str = "nightly-exports";

fn allow(actions: &[&str]) -> String {
    let statement = json!({"Effect": "Allow", "Action": actions, "Resource": "*"});
    json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
}

fn s3(json: &Value) -> CredentialData {
    data(CredentialType::S3, json)
}

fn saved(moto: &Moto, key: &AccessKey) -> Value {
    json!({
        "access_key_id": key.id, "secret_access_key": key.secret, "bucket": BUCKET, "region": "us-east-1",
        "endpoint": moto.endpoint(), "path_style_access": true,
    })
}

fn with(mut json: Value, name: &str, value: &str) -> Value {
    json[name] = value.into();
    json
}

#[tokio::test]
async fn moto_validates_keys_rights_and_buckets() {
    let moto = Moto::start();
    moto.create_bucket(BUCKET);
    moto.put(BUCKET, "in/a b+c.csv", b"1,2,3\n");
    let owner = moto.create_user("owner", &allow(&["s3:*"]));
    let reader = moto.create_user("reader", &allow(&["s3:ListBucket", "s3:GetObject"]));
    let lister = moto.create_user("lister", &allow(&["s3:ListBucket"]));
    moto.evaluate();
    let storage = storage(Places::default(), None);
    let of = |key: &AccessKey| saved(&moto, key);

    let whole = check(&storage, &s3(&of(&owner)), &ALL).await;
    assert_eq!(whole, ["authenticate passed", "list passed", "read passed", "write passed"]);
    // With a prefix, what lists everything opens more than it should.
    let prefixed = check(&storage, &s3(&with(of(&owner), "key_prefix", "in/")), &ALL).await;
    assert_eq!(prefixed[..4], ["authenticate passed", "list passed", "read passed", "write passed"]);
    assert_eq!(prefixed[4..], ["least-privilege warning excess-rights"]);
    // Nothing to read: what is written is read.
    let empty = check(&storage, &s3(&with(of(&owner), "key_prefix", "out/")), &ALL).await;
    assert_eq!(empty[..4], ["authenticate passed", "list passed", "read passed", "write passed"]);
    let read = [StorageOperation::Read];
    let nothing = check(&storage, &s3(&with(of(&owner), "key_prefix", "out/")), &read).await;
    assert_eq!(nothing[..2], ["authenticate passed", "read skipped nothing-to-try"]);
    let bare = check(&storage, &s3(&of(&reader)), &[]).await;
    assert_eq!(bare, ["authenticate passed"]);

    let cannot_write = check(&storage, &s3(&of(&reader)), &ALL).await;
    assert_eq!(cannot_write, ["authenticate passed", "list passed", "read passed", "write failed denied"]);
    let cannot_read = check(&storage, &s3(&of(&lister)), &ALL[..2]).await;
    let narrow = "least-privilege passed";
    assert_eq!(cannot_read, ["authenticate passed", "list passed", "read failed denied", narrow]);
    // Who only reads should not be able to write; told without writing.
    let reading = check(&storage, &s3(&of(&reader)), &ALL[..2]).await;
    assert_eq!(reading, ["authenticate passed", "list passed", "read passed", narrow]);
    for (broken, reason) in [
        (with(of(&owner), "access_key_id", "AKIAUNKNOWNUNKNOWN12"), "unknown-key"),
        (with(of(&owner), "secret_access_key", "not the one that was issued"), "signature-mismatch"),
        (with(of(&owner), "bucket", "nobody-made-this"), "bucket-missing"),
        (with(of(&owner), "endpoint", "http://127.0.0.1:1"), "unreachable"),
        (with(of(&owner), "endpoint", &moto.endpoint().replace("http:", "https:")), "tls"),
    ] {
        let report = check(&storage, &s3(&broken), &[StorageOperation::List]).await;
        assert_eq!(report, [format!("authenticate failed {reason}"), "list skipped earlier-failed".into()]);
    }
    moto.believe();
    assert!(!moto.list(BUCKET).contains("orgvault-check"), "something was left behind");
}

#[tokio::test]
async fn every_bucket_of_a_key_is_checked_and_covered_by_its_session() {
    let moto = Moto::start();
    for bucket in ["daily", "hourly"] {
        moto.create_bucket(bucket);
        moto.put(bucket, "in/a.csv", b"1\n");
    }
    let role = moto.create_role("exporter", &allow(&["s3:*"]));
    let owner = moto.create_user("owner", &allow(&["s3:*", "sts:AssumeRole"]));
    moto.evaluate();
    let storage = storage(Places::default(), None);
    let of = |buckets: &[&str]| {
        let mut json = with(saved(&moto, &owner), "role_arn", &role);
        json["bucket"] = json!(buckets);
        s3(&json)
    };
    let both = of(&["daily", "hourly"]);
    assert_eq!(check(&storage, &both, &ALL).await[..3], ["authenticate passed", "list passed", "read passed"]);
    let missing = check(&storage, &of(&["daily", "weekly"]), &ALL[..1]).await;
    assert_eq!(missing, ["authenticate failed bucket-missing weekly", "list skipped earlier-failed weekly"]);

    let short = storage.vend(&both, order(3_600)).await.unwrap().data;
    let report = check_short(&storage, &both, short, &ALL).await;
    assert_eq!(report[..4], ["authenticate passed", "list passed", "read passed", "write passed"]);
    let names: Vec<String> = (0..40).map(|number| format!("exports-of-the-region-{number}")).collect();
    let many = of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(storage.vend(&many, order(3_600)).await.unwrap_err(), CheckReason::TooManyBuckets);
}

#[tokio::test]
async fn role_issues_keys_that_work_and_expire() {
    let moto = Moto::start();
    moto.create_bucket(BUCKET);
    moto.put(BUCKET, "in/a.csv", b"1\n");
    let role = moto.create_role("exporter", &allow(&["s3:*"]));
    let owner = moto.create_user("owner", &allow(&["sts:AssumeRole"]));
    let other = moto.create_user("other", &allow(&["s3:ListBucket"]));
    moto.evaluate();
    let storage = storage(Places::default(), None);
    let saved = |key: &AccessKey| with(with(saved(&moto, key), "role_arn", &role), "key_prefix", "in/");

    // Without a short form the saved keys are what is handed out, and so what is checked: the role is not assumed.
    let report = check(&storage, &s3(&saved(&owner)), &ALL[..1]).await;
    assert_eq!(report[..2], ["authenticate passed", "list failed denied"]);
    let report = check(&storage, &s3(&saved(&other)), &ALL[..1]).await;
    assert_eq!(report[..2], ["authenticate passed", "list passed"]);
    let report = check(&storage, &s3(&with(saved(&owner), "secret_access_key", "wrong")), &[]).await;
    assert_eq!(report, ["authenticate failed signature-mismatch"]);

    let order = order(3_600);
    let short = storage.vend(&s3(&saved(&owner)), order.clone()).await.unwrap().data;
    let report = check_short(&storage, &s3(&saved(&owner)), short, &ALL).await;
    assert_eq!(report[..4], ["authenticate passed", "list passed", "read passed", "write passed"]);
    let vended = storage.vend(&s3(&saved(&owner)), order.clone()).await.unwrap();
    assert!(vended.expires_at.millis_since(order.now).abs_diff(3_600_000) < 60_000, "{:?}", vended.expires_at);
    let ShortData::S3(short) = vended.data else { panic!("of another type") };
    assert_ne!(short.access_key_id.expose(), owner.id);
    assert_eq!((short.bucket.single(), short.key_prefix.as_deref()), (Some(BUCKET), Some("in/")));
    let session = json!({
        "access_key_id": short.access_key_id.expose(), "secret_access_key": short.secret_access_key.expose(),
        "session_token": short.session_token.expose(), "bucket": BUCKET, "region": "us-east-1",
        "endpoint": moto.endpoint(), "path_style_access": true,
    });
    let report = check(&storage, &s3(&session), &ALL).await;
    assert_eq!(report, ["authenticate passed", "list passed", "read passed", "write passed"]);
    assert_eq!(storage.vend(&s3(&saved(&other)), order.clone()).await.unwrap_err(), CheckReason::Denied);
    let unknown = with(saved(&owner), "access_key_id", "AKIAUNKNOWNUNKNOWN12");
    assert_eq!(storage.vend(&s3(&unknown), order.clone()).await.unwrap_err(), CheckReason::UnknownKey);
}

#[tokio::test]
async fn directory_buckets_are_neither_requested_nor_limited() {
    let names = support::Names::new(&[]);
    let storage = names.storage(None);
    for bucket in ["scratch--use1-az4--x-s3", "jobs--use1-az4--xa-s3"] {
        let saved = json!({
            "access_key_id": "AKIAUNKNOWNUNKNOWN12", "secret_access_key": "made/up+secret46", "bucket": bucket,
            "region": "us-east-1", "role_arn": "arn:aws:iam::123456789012:role/exporter",
        });
        let report = check(&storage, &s3(&saved), &ALL[..1]).await;
        assert_eq!(report, ["authenticate skipped directory-bucket", "list skipped directory-bucket"]);
        let refusal = storage.vend(&s3(&saved), order(3_600)).await.unwrap_err();
        assert_eq!(refusal, CheckReason::DirectoryBucket);
    }
    assert!(names.asked().is_empty());
}

/// Knows the store's name, and none below it.
struct NoHostNames;

#[async_trait]
impl Resolve for NoHostNames {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if host == "store.test" { Ok(vec![Ipv4Addr::LOCALHOST.into()]) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

#[tokio::test]
async fn store_without_bucket_hosts_uses_path_style() {
    let store = Scripted::start(|asked| match asked.path.starts_with("/nightly-exports/?") {
        true => (200, vec![], "<ListBucketResult></ListBucketResult>".into()),
        false => (404, vec![], error("NoSuchBucket")),
    });
    let egress = EgressPolicy::allowing(vec!["127.0.0.0/8".parse().unwrap()]).into();
    let settings = StorageSettings { egress, ..StorageSettings::default() };
    let ids = Arc::new(SequentialIds::default());
    let storage = Storage::with_resolver(settings, ids, Arc::new(NoHostNames)).unwrap();
    let saved = json!({
        "access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "secret", "bucket": BUCKET,
        "endpoint": store.endpoint().replace("127.0.0.1", "store.test"), "path_style_access": true,
    });
    assert_eq!(check(&storage, &s3(&saved), &[]).await, ["authenticate passed"]);
    for style in [json!(false), Value::Null] {
        let mut saved = saved.clone();
        if style.is_null() {
            saved.as_object_mut().unwrap().remove("path_style_access");
        } else {
            saved["path_style_access"] = style;
        }
        assert_eq!(check(&storage, &s3(&saved), &[]).await, ["authenticate failed path-style-needed"]);
        // Where it does not help, what was found first is what is said.
        let missing = with(saved, "bucket", "nobody-made-this");
        assert_eq!(check(&storage, &s3(&missing), &[]).await, ["authenticate failed dns"]);
    }
}

#[tokio::test]
async fn possibly_written_object_is_deleted() {
    let authority = Authority::new();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&asked);
    let server = authority.serve(move |head| {
        let line: Vec<_> = head.split(' ').take(2).map(str::to_owned).collect();
        let method = line[0].clone();
        reported.lock().unwrap().push(line);
        match &*method {
            "GET" => {
                let body = "<ListBucketResult></ListBucketResult>";
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
            }
            "POST" => {
                let started = "<UploadId>u/1</UploadId>";
                let body = format!("<InitiateMultipartUploadResult>{started}</InitiateMultipartUploadResult>");
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
            }
            // Hangs up without a word.
            "PUT" => String::new(),
            _ => "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_owned(),
        }
    });
    let storage = storage(Places::default(), Some(authority.certificate()));
    let saved = json!({
        "access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "secret", "bucket": BUCKET,
        "endpoint": format!("https://{server}"), "key_prefix": "out/",
    });
    let report = check(&storage, &s3(&saved), &ALL).await;
    let read = "read skipped nothing-to-try";
    assert_eq!(report[..4], ["authenticate passed", "list passed", read, "write failed unreachable"]);
    let asked = asked.lock().unwrap();
    let of = |method: &str| -> Vec<_> { asked.iter().filter(|line| line[0] == method).map(|line| &*line[1]).collect() };
    let (name, _) = of("PUT")[0].split_once('?').unwrap();
    assert!(name.starts_with("/nightly-exports/out/orgvault-check-"));
    assert_eq!(of("DELETE"), [&*format!("{name}?uploadId=u%2F1"), name], "the parts, and what they may have become");
}

/// Runs another test of this program among variables that tools of the clouds obey.
#[test]
fn environment_is_not_read() {
    let nowhere = "http://127.0.0.1:1";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "s3::session_is_requested_within_bounds_and_narrowed"])
        .envs(["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"].map(|name| (name, nowhere)))
        .envs(["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_S3"].map(|name| (name, nowhere)))
        .envs([("AWS_ACCESS_KEY_ID", "AKIAOFTHESERVER"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_SESSION_TOKEN", "t")])
        .envs([("AWS_REGION", "ap-south-1"), ("AWS_PROFILE", "server"), ("AWS_USE_FIPS_ENDPOINT", "true")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// The document of an error: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>.
fn error(code: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>m</Message></Error>")
}

#[tokio::test]
async fn other_s3_errors_are_distinguished() {
    let script = Scripted::start(|asked| {
        let bucket = asked.path.split(['/', '?']).nth(1).unwrap_or_default();
        match bucket {
            // <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList>
            "skewed" => (403, vec![], error("RequestTimeTooSkewed")),
            "expired" => (400, vec![], error("ExpiredToken")),
            "malformed" => (400, vec![], error("AuthorizationHeaderMalformed")),
            "elsewhere" => (301, vec![("x-amz-bucket-region", "eu-west-1".into())], error("PermanentRedirect")),
            "headonly" => (301, vec![("x-amz-bucket-region", "eu-west-1".into())], String::new()),
            "moved" => (302, vec![("Location", "http://169.254.169.254/".into())], String::new()),
            "busy" => (503, vec![], error("SlowDown")),
            "website" => (200, vec![], "<html>Welcome</html>".into()),
            "huge" => (200, vec![], "x".repeat(1 << 20)),
            "bare" => (403, vec![], String::new()),
            // <https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPart.html#API_UploadPart_Errors>
            "wide" if asked.path.contains("uploadId") => (404, vec![], error("NoSuchUpload")),
            "wide" => (200, vec![], "<ListBucketResult></ListBucketResult>".into()),
            _ => (404, vec![], error("NoSuchBucket")),
        }
    });
    let storage = storage(Places::default(), None);
    for (bucket, expected) in [
        ("skewed", "authenticate failed clock-skew"),
        ("expired", "authenticate failed token-expired"),
        ("malformed", "authenticate failed wrong-region"),
        ("elsewhere", "authenticate failed wrong-region"),
        ("headonly", "authenticate failed wrong-region"),
        ("moved", "authenticate failed redirected"),
        ("busy", "authenticate failed store-error"),
        ("website", "authenticate failed unexpected-answer"),
        ("huge", "authenticate failed unexpected-answer"),
        ("bare", "authenticate passed"),
    ] {
        let saved = json!({
            "access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "secret", "bucket": bucket,
            "region": "us-east-1", "endpoint": script.endpoint(), "path_style_access": true, "session_token": "token",
        });
        assert_eq!(check(&storage, &s3(&saved), &[]).await, [expected], "{bucket}");
    }
    assert!(script.asked().iter().all(|asked| asked.method == "GET"), "something was written");
    let saved = json!({
        "access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "secret", "bucket": "wide",
        "region": "us-east-1", "endpoint": script.endpoint(), "path_style_access": true,
    });
    let report = check(&storage, &s3(&saved), &[StorageOperation::List]).await;
    assert_eq!(report, ["authenticate passed", "list passed", "least-privilege warning excess-rights"]);
}

/// An answer of AssumeRole: <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>.
fn assumed(expiration: &str) -> String {
    format!(
        "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult><Credentials>\
         <AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>\
         <Expiration>{expiration}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
}

#[tokio::test]
async fn session_is_requested_within_bounds_and_narrowed() {
    let script = Scripted::start(|asked| {
        let refused = |status, code: &str, message: &str| {
            let error = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
            (status, vec![], format!("<ErrorResponse>{error}</ErrorResponse>"))
        };
        match () {
            // <https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_roles.html>
            () if asked.body.contains("too-long") => refused(
                400,
                "ValidationError",
                "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
            ),
            () if asked.body.contains("off") => refused(403, "RegionDisabledException", "STS is not activated"),
            () if asked.body.contains("broken") => (200, vec![], "<html>".into()),
            () => (200, vec![], assumed("2030-01-01T00:00:00Z")),
        }
    });
    let storage = storage(Places::default(), None);
    let saved = |role: &str| {
        s3(&json!({
            "access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "secret", "bucket": "b*",
            "region": "eu-west-1", "endpoint": script.endpoint(), "key_prefix": "in/",
            "role_arn": format!("arn:aws:iam::123456789012:role/{role}"), "external_id": "ours",
        }))
    };
    for (seconds, expected) in [(60, 900), (3_600, 3_600), (86_400, 43_200)] {
        let vended = storage.vend(&saved("r"), order(seconds)).await.unwrap();
        assert_eq!(vended.expires_at.as_seconds(), 1_893_456_000);
        let body = script.asked().last().unwrap().body.clone();
        for part in [
            &*format!("DurationSeconds={expected}"),
            "ExternalId=ours",
            "RoleSessionName=orgvault-",
            "in%2F%2A",
            "b%24%7B%2A%7D",
            "Policy=",
        ] {
            assert!(body.contains(part), "{part} in {body}");
        }
        assert!(!body.contains("kms"), "no condition that another store does not know");
    }
    for (role, reason) in
        [("too-long", CheckReason::Lifetime), ("off", CheckReason::WrongRegion), ("broken", CheckReason::Unexpected)]
    {
        assert_eq!(storage.vend(&saved(role), order(3_600)).await.unwrap_err(), reason, "{role}");
    }
    let asked = script.asked();
    let authorization = asked.iter().map(|asked| &asked.fields["authorization"]);
    assert!(authorization.into_iter().all(|field| field.contains("/eu-west-1/sts/aws4_request")));
}

/// MinIO and others issue sessions of the saved keys themselves
/// (<https://min.io/docs/minio/linux/developers/security-token-service/AssumeRole.html>).
#[tokio::test]
async fn other_stores_issue_sessions_at_configured_endpoint() {
    let script = Scripted::start(|_| (200, vec![], assumed("2030-01-01T00:00:00Z")));
    let elsewhere = Scripted::start(|_| (200, vec![], assumed("2030-01-01T00:00:00Z")));
    let storage = storage(Places::default(), None);
    let saved = json!({
        "access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "secret", "bucket": "exports",
        "endpoint": script.endpoint(), "sse_kms_key_id": "alias/batch",
    });
    let vended = storage.vend(&s3(&saved), order(3_600)).await.unwrap();
    let ShortData::S3(short) = vended.data else { panic!("of another type") };
    assert_eq!(short.sse_kms_key_id.as_deref(), Some("alias/batch"));
    let body = script.asked()[0].body.clone();
    assert!(body.contains("Action=AssumeRole") && body.contains("Policy=") && !body.contains("RoleArn"), "{body}");
    assert!(!body.contains("Tags"), "{body}");

    storage.vend(&s3(&with(saved, "sts_endpoint", &elsewhere.endpoint())), order(3_600)).await.unwrap();
    assert_eq!((script.asked().len(), elsewhere.asked().len()), (1, 1));

    // Amazon's service issues them for roles only, so it is not asked.
    let amazon = json!({
        "access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "secret", "bucket": "exports",
        "endpoint": "https://s3.eu-west-1.amazonaws.com",
    });
    assert_eq!(storage.vend(&s3(&amazon), order(3_600)).await.unwrap_err(), CheckReason::NoRole);
}

#[tokio::test]
async fn sessions_are_tagged_if_configured() {
    let script = Scripted::start(|_| (200, vec![], assumed("2030-01-01T00:00:00Z")));
    let egress = EgressPolicy::allowing(vec!["127.0.0.0/8".parse().unwrap()]).into();
    let settings = StorageSettings { egress, session_tags: true, ..StorageSettings::default() };
    let storage = Storage::new(settings, Arc::new(SequentialIds::default())).unwrap();
    let saved = json!({
        "access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "secret", "bucket": "exports",
        "endpoint": script.endpoint(), "role_arn": "arn:aws:iam::123456789012:role/exporter",
    });
    storage.vend(&s3(&saved), order(3_600)).await.unwrap();
    let body = script.asked()[0].body.clone();
    for part in [
        "Tags.member.1.Key=orgvault%3Aorganization&Tags.member.1.Value=00000000-0000-0000-0000-000000000005",
        "Tags.member.2.Key=orgvault%3Anamespace&Tags.member.2.Value=imports%2Fnightly",
        "Tags.member.3.Key=orgvault%3Aintegration&Tags.member.3.Value=00000000-0000-0000-0000-000000000006",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
}

/// An upload in parts, under the key that the credential names: <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html>.
#[tokio::test]
async fn write_check_is_multipart_upload() {
    let script = Scripted::start(|asked| match (&*asked.method, asked.path.split_once('?').map(|(_, query)| query)) {
        ("GET", _) => (200, vec![], "<ListBucketResult></ListBucketResult>".into()),
        ("POST", Some("uploads")) => {
            let started = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
            (200, vec![], started.into())
        }
        ("PUT", Some("partNumber=1&uploadId=u")) => (200, vec![("ETag", "\"e\"".into())], String::new()),
        // Begun as a success, ended as an error.
        ("POST", Some("uploadId=u")) if asked.path.contains("torn") => (200, vec![], error("InternalError")),
        ("POST", Some("uploadId=u")) => {
            (200, vec![], "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>".into())
        }
        ("DELETE", _) => (204, vec![], String::new()),
        _ => (400, vec![], error("MalformedXML")),
    });
    let storage = storage(Places::default(), None);
    let saved = |prefix: &str| {
        s3(&json!({
            "access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "secret", "bucket": BUCKET,
            "endpoint": script.endpoint(), "key_prefix": prefix, "sse_kms_key_id": "alias/batch",
        }))
    };
    let report = check(&storage, &saved("out/"), &[StorageOperation::Write]).await;
    assert_eq!(report[..2], ["authenticate passed", "write passed"]);
    let asked = script.asked();
    let started = asked.iter().find(|asked| asked.path.ends_with("?uploads")).unwrap();
    assert_eq!(started.fields["x-amz-server-side-encryption"], "aws:kms");
    assert_eq!(started.fields["x-amz-server-side-encryption-aws-kms-key-id"], "alias/batch");
    assert!(started.fields["authorization"].contains("x-amz-server-side-encryption-aws-kms-key-id"), "it is signed");
    let completed = asked.iter().find(|asked| asked.path.ends_with("?uploadId=u") && asked.method == "POST").unwrap();
    assert!(completed.body.contains("<PartNumber>1</PartNumber><ETag>&quot;e&quot;</ETag>"), "{}", completed.body);

    let report = check(&storage, &saved("torn/"), &[StorageOperation::Write]).await;
    assert_eq!(report[..2], ["authenticate passed", "write failed store-error"]);
    let abandoned =
        |asked: &&vault_testkit::stores::Asked| asked.method == "DELETE" && asked.path.contains("uploadId=u");
    assert_eq!(script.asked().iter().filter(abandoned).count(), 1);
}

#[tokio::test]
async fn silent_store_is_reported_as_unreachable() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap(); // takes connections into its queue, and that is all
    let data = s3(&json!({
        "access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "saved", "bucket": "exports",
        "region": "us-east-1", "endpoint": format!("http://{}", silent.local_addr().unwrap()),
        "role_arn": "arn:aws:iam::123456789012:role/exporter",
    }));
    // Past the five seconds after which the SDK takes a stream for stalled.
    let deadlines = Deadlines { exchange: Duration::from_secs(7), ..Deadlines::default() };
    let egress = EgressPolicy::allowing(vec!["127.0.0.0/8".parse().unwrap()]).into();
    let settings = StorageSettings { egress, deadlines, ..StorageSettings::default() };
    let storage = Storage::new(settings, Arc::new(SequentialIds::default())).unwrap();
    assert_eq!(storage.vend(&data, order(3_600)).await.err(), Some(CheckReason::Unreachable));
}
