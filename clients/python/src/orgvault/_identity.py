"""Sources of tokens: an integration token, or an identity token from the job's environment. Each is read for every request."""

from __future__ import annotations

import json
import os
import stat
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from ._error import OrgVaultError

_FILE = "ORGVAULT_IDENTITY_TOKEN_FILE"
_TOKEN = "ORGVAULT_IDENTITY_TOKEN"
_GITHUB_URL = "ACTIONS_ID_TOKEN_REQUEST_URL"
_GITHUB_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"


def read_private(path: str, limit: int, kind: str) -> bytes:
    """Returns the content of a file that other users cannot access."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid not in (0, os.geteuid()):
                raise OrgVaultError(f"the {kind} file {path} must belong to this user or root")
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise OrgVaultError(f"other users can access the {kind} file {path}: chmod 600 it")
            return file.read(limit)
    except OSError as error:
        raise OrgVaultError(f"cannot read the {kind} file {path}: {error.strerror}") from None


def _read_own(path: str) -> str:
    token = read_private(path, 4096, "token").decode("ascii", "replace").strip()
    if not token.startswith("ovi_") or len(token.split()) != 1:
        raise OrgVaultError(f"the token file {path} must contain one integration token (ovi_…)")
    return token


def _checked(token: str, place: str) -> str:
    token = token.strip()
    if not token.startswith("eyJ") or token.count(".") != 2 or len(token.split()) != 1:
        raise OrgVaultError(f"the identity token in {place} is not a JSON Web Token")
    return token


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the runner's token to another host."""

    def redirect_request(self, *args: Any) -> None:
        return None


def _of_github() -> str:
    integration = os.environ.get("ORGVAULT_INTEGRATION_ID")
    if not integration:
        raise OrgVaultError("ORGVAULT_INTEGRATION_ID is missing: GitHub issues an identity token for one integration")
    audience = urllib.parse.quote(f"urn:orgvault:integration:{integration}", safe="")
    url = os.environ[_GITHUB_URL]
    if not url.startswith("https://"):
        raise OrgVaultError(f"{_GITHUB_URL} must be an https URL: the runner's token is sent to it")
    url += ("&" if "?" in url else "?") + f"audience={audience}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {os.environ[_GITHUB_TOKEN]}"})
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=20) as answer:
            return _checked(json.load(answer)["value"], "GitHub's response")
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise OrgVaultError(f"GitHub returned no identity token: {reason}") from None


def is_available() -> bool:
    """Returns True if the environment contains an identity token, or a request for one."""
    has = os.environ.get
    return bool(has(_FILE) or has(_TOKEN) or has(_GITHUB_URL) and has(_GITHUB_TOKEN))


def token(token_file: str | None) -> str:
    """Returns the first available of these: `token_file`, `ORGVAULT_INTEGRATION_TOKEN_FILE`, `ORGVAULT_IDENTITY_TOKEN_FILE`,
    `ORGVAULT_IDENTITY_TOKEN`, GitHub's."""
    if path := token_file or os.environ.get("ORGVAULT_INTEGRATION_TOKEN_FILE"):
        return _read_own(path)
    if path := os.environ.get(_FILE):
        try:
            with open(path, encoding="ascii") as file:
                return _checked(file.read(8 * 1024 + 2), path)
        except OSError as error:
            raise OrgVaultError(f"cannot read the identity token {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise OrgVaultError(f"the identity token in {path} is not a JSON Web Token") from None
    if text := os.environ.get(_TOKEN):
        return _checked(text, _TOKEN)
    if os.environ.get(_GITHUB_URL) and os.environ.get(_GITHUB_TOKEN):
        return _of_github()
    raise OrgVaultError(
        "the token file is missing: pass token_file, or set ORGVAULT_INTEGRATION_TOKEN_FILE, "
        f"{_FILE} or {_TOKEN}; in GitHub Actions, permit `id-token: write`"
    )
