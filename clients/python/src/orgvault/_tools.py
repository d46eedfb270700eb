"""Settings for other tools, with the credentials of an activation. They contain secrets, so do not print them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from ._activation import Activation, Credential
from ._error import OrgVaultError


def _chosen(activation: Activation, type: str | None, id: str | None, types: dict[str, Any], what: str) -> Credential:
    credential = activation.credential(type, id)
    if credential.type not in types:
        raise OrgVaultError(f"there is no {what} for {credential.type}, only for {', '.join(types)}")
    return credential


def _buckets(data: dict[str, Any]) -> list[str]:
    bucket = data["bucket"]
    return bucket if isinstance(bucket, list) else [bucket]


def _one_bucket(data: dict[str, Any], bucket: str | None) -> str:
    buckets = _buckets(data)
    if bucket is None and len(buckets) == 1:
        return buckets[0]
    if bucket not in buckets:
        raise OrgVaultError(f"pass bucket=, one of: {', '.join(buckets)}")
    return bucket


def _set(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _connection(data: dict[str, Any]) -> dict[str, str]:
    """Returns the parts of an Azure connection string."""
    pairs = (part.partition("=") for part in (data.get("connection_string") or "").split(";"))
    return {name.strip().lower(): value for name, _, value in pairs if value}


def _is_self_contained(data: dict[str, Any]) -> bool:
    return any(name in _connection(data) for name in ("accountkey", "sharedaccesssignature"))


def _account(data: dict[str, Any]) -> str | None:
    parts = _connection(data)
    host = (parts.get("blobendpoint") or parts.get("dfsendpoint") or "").partition("://")[2]
    # The label of a secondary endpoint is account-secondary.
    return data.get("account_name") or parts.get("accountname") or host.partition(".")[0].partition("-")[0] or None


_PUBLIC_SUFFIXES = (".core.windows.net", ".storage.azure.net", ".fabric.microsoft.com")


def _is_public(data: dict[str, Any]) -> bool:
    """Returns True if the account belongs to Azure's public cloud, whose directory these tools use."""
    parts = _connection(data)
    hosts = [urlsplit(value).hostname or "" for name, value in parts.items() if name.endswith("endpoint")]
    suffix = parts.get("endpointsuffix", "").lower()
    return all(f".{host}".endswith(_PUBLIC_SUFFIXES) for host in [*hosts, suffix] if host)


def _identity(data: dict[str, Any]) -> dict[str, Any]:
    if not data.get("client_id"):
        raise OrgVaultError("the credential has neither an application nor an account key or a signature")
    if not _is_public(data):
        raise OrgVaultError("the account does not belong to Azure's public cloud: save an account key, or activate with vend='short'")
    return {name: data[name] for name in ("tenant_id", "client_id", "client_secret")}


_HOST_LABEL = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")


def _is_ip_address(host: str | None) -> bool:
    try:
        return bool(ip_address(host or ""))
    except ValueError:
        return False


def _is_path_style(data: dict[str, Any]) -> bool:
    """Returns True if the bucket is in the path of URLs. Otherwise it is the first part of the host."""
    endpoint = data.get("endpoint")
    is_address = bool(endpoint) and _is_ip_address(urlsplit(endpoint).hostname)
    return bool(data.get("path_style_access")) or is_address or not all(map(_HOST_LABEL.fullmatch, _buckets(data)))


def _addressing(data: dict[str, Any], host: Any, path: Any) -> Any:
    """Returns one of both, or None if it is the default of tools for Amazon's stores."""
    is_path = _is_path_style(data)
    is_usual = not data.get("endpoint") and data.get("path_style_access") is None and not is_path
    return None if is_usual else path if is_path else host


def _domain_endpoint(data: dict[str, Any]) -> str | None:
    """Returns the saved endpoint, or Amazon's in a region for which a tool would use another domain."""
    region = data.get("region") or ""
    return data.get("endpoint") or (f"https://s3.{region}.amazonaws.com.cn" if region.startswith("cn-") else None)


def _bucket_endpoint(data: dict[str, Any], bucket: str) -> str | None:
    """Returns the endpoint as `object_store` expects it: with the bucket, if that is in the host."""
    endpoint = _domain_endpoint(data)
    if not endpoint or _is_path_style(data):
        return endpoint
    scheme, _, rest = endpoint.partition("://")
    return f"{scheme}://{bucket}.{rest}".rstrip("/")


def _s3(data: dict[str, Any]) -> dict[str, Any]:
    style = _addressing(data, "virtual", "path")
    key = data.get("sse_kms_key_id")
    return _set(
        key=data["access_key_id"],
        secret=data["secret_access_key"],
        token=data.get("session_token"),
        client_kwargs=_set(region_name=data.get("region"), endpoint_url=data.get("endpoint")),
        config_kwargs={"s3": {"addressing_style": style}} if style else None,
        s3_additional_kwargs={"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key} if key else None,
    )


def _unusual_host(data: dict[str, Any]) -> str | None:
    """Returns the host of the account's blobs, or None for the default in the public cloud."""
    host = urlsplit(_connection(data).get("blobendpoint", "")).hostname
    return host if host != f"{_account(data)}.blob.core.windows.net" else None


def _azure(data: dict[str, Any]) -> dict[str, Any]:
    options = _set(account_name=_account(data))
    if data.get("sas_token"):
        host = data["endpoint"].partition("://")[2].partition("/")[0]
        return {**options, "account_host": host, "sas_token": data["sas_token"]}
    if _is_self_contained(data):
        return {**options, "connection_string": data["connection_string"]}
    return {**options, **_set(account_host=_unusual_host(data)), **_identity(data)}


def _google(data: dict[str, Any]) -> None:
    """Rejects keys of clouds other than Google's, which these tools would send to Google."""
    key = data.get("service_account_key") or data
    if key.get("universe_domain", "googleapis.com") != "googleapis.com":
        raise OrgVaultError("the key belongs to another universe than googleapis.com: use the client libraries of Google with the key file")


def _gcs(data: dict[str, Any]) -> dict[str, Any]:
    _google(data)
    return {"token": data.get("access_token") or data["service_account_key"]}


_OPTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"s3": _s3, "azure_identity": _azure, "gcs": _gcs}


def storage_options(activation: Activation, type: str | None = None, id: str | None = None) -> dict[str, Any]:
    """Returns the options that `fsspec` passes to s3fs, adlfs or gcsfs, which are the `storage_options` of pandas and Dask.

    They are those of the credential as it is now: ask again after `activation.renew()`.
    """
    credential = _chosen(activation, type, id, _OPTIONS, "file system of fsspec")
    return _OPTIONS[credential.type](credential.data)


def _quoted(value: Any) -> str:
    if isinstance(value, list):
        return _quoted(value[0]) if len(value) == 1 else f"[{', '.join(map(_quoted, value))}]"
    return "'" + str(value).replace("'", "''") + "'"


def duckdb_secret(activation: Activation, name: str = "orgvault", type: str | None = None, id: str | None = None) -> str:
    """Returns a `CREATE OR REPLACE SECRET` statement, with which DuckDB can access only the credential's storage."""
    credential = _chosen(activation, type, id, {"s3": None, "azure_identity": None}, "secret of DuckDB")
    data, kind, provider = credential.data, "s3", "config"
    if not name.isidentifier():
        raise OrgVaultError("the name of a DuckDB secret must be an identifier")
    if credential.type == "s3":
        endpoint = _domain_endpoint(data) or ""
        scheme, _, host = endpoint.partition("://")
        parts = _set(
            KEY_ID=data["access_key_id"],
            SECRET=data["secret_access_key"],
            SESSION_TOKEN=data.get("session_token"),
            REGION=data.get("region"),
            ENDPOINT=host.rstrip("/"),
            USE_SSL=endpoint and ("false" if scheme == "http" else "true"),
            URL_STYLE=_addressing(data, "vhost", "path"),
            KMS_KEY_ID=data.get("sse_kms_key_id"),
            SCOPE=[f"s3://{bucket}/{data.get('key_prefix') or ''}" for bucket in _buckets(data)],
        )
    elif data.get("sas_token"):
        kind = "azure"
        parts = {"CONNECTION_STRING": f"BlobEndpoint={data['endpoint']};SharedAccessSignature={data['sas_token']}"}
    elif _is_self_contained(data):
        kind, parts = "azure", {"CONNECTION_STRING": data["connection_string"]}
    else:
        if host := _unusual_host(data):
            raise OrgVaultError(f"DuckDB does not find an application's account at {host}: save an account key, or activate with vend='short'")
        kind, provider = "azure", "service_principal"
        identity = {key.upper(): value for key, value in _identity(data).items()}
        parts = {"ACCOUNT_NAME": _account(data), **identity}
    columns = ", ".join(f"{key} {_quoted(value)}" for key, value in parts.items())
    return f'CREATE OR REPLACE SECRET "{name}" (TYPE {kind}, PROVIDER {provider}, {columns});'


def _ends(activation: Activation, credential: Credential) -> datetime:
    return min(activation.expires_at, credential.expires_at or activation.expires_at)


def _obstore_secret(credential: Credential) -> dict[str, Any]:
    """The credential that an obstore credential provider returns."""
    data = credential.data
    if credential.type == "s3":
        return {
            "access_key_id": data["access_key_id"],
            "secret_access_key": data["secret_access_key"],
            "token": data.get("session_token"),
        }
    if credential.type == "azure_identity":
        return {"sas_token": data["sas_token"]}
    return {"token": data["access_token"]}


def _provider(activation: Activation, id: str, secret: Callable[[Credential], dict[str, Any]]) -> Callable[[], tuple[Any, datetime]]:
    """Returns the credential and its expiry. The second and each later call renew the activation first."""
    asked = False

    def provide() -> tuple[dict[str, Any], datetime]:
        nonlocal asked
        if asked:
            activation.renew()
        asked = True
        credential = activation.credential(id=id)
        return secret(credential), _ends(activation, credential)

    return provide


def _lasts(credential: Credential) -> bool:
    """Returns True if obstore accepts the credential only as configuration: a saved key of Azure or Google."""
    return credential.type != "s3" and credential.form == "raw"


def _obstore_azure(data: dict[str, Any]) -> dict[str, Any]:
    parts = _connection(data)
    signature = parts.get("sharedaccesssignature")
    options = _set(account_name=_account(data), endpoint=parts.get("blobendpoint"))
    if key := parts.get("accountkey"):
        return {**options, "account_key": key}
    return {**options, "sas_key": signature} if signature else {**options, **_identity(data)}


def obstore_store(activation: Activation, type: str | None = None, id: str | None = None, bucket: str | None = None) -> Any:
    """Returns an `obstore` store for the credential's bucket or container. `bucket` chooses one of several.

    It asks for another credential when its own is about to end: the activation is renewed then, in the thread that uses the store.
    """
    from obstore.store import AzureStore, GCSStore, S3Store

    credential = _chosen(activation, type, id, _OPTIONS, "store of obstore")
    data = credential.data
    provide = _provider(activation, credential.id, _obstore_secret)

    def provider() -> dict[str, Any]:
        secret, ends = provide()
        return {**secret, "expires_at": ends}

    own = {} if _lasts(credential) else {"credential_provider": provider}
    prefix = data.get("key_prefix")
    allows_http = {"allow_http": True}
    if credential.type == "s3":
        endpoint = data.get("endpoint")
        name = _one_bucket(data, bucket)
        options = _set(region=data.get("region"), endpoint=_bucket_endpoint(data, name), sse_kms_key_id=data.get("sse_kms_key_id"))
        options["virtual_hosted_style_request"] = not _is_path_style(data)
        return S3Store(name, prefix=prefix, client_options=allows_http if _is_http(endpoint) else None, **own, **options)
    if credential.type == "azure_identity":
        options = _obstore_azure(data) if _lasts(credential) else _set(account_name=data["account_name"], endpoint=data["endpoint"])
        client = allows_http if _is_http(options.get("endpoint")) else None
        return AzureStore(data["container"], prefix=prefix, client_options=client, **own, **options)
    _google(data)
    options = {"service_account_key": json.dumps(data["service_account_key"])} if _lasts(credential) else {}
    return GCSStore(_one_bucket(data, bucket), prefix=prefix, **own, **options)


def _is_http(address: str | None) -> bool:
    return bool(address) and str(address).lower().startswith("http://")


def polars_options(activation: Activation, id: str | None = None, bucket: str | None = None) -> dict[str, Any]:
    """Returns the arguments of `polars.scan_csv` and similar for an `s3` credential: `pl.scan_csv(url, **polars_options(activation))`.

    Polars asks for another key when its own is about to end: the activation is renewed then.
    """
    credential = activation.credential("s3", id)
    data = credential.data
    options = _set(
        aws_region=data.get("region"),
        aws_endpoint_url=_bucket_endpoint(data, _one_bucket(data, bucket)),
        aws_virtual_hosted_style_request="false" if _is_path_style(data) else "true",
        aws_allow_http="true" if _is_http(data.get("endpoint")) else None,
    )

    def secret(credential: Credential) -> dict[str, Any]:
        data = credential.data
        return _set(
            aws_access_key_id=data["access_key_id"],
            aws_secret_access_key=data["secret_access_key"],
            aws_session_token=data.get("session_token"),
        )

    provide = _provider(activation, credential.id, secret)

    def provider() -> tuple[dict[str, Any], int]:
        keys, ends = provide()
        return keys, int(ends.timestamp())

    return {"storage_options": options, "credential_provider": provider}
