"""Exchanges federation tokens as the providers' own libraries do.

Reads a line of JSON: for each provider the token, and the values that its library sends with it. Servers are found by their names
behind the proxy in HTTPS_PROXY, and trusted by AWS_CA_BUNDLE and REQUESTS_CA_BUNDLE.
"""

import json
import sys

import boto3
from azure.identity import ClientAssertionCredential
from botocore import UNSIGNED
from botocore.config import Config
from google.auth import identity_pool
from google.auth.transport.requests import Request


class Supplier(identity_pool.SubjectTokenSupplier):
    def __init__(self, token):
        self.token = token

    def get_subject_token(self, context, request):
        return self.token


values = json.loads(sys.stdin.readline())
aws = values["aws"]
client = boto3.client("sts", region_name=aws.pop("region"), config=Config(signature_version=UNSIGNED))
aws["DurationSeconds"] = int(aws["DurationSeconds"])
assert client.assume_role_with_web_identity(**aws)["Credentials"]["SessionToken"]

azure = values["azure"]
credential = ClientAssertionCredential(
    azure["tenant_id"], azure["client_id"], lambda: azure["token"], disable_instance_discovery=True)
assert credential.get_token("https://storage.azure.com/.default").token

google = values["google"]
account = google["service_account"]
credentials = identity_pool.Credentials(
    audience=google["provider"],
    subject_token_type="urn:ietf:params:oauth:token-type:jwt",
    token_url="https://sts.googleapis.com/v1/token",
    service_account_impersonation_url=(
        f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{account}:generateAccessToken"),
    service_account_impersonation_options={"token_lifetime_seconds": 3600},
    subject_token_supplier=Supplier(google["token"]),
    scopes=["https://www.googleapis.com/auth/cloud-platform"],
)
credentials.refresh(Request())
assert credentials.token
