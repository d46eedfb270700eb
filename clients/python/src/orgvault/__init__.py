"""Storage credentials of an OrgVault namespace. Nothing in this package prints or logs a secret."""

from ._activation import Activation, Credential, activate
from ._boto3 import boto3_session
from ._error import OrgVaultError
from ._tools import duckdb_secret, obstore_store, polars_options, storage_options

__all__ = [
    "Activation",
    "Credential",
    "OrgVaultError",
    "activate",
    "boto3_session",
    "duckdb_secret",
    "obstore_store",
    "polars_options",
    "storage_options",
]
