"""Receivers as others run them: a server of webhooks that verifies with the library of Standard Webhooks, and a mail server.

Prints where they listen, then a line of JSON for each message. Reads commands: `answer PATH STATUS`, `hang PATH SECONDS` and
`secret PATH SECRET`.
"""

import datetime
import email
import email.policy
import json
import socket
import ssl
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

answers, secrets, hangs = {}, {}, {}
printing = threading.Lock()


def tell(message):
    with printing:
        print(json.dumps(message), flush=True)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        verified = None
        if self.path in secrets:
            try:
                Webhook(secrets[self.path]).verify(body, dict(self.headers))
                verified = True
            except WebhookVerificationError:
                verified = False
        time.sleep(hangs.get(self.path, 0))
        status = answers.get(self.path, 204)
        tell({
            "path": self.path,
            "id": self.headers["webhook-id"],
            "status": status,
            "verified": verified,
            "signatures": len(self.headers["webhook-signature"].split(" ")),
            "body": json.loads(body),
            "headers": dict(self.headers),
            "raw": body,
        })
        try:
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()
        except OSError:
            pass  # it did not wait

    def log_message(self, *_):
        pass


class Mailbox:
    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        tell({
            "mail": envelope.rcpt_tos,
            "from": message["from"],
            "subject": message["subject"],
            "id": message["message-id"],
            "auto": message["auto-submitted"],
            "text": message.get_content(),
        })
        return "250 taken"


web = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=web.serve_forever, daemon=True).start()


def mail_server(**options):
    # The library checks that its port responds, so the port is chosen first.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    Controller(Mailbox(), hostname="127.0.0.1", port=port, **options).start()
    return f"127.0.0.1:{port}"


def own_certificate():
    """An untrusted certificate for another host name, as mail servers on loopback have."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail.invalid")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    pem += key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
    return context


def log_in(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"vault", b"a password of mail"))


# The servers offer a login only after STARTTLS, and the last one does not offer it.
login = {"authenticator": log_in, "auth_required": True, "auth_require_tls": True}
tell({
    "web": f"http://127.0.0.1:{web.server_port}",
    "smtp": f"smtp://{mail_server()}",
    "smtp_login": f"smtp://vault@{mail_server(tls_context=own_certificate(), **login)}",
    "smtp_no_login": f"smtp://vault@{mail_server(**login)}",
})
for line in sys.stdin:
    command, path, value = line.split()
    if command == "answer":
        answers[path] = int(value)
    elif command == "hang":
        hangs[path] = float(value)
    else:
        secrets[path] = value
    tell({"done": line.strip()})
