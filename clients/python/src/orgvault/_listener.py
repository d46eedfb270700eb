"""Requests to the activation listener, over a Unix socket or TCP. Redirects are not followed and proxies are not used: both
would send the token elsewhere."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import socket
import ssl
import struct
from typing import Any
from urllib.parse import urlsplit

from . import _identity
from ._error import OrgVaultError
from ._profile import stored

# The largest response has 100 credentials, each with a few fields of at most 16,384 bytes.
_MAX_ANSWER_BYTES = 32 * 1024 * 1024


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float, server_user: int | None) -> None:
        super().__init__("vault", timeout=timeout)
        self._path = path
        self._server_user = server_user

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
        if self._server_user is not None:
            credentials = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            found = struct.unpack("3i", credentials)[1]
            if found != self._server_user:
                raise PermissionError(f"the server runs as user {found}, expected user {self._server_user}")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Listener:
    """The activation listener and the source of the token. The token is read for each request, so a new one is used immediately."""

    def __init__(self, url: str | None, token_file: str | None, timeout: float) -> None:
        self._server_user: int | None = None
        if not url and not token_file and (found := stored()):
            url, token_file, self._server_user = found
        url = url or os.environ.get("ORGVAULT_ACTIVATION_URL")
        if not url:
            raise OrgVaultError("the activation listener is missing: pass url, or set ORGVAULT_ACTIVATION_URL")
        self._url = url
        self._token_file = token_file
        self._timeout = timeout
        if url.startswith("unix:"):
            self._base = os.environ.get("ORGVAULT_BASE_PATH") or "/v1"
            return
        try:
            parts = urlsplit(url)
            self._port = parts.port
        except ValueError:
            raise OrgVaultError("the activation URL is malformed: expected unix:/path or https://host:port/v1") from None
        if parts.scheme not in ("https", "http") or not parts.hostname or parts.username or parts.query or parts.fragment:
            raise OrgVaultError("the activation URL must be unix:/path or https://host:port/v1")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise OrgVaultError("the activation URL must use https: http is for loopback addresses only")
        self._scheme, self._host, self._base = parts.scheme, parts.hostname, parts.path.rstrip("/")

    def _connection(self) -> http.client.HTTPConnection:
        if self._url.startswith("unix:"):
            return _UnixConnection(self._url[len("unix:") :], self._timeout, self._server_user)
        if self._scheme == "http":
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        context = ssl.create_default_context()
        if ca_file := os.environ.get("ORGVAULT_ACTIVATION_CA_FILE"):
            context.load_verify_locations(ca_file)
        if certificate := os.environ.get("ORGVAULT_ACTIVATION_CLIENT_CERT_FILE"):
            context.load_cert_chain(certificate, os.environ.get("ORGVAULT_ACTIVATION_CLIENT_KEY_FILE"))
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Returns the JSON of a successful response, or None without content. Otherwise raises `OrgVaultError`."""
        headers = {"Authorization": "Bearer " + _identity.token(self._token_file), "Content-Type": "application/json"}
        try:
            connection = self._connection()
            try:
                connection.request(method, self._base + path, json.dumps(body) if body is not None else None, headers)
                response = connection.getresponse()
                content = response.read(_MAX_ANSWER_BYTES)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise OrgVaultError(f"cannot reach the activation listener {self._url}: {error}") from None
        try:
            answer = json.loads(content) if content else None
        except ValueError:
            answer = None
            if response.status < 300:
                raise OrgVaultError("the activation listener returned a response that is not JSON", response.status) from None
        if response.status < 300:
            return answer
        problem = answer if isinstance(answer, dict) else {}
        code = problem.get("code")
        raise OrgVaultError(
            f"{method} {path}: {response.status} {code or response.reason}: {problem.get('detail', 'no explanation')}",
            response.status,
            code,
        )
