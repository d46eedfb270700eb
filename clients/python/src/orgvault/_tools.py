"""What other tools take, filled with the credentials of an activation. Each holds secrets: print none of it."""

from __future__ import annotations

from typing import Any

from ._activation import Activation, Credential
from ._error import OrgVaultError


def _endpoint(data: dict[str, Any]) -> str | None:
    return data.get("endpoint")


def _s3(credential: Credential) -> dict[str, Any]:
    data = credential.data
    client: dict[str, Any] = {}
    if region := data.get("region"):
        client["region_name"] = region
    if endpoint := _endpoint(data):
        client["endpoint_url"] = endpoint
    options: dict[str, Any] = {"key": data["access_key_id"], "secret": data["secret_access_key"], "client_kwargs": client}
    if session := data.get("session_token"):
        options["token"] = session
    if data.get("path_style"):
        options["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    return options


def _azure(credential: Credential) -> dict[str, Any]:
    data = credential.data
    options = {}
    for ours, theirs in (
        ("account_name", "account_name"),
        ("connection_string", "connection_string"),
        ("account_key", "account_key"),
        ("sas_token", "sas_token"),
        ("tenant_id", "tenant_id"),
        ("client_id", "client_id"),
        ("client_secret", "client_secret"),
    ):
        if value := data.get(ours):
            options[theirs] = value
    return options


def _gcs(credential: Credential) -> dict[str, Any]:
    data = credential.data
    if token := data.get("access_token"):
        return {"token": token}
    return {"token": data["service_account_key"]}


_OPTIONS = {"s3": _s3, "azure_identity": _azure, "gcs": _gcs}


def storage_options(activation: Activation, type: str | None = None, id: str | None = None) -> dict[str, Any]:
    """The options that `fsspec` gives to s3fs, adlfs or gcsfs, and so what pandas and Dask take as `storage_options`.

    They are those of the credential as it is now: ask again after `activation.renew()`.
    """
    credential = activation.credential(type, id)
    if credential.type not in _OPTIONS:
        raise OrgVaultError(f"{credential.type} has no file system: read its URL from credential.data")
    return _OPTIONS[credential.type](credential)


def _quoted(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def duckdb_secret(activation: Activation, name: str = "orgvault", type: str | None = None, id: str | None = None) -> str:
    """The statement `CREATE OR REPLACE SECRET` that has DuckDB read and write the credential's bucket, and nothing else."""
    credential = activation.credential(type, id)
    data = credential.data
    if credential.type != "s3":
        raise OrgVaultError(f"DuckDB has no secret for {credential.type} here: only for s3")
    parts = {"KEY_ID": data["access_key_id"], "SECRET": data["secret_access_key"], "SCOPE": f"s3://{data['bucket']}"}
    if session := data.get("session_token"):
        parts["SESSION_TOKEN"] = session
    if region := data.get("region"):
        parts["REGION"] = region
    if endpoint := _endpoint(data):
        scheme, _, host = endpoint.partition("://")
        parts["ENDPOINT"] = host.rstrip("/")
        parts["USE_SSL"] = "false" if scheme == "http" else "true"
    if data.get("path_style") or _endpoint(data):
        parts["URL_STYLE"] = "path"
    columns = ", ".join(f"{key} {_quoted(value)}" for key, value in parts.items())
    if not name.isidentifier():
        raise OrgVaultError("the name of a DuckDB secret must be an identifier")
    return f"CREATE OR REPLACE SECRET {name} (TYPE s3, PROVIDER config, {columns});"
