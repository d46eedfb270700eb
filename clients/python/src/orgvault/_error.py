from __future__ import annotations


class OrgVaultError(Exception):
    """The listener rejected a request, or could not be reached (`status` and `code` are then None)."""

    def __init__(self, message: str, status: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
