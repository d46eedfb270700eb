"""The libraries that jobs are written with, configured by the package and by `orgvault activate --format`, with emulated stores."""

import http.server
import subprocess
import threading
import time

import pytest

import orgvault
from conftest import CONTENT, PROGRAM, SECRET, TOOLS


def printed(format, namespace="imports/nightly"):
    command = [PROGRAM, "activate", "--namespace", namespace, "--format", format]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_s3fs_reads_and_writes(job, bucket):
    import fsspec

    with orgvault.activate("imports/nightly") as activation:
        files = fsspec.filesystem("s3", **orgvault.storage_options(activation))
        assert files.cat_file("nightly/in/a.csv") == CONTENT
        files.pipe_file("nightly/out/s3fs.csv", CONTENT)
    assert bucket("out/s3fs.csv") == CONTENT


def test_pandas_reads(job, bucket):
    import pandas

    with orgvault.activate("imports/nightly") as activation:
        table = pandas.read_csv("s3://nightly/in/a.csv", storage_options=orgvault.storage_options(activation))
    assert table.amount.tolist() == [42]


def test_adlfs_reads_and_writes(job, azurite):
    import fsspec

    with orgvault.activate("imports/azure") as activation:
        options = orgvault.storage_options(activation)
    files = fsspec.filesystem("abfs", **options)
    files.mkdir("nightly")
    files.pipe_file("nightly/a.csv", CONTENT)
    assert files.cat_file("nightly/a.csv") == CONTENT


def test_obstore_reads_azure_by_a_saved_key(job, azurite):
    import obstore

    with orgvault.activate("imports/azure") as activation:
        store = orgvault.obstore_store(activation)
        obstore.put(store, "obstore.csv", CONTENT)
        assert bytes(obstore.get(store, "obstore.csv").bytes()) == CONTENT


def test_gcsfs_and_obstore_take_a_key_of_google(job, vault, moto):
    import gcsfs

    pem = (TOOLS.parents[1] / "crates/vault-testkit/src/stores/service-account.pem").read_text()
    key = {"type": "service_account", "project_id": "acme", "private_key_id": "0123456789abcdef0123456789abcdef01234567"}
    key |= {"private_key": pem, "client_email": "importer@acme.iam.gserviceaccount.com", "client_id": "1"}
    key |= {"token_uri": f"{moto}/token"}
    vault.save("imports/google", "gcs", {"service_account_key": key, "bucket": "nightly-exports"})
    with orgvault.activate("imports/google") as activation:
        options = orgvault.storage_options(activation)
        files = gcsfs.GCSFileSystem(project="acme", **options, skip_instance_cache=True)
        assert files.credentials.credentials.service_account_email == "importer@acme.iam.gserviceaccount.com"
        store = orgvault.obstore_store(activation)
        assert store.config["service_account_key"] and "nightly-exports" in repr(store)


def duckdb_connection():
    import duckdb
    from duckdb_extensions import import_extension

    connection = duckdb.connect(config={"allow_unredacted_secrets": "true"})
    for extension in ("httpfs", "azure"):
        import_extension(extension)
        connection.load_extension(extension)
    return connection


def test_duckdb_reads_by_a_secret_of_the_package_and_of_activate(job, bucket):
    with orgvault.activate("imports/nightly") as activation:
        statement = orgvault.duckdb_secret(activation)
    assert statement + "\n" == printed("duckdb"), "one way for both"
    connection = duckdb_connection()
    connection.execute(statement)
    assert connection.execute("SELECT amount FROM read_csv('s3://nightly/in/a.csv')").fetchall() == [(42,)]
    connection.execute("COPY (SELECT 7 AS amount) TO 's3://nightly/out/duckdb.csv'")
    assert bucket("out/duckdb.csv") == b"amount\n7\n"


def test_duckdb_takes_the_secret_of_an_azure_container(job, azurite):
    statement = printed("duckdb", "imports/azure")
    connection = duckdb_connection()
    connection.execute(statement)
    (found,) = connection.execute("SELECT secret_string FROM duckdb_secrets(redact=false)").fetchone()
    assert f"connection_string={azurite}" in found


@pytest.mark.parametrize("secret", ["it's; DROP", 'a"b\\c', "$HOME `x` %(y)s"])
def test_duckdb_and_java_read_odd_values_as_they_are(job, vault, secret):
    import javaproperties

    data = {"access_key_id": "AKIAQ7RM3XW2", "secret_access_key": secret, "bucket": "odd", "region": "us-east-1"}
    namespace = f"imports/odd-{abs(hash(secret)) % 10**9}"
    vault.save(namespace, "s3", data)
    connection = duckdb_connection()
    connection.execute(printed("duckdb", namespace))
    (found,) = connection.execute("SELECT secret_string FROM duckdb_secrets(redact=false)").fetchone()
    assert found.endswith(f"secret={secret}")
    properties = javaproperties.loads(printed("hadoop", namespace))
    assert properties["spark.hadoop.fs.s3a.bucket.odd.secret.key"] == secret


def test_polars_reads_by_a_provider(job, bucket):
    import polars

    with orgvault.activate("imports/nightly") as activation:
        table = polars.scan_csv("s3://nightly/in/a.csv", **orgvault.polars_options(activation)).collect()
    assert table["amount"].to_list() == [42]


def test_a_store_of_obstore_outlives_its_first_activation(job, bucket):
    import obstore

    # obstore renews five minutes before the expiry: with an activation of a minute, at each request.
    with orgvault.activate("imports/nightly", ttl=60) as activation:
        store, ends = orgvault.obstore_store(activation), activation.expires_at
        assert bytes(obstore.get(store, "in/a.csv").bytes()) == CONTENT
        time.sleep(1.1)
        assert bytes(obstore.get(store, "in/a.csv").bytes()) == CONTENT
        assert activation.expires_at > ends, "it was renewed"


@pytest.fixture
def proxy():
    """A proxy that denies every request, and the requested URLs."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def respond(self):
            asked.append(self.path)
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = respond

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", asked
    server.shutdown()


def test_every_library_puts_the_bucket_in_the_host(job, vault, proxy, monkeypatch):
    import fsspec
    import obstore
    import polars

    address, asked = proxy
    data = {"access_key_id": "AKIAQ7RM3XW2", "secret_access_key": SECRET, "bucket": "daily", "region": "ams3"}
    vault.save("imports/host", "s3", {**data, "endpoint": "http://ams3.store.example", "path_style_access": False})
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://{address}")
    connection = duckdb_connection()
    connection.execute(f"SET http_proxy='{address}'")
    connection.execute(printed("duckdb", "imports/host"))
    rclone = ["rclone", "--config", "/dev/null", "--retries", "1", "lsf", "orgvault:daily"]
    aws = ["aws", "s3", "cp", "s3://daily/in.csv", "in.csv"]
    boto3 = ["python3", "-c", "import boto3; boto3.client('s3').head_object(Bucket='daily', Key='in.csv')"]

    def under_exec(tool, *arguments):
        command = [PROGRAM, "exec", "--namespace", "imports/host", "--", TOOLS / "venv/bin" / tool, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    with orgvault.activate("imports/host") as activation:
        for request in (
            lambda: fsspec.filesystem("s3", **orgvault.storage_options(activation), skip_instance_cache=True).cat_file("daily/in.csv"),
            lambda: obstore.get(orgvault.obstore_store(activation), "in.csv"),
            lambda: polars.scan_csv("s3://daily/in.csv", **orgvault.polars_options(activation)).collect(),
            lambda: connection.execute("SELECT * FROM read_csv('s3://daily/in.csv')"),
            lambda: under_exec(*rclone),
            lambda: under_exec(*aws),
            lambda: under_exec(*boto3),
        ):
            asked.clear()
            with pytest.raises(Exception):  # noqa: B017 - each library has its own
                request()
            assert asked and all(url.startswith("http://daily.ams3.store.example/") for url in asked), asked


def test_nothing_that_is_made_shows_its_secret(job, bucket):
    with orgvault.activate("imports/nightly") as activation:
        assert SECRET not in repr(orgvault.obstore_store(activation))
