"""Storage credentials of an OrgVault namespace. Nothing in this package prints or logs a secret."""

from ._activation import Activation, Credential, activate
from ._boto3 import boto3_session
from ._listener import OrgVaultError

__all__ = ["Activation", "Credential", "OrgVaultError", "activate", "boto3_session"]
