"""An Airflow file whose 500 tasks each request a connection while it is parsed, which is a common mistake. See test_airflow.py."""

import os

from airflow.sdk import DAG, BaseHook

try:
    from airflow.providers.standard.operators.empty import EmptyOperator
except ImportError:
    from airflow.operators.empty import EmptyOperator

with DAG("nightly", schedule=None) as dag:
    for number in range(500):
        connection = BaseHook.get_connection("nightly")
        assert connection.login == os.environ["EXPECTED_LOGIN"], "another connection"
        EmptyOperator(task_id=f"task-{number}")
