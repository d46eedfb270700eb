//! Each form leads its tools to the address that a check requests, and to the directory that issued an application's secret.

use super::samples::*;
use vault_cli::form::{EnvironmentVariables, Form, FormError, FormName};
use vault_core::activation::Vended;
use vault_core::credential::CredentialType;

/// Keys of a bucket, with more fields.
fn bucket(name: &str, more: &str) -> Vended {
    raw(CredentialType::S3, &format!(r#"{{"access_key_id":"A","bucket":"{name}"{more},"secret_access_key":"s"}}"#))
}

fn azure_with(application: bool, connection: &str) -> Vended {
    let application = if application { r#""client_id":"c-1","client_secret":"s-1","tenant_id":"t-1","# } else { "" };
    raw(
        CredentialType::AzureIdentity,
        &format!(r#"{{{application}"connection_string":{},"container":"raw"}}"#, quoted(connection)),
    )
}

fn shown(form: Form, vended: &Vended) -> String {
    render(form, vended).unwrap_or_else(|error| error.to_string())
}

#[track_caller]
fn expect(form: Form, vended: &Vended, parts: &[&str]) {
    let shown = shown(form, vended);
    for part in parts {
        match part.strip_prefix('!') {
            Some(absent) => assert!(!shown.contains(absent), "{form} has {absent}: {shown}"),
            None => assert!(shown.contains(part), "{form} has no {part}: {shown}"),
        }
    }
}

/// The variables and the files that a command gets.
fn environment(vended: &Vended, name: Option<&FormName>) -> Vec<(String, String)> {
    let environment = EnvironmentVariables::for_command(&subject(vended, name)).unwrap();
    let variables = environment.variables.into_iter().map(|set| (set.name, set.value.expose().to_owned()));
    let files = environment.files.into_iter();
    let files = files.map(|file| (file.variable, String::from_utf8(file.content.expose().to_vec()).unwrap()));
    variables.chain(files).collect()
}

fn value<'a>(environment: &'a [(String, String)], name: &str) -> Option<&'a str> {
    environment.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
}

/// A store that has a host for each bucket.
#[test]
fn every_form_puts_the_bucket_in_the_host() {
    for more in [
        r#","endpoint":"https://ams3.store.example:8443/","path_style_access":false"#,
        r#","endpoint":"https://ams3.store.example:8443/""#,
    ] {
        let vended = bucket("daily", more);
        expect(Form::AwsIni, &vended, &["s3 =\n    addressing_style = virtual\n"]);
        expect(Form::Duckdb, &vended, &["URL_STYLE 'vhost'", "ENDPOINT 'ams3.store.example:8443'"]);
        expect(Form::Hadoop, &vended, &["bucket.daily.path.style.access=false\n"]);
        expect(Form::Rclone, &vended, &["provider = Other\n", "force_path_style = false\n"]);
        expect(Form::Env, &vended, &["ORGVAULT_PATH_STYLE_ACCESS='false'"]);
        let environment = environment(&vended, None);
        assert_eq!(value(&environment, "AWS_CONFIG_FILE"), Some("[default]\ns3 =\n    addressing_style = virtual\n"));
        assert_eq!(value(&environment, "RCLONE_CONFIG_ORGVAULT_FORCE_PATH_STYLE"), Some("false"));
    }
}

/// Path style is saved, or follows from the bucket's name or the endpoint.
#[test]
fn every_form_puts_the_bucket_in_the_path() {
    for (name, more) in [
        ("daily", r#","endpoint":"https://store.example","path_style_access":true"#),
        ("daily", r#","endpoint":"http://127.0.0.1:9000""#),
        ("daily", r#","endpoint":"http://[::1]:9000","path_style_access":false"#),
        ("daily.reports", r#","endpoint":"https://store.example","path_style_access":false"#),
        ("daily.reports", ""),
        ("daily", r#","path_style_access":true"#),
    ] {
        let vended = bucket(name, more);
        expect(Form::AwsIni, &vended, &["s3 =\n    addressing_style = path\n"]);
        expect(Form::Duckdb, &vended, &["URL_STYLE 'path'"]);
        expect(Form::Hadoop, &vended, &[&format!("bucket.{name}.path.style.access=true\n")]);
        expect(Form::Rclone, &vended, &["force_path_style = true\n"]);
        expect(Form::Env, &vended, &["ORGVAULT_PATH_STYLE_ACCESS='true'"]);
        let environment = environment(&vended, None);
        assert_eq!(value(&environment, "AWS_CONFIG_FILE"), Some("[default]\ns3 =\n    addressing_style = path\n"));
    }
    // rclone overrides path style for the provider AWS.
    expect(Form::Rclone, &bucket("daily", r#","path_style_access":true"#), &["provider = Other\n"]);
    expect(Form::Rclone, &bucket("daily", ""), &["provider = AWS\n", "!force_path_style"]);
}

/// DuckDB supports only one of Amazon's domains.
#[test]
fn amazon_is_found_in_each_partition() {
    let china = bucket("daily", r#","region":"cn-north-1""#);
    expect(Form::Duckdb, &china, &["ENDPOINT 's3.cn-north-1.amazonaws.com.cn', USE_SSL 'true'"]);
}

const GOVERNMENT: &str = "DefaultEndpointsProtocol=https;AccountName=madeupacct;EndpointSuffix=core.usgovcloudapi.net";
const REFUSED: &str = "would send the application's secret to the directory of the public cloud";

/// An application signs in at the directory of its account's cloud.
#[test]
fn application_uses_authority_of_its_cloud() {
    let vended = azure_with(true, GOVERNMENT);
    let blobs = "https://madeupacct.blob.core.usgovcloudapi.net";
    for form in [Form::Rclone, Form::Duckdb] {
        expect(form, &vended, &[REFUSED, "!s-1"]);
    }
    let endpoint = "fs.azure.account.oauth2.client.endpoint.madeupacct.dfs.core.usgovcloudapi.net=\
        https://login.microsoftonline.us/t-1/oauth2/token\n";
    expect(Form::Hadoop, &vended, &[endpoint, "!core.windows.net"]);
    expect(Form::Env, &vended, &["export AZURE_AUTHORITY_HOST='https://login.microsoftonline.us'\n"]);
    let environment_of = |name| environment(&vended, name);
    let plain = environment_of(None);
    assert_eq!(value(&plain, "AZURE_AUTHORITY_HOST"), Some("https://login.microsoftonline.us"));
    assert_eq!(value(&plain, "RCLONE_CONFIG_ORGVAULT_ENDPOINT"), Some(blobs));
    assert_eq!(value(&plain, "RCLONE_CONFIG_ORGVAULT_CLIENT_SECRET"), Some("s-1"));
    // Under a name of its own, rclone does not see the directory.
    let name = FormName::parse("to").unwrap();
    let named = environment_of(Some(&name));
    assert_eq!(value(&named, "TO_AZURE_AUTHORITY_HOST"), Some("https://login.microsoftonline.us"));
    assert!(named.iter().all(|(name, _)| !name.starts_with("RCLONE_")));
}

/// Keys and signatures open the account at its own address, whatever its cloud is.
#[test]
fn key_or_signature_uses_endpoint_of_account() {
    for application in [true, false] {
        let key = azure_with(application, &format!("{GOVERNMENT};AccountKey=c2VjcmV0"));
        let signed = azure_with(application, &format!("{GOVERNMENT};SharedAccessSignature=sv=1&sig=x"));
        let endpoint = "https://madeupacct.blob.core.usgovcloudapi.net";
        expect(Form::Rclone, &key, &[&format!("endpoint = {endpoint}\n"), "key = c2VjcmV0\n", "!client"]);
        expect(Form::Rclone, &signed, &[&format!("sas_url = {endpoint}/raw?sv=1&sig=x\n"), "!client"]);
        expect(Form::Duckdb, &key, &["EndpointSuffix=core.usgovcloudapi.net", "!s-1"]);
        expect(Form::Duckdb, &signed, &["EndpointSuffix=core.usgovcloudapi.net", "!s-1"]);
        expect(Form::Hadoop, &key, &["fs.azure.account.key.madeupacct.dfs.core.usgovcloudapi.net=c2VjcmV0\n"]);
        expect(Form::Hadoop, &signed, &["fs.azure.sas.fixed.token.madeupacct.dfs.core.usgovcloudapi.net=sv=1&sig=x\n"]);
        let expected = if application { "export AZURE_AUTHORITY_HOST" } else { "!export AZURE_AUTHORITY_HOST" };
        expect(Form::Env, &key, &["export AZURE_STORAGE_CONNECTION_STRING=", expected]);
        let (mut secret, plain) = (0, environment(&key, None));
        plain.iter().for_each(|(name, value)| secret += usize::from(value == "s-1" && name.contains("CLIENT_SECRET")));
        assert_eq!(secret, usize::from(application), "the Azure tools' variable only");
    }
}

/// The secret is omitted from the output if the directory that issued it is unknown.
#[test]
fn application_of_an_unknown_cloud_is_refused() {
    for connection in [
        "AccountName=madeupacct;EndpointSuffix=local.azurestack.external",
        "AccountName=madeupacct;BlobEndpoint=https://storage.house.example/madeupacct",
        "AccountName=devstoreaccount1;BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1",
    ] {
        let vended = azure_with(true, connection);
        for form in Form::ALL.into_iter().filter(|form| *form != Form::Json) {
            let error = render(form, &vended).unwrap_err();
            assert!(
                matches!(
                    error,
                    FormError::NotForType { .. } | FormError::Unrepresentable { field: "connection_string", .. }
                ),
                "{form}: {error}"
            );
        }
        assert!(EnvironmentVariables::for_command(&subject(&vended, None)).is_err());
        // With a key, the application is not needed.
        let key = azure_with(true, &format!("{connection};AccountKey=c2VjcmV0"));
        for form in [Form::Env, Form::Rclone, Form::Duckdb] {
            expect(form, &key, &["c2VjcmV0", "!s-1"]);
        }
        let environment = environment(&key, None);
        for (name, value) in environment.iter().filter(|(name, _)| name != "ORGVAULT_CREDENTIAL_FILE") {
            assert!(!value.contains("s-1"), "{name}");
        }
    }
}

/// An account in a DNS zone is in the public cloud, at a host that is not the usual one.
#[test]
fn account_in_dns_zone_uses_its_own_host() {
    let zone = "BlobEndpoint=https://madeupacct33.z07.blob.storage.azure.net/";
    let (application, signed) =
        (azure_with(true, zone), azure_with(true, &format!("{zone};SharedAccessSignature=sv=1&sig=x")));
    let host = "madeupacct33.z07.blob.storage.azure.net";
    expect(Form::Rclone, &application, &[&format!("endpoint = https://{host}\n"), "account = madeupacct33\n"]);
    expect(Form::Rclone, &signed, &[&format!("sas_url = https://{host}/raw?sv=1&sig=x\n")]);
    expect(Form::Duckdb, &application, &["NAME.blob.core.windows.net"]);
    expect(
        Form::Hadoop,
        &application,
        &["madeupacct33.z07.dfs.storage.azure.net=https://login.microsoftonline.com/t-1/"],
    );
    expect(Form::Env, &application, &["!AZURE_AUTHORITY_HOST='", "AZURE_STORAGE_ACCOUNT='madeupacct33'"]);
}

/// A key of another universe is shown to that universe only.
#[test]
fn key_of_another_universe_uses_its_endpoint() {
    let key = |more: &str| {
        raw(
            CredentialType::Gcs,
            &format!(
                r#"{{"bucket":"lake","service_account_key":{{"client_email":"a@p.iam.gserviceaccount.com","private_key":"k",
                "type":"service_account"{more}}}}}"#
            ),
        )
    };
    let other = key(r#","universe_domain":"universe.example""#);
    expect(Form::Rclone, &other, &["endpoint = https://storage.universe.example/storage/v1/\n"]);
    expect(Form::GcpKeyFile, &other, &[r#""universe_domain":"universe.example""#]);
    expect(
        Form::Env,
        &other,
        &["GOOGLE_CLOUD_UNIVERSE_DOMAIN='universe.example'", "CLOUDSDK_CORE_UNIVERSE_DOMAIN='universe.example'"],
    );
    let token =
        short(CredentialType::Gcs, r#"{"access_token":"ya29.x","bucket":"lake","universe_domain":"universe.example"}"#);
    expect(Form::Rclone, &token, &["endpoint = https://storage.universe.example/storage/v1/\n"]);
    expect(Form::Env, &token, &["GOOGLE_CLOUD_UNIVERSE_DOMAIN='universe.example'"]);
    for own in [key(""), key(r#","universe_domain":"googleapis.com""#)] {
        expect(Form::Rclone, &own, &["!endpoint"]);
        expect(Form::Env, &own, &["!UNIVERSE_DOMAIN='"]);
    }
}

/// One key for several buckets: formats name all of them, or the chosen one.
#[test]
fn several_buckets_are_all_listed_or_one_is_chosen() {
    const KEYS: &str = r#""access_key_id":"A","key_prefix":"in/","secret_access_key":"s""#;
    let several = || raw(CredentialType::S3, &format!(r#"{{{KEYS},"bucket":["daily","hourly"]}}"#));
    expect(Form::Duckdb, &several(), &["SCOPE ['s3://daily/in/', 's3://hourly/in/'])"]);
    let keys = ["bucket.daily.access.key=A\n", "bucket.hourly.access.key=A\n"];
    expect(Form::Hadoop, &several(), &keys);
    expect(Form::Env, &several(), &["export ORGVAULT_BUCKETS='daily hourly'\n", "unset ", "ORGVAULT_BUCKET "]);
    let buckets = environment(&several(), None);
    assert_eq!((value(&buckets, "ORGVAULT_BUCKETS"), value(&buckets, "ORGVAULT_BUCKET")), (Some("daily hourly"), None));
    let mut chosen = several();
    assert!(!chosen.keep_bucket("weekly"));
    assert!(chosen.keep_bucket("hourly"));
    expect(Form::Env, &chosen, &["export ORGVAULT_BUCKET='hourly'\n"]);
    // One that needs the path has all of them in the path, as in a check.
    let mixed = raw(CredentialType::S3, &format!(r#"{{{KEYS},"bucket":["daily","a.b"],"region":"eu-west-1"}}"#));
    expect(Form::AwsIni, &mixed, &["addressing_style = path"]);
}
