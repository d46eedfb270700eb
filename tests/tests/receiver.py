"""Receivers as others run them: a server of webhooks that verifies with the library of Standard Webhooks, and a mail server.

Prints where they listen, then a line of JSON for each message. Reads commands: `answer PATH STATUS`, `hang PATH SECONDS` and
`secret PATH SECRET`.
"""

import email
import email.policy
import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiosmtpd.controller import Controller
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
# The library asks its own port whether it answers, so the port is chosen before.
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    smtp = free.getsockname()[1]
Controller(Mailbox(), hostname="127.0.0.1", port=smtp).start()
tell({"web": f"http://127.0.0.1:{web.server_port}", "smtp": f"smtp://127.0.0.1:{smtp}"})
for line in sys.stdin:
    command, path, value = line.split()
    if command == "answer":
        answers[path] = int(value)
    elif command == "hang":
        hangs[path] = float(value)
    else:
        secrets[path] = value
    tell({"done": line.strip()})
