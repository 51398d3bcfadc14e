# SPDX-License-Identifier: Apache-2.0
"""A cluster with a web server, and browsers that a test plays: cookies, and no secrets."""

import base64
import contextlib
import hashlib
import http.client
import http.cookies
import json
import os
import socket
import ssl
import subprocess

from cluster import Cluster, wait_for
from ports import free_port
from world import BUILD

EMAIL, PASSWORD = "admin@lablup.com", "wJalrXUt"  # of --dev
USER_EMAIL, USER_PASSWORD = "user@lablup.com", "C8qnIo29"
COOKIE = "AIOHTTP_SESSION"


class Answer:
    """Status, headers and body."""

    def __init__(self, reply):
        self.status, self.headers, self.body = reply.status, reply.headers, reply.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def slug(self):
        return self.json["type"].rpartition("/")[2]

    def __repr__(self):
        return f"{self.status} {self.body[:500]!r}"


class WebSocket:
    """A client of RFC 6455 by hand: text and binary messages, and what is not one."""

    def __init__(self, sock, file):
        self.sock, self.file = sock, file

    def send(self, data, opcode=1):
        data = data.encode() if isinstance(data, str) else data
        mask = os.urandom(4)
        size = len(data)
        head = bytes([0x80 | opcode])
        head += (bytes([0x80 | size]) if size < 126
                 else bytes([0x80 | 126]) + size.to_bytes(2, "big") if size < 65536
                 else bytes([0x80 | 127]) + size.to_bytes(8, "big"))
        keys = mask * (size // 4 + 1)
        self.sock.sendall(head + mask + bytes(a ^ b for a, b in zip(data, keys)))

    def receive(self):
        """Opcode and payload; (None, b"") at the end."""
        head = self.file.read(2)
        if len(head) < 2:
            return None, b""
        size = head[1] & 0x7f
        if size > 125:
            size = int.from_bytes(self.file.read(2 if size == 126 else 8), "big")
        return head[0] & 0xf, self.file.read(size)

    def close(self):
        self.file.close()
        self.sock.close()


class Browser:
    """Keeps cookies as one does; 'origin' is of the page that asks, None is a program."""

    def __init__(self, port, origin=None, tls=None, address="127.0.0.1"):
        self.port, self.origin, self.tls, self.address = port, origin, tls, address
        self.cookies = {}

    def connect(self):
        if self.tls:
            return http.client.HTTPSConnection(self.address, self.port, timeout=60, context=self.tls)
        return http.client.HTTPConnection(self.address, self.port, timeout=60)

    def headers(self, given):
        made = {"X-BackendAI-Version": "v8.20240915"}
        if self.cookies:
            made["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if self.origin:
            made["Origin"] = self.origin
        return {**made, **{name.replace("_", "-"): value for name, value in given.items()}}

    def ask(self, method, path, body=None, **headers):
        if isinstance(body, (dict, list)):
            headers.setdefault("Content_Type", "application/json")
            body = json.dumps(body)
        connection = self.connect()
        with contextlib.closing(connection):
            connection.request(method, path, body, self.headers(headers))
            answer = Answer(connection.getresponse())
        self.take_cookies(answer.headers)
        return answer

    def take_cookies(self, headers):
        for line in headers.get_all("Set-Cookie", []):
            for name, morsel in http.cookies.SimpleCookie(line).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value

    def login(self, email=EMAIL, password=PASSWORD, **headers):
        return self.ask("POST", "/server/login", {"username": email, "password": password},
                        **headers)

    def check(self):
        return self.ask("POST", "/server/login-check", {})

    def is_in(self):
        return self.check().json["authenticated"]

    def get(self, path, **headers):
        return self.ask("GET", "/func" + path, **headers)

    def post(self, path, body=None, **headers):
        return self.ask("POST", "/func" + path, body, **headers)

    def socket(self, path, **headers):
        """A WebSocket, or the Answer that is given instead."""
        sock = socket.create_connection((self.address, self.port), timeout=60)
        if self.tls:
            sock = self.tls.wrap_socket(sock)
        key = base64.b64encode(os.urandom(16)).decode()
        made = {"Host": f"{self.address}:{self.port}", "Connection": "Upgrade",
                "Upgrade": "websocket", "Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13",
                **self.headers(headers)}
        sock.sendall((f"GET {path} HTTP/1.1\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in made.items()) + "\r\n").encode())
        reply = http.client.HTTPResponse(sock)
        reply.begin()
        if reply.status != 101:
            return Answer(reply)
        wanted = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        assert reply.headers["Sec-WebSocket-Accept"] == base64.b64encode(wanted).decode()
        file, reply.fp = reply.fp, None  # with what came after the head
        return WebSocket(sock, file)


def hide(endpoint, body):
    """A body as the WebUI hides it."""
    iv = "zJhGyCTGgkUvzgDA"
    key = (base64.b64encode(endpoint.encode()).decode() + iv + iv)[:32]
    done = subprocess.run(["openssl", "enc", "-aes-256-cbc", "-K", key.encode().hex(), "-iv",
                           iv.encode().hex()], input=json.dumps(body).encode(),
                          capture_output=True, check=True)
    return iv + ":" + base64.b64encode(done.stdout).decode()


class Webbed(Cluster):
    """A manager and a web server."""

    def start_web(self, *options, name="web", join=True, **settings):
        self.web_port = getattr(self, "web_port", None) or free_port()
        state = self.folder / name
        if join and not (state / "web.crt").exists():
            token = self.client().post("/aliquot/v1/join-tokens", {"web": "main"}).json["token"]
            done = self.run("aliquot-web", "--state", state, "join", self.link, token)
            assert done.returncode == 0, done.stderr
        self.start_program(name, BUILD / "aliquot-web", "--state", state, "--listen",
                           f"127.0.0.1:{self.web_port}", *options,
                           **{"ALIQUOT_WEB_API": "http://%s:%d" % self.address,
                              "ALIQUOT_METRICS_LISTEN": "off", **settings})
        wait_for(lambda: self.is_webbed(settings), 60, "the web server")

    def is_webbed(self, settings):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.browser("ALIQUOT_WEB_TLS_CERT" in settings).ask("GET", "/health").status == 200
        return False

    def browser(self, is_tls=False, **more):
        tls = None
        if is_tls:
            tls = ssl.create_default_context()
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        return Browser(self.web_port, tls=tls, **more)

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.web_port}"
