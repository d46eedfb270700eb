from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Literal

from ._error import OrgVaultError
from ._listener import Listener

Vend = Literal["raw", "short", "prefer-short"]


@dataclass(frozen=True)
class Credential:
    """One credential of an activation. `data` is secret and is omitted from `repr()`."""

    id: str
    type: str
    version: int
    form: str
    data: dict[str, Any] = field(repr=False)
    expires_at: datetime | None = None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 does not read the Z


def _credential(value: dict[str, Any]) -> Credential:
    expires_at = value.get("expires_at")
    return Credential(
        value["id"], value["type"], value["version"], value["form"], value["data"], _time(expires_at) if expires_at else None
    )


class Activation:
    """An active activation of one namespace. As a context manager, it ends with the block. Threads may share it."""

    def __init__(self, listener: Listener, request: dict[str, Any]) -> None:
        self._listener = listener
        self._request = request
        self._lock = threading.Lock()
        self._ended = False
        self._begin()

    def _begin(self) -> None:
        self._take(self._listener.request("POST", "/activations", self._request))

    def _take(self, answer: dict[str, Any]) -> None:
        self.id: str = answer["id"]
        self.namespace: str = answer["namespace"]
        self.expires_at: datetime = _time(answer["expires_at"])
        self.credentials: list[Credential] = [_credential(value) for value in answer["credentials"]]

    def credential(self, type: str | None = None, id: str | None = None) -> Credential:
        """The one credential with this type and id; raises `OrgVaultError` if none or several match."""
        found = [c for c in self.credentials if type in (None, c.type) and id in (None, c.id)]
        if len(found) == 1:
            return found[0]
        have = ", ".join(f"{c.id} ({c.type})" for c in self.credentials)
        raise OrgVaultError(f"{len(found)} credentials of {self.namespace} match, expected one: choose type or id of {have}")

    def renew(self) -> None:
        """Fetches the namespace's current credentials and extends the activation. Rotated credentials are updated.

        If the activation has expired, or its form is no longer available, starts a new activation with the same request.
        """
        with self._lock:
            if self._ended:
                raise OrgVaultError(f"the activation of {self.namespace} has ended: start a new one")
            body = {"ttl": self._request["ttl"]} if "ttl" in self._request else {}
            try:
                self._take(self._listener.request("POST", f"/activations/{self.id}/renew", body))
            except OrgVaultError as error:
                if error.status not in (404, 409):
                    raise
                self._begin()

    def end(self) -> None:
        """Ends the activation. A second call does nothing."""
        with self._lock:
            if not self._ended:
                self._delete(self.id)
                self._ended = True

    def _delete(self, id: str) -> None:
        try:
            self._listener.request("DELETE", f"/activations/{id}")
        except OrgVaultError as error:
            if error.status != 404:  # it has expired
                raise

    def __enter__(self) -> Activation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.end()
        except OrgVaultError:
            if error is None:  # otherwise the block's error is raised, and the activation expires automatically
                raise

    def __repr__(self) -> str:
        return f"Activation(id={self.id!r}, namespace={self.namespace!r}, expires_at={self.expires_at.isoformat()!r})"


def activate(
    namespace: str,
    *,
    purpose: str | None = None,
    ttl: int | None = None,
    vend: Vend = "raw",
    url: str | None = None,
    token_file: str | None = None,
    timeout: float = 60.0,
) -> Activation:
    """Requests the credentials of a namespace.

    `ttl` is in seconds, 60 to 43,200. Without `url` and `token_file`, `ORGVAULT_ACTIVATION_URL` and
    `ORGVAULT_INTEGRATION_TOKEN_FILE` say where the listener and the token are, or the profile that `orgvault quickstart` stored; without a token, the job acts by the identity
    token in `ORGVAULT_IDENTITY_TOKEN_FILE` or `ORGVAULT_IDENTITY_TOKEN`, or by GitHub's. `timeout` is in seconds.
    """
    request: dict[str, Any] = {"namespace": namespace, "vend": vend}
    if purpose is not None:
        request["purpose"] = purpose
    if ttl is not None:
        request["ttl"] = ttl
    return Activation(Listener(url, token_file, timeout), request)
