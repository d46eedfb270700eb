"""A real server, and S3 emulated by moto. ORGVAULT_PROGRAM is the program `orgvault`."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import types
import urllib.request

import pytest

PROGRAM = os.environ["ORGVAULT_PROGRAM"]
SECRET = "Vx9mQ2rT7kLw4pZs"
TOOLS = pathlib.Path(__file__).parents[3] / "target/tools"
CONTENT = b"id,amount\n1,42\n"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def run(*arguments, vault):
    environment = {**os.environ, "ORGVAULT_DATA_DIR": str(vault / "data")}
    return subprocess.run([PROGRAM, *arguments], env=environment, check=True, capture_output=True, text=True).stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(ready, process):
    for _ in range(600):
        assert process.poll() is None, "the server ended"
        if ready():
            return
        time.sleep(0.1)
    raise AssertionError("the server does not respond")


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def moto():
    port = free_port()
    process = subprocess.Popen(
        [TOOLS / "venv/bin/moto_server", "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: answers(port), process)
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()


@pytest.fixture(scope="session")
def vault(tmp_path_factory, moto):
    """A server with one s3 credential in imports/nightly, and the variables that jobs have."""
    directory = tmp_path_factory.mktemp("v")
    port, listener = free_port(), directory / "a.sock"
    with open(directory / "out", "w") as out, open(directory / "err", "w") as err:
        process = subprocess.Popen(
            [PROGRAM, "quickstart", "--json", "--listen", f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{free_port()}",
             "--activation-listen", f"unix:{listener}"],
            env={**os.environ, "ORGVAULT_DATA_DIR": str(directory / "data"), "XDG_STATE_HOME": str(directory / "state")},
            stdout=out,
            stderr=err,
        )
    try:
        wait_for(lambda: answers(port) and listener.exists(), process)
        first = json.loads((directory / "out").read_text())
        email = "admin@example.com"
        passcode = first["account"]["recovery_codes"][0]

        def call(method, path, body, token=None):
            request = urllib.request.Request(f"http://127.0.0.1:{port}/v1{path}", json.dumps(body).encode(), method=method)
            request.add_header("Content-Type", "application/json")
            if token:
                request.add_header("Authorization", f"Bearer {token}")
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)

        login = call("POST", "/login", {"email": email, "password": first["account"]["password"], "passcode": passcode, "ttl": 3600})
        data = {"access_key_id": "AKIAQ7RM3XW2", "secret_access_key": SECRET, "bucket": "nightly", "region": "us-east-1", "endpoint": moto}
        data["path_style_access"] = True

        def save(namespace, type, data):
            call("PATCH", "/organization-vault", {"type": type, "namespace": namespace, "data": data}, login["access_token"])

        save("imports/nightly", "s3", data)
        created = run("integration", "create", "--org", "Example", "--name", "job", "--namespace", "imports/*", "--json", vault=directory)
        token_file = directory / "token"
        token_file.touch(0o600)
        token_file.write_text(json.loads(created)["token"] + "\n")
        variables = {"ORGVAULT_ACTIVATION_URL": f"unix:{listener}", "ORGVAULT_INTEGRATION_TOKEN_FILE": str(token_file)}
        yield types.SimpleNamespace(variables=variables, save=save, state=directory / "state")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.fixture
def job(vault, monkeypatch):
    for name, value in vault.variables.items():
        monkeypatch.setenv(name, value)


def live():
    from orgvault._listener import Listener

    return [entry["id"] for entry in Listener(None, None, 60).request("GET", "/activations")]


@pytest.fixture(scope="session")
def bucket(moto):
    """Reads an object of the bucket, without any of the libraries. moto does not check signatures."""

    def ask(method, path, content=None):
        signed = "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        fields = {"Content-Type": "text/csv", "Authorization": signed}
        request = urllib.request.Request(f"{moto}/{path}", content, fields, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    ask("PUT", "nightly")
    ask("PUT", "nightly/in/a.csv", CONTENT)
    return lambda name: ask("GET", f"nightly/{name}")


@pytest.fixture(scope="session")
def azurite(vault, tmp_path_factory):
    port = free_port()
    command = [TOOLS / "node_modules/.bin/azurite-blob", "--blobPort", str(port), "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    process = subprocess.Popen([*command, "--location", str(tmp_path_factory.mktemp("azurite"))])
    wait_for(lambda: answers(port), process)
    endpoint = f"http://127.0.0.1:{port}/devstoreaccount1"
    connection = f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={AZURE_KEY};BlobEndpoint={endpoint}"
    identity = {"tenant_id": "72f988bf-86f1-41af-91ab-2d7cd011db47", "client_id": "8d6b8c1e-33a5-4a7e-9a0b-5d2b1c0f4f2a"}
    data = {**identity, "client_secret": "Qx~8Q~vN3w.Yk2", "connection_string": connection, "container": "nightly"}
    vault.save("imports/azure", "azure_identity", data)
    yield connection
    process.kill()
    process.wait()
