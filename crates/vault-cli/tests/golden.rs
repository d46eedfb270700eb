//! Each form as its tool's documentation has it.

use super::samples::*;
use vault_cli::form::{CredentialEndpoint, EndpointAnswer, EnvironmentVariables, Form, FormError, FormName};
use vault_core::activation::Vended;
use vault_core::credential::{CredentialType, SecretText};

fn named(form: Form, vended: &Vended, name: &str) -> String {
    let name = FormName::parse(name).unwrap();
    form.render(&subject(vended, Some(&name))).unwrap().expose().to_owned()
}

/// The first line of shell formats, which unsets variables, is not compared.
#[test]
fn formats_equal_those_of_their_documentation() {
    let cases = include_str!("golden.txt").split("\n== ").skip(1);
    for case in cases {
        let (head, expected) = case.split_once('\n').unwrap();
        let (form, sample) = head.split_once(": ").unwrap();
        let (form, name) = form.split_once(" as ").unwrap_or((form, ""));
        let vended = match sample.split(" | ").collect::<Vec<_>>()[..] {
            ["plain_s3"] => plain_s3(),
            ["short_s3"] => short_s3(),
            ["s3", id, secret, token] => s3(id, secret, token),
            ["azure", connection] => azure(connection),
            ["short_azure"] => short_azure(),
            ["gcs"] => gcs(),
            ["short_gcs"] => short_gcs(),
            _ => panic!("{head}"),
        };
        let name = FormName::parse(name).ok();
        let shown = Form::parse(form).unwrap().render(&subject(&vended, name.as_ref())).unwrap();
        let shown = if shown.expose().starts_with("unset ") { exported(shown.expose()) } else { shown.expose() };
        assert_eq!(shown, format!("{}\n", expected.trim_end_matches('\n')), "{head}");
    }
}

#[test]
fn keys_without_their_address_are_refused() {
    // Keys without the store's address would be sent to Amazon.
    let error = render(Form::AwsCredentialProcess, &s3("AKIA", "s", "t")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "format aws-credential-process cannot contain this endpoint: it contains only keys, so the tool would send its \
         requests to Amazon. Use another --format"
    );
    let by_path = raw(
        CredentialType::S3,
        r#"{"access_key_id":"A","bucket":"my.bucket","path_style_access":true,"secret_access_key":"s"}"#,
    );
    let error = render(Form::AwsCredentialProcess, &by_path).unwrap_err();
    assert!(matches!(error, FormError::Unrepresentable { field: "path_style_access", .. }), "{error}");
}

/// The key that objects are encrypted under reaches the tools that take one.
#[test]
fn objects_are_written_under_their_kms_key() {
    let encrypted = raw(
        CredentialType::S3,
        r#"{"access_key_id":"A","bucket":"b","secret_access_key":"s","sse_kms_key_id":"alias/batch"}"#,
    );
    let shown = |form| render(form, &encrypted).unwrap();
    assert!(shown(Form::Env).contains("export ORGVAULT_SSE_KMS_KEY_ID='alias/batch'"));
    assert!(shown(Form::Rclone).contains("server_side_encryption = aws:kms\nsse_kms_key_id = alias/batch\n"));
    assert!(shown(Form::Json).contains("\"sse_kms_key_id\":\"alias/batch\""));
}

#[test]
fn env() {
    assert_eq!(
        render(Form::Env, &link("https://files.example/a?sig=x&y", "Bearer y")).unwrap(),
        "unset ORGVAULT_CREDENTIAL_FILE ORGVAULT_DUCKDB_SECRET ORGVAULT_BUCKET ORGVAULT_BUCKETS ORGVAULT_KEY_PREFIX ORGVAULT_PATH_STYLE_ACCESS ORGVAULT_SSE_KMS_KEY_ID \
         ORGVAULT_ROLE_ARN ORGVAULT_EXTERNAL_ID ORGVAULT_HEADERS_FILE ORGVAULT_CURL_CONFIG\nexport ORGVAULT_URL='https://files.example/a?sig=x&y'\nexport ORGVAULT_HEADERS='Authorization: Bearer y\n'\n"
    );
}

/// cloud.google.com/iam/docs/keys-create-delete: the file is the object, member for member.
#[test]
fn gcp_key_file() {
    let text = render(Form::GcpKeyFile, &gcs()).unwrap();
    let key: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(key["type"], "service_account");
    assert_eq!(key["private_key"], "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    assert_eq!(key.as_object().unwrap().len(), 4);
}

/// hadoop.apache.org: "Hadoop-AWS module", "Hadoop Azure Support: ABFS"; spark.apache.org: "Spark Configuration".
#[test]
fn hadoop() {
    assert!(render(Form::Hadoop, &azure("AccountName=acct;EndpointSuffix=core.windows.net")).unwrap().contains(
        "oauth2.client.endpoint.acct.dfs.core.windows.net=https://login.microsoftonline.com/t-1/oauth2/token\n"
    ));
    let elsewhere = azure("AccountName=acct;AccountKey=c2VjcmV0;BlobEndpoint=http://127.0.0.1:10000/acct");
    assert!(render(Form::Hadoop, &elsewhere).unwrap_err().to_string().contains("NAME.blob.core.windows.net"));
    assert!(render(Form::Hadoop, &s3("AKIA", " s", "t")).unwrap_err().to_string().contains("a space"));
}

/// What a form has no place for is refused by name.
#[test]
fn each_format_contains_all_it_supports() {
    let carried = |form: Form| all().iter().map(|vended| render(form, vended).is_ok()).collect::<Vec<_>>();
    let [y, n] = [true, false];
    for (form, expected) in [
        (Form::Json, [y; 9]),
        (Form::Env, [y; 9]),
        (Form::AwsCredentialProcess, [y, n, y, n, n, n, n, n, n]),
        (Form::AwsIni, [y, y, y, n, n, n, n, n, n]),
        (Form::Rclone, [y, y, y, y, y, y, y, y, n]),
        (Form::GcpKeyFile, [n, n, n, n, n, n, y, n, n]),
        (Form::Duckdb, [y, y, y, y, y, y, n, n, n]),
        (Form::Hadoop, [y, y, y, y, y, y, n, n, n]),
    ] {
        assert_eq!(carried(form), expected, "{form}");
        assert_eq!(Form::parse(form.as_str()), Some(form));
    }
    let error = render(Form::GcpKeyFile, &short_gcs()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "format gcp-key-file cannot contain a short-lived credential of type gcs: use another --format, or --vend raw"
    );
    let error = render(Form::Rclone, &link("https://h/", "x")).unwrap_err();
    assert_eq!(error.to_string(), "format rclone is not available for credentials of type direct-link");
}

/// A command gets the variables, rclone's too, and files where only files will do.
#[test]
fn command_environment_covers_all_tools() {
    let of = |vended: &Vended| EnvironmentVariables::for_command(&subject(vended, None)).unwrap();
    let s3 = s3("AKIA", "s", "t");
    let environment = of(&s3);
    let value = |name: &str| environment.variables.iter().find(|set| set.name == name).map(|set| set.value.expose());
    assert_eq!(value("AWS_SECRET_ACCESS_KEY"), Some("s"));
    assert_eq!(value("RCLONE_CONFIG_ORGVAULT_TYPE"), Some("s3"));
    assert_eq!(value("RCLONE_CONFIG_ORGVAULT_SECRET_ACCESS_KEY"), Some("s"));
    assert_eq!(value("ORGVAULT_ROLE_ARN"), Some("arn:aws:iam::123456789012:role/batch"));
    let files = |environment: EnvironmentVariables| {
        let files = environment
            .files
            .into_iter()
            .filter(|file| !["ORGVAULT_CREDENTIAL_FILE", "ORGVAULT_DUCKDB_SECRET"].contains(&&*file.variable));
        files
            .map(|file| (file.variable, String::from_utf8(file.content.expose().to_vec()).unwrap()))
            .collect::<Vec<_>>()
    };
    let config = "[default]\ns3 =\n    addressing_style = path\n";
    assert_eq!(files(of(&s3)), [("AWS_CONFIG_FILE".to_owned(), config.to_owned())]);
    let key = files(of(&gcs()));
    assert_eq!(key[0].0, "GOOGLE_APPLICATION_CREDENTIALS");
    assert_eq!(format!("{}\n", key[0].1), render(Form::GcpKeyFile, &gcs()).unwrap());
    let headers = files(of(&link("https://h/", "Bearer y")));
    assert_eq!(headers[0], ("ORGVAULT_HEADERS_FILE".to_owned(), "Authorization: Bearer y\n".to_owned()));
    let common = "silent\nshow-error\nfail\ngloboff\nlocation\n";
    let with_headers = "proto-redir = \"=https\"\nurl = \"https://h/a[1]?x={y}\"\nmax-redirs = 0\n\
        header = \"Authorization: a\\\"b\\\\c\"\n";
    assert_eq!(
        files(of(&link("https://h/a[1]?x={y}", "a\"b\\c")))[1],
        ("ORGVAULT_CURL_CONFIG".to_owned(), [common, with_headers].concat())
    );
    let plain = raw(CredentialType::DirectLink, r#"{"url":"HTTP://h/"}"#);
    let without = "proto-redir = \"=http,https\"\nurl = \"HTTP://h/\"\n";
    assert_eq!(files(of(&plain)), [("ORGVAULT_CURL_CONFIG".to_owned(), [common, without].concat())]);
    let config = "[default]\ns3 =\n    addressing_style = virtual\n";
    assert_eq!(files(of(&plain_s3())), [("AWS_CONFIG_FILE".to_owned(), config.to_owned())]);
    let whole = of(&gcs()).files.pop().unwrap();
    assert_eq!(
        (&*whole.variable, whole.content.expose()),
        ("ORGVAULT_CREDENTIAL_FILE", render(Form::Json, &gcs()).unwrap().as_bytes())
    );
}

/// Of an S3-style credential whose tools ask an endpoint for it, the key is in its answer alone. All else is as without one.
#[test]
fn served_command_gets_its_endpoint() {
    let endpoint = CredentialEndpoint {
        url: "http://127.0.0.1:1/c".to_owned(),
        token_url: "http://127.0.0.1:1/t".to_owned(),
        token: SecretText::from("shown"),
        token_file: "/run/token".to_owned(),
    };
    let of = |vended: &Vended| EnvironmentVariables::for_served_command(&subject(vended, None), &endpoint).unwrap();
    for (vended, config) in [(s3("AKIA", "secret", "token"), "path"), (plain_s3(), "virtual")] {
        let (served, plain) = (of(&vended), EnvironmentVariables::for_command(&subject(&vended, None)).unwrap());
        let Some(EndpointAnswer::Key { document: answer, .. }) = &served.answer else { panic!("no key") };
        let text = answer.expose();
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        let value = |name: &str, environment: &EnvironmentVariables| {
            let set = environment.variables.iter().find(|set| set.name == name);
            set.map(|set| set.value.expose().to_owned())
        };
        assert_eq!(document["AccessKeyId"].as_str().map(str::to_owned), value("AWS_ACCESS_KEY_ID", &plain));
        assert_eq!(document["SecretAccessKey"].as_str().map(str::to_owned), value("AWS_SECRET_ACCESS_KEY", &plain));
        assert_eq!(document["Token"].as_str().map(str::to_owned), value("AWS_SESSION_TOKEN", &plain));
        assert!(document["Token"].is_null() || document["Token"].is_string());
        assert!(document["Expiration"].as_str().unwrap().ends_with('Z'));
        assert_eq!(value("AWS_CONTAINER_CREDENTIALS_FULL_URI", &served).as_deref(), Some("http://127.0.0.1:1/c"));
        assert_eq!(value("AWS_CONTAINER_AUTHORIZATION_TOKEN", &served).as_deref(), Some("shown"));
        assert_eq!(value("RCLONE_CONFIG_ORGVAULT_ENV_AUTH", &served).as_deref(), Some("true"));
        assert_eq!(value("AWS_REGION", &served), value("AWS_REGION", &plain));
        let secret = document["SecretAccessKey"].as_str().unwrap();
        assert!(
            served
                .variables
                .iter()
                .all(|set| !set.value.expose().contains(secret) && !set.name.ends_with("ACCESS_KEY_ID"))
        );
        let file = |name: &str| {
            let file = served.files.iter().find(|file| file.variable == name).unwrap();
            String::from_utf8(file.content.expose().to_vec()).unwrap()
        };
        assert_eq!(file("AWS_CONFIG_FILE"), format!("[default]\ns3 =\n    addressing_style = {config}\n"));
        let place = match config {
            "path" => "ENDPOINT 's3.example:9000', USE_SSL 'true', URL_STYLE 'path', SCOPE 's3://nightly/in/a b'",
            _ => "SCOPE 's3://nightly/'",
        };
        let statement = "CREATE OR REPLACE SECRET \"orgvault\" (TYPE s3, PROVIDER credential_chain, REFRESH auto";
        assert_eq!(file("ORGVAULT_DUCKDB_SECRET"), format!("{statement}, REGION 'eu-west-1', {place});\n"));
        assert_eq!(file("BOTO_CONFIG"), "", "botocore reads ~/.boto before it asks an endpoint");
        assert_eq!(
            (file("AWS_SHARED_CREDENTIALS_FILE"), file("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")),
            (String::new(), "shown".to_owned())
        );
        for name in [
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CREDENTIAL_FILE",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_ACCESS_KEY_ID",
        ] {
            assert!(served.displaces(name), "{name}");
        }
    }
    let (served, plain) = (of(&short_gcs()), EnvironmentVariables::for_command(&subject(&short_gcs(), None)).unwrap());
    let Some(EndpointAnswer::AccessToken(token)) = &served.answer else { panic!("no token") };
    assert_eq!(token.expose(), "ya29.x");
    let count_tokens = |environment: &EnvironmentVariables| {
        environment.variables.iter().filter(|set| set.value.expose().contains("ya29.x")).count()
    };
    assert_eq!((count_tokens(&plain), count_tokens(&served)), (3, 0));
    assert!(served.variables.iter().any(|set| set.name == "RCLONE_CONFIG_ORGVAULT_ENV_AUTH"));
    for name in ["GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE"] {
        let file = served.files.iter().find(|file| file.variable == name).unwrap();
        let file: serde_json::Value = serde_json::from_slice(file.content.expose()).unwrap();
        assert_eq!(
            (&file["token_url"], &file["credential_source"]["file"]),
            (&"http://127.0.0.1:1/t".into(), &"/run/token".into())
        );
    }
    let served = of(&gcs());
    assert!(served.answer.is_none());
    assert_eq!(
        format!("{served:?}"),
        format!("{:?}", EnvironmentVariables::for_command(&subject(&gcs(), None)).unwrap())
    );
}

/// The lines after the first, which unsets.
fn exported(lines: &str) -> &str {
    let (first, rest) = lines.split_once('\n').unwrap();
    assert!(first.starts_with("unset "), "{first}");
    rest
}

/// What a command would inherit does not mix with what it gets; nor, in a shell, with what the lines set.
#[test]
fn variables_of_another_credential_are_unset() {
    const KEPT: [&str; 4] = ["AWS_REGION", "AWS_DEFAULT_REGION", "GOOGLE_CLOUD_PROJECT", "AWS_CONFIG_FILE"];
    const MIXED: [(CredentialType, &[&str]); 4] = [
        (
            CredentialType::S3,
            &["AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"],
        ),
        (
            CredentialType::AzureIdentity,
            &["AZURE_STORAGE_KEY", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_AUTHORITY_HOST", "AZCOPY_AUTO_LOGIN_TYPE"],
        ),
        (
            CredentialType::Gcs,
            &["GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST", "GOOGLE_CLOUD_UNIVERSE_DOMAIN"],
        ),
        (CredentialType::DirectLink, &["ORGVAULT_URL", "ORGVAULT_HEADERS"]),
    ];
    const REMOTES: [(CredentialType, &str); 3] = [
        (CredentialType::S3, "RCLONE_S3_SESSION_TOKEN"),
        (CredentialType::AzureIdentity, "RCLONE_AZUREBLOB_SAS_URL"),
        (CredentialType::Gcs, "RCLONE_GCS_SERVICE_ACCOUNT_FILE"),
    ];
    let name = FormName::parse("Source").unwrap();
    for vended in all() {
        let environment = EnvironmentVariables::for_command(&subject(&vended, None)).unwrap();
        let lines = render(Form::Env, &vended).unwrap();
        let unset: Vec<&str> = lines.lines().next().unwrap().split(' ').skip(1).collect();
        let files = environment.files.iter().map(|file| &file.variable);
        for name in environment.variables.iter().map(|set| &set.name).chain(files) {
            assert_eq!(environment.displaces(name), !KEPT.contains(&name.as_str()), "{name}");
        }
        let of_own_names = EnvironmentVariables::for_command(&subject(&vended, Some(&name))).unwrap();
        for (kind, names) in MIXED {
            for name in names {
                let mixes = kind == vended.kind() || kind == CredentialType::DirectLink;
                assert_eq!(environment.displaces(name), mixes, "{name}");
                let set = lines.contains(&format!("export {name}="));
                assert_eq!(unset.contains(name), mixes && !set, "{name}");
                assert!(!of_own_names.displaces(name), "{name}");
            }
        }
        for (kind, name) in REMOTES {
            assert_eq!(environment.displaces(name), kind == vended.kind(), "{name}");
            assert_eq!(of_own_names.displaces(name), kind == vended.kind(), "{name}");
        }
        for (name, displaced) in [
            ("RCLONE_CONFIG_ORGVAULT_SESSION_TOKEN", true),
            ("RCLONE_CONFIG_OTHER_TYPE", false),
            ("PATH", false),
            ("AWS_REGION", false),
        ] {
            assert_eq!(environment.displaces(name), displaced, "{name}");
        }
        assert!(of_own_names.displaces("RCLONE_CONFIG_SOURCE_TYPE"));
        let named_lines = named(Form::Env, &vended, "Source");
        assert!(named_lines.starts_with("export "), "under a name of its own nothing mixes");
    }
}

/// As a shell sees it: a token and an endpoint that were there before are gone.
#[cfg(unix)]
#[test]
fn evaluated_lines_unset_earlier_variables() {
    let lines = render(Form::Env, &plain_s3()).unwrap();
    let script = format!("set -eu\n{lines}env");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).env("AWS_SESSION_TOKEN", "stale").env("AWS_ENDPOINT_URL", "https://elsewhere.example");
    let output = shell.env("AWS_PROFILE", "other").env("AWS_REGION", "ap-south-1").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    for name in ["AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_PROFILE"] {
        assert!(!printed.contains(name), "{name} in {printed}");
    }
    assert!(printed.contains("AWS_REGION=eu-west-1\n") && printed.contains("AWS_ACCESS_KEY_ID=AKIA"), "{printed}");
}

#[test]
fn names_of_sections_are_plain() {
    for name in ["a", "Night-job_2", &"n".repeat(64)] {
        assert_eq!(FormName::parse(name).unwrap().as_str(), name);
    }
    for name in ["", "1a", "-a", "a]", "a b", "ä", "a\nb", &"n".repeat(65)] {
        assert!(FormName::parse(name).is_err(), "{name:?}");
    }
}
