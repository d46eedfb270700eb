use super::*;

fn read_all(source: Source, text: &str) -> Vec<Entry> {
    read(source, Path::new("/nowhere/file.json"), text).unwrap_or_else(|failure| panic!("{failure}"))
}

fn said(entry: &Entry) -> String {
    match &entry.content {
        Ok(fields) => match check(fields) {
            Ok(()) => format!("{} {}", fields.kind.as_str(), fields.to_json().expect("JSON").as_str()),
            Err(flaw) => flaw.to_string(),
        },
        Err(flaw) => flaw.to_string(),
    }
}

fn all(source: Source, text: &str) -> Vec<(String, String)> {
    read_all(source, text).iter().map(|entry| (entry.name.clone(), said(entry))).collect()
}

#[track_caller]
fn refused(source: Source, text: &str, reason: &str) {
    let Err(failure) = read(source, Path::new("/nowhere/file"), text) else { panic!("it was read") };
    assert!(failure.to_string().contains(reason), "{failure}");
}

#[test]
fn remotes_of_rclone() {
    let text = "# comment\n[nightly]\ntype = s3\nprovider = Minio\naccess_key_id = AKIA\nsecret_access_key = s=1\n\
                endpoint = minio.example:9000\nbucket = in\n\n[photos]\ntype = drive\ntoken = {\"a\":1}\n\n[ci]\ntype = s3\n\
                env_auth = true\n\n[lake]\ntype = azureblob\naccount = acct\ntenant = t-1\nclient_id = c-1\nclient_secret = x\n\
                container = raw\n\n[half]\ntype = s3\naccess_key_id = AKIA\nbucket = b\n\n[gone]\ntype = google cloud storage\n\
                service_account_file = gone.json\n";
    let found = all(Source::Rclone, text);
    let expected = [
        (
            "nightly",
            "s3 {\"access_key_id\":\"AKIA\",\"bucket\":\"in\",\"endpoint\":\"https://minio.example:9000\",\"path_style_access\":true,\"secret_access_key\":\"s=1\"}",
        ),
        ("photos", "line 11, type: drive cannot be kept in a vault; s3, azureblob and google cloud storage can"),
        ("ci", "line 16, env_auth: the remote takes its key from its surroundings, not from here"),
        (
            "lake",
            "azure_identity {\"client_id\":\"c-1\",\"client_secret\":\"x\",\"connection_string\":\"DefaultEndpointsProtocol=https;AccountName=acct;EndpointSuffix=core.windows.net\",\"container\":\"raw\",\"tenant_id\":\"t-1\"}",
        ),
        ("half", "line 26, secret_access_key: is required (the credential's secret_access_key)"),
    ];
    for ((name, said), (expected_name, expected)) in found.iter().zip(expected) {
        assert_eq!((&**name, &**said), (expected_name, expected));
    }
    assert!(
        found[5].1.starts_with("line 33, service_account_file: cannot read /nowhere/gone.json: "),
        "{}",
        found[5].1
    );
    refused(Source::Rclone, "# Encrypted rclone configuration File\nRCLONE_ENCRYPT_V0:\nabc", "rclone config show");
    refused(Source::Rclone, "[a]\ntype = s3\n[a]\n", "line 3: the section a is there twice");
    refused(Source::Rclone, "[a]\nsecret\n", "line 2: expected `name = value`");
    refused(Source::Rclone, "", "no entry of rclone");
}

#[test]
fn profiles_of_the_aws_tools() {
    let text = "[default]\naws_access_key_id=AKIA\naws_secret_access_key=s\n\n[role]\nrole_arn=arn:aws:iam::123456789012:role/x\n\
                source_profile=default\nregion=eu-west-1\n\n[profile sso]\nsso_session = corp\n\n[lost]\nsource_profile = gone\n\
                role_arn=arn:aws:iam::123456789012:role/x\n\n[own]\naws_access_key_id=AKIB\naws_secret_access_key=t\n\
                endpoint_url=http://10.0.0.1:9000\nbucket=b\ns3 =\n  addressing_style = path\n";
    let found = all(Source::Aws, text);
    let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["default", "role", "sso", "lost", "own"]);
    assert_eq!(found[0].1, "line 1, bucket: is required (the credential's bucket)");
    assert_eq!(found[1].1, "line 5, bucket: is required (the credential's bucket)");
    assert_eq!(found[2].1, "line 11, sso_session: it signs in with a browser, which a job cannot");
    assert_eq!(found[3].1, "line 14, source_profile: the file has no profile of this name");
    assert!(found[4].1.contains("\"path_style_access\":true"), "{}", found[4].1);
    let role = read_all(Source::Aws, text).swap_remove(1).content.unwrap_or_else(|flaw| panic!("{flaw}"));
    assert_eq!(role.get("access_key_id").and_then(fields::Field::text), Some("AKIA"));
}

#[test]
fn connections_of_airflow() {
    let text = r#"{
  "s3_nightly": {"conn_type": "aws", "login": "AKIA", "password": "s", "extra": "{\"region_name\": \"eu-west-1\", \"service_config\": {\"s3\": {\"bucket_name\": \"in\"}}}"},
  "by_uri": "aws://AKIB:a%2Fb%40c@/?region_name=eu-west-1&bucket_name=in",
  "warehouse": {"conn_type": "postgres", "host": "db", "login": "u", "password": "p"},
  "lake": {"conn_type": "wasb", "login": "c-1", "password": "x", "host": "acct.blob.core.windows.net", "extra": {"tenant_id": "t-1"}},
  "google": {"conn_type": "google_cloud_platform", "extra": {"key_path": "/a"}},
  "broken": {"conn_type": "aws", "login": "AKIA", "extra": "{nothing"},
  "odd": 7
}"#;
    let found = all(Source::Airflow, text);
    let of =
        |name: &str| found.iter().find(|(found, _)| found == name).map(|(_, said)| said.clone()).unwrap_or_default();
    assert!(of("s3_nightly").contains("\"bucket\":\"in\"") && of("s3_nightly").contains("\"region\":\"eu-west-1\""));
    assert!(of("by_uri").contains("\"secret_access_key\":\"a/b@c\""), "{}", of("by_uri"));
    assert!(of("warehouse").starts_with("line 4, conn_type: postgres cannot be kept"));
    assert!(of("lake").contains("AccountName=acct") && of("lake").starts_with("azure_identity"), "{}", of("lake"));
    assert!(of("google").starts_with("line 6, keyfile_dict: "));
    assert!(of("broken").starts_with("line 7, extra: "));
    assert!(of("odd").starts_with("line 8: a connection must be"));
    refused(Source::Airflow, "{\n\"a\": hunter2}", "line 2: it is no JSON object (column 6)");
}

#[test]
fn secrets_of_kv_engines() {
    let printed = r#"{"request_id": "1", "data": {"data": {"access_key": "AKIA", "secret_key": "s", "bucket": "b"}, "metadata": {"version": 3}}}"#;
    let found = all(Source::Kv, printed);
    assert_eq!(found[0].0, "file");
    assert!(found[0].1.starts_with("s3 {"), "{}", found[0].1);
    let text = "{\n\"etl/google\": {\"type\": \"service_account\", \"private_key\": \"x\"},\n\"etl/db\": {\"user\": \"u\", \"password\": \"p\"},\n\
                \"etl/link\": {\"url\": \"https://files.example/a?sig=x\"}\n}";
    let found = all(Source::Kv, text);
    let of =
        |name: &str| found.iter().find(|(found, _)| found == name).map(|(_, said)| said.clone()).unwrap_or_default();
    assert!(of("etl/google").starts_with("line 2, "), "{}", of("etl/google"));
    assert_eq!(of("etl/db"), "line 3: none of its members says what it opens: password, user");
    assert_eq!(of("etl/link"), "direct-link {\"url\":\"https://files.example/a?sig=x\"}");
}

proptest::proptest! {
    /// Whatever a file holds, nothing of its values is told but what it is called.
    #[test]
    fn no_file_stops_the_reader(text in "(\\[[a-z ]{0,4}\\]\n|[a-z_]{0,6} ?= ?.{0,8}\n|\\PC{0,10}\n){0,8}") {
        for source in Source::ALL {
            let _ = read(source, Path::new("/nowhere/file"), &text).map(|entries| entries.iter().map(said).count());
        }
    }
}
