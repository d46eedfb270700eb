from __future__ import annotations

from typing import Any

from ._activation import Activation
from ._tools import _addressing


def boto3_session(activation: Activation, id: str | None = None) -> Any:
    """A `boto3.Session` with the activation's `s3` credential (`id`, if there are several).

    botocore requests new credentials 15 minutes before they expire: the activation is renewed then, in the thread that uses
    the session. Pass `endpoint`, if the credential has one, to the client: boto3 has no session-wide endpoint.
    """
    import boto3
    import botocore.session
    from botocore.config import Config
    from botocore.credentials import RefreshableCredentials

    def metadata() -> dict[str, str | None]:
        credential = activation.credential("s3", chosen)
        ends = min(activation.expires_at, credential.expires_at or activation.expires_at)
        return {
            "access_key": credential.data["access_key_id"],
            "secret_key": credential.data["secret_access_key"],
            "token": credential.data.get("session_token"),
            "expiry_time": ends.isoformat(),
        }

    def refresh() -> dict[str, str | None]:
        activation.renew()
        return metadata()

    first = activation.credential("s3", id)
    chosen = first.id
    session = botocore.session.get_session()
    # botocore has no public API for refreshable credentials of a session.
    session._credentials = RefreshableCredentials.create_from_metadata(metadata(), refresh, "orgvault")
    if style := _addressing(first.data, "virtual", "path"):
        session.set_default_client_config(Config(s3={"addressing_style": style}))
    return boto3.Session(botocore_session=session, region_name=first.data.get("region"))
