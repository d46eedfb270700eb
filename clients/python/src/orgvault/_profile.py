"""The activation listener that `orgvault quickstart` stored in a profile of this user."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from ._error import OrgVaultError
from ._identity import is_available, read_private

_MAX_BYTES = 16 * 1024


class Stored(NamedTuple):
    """A listener and the file of its token. They are used together, so that only this listener gets the token."""

    url: str
    token_file: str
    server_user: int


def stored() -> Stored | None:
    """Returns the listener of the profile, unless a variable names a listener or a token."""
    named = ("ORGVAULT_ACTIVATION_URL", "ORGVAULT_INTEGRATION_TOKEN_FILE", "ORGVAULT_INTEGRATION_ID")
    if any(name in os.environ for name in named) or is_available():
        return None
    path = _path(os.environ.get("ORGVAULT_PROFILE", "default"))
    if path is None or not path.exists():
        return None
    text = read_private(str(path), _MAX_BYTES, "login")
    try:
        activation = json.loads(text).get("activation")
        return activation and Stored(activation["url"], activation["token_file"], int(activation["server_user"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        # The parser's message could contain part of the login's token.
        raise OrgVaultError(f"{path} is damaged: remove it, and log in again") from None


def _path(profile: str) -> Path | None:
    if not profile or profile.startswith((".", "-")) or "/" in profile:
        raise OrgVaultError("ORGVAULT_PROFILE is not the name of a profile")
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            return None
        state = f"{home}/.local/state"
    return Path(state, "orgvault/logins", f"{profile}.json")
