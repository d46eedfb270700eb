"""A secrets backend for Apache Airflow: a connection id is a namespace.

In `airflow.cfg`:

    [secrets]
    backend = orgvault.airflow.OrgVaultBackend
    backend_kwargs = {"prefix": "airflow/", "vend": "prefer-short"}

The connection `nightly` is then the credential of the namespace `airflow/nightly`. Airflow asks for connections whenever it parses
a file, so an answer is kept until shortly before its activation ends, for each process; a missing connection is kept for a minute.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from ._activation import Activation, Vend, activate
from ._error import OrgVaultError
from ._tools import _addressing

try:
    from airflow.secrets import BaseSecretsBackend
except ImportError:  # without Airflow, the class can still be tested

    class BaseSecretsBackend:  # type: ignore[no-redef]
        def __init__(self, **kwargs: Any) -> None:
            pass


try:
    from airflow.sdk.log import mask_secret
except ImportError:
    try:
        from airflow.utils.log.secrets_masker import mask_secret
    except ImportError:

        def mask_secret(secret: Any, name: str | None = None) -> None:
            pass


_ABSENT_SECONDS = 60.0
_EARLY_SECONDS = 300.0


def connection(activation: Activation) -> dict[str, Any]:
    """Returns the activation's only credential as an Airflow connection."""
    credential = activation.credential()
    data = credential.data
    if credential.type == "s3":
        extra = {key: data[ours] for ours, key in (("region", "region_name"), ("endpoint", "endpoint_url")) if data.get(ours)}
        if session := data.get("session_token"):
            extra["aws_session_token"] = session
        if style := _addressing(data, "virtual", "path"):
            extra["config_kwargs"] = {"s3": {"addressing_style": style}}
        if isinstance(data["bucket"], str):  # the hook supports one bucket
            extra["bucket_name"] = data["bucket"]
        return {"conn_type": "aws", "login": data["access_key_id"], "password": data["secret_access_key"], "extra": extra}
    if credential.type == "gcs":
        key = data.get("service_account_key")
        if key is None:
            raise OrgVaultError("a connection of Airflow needs the key of a service account: activate with vend='raw'")
        extra = {"keyfile_dict": key if isinstance(key, str) else json.dumps(key)}
        return {"conn_type": "google_cloud_platform", "extra": extra}
    if credential.type == "azure_identity":
        extra = {key: data[key] for key in ("tenant_id", "connection_string", "sas_token") if data.get(key)}
        return {
            "conn_type": "wasb",
            "host": data.get("account_name"),
            "login": data.get("client_id"),
            "password": data.get("client_secret"),
            "extra": extra,
        }
    return {"conn_type": "http", "host": data["url"]}


def _mask(described: dict[str, Any]) -> None:
    """Hides in Airflow's logs what Airflow does not know to be secret: it hides passwords and extras with certain names only."""
    extra = described.get("extra", {})
    secrets = [described.get("password"), *(extra.get(name) for name in ("aws_session_token", "connection_string", "sas_token"))]
    if key := extra.get("keyfile_dict"):
        secrets += [key, json.loads(key).get("private_key")]
    if described["conn_type"] == "http":
        secrets.append(described["host"])  # a signed link
    for secret in filter(None, secrets):
        mask_secret(secret)


class OrgVaultBackend(BaseSecretsBackend):
    """Provides Airflow connections from OrgVault."""

    def __init__(
        self,
        prefix: str = "",
        vend: Vend = "raw",
        ttl: int | None = None,
        url: str | None = None,
        token_file: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._prefix, self._asking = prefix, {"vend": vend, "ttl": ttl, "url": url, "token_file": token_file}
        self._lock = threading.Lock()
        # Cached connections by connection ID, with their expiry.
        self._known: dict[str, tuple[str | None, float]] = {}

    def get_conn_value(self, conn_id: str) -> str | None:
        """Returns the connection as JSON, or None if the vault has no connection with this ID."""
        with self._lock:  # only one request for a namespace, even with many threads
            value, until = self._known.get(conn_id, (None, 0.0))
            if time.time() < until:
                return value
            value, until = self._ask(conn_id)
            self._known[conn_id] = (value, until)
            return value

    def get_connection(self, conn_id: str) -> Any:
        value = self.get_conn_value(conn_id)
        if value is None:
            return None
        from airflow.models.connection import Connection

        return Connection.from_json(value, conn_id=conn_id)

    def _ask(self, conn_id: str) -> tuple[str | None, float]:
        try:
            activation = activate(self._prefix + conn_id, purpose="airflow", **self._asking)
        except OrgVaultError as error:
            # The namespace does not exist, is not allowed, or has an invalid name: another backend may have the connection.
            if error.status in (403, 404, 422):
                return None, time.time() + _ABSENT_SECONDS
            raise
        # Do not end it: the connection is used after this call, until it expires.
        credential = activation.credential()
        ends = min(activation.expires_at, credential.expires_at or activation.expires_at).timestamp()
        left = max(ends - time.time(), 0.0)
        described = connection(activation)
        _mask(described)
        return json.dumps(described), time.time() + max(left - _EARLY_SECONDS, left / 2)
