# SPDX-License-Identifier: Apache-2.0
"""Where messages of the manager go: a web server and a mail server, on loopback."""

import http.server
import ssl
import subprocess
import threading

from ports import free_port

ADDRESS = "127.0.0.2"  # what tests allow as callback network


class Listener(http.server.ThreadingHTTPServer):
    """Answers with 'statuses' in turn, the last one for good, and keeps what it was told."""

    def __init__(self, address, *statuses):
        super().__init__((address, 0), Handler)
        self.statuses, self.told, self.heads, self.connections = list(statuses or [200]), [], [], 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def verify_request(self, request, client_address):
        self.connections += 1
        return True

    def url(self, host=None):
        return "http://%s:%d/hook?a=b" % (host or self.server_address[0], self.server_port)

    def close(self):
        self.shutdown()
        self.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.heads.append(dict(self.headers))
        self.server.told.append((self.path, self.headers["Content-Type"], body))
        statuses = self.server.statuses
        self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
        self.send_header("Content-Length", "0")
        if self.server.statuses[0] == 302:
            self.send_header("Location", self.server.location)
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_):
        pass


def make_certificate(folder, host=ADDRESS):
    """Paths of a certificate that signs itself, and of its key."""
    certificate, key = folder / "mail.pem", folder / "mail.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=mail",
                    "-addext", f"subjectAltName=IP:{host}", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    return certificate, key


class Mailbox:
    """A mail server (aiosmtpd) that keeps what it takes: (sender, recipients, message) of each."""

    def __init__(self, certificate=None, login=None, refuses=(), **options):
        import email
        import email.policy
        from aiosmtpd.controller import Controller
        from aiosmtpd.smtp import AuthResult
        self.mails, self.logins = [], []

        class Taker:
            async def handle_RCPT(_, server, session, envelope, address, options):
                if address in refuses:
                    return "550 5.1.1 nobody has this address"
                envelope.rcpt_tos.append(address)
                return "250 OK"

            async def handle_DATA(_, server, session, envelope):
                self.mails.append((envelope.mail_from, envelope.rcpt_tos,
                                   email.message_from_bytes(envelope.content,
                                                            policy=email.policy.default)))
                return "250 taken"

        def check(server, session, envelope, mechanism, data):
            self.logins.append((mechanism, data.login.decode(), data.password.decode()))
            return AuthResult(success=self.logins[-1][1:] == login, handled=False)

        if certificate:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*certificate)
            options.update(tls_context=context, require_starttls=True)
        if login:
            options.update(authenticator=check, auth_required=True)
        self.port = free_port()
        self.controller = Controller(Taker(), hostname=ADDRESS, port=self.port, **options)
        self.controller.start()

    def spec(self, auth=None, **smtp):
        return {"smtp": {"host": ADDRESS, "port": self.port, **smtp}, "auth": auth,
                "message": {"from_email": "aliquot@example.org",
                            "to_emails": ["ops@example.org", "lead@example.org"]}}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.controller.stop()
