"""The package with a real server, and S3 emulated by moto."""

import json
import os
import threading
import time

import pytest

import orgvault
from conftest import SECRET, live


def test_the_activation_ends_with_the_block_and_shows_no_secret(job):
    with orgvault.activate("imports/nightly", purpose="a test", ttl=600) as activation:
        assert activation.credential().data["secret_access_key"] == SECRET
        assert live() == [activation.id]
        assert SECRET not in f"{activation!r} {activation.credentials!r} {activation}"
    assert live() == []
    activation.end()
    with pytest.raises(orgvault.OrgVaultError, match="has ended"):
        activation.renew()


def test_the_activation_ends_if_the_block_fails(job):
    with pytest.raises(ZeroDivisionError), orgvault.activate("imports/nightly"):
        1 / 0
    assert live() == []


def test_renewal_continues_and_restarts_after_its_end(job):
    from orgvault._listener import Listener

    with orgvault.activate("imports/nightly", ttl=600) as activation:
        first, ends = activation.id, activation.expires_at
        time.sleep(1.1)
        activation.renew()
        assert activation.id == first and activation.expires_at > ends
        Listener(None, None, 60).request("DELETE", f"/activations/{first}")
        activation.renew()
        assert activation.id != first
        assert live() == [activation.id]


def test_a_refusal_has_the_status_and_the_code_of_the_server(job):
    with pytest.raises(orgvault.OrgVaultError) as refused:
        orgvault.activate("exports/nightly")
    assert (refused.value.status, refused.value.code) == (403, "namespace-not-allowed")


def test_a_choice_that_matches_nothing_lists_what_there_is(job):
    with orgvault.activate("imports/nightly") as activation:
        with pytest.raises(orgvault.OrgVaultError, match=r"0 credentials .* \(s3\)"):
            activation.credential("gcs")


def test_boto3_works_beyond_the_end_of_its_first_activation(job, moto):
    with orgvault.activate("imports/nightly", ttl=60) as activation:
        first, ends = activation.id, activation.expires_at
        s3 = orgvault.boto3_session(activation).client("s3", endpoint_url=activation.credential().data["endpoint"])
        s3.create_bucket(Bucket="nightly")
        s3.put_object(Bucket="nightly", Key="in.csv", Body=b"id\n1\n")
        assert s3.get_object(Bucket="nightly", Key="in.csv")["Body"].read() == b"id\n1\n"
        # 60 seconds are less than the time before expiry at which botocore refreshes: every request renewed.
        assert activation.id == first and activation.expires_at >= ends
        assert live() == [activation.id]
    assert live() == []


def test_options_and_statements_of_other_tools_have_the_credential(job, moto):
    with orgvault.activate("imports/nightly") as activation:
        options = orgvault.storage_options(activation)
        assert options["secret"] == SECRET and options["client_kwargs"] == {"region_name": "us-east-1", "endpoint_url": moto}
        statement = orgvault.duckdb_secret(activation, name="nightly")
        assert statement.startswith("CREATE OR REPLACE SECRET \"nightly\" (TYPE s3, PROVIDER config, KEY_ID 'AKIAQ7RM3XW2'")
        assert "SCOPE 's3://nightly/'" in statement and "USE_SSL 'false'" in statement and "URL_STYLE 'path'" in statement
        with pytest.raises(orgvault.OrgVaultError, match="identifier"):
            orgvault.duckdb_secret(activation, name="a; DROP")


@pytest.mark.parametrize(
    ("data", "style", "endpoint"),
    [
        ({"bucket": "daily"}, None, None),
        ({"bucket": "daily", "path_style_access": True}, "path", None),
        ({"bucket": "daily.reports"}, "path", None),
        ({"bucket": "daily", "region": "cn-north-1"}, None, "https://daily.s3.cn-north-1.amazonaws.com.cn"),
        ({"bucket": "daily", "endpoint": "https://ams3.store.example"}, "virtual", "https://daily.ams3.store.example"),
        ({"bucket": "daily", "endpoint": "https://s.example:1/", "path_style_access": False}, "virtual", "https://daily.s.example:1"),
        ({"bucket": "daily", "endpoint": "https://s.example", "path_style_access": True}, "path", "https://s.example"),
        ({"bucket": "daily", "endpoint": "http://127.0.0.1:9000"}, "path", "http://127.0.0.1:9000"),
        ({"bucket": "daily", "endpoint": "http://[::1]:9000", "path_style_access": False}, "path", "http://[::1]:9000"),
    ],
)
def test_tools_address_the_bucket_as_a_check_does(data, style, endpoint):
    from orgvault import _tools

    options = _tools._s3({"access_key_id": "A", "secret_access_key": "s", **data})
    assert options.get("config_kwargs") == ({"s3": {"addressing_style": style}} if style else None)
    assert _tools._bucket_endpoint(data, data["bucket"]) == endpoint


def test_one_of_several_buckets_is_chosen():
    from orgvault import _tools

    several = {"bucket": ["daily", "hourly"]}
    assert _tools._one_bucket(several, "hourly") == "hourly"
    assert _tools._one_bucket({"bucket": "daily"}, None) == "daily"
    for wrong in (None, "weekly"):
        with pytest.raises(orgvault.OrgVaultError, match="daily, hourly"):
            _tools._one_bucket(several, wrong)
    assert _tools._quoted(["s3://daily/", "s3://it's/"]) == "['s3://daily/', 's3://it''s/']"
    assert not _tools._is_path_style(several)
    assert _tools._is_path_style({"bucket": ["daily", "a.b"]})


IDENTITY = {"tenant_id": "t", "client_id": "c", "client_secret": "s"}


@pytest.mark.parametrize(
    ("connection", "account"),
    [
        ("AccountName=acct", {"account_name": "acct"}),
        ("BlobEndpoint=https://acct.blob.core.windows.net/", {"account_name": "acct"}),
        (
            "BlobEndpoint=https://acct.z07.blob.storage.azure.net/",
            {"account_name": "acct", "account_host": "acct.z07.blob.storage.azure.net"},
        ),
        (
            "BlobEndpoint=https://acct-secondary.blob.core.windows.net/",
            {"account_name": "acct", "account_host": "acct-secondary.blob.core.windows.net"},
        ),
        ("AccountName=acct;EndpointSuffix=core.usgovcloudapi.net", None),
        ("DfsEndpoint=https://acct.dfs.core.chinacloudapi.cn", None),
        ("BlobEndpoint=https://acct.blob.notcore.windows.net", None),
        ("AccountName=acct;BlobEndpoint=https://data.example.com", None),
    ],
)
def test_an_application_is_used_in_the_public_cloud_only(connection, account):
    from orgvault import _tools

    data = {**IDENTITY, "connection_string": connection}
    if account:
        assert _tools._azure(data) == {**account, **IDENTITY}
    else:
        with pytest.raises(orgvault.OrgVaultError, match="public cloud"):
            _tools._azure(data)
    with_key = f"{connection};AccountKey=c2VjcmV0"
    assert _tools._azure({"connection_string": with_key})["connection_string"] == with_key


def test_a_key_of_another_universe_is_refused():
    from orgvault import _tools

    for data in [{"access_token": "t", "universe_domain": "a.example"}, {"service_account_key": {"universe_domain": "a.example"}}]:
        with pytest.raises(orgvault.OrgVaultError, match="universe"):
            _tools._gcs(data)
    assert _tools._gcs({"access_token": "t"}) == {"token": "t"}


def test_airflow_asks_once_for_a_connection(job, monkeypatch):
    from orgvault import airflow

    asked = []
    begin = airflow.activate
    monkeypatch.setattr(airflow, "activate", lambda *given, **more: asked.append(given) or begin(*given, **more))
    backend = airflow.OrgVaultBackend(prefix="imports/")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(backend.get_conn_value("nightly"))) for _ in range(500)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(asked) == 1 and len(set(answers)) == 1 and len(answers) == 500
    connection = json.loads(answers[0])
    assert (connection["conn_type"], connection["password"]) == ("aws", SECRET)
    # A missing connection is not requested again immediately, and another backend may have it.
    assert backend.get_conn_value("absent") is None and backend.get_conn_value("absent") is None
    assert len(asked) == 2


def test_airflow_hides_what_it_does_not_know_to_be_secret(monkeypatch):
    from orgvault import airflow

    hidden = []
    monkeypatch.setattr(airflow, "mask_secret", hidden.append)
    airflow._mask({"conn_type": "wasb", "password": None, "extra": {"connection_string": "AccountKey=k;", "tenant_id": "t"}})
    airflow._mask({"conn_type": "google_cloud_platform", "extra": {"keyfile_dict": '{"private_key": "pem"}'}})
    airflow._mask({"conn_type": "http", "host": "https://files.example/a?signature=s"})
    assert hidden == ["AccountKey=k;", '{"private_key": "pem"}', "pem", "https://files.example/a?signature=s"]


def test_the_token_of_the_runner_is_sent_to_one_https_address(monkeypatch):
    import http.server

    from orgvault import _identity

    seen = []

    class Runner(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    monkeypatch.setenv("ORGVAULT_INTEGRATION_ID", "01890a5d-ac96-774b-bcce-b302099a8057")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "bearer")
    server = http.server.HTTPServer(("127.0.0.1", 0), Runner)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/token"
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", url)
        with pytest.raises(orgvault.OrgVaultError, match="must be an https URL"):
            _identity._of_github()
        assert seen == []
        opener = _identity.urllib.request.build_opener(_identity._NoRedirects)
        with pytest.raises(_identity.urllib.error.HTTPError, match="302"):
            opener.open(url, timeout=20)
        assert seen == ["/token"]
    finally:
        server.shutdown()


def test_an_identity_token_stands_in_for_the_integration_token(tmp_path, monkeypatch):
    from orgvault import _identity

    for name in ("ORGVAULT_INTEGRATION_TOKEN_FILE", "ORGVAULT_IDENTITY_TOKEN_FILE", "ORGVAULT_IDENTITY_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(orgvault.OrgVaultError, match="ORGVAULT_IDENTITY_TOKEN_FILE"):
        _identity.token(None)
    monkeypatch.setenv("ORGVAULT_IDENTITY_TOKEN", "eyJh.eyJz.c2ln\n")
    assert _identity.token(None) == "eyJh.eyJz.c2ln"
    file = tmp_path / "identity"  # as Kubernetes mounts it: readable by others, and rewritten
    file.write_text("eyJh.eyJi.c2ln")
    file.chmod(0o644)
    monkeypatch.setenv("ORGVAULT_IDENTITY_TOKEN_FILE", str(file))
    assert _identity.token(None) == "eyJh.eyJi.c2ln"
    file.write_text("eyJh.eyJu.c2ln")
    assert _identity.token(None) == "eyJh.eyJu.c2ln"
    file.write_text("nothing of the kind")
    with pytest.raises(orgvault.OrgVaultError, match="not a JSON Web Token") as refused:
        _identity.token(None)
    assert "nothing of" not in str(refused.value)


def test_the_profile_of_quickstart_is_read_unless_a_variable_names_another_token(vault, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("ORGVAULT_", "ACTIONS_ID_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(vault.state))
    with orgvault.activate("imports/nightly") as activation:
        assert activation.credential().data["secret_access_key"] == SECRET
    profile = vault.state / "orgvault/logins/default.json"
    stored = json.loads(profile.read_text())
    other = tmp_path / "orgvault/logins/default.json"
    other.parent.mkdir(parents=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for text, mode, message in [
        (json.dumps(stored), 0o644, "chmod 600"),
        ("{", 0o600, "damaged"),
        (json.dumps(stored | {"activation": stored["activation"] | {"server_user": os.geteuid() + 1}}), 0o600, "expected user"),
        ("{}", 0o600, "activation listener is missing"),
    ]:
        other.write_text(text)
        other.chmod(mode)
        with pytest.raises(orgvault.OrgVaultError, match=message):
            orgvault.activate("imports/nightly")
    monkeypatch.setenv("ORGVAULT_IDENTITY_TOKEN", "eyJh.eyJz.c2ln")
    monkeypatch.setenv("XDG_STATE_HOME", str(vault.state))
    with pytest.raises(orgvault.OrgVaultError, match="activation listener is missing"):
        orgvault.activate("imports/nightly")


@pytest.mark.parametrize(
    ("mode", "text", "message"),
    [(0o644, "ovi_a", "chmod 600"), (0o600, "ovi_a ovi_b", "one integration token"), (0o600, "é", "one integration token")],
)
def test_a_token_file_that_is_not_one_private_token_is_refused(tmp_path, mode, text, message):
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(orgvault.OrgVaultError, match=message) as refused:
        orgvault.activate("imports/nightly", url="unix:/nowhere", token_file=str(file))
    assert "ovi_a" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://vault.example/v1", "ftp://vault.example", "https://user@vault.example/v1", "https://h:x/v1"])
def test_an_address_that_would_expose_the_token_or_is_malformed_is_refused(url):
    with pytest.raises(orgvault.OrgVaultError, match="activation URL"):
        orgvault.activate("imports/nightly", url=url, token_file="/nowhere")
