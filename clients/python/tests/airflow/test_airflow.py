"""The secrets backend in a real Airflow, which looks connections up whenever it parses a file."""

import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import live

HERE = pathlib.Path(__file__).parent
PARSE = """
import sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
print(len(bag.dags["nightly"].tasks))
"""


@pytest.fixture
def airflow(job, tmp_path):
    """The environment of an Airflow whose connections are in the vault."""
    return {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__DAGS_FOLDER": str(HERE),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__SECRETS__BACKEND": "orgvault.airflow.OrgVaultBackend",
        "AIRFLOW__SECRETS__BACKEND_KWARGS": '{"prefix": "imports/"}',
        "EXPECTED_LOGIN": "AKIAQ7RM3XW2",
    }


def test_500_tasks_that_are_parsed_ask_the_vault_once_in_each_process(airflow):
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], env=airflow, check=True, capture_output=True)

    def parse(_):
        command = [sys.executable, "-c", PARSE, str(HERE / "dags.py")]
        return subprocess.run(command, env=airflow, capture_output=True, text=True)

    before = len(live())
    with ThreadPoolExecutor(4) as pool:
        parsed = list(pool.map(parse, range(4)))
    for run in parsed:
        assert run.returncode == 0, run.stderr[-2000:]
        assert run.stdout.split()[-1] == "500"
    # The activations are active until they expire: the connection is used after the lookup.
    assert len(live()) - before == 4
