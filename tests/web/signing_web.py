# SPDX-License-Identifier: Apache-2.0
"""A web server for the console and nothing else: logs people in, and signs what they ask of the
manager, WebSockets as well."""

import contextlib
import http.client
import http.cookies
import http.server
import importlib.machinery
import importlib.util
import json
import secrets
import select
import socket
import threading

from client import Client, iso_now
from world import BUILD, ROOT

POLICY = ("default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'nonce-{nonce}'; "
          "img-src 'self' data:; connect-src 'self'; require-trusted-types-for 'script'; "
          "base-uri 'self'; form-action 'self'; frame-ancestors 'none'")


def console_files():
    """As tools/embed-console makes them of the page that was built."""
    loader = importlib.machinery.SourceFileLoader("embed_console", str(ROOT / "tools" / "embed-console"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("embed_console", loader))
    loader.exec_module(module)
    return module.split((BUILD / "console" / "app.html").read_text())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, status, value, **headers):
        self.answer(status, "application/json", json.dumps(value).encode(), **headers)

    def login(self):
        cookie = http.cookies.SimpleCookie(self.headers.get("Cookie", ""))
        return self.server.logins.get(cookie["login"].value) if "login" in cookie else None

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    # ---- files ----

    def do_GET(self):
        if self.path.startswith("/func/"):
            return self.pass_on(b"")
        kind, data = self.server.files.get(self.path[1:] or "index.html", (None, None))
        if kind is None:
            return self.answer(404, "text/plain", b"")
        nonce = secrets.token_urlsafe(18)
        data = data.replace(b"{{nonce}}", nonce.encode()).replace(b"{{base}}", b"/")
        return self.answer(200, kind + "; charset=utf-8", data, Cache_Control="no-store",
                           Content_Security_Policy=POLICY.format(nonce=nonce))

    # ---- logins ----

    def do_POST(self):
        body = self.body()
        if self.path.startswith("/func/"):
            return self.pass_on(body)
        if self.path == "/server/login-check":
            return self.answer_json(200, {"authenticated": self.login() is not None})
        if self.path == "/server/logout":
            self.server.logins.clear()
            return self.answer_json(200, {})
        given = json.loads(body)
        reply = Client(self.server.manager, None).post("/auth/authorize", {
            "type": "keypair", "domain": "default", "username": given["username"],
            "password": given["password"]})
        if reply.status != 200:
            return self.answer_json(200, {"authenticated": False, "data": {"details": "Wrong."}})
        cookie, keys = secrets.token_urlsafe(18), reply.json["data"]
        self.server.logins[cookie] = (keys["access_key"], keys["secret_key"])
        return self.answer_json(200, {"authenticated": True},
                                Set_Cookie=f"login={cookie}; HttpOnly; SameSite=Strict; Path=/")

    def do_DELETE(self):
        self.pass_on(self.body())

    # ---- the manager ----

    def signed(self, keypair, path):
        client = Client(self.server.manager, keypair)
        kind = self.headers.get("Content-Type", "application/octet-stream").split(";")[0]
        with self.server.lock:  # no two have one date
            date = iso_now()
        return {**client.headers(self.command, path, kind, date), "Host": client.host}

    def pass_on(self, body):
        keypair, path = self.login(), self.path.removeprefix("/func")
        if keypair is None:
            return self.answer_json(401, {"type": "auth-failed", "title": "Not logged in."})
        headers = self.signed(keypair, path)
        if self.headers.get("Upgrade"):
            return self.join(headers, path)
        try:
            manager = http.client.HTTPConnection(*self.server.manager, timeout=600)
            manager.request(self.command, path, body or None, headers)
            reply = manager.getresponse()
        except OSError:
            return self.answer_json(502, {"type": "bad-gateway", "title": "The manager is away."})
        with contextlib.closing(manager), contextlib.suppress(OSError):
            self.close_connection = True
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.headers.get("Content-Type", "text/plain"))
            self.send_header("Connection", "close")
            self.end_headers()
            while data := reply.read1(65536):
                self.wfile.write(data)
        return None

    def join(self, headers, path):
        for name in ("Connection", "Upgrade", "Sec-WebSocket-Version", "Sec-WebSocket-Key"):
            headers[name] = self.headers[name]
        self.close_connection = True
        try:
            manager = socket.create_connection(self.server.manager)
        except OSError:
            return self.answer_json(502, {})
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        with manager, contextlib.suppress(OSError):
            manager.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
            ends = {manager: self.connection, self.connection: manager}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    if not (data := end.recv(65536)):
                        return None
                    ends[end].sendall(data)


class SigningWeb(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, manager):
        super().__init__(("127.0.0.1", 0), Handler)
        self.manager, self.files, self.logins = manager, console_files(), {}
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()
