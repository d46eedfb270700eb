"""Storage providers as a vault uses them: AWS STS, Entra ID, Azure Blob Storage, Google STS and IAM credentials, over TLS.

They verify federation tokens with PyJWT, starting from the issuer URL only, and cache the key set as the issuer's headers permit.
Then they compare the subject with the one that the role, application or service account trusts. The host of the issuer forwards
to the public listener of the vault.

Arguments: files with the certificate, its key and the issuing CA. Requests to the issuer use the proxy in HTTPS_PROXY. Prints the
port, then a line of JSON for each request. Reads lines of JSON, executes them and prints them again: `{"trust": ID, "subject":
SUBJECT}`, where `*` is every subject, `{"forward": ADDRESS}`, and `{"expire": true}`, after which the key set is read again.
"""

import base64
import http.client
import json
import re
import secrets
import ssl
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote

import jwt

ISSUER_HOST = "vault.example.com"
ISSUER = f"https://{ISSUER_HOST}"
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
CLAIMS = ["iss", "sub", "aud", "iat", "nbf", "exp", "jti"]

certificate, private_key, authority = sys.argv[1:]
trusting = ssl.create_default_context(cafile=authority)
trusts, forward = {}, {}
application_tokens, subject_tokens, account_tokens = set(), {}, set()
printing, loading, issuers = threading.Lock(), threading.Lock(), {}


def show(message):
    with printing:
        print(json.dumps(message), flush=True)


class Refused(Exception):
    """Why a token is refused: keys, token, expired, subject."""


def keys_of(issuer):
    with loading:
        if issuer not in issuers:
            with urllib.request.urlopen(issuer + "/.well-known/openid-configuration", context=trusting) as response:
                discovery = json.load(response)
            if discovery["issuer"] != issuer or "RS256" not in discovery["id_token_signing_alg_values_supported"]:
                raise Refused("token")
            with urllib.request.urlopen(discovery["jwks_uri"], context=trusting) as response:
                seconds = int(re.search(r"max-age=(\d+)", response.headers["cache-control"]).group(1))
            issuers[issuer] = jwt.PyJWKClient(discovery["jwks_uri"], ssl_context=trusting, lifespan=seconds)
        return issuers[issuer]


def verify(token, audience):
    """Returns the key ID and the claims of a valid token."""
    try:
        if jwt.decode(token, options={"verify_signature": False})["iss"] != ISSUER:
            raise Refused("token")
        kid = jwt.get_unverified_header(token)["kid"]
        key = next((key for key in keys_of(ISSUER).get_signing_keys() if key.key_id == kid), None)
    except (OSError, jwt.PyJWKClientError) as error:
        print(error, file=sys.stderr)
        raise Refused("keys") from None
    except (KeyError, jwt.PyJWTError):
        raise Refused("token") from None
    if key is None:  # until the copy of the key set expires
        raise Refused("keys")
    try:
        claims = jwt.decode(token, key, ["RS256"], audience=audience, issuer=ISSUER,
                            options={"require": CLAIMS, "strict_aud": True})
    except jwt.ExpiredSignatureError:
        raise Refused("expired") from None
    except jwt.PyJWTError:
        raise Refused("token") from None
    return {"kid": key.key_id, "claims": claims}


def trusted(identity, subject):
    return trusts.get(identity) in ("*", subject)


def new_token(name):
    return f"{name}.{secrets.token_urlsafe(24)}"


class Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    form = verified = None

    def respond(self):
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        host = self.headers["host"]
        if host == ISSUER_HOST:
            return self.issuer()
        is_json = self.headers.get("content-type", "").startswith("application/json")
        self.form = json.loads(self.body) if is_json else dict(parse_qsl(self.body.decode()))
        if re.fullmatch(r"sts\.[a-z0-9-]+\.amazonaws\.com", host):
            return self.aws()
        if host == "login.microsoftonline.com":
            return self.entra()
        if host.endswith(".blob.core.windows.net"):
            return self.blob()
        if host == "sts.googleapis.com":
            return self.google_exchange()
        if host == "iamcredentials.googleapis.com":
            return self.google_impersonation()
        return 404, {}, b""

    def issuer(self):
        if "address" not in forward:
            return 503, {}, b""
        connection = http.client.HTTPConnection(forward["address"])
        connection.request(self.command, self.path, headers={"Host": ISSUER_HOST})
        response = connection.getresponse()
        fields = {name: response.headers[name] for name in ("Content-Type", "Cache-Control") if name in response.headers}
        return response.status, fields, response.read()

    def aws(self):
        def refuse(status, code, message):
            text = f"<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
            return status, {"Content-Type": "text/xml"}, text.encode()

        form = self.form
        if (form["Action"], form["Version"]) != ("AssumeRoleWithWebIdentity", "2011-06-15"):
            return refuse(400, "InvalidAction", "")
        try:
            self.verified = verify(form["WebIdentityToken"], "sts.amazonaws.com")
        except Refused as refused:
            return refuse(400, *{
                "keys": ("InvalidIdentityToken", "Couldn't retrieve verification key from your identity provider"),
                "expired": ("ExpiredTokenException", "Token expired"),
                "token": ("InvalidIdentityToken", "Incorrect token audience"),
            }[str(refused)])
        if not trusted(form["RoleArn"], self.verified["claims"]["sub"]):
            return refuse(403, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + int(form["DurationSeconds"])))
        text = (
            '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
            "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA0000000000000001</AccessKeyId>"
            f"<SecretAccessKey>{new_token('secret')}</SecretAccessKey><SessionToken>{new_token('session')}</SessionToken>"
            f"<Expiration>{end}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
            "<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></AssumeRoleWithWebIdentityResponse>"
        )
        return 200, {"Content-Type": "text/xml"}, text.encode()

    def json(self, status, value):
        return status, {"Content-Type": "application/json"}, json.dumps(value).encode()

    def entra(self):
        base, _, path = self.path.partition("/v2.0/")
        address = f"https://{self.headers['host']}{base}"
        if path == ".well-known/openid-configuration":  # only Microsoft's library reads it
            names = ("token_endpoint", "authorization_endpoint", "device_authorization_endpoint")
            return self.json(200, {"issuer": f"{address}/v2.0"} | {
                name: f"{address}/oauth2/v2.0/{name.split('_')[0]}" for name in names})

        def refuse(code):
            return self.json(401, {"error": "invalid_client", "error_codes": [code], "error_description": f"AADSTS{code}"})

        form = self.form
        kind = form.get("client_assertion_type")
        if form["grant_type"] != "client_credentials" or not kind or not kind.endswith("client-assertion-type:jwt-bearer"):
            return refuse(90002)
        try:
            self.verified = verify(form["client_assertion"], "api://AzureADTokenExchange")
        except Refused as refused:
            return refuse({"keys": 7000272, "expired": 700024, "token": 700212}[str(refused)])
        if not trusted(form["client_id"], self.verified["claims"]["sub"]):
            return refuse(700213)
        now = int(time.time())
        token = jwt.encode({  # as Azurite requires, which ignores the signature
            "aud": "https://storage.azure.com", "iss": f"https://sts.windows.net/{TENANT}/", "oid": TENANT, "tid": TENANT,
            "iat": now, "nbf": now, "exp": now + 3599, "uti": secrets.token_urlsafe(24)}, secrets.token_bytes(32))
        application_tokens.add(token)
        return self.json(200, {"token_type": "Bearer", "expires_in": 3599, "ext_expires_in": 3599, "access_token": token})

    def blob(self):
        if self.headers.get("authorization", "").removeprefix("Bearer ") not in application_tokens:
            return 403, {}, b""
        start, end = (re.search(f"<{name}>(.*)</{name}>", self.body.decode()).group(1) for name in ("Start", "Expiry"))
        text = (
            f"<UserDelegationKey><SignedOid>o</SignedOid><SignedTid>t</SignedTid><SignedStart>{start}</SignedStart>"
            f"<SignedExpiry>{end}</SignedExpiry><SignedService>b</SignedService><SignedVersion>2022-11-02</SignedVersion>"
            f"<Value>{base64.b64encode(secrets.token_bytes(33)).decode()}</Value></UserDelegationKey>"
        )
        return 200, {"Content-Type": "application/xml"}, text.encode()

    def google_exchange(self):
        form = self.form
        if form["grant_type"] != "urn:ietf:params:oauth:grant-type:token-exchange":
            return self.json(400, {"error": "unsupported_grant_type"})
        if form["subject_token_type"] == ACCESS_TOKEN:
            if form["subject_token"] not in account_tokens:
                return self.json(400, {"error": "invalid_grant"})
            token = new_token("narrow")
        else:
            try:
                self.verified = verify(form["subject_token"], "https:" + form["audience"])
            except Refused as refused:
                text = "Error connecting to the given credential's issuer." if str(refused) == "keys" else "Invalid token."
                return self.json(400, {"error": "invalid_grant", "error_description": text})
            token = new_token("subject")
            subject_tokens[token] = self.verified["claims"]["sub"]
        return self.json(200, {
            "access_token": token, "issued_token_type": ACCESS_TOKEN, "token_type": "Bearer", "expires_in": 3600})

    def google_impersonation(self):
        account = re.fullmatch(r"/v1/projects/-/serviceAccounts/([^:/]+):generateAccessToken", unquote(self.path))
        subject = subject_tokens.get(self.headers.get("authorization", "").removeprefix("Bearer "))
        if account is None or subject is None or not trusted(account.group(1), subject):
            return self.json(403, {"error": {"code": 403, "status": "PERMISSION_DENIED"}})
        token = new_token("account")
        account_tokens.add(token)
        seconds = int(self.form["lifetime"].removesuffix("s"))
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        return self.json(200, {"accessToken": token, "expireTime": end})

    def do_GET(self):
        status, fields, body = self.respond()
        show({
            "host": self.headers["host"], "method": self.command, "path": self.path, "status": status,
            "type": self.headers.get("content-type", "").partition(";")[0], "form": self.form,
            "authorization": self.headers.get("authorization"), "response": body.decode(), "verified": self.verified,
        })
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | fields).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.form = self.verified = None

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *connection):
        if not isinstance(sys.exc_info()[1], OSError):  # a client disconnected
            super().handle_error(*connection)


server = Server(("127.0.0.1", 0), Provider)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, private_key)
# The handshake runs in the thread of the connection.
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=server.serve_forever, daemon=True).start()
show({"port": server.server_port})
for line in sys.stdin:
    command = json.loads(line)
    if "trust" in command:
        trusts[command["trust"]] = command["subject"]
    elif "forward" in command:
        forward["address"] = command["forward"]
    elif "expire" in command:
        issuers.clear()
    show({"done": command})
