# SPDX-License-Identifier: Apache-2.0
"""Who reads nothing, a browser or an app, costs manager, agent and proxy no memory, and gets all
that was sent to it as soon as it reads. Who has left while an app starts costs no connection."""

import contextlib
import hashlib
import json
import pathlib
import re
import signal
import socket
import struct
import time

import pytest

from client import WebSocket
from cluster import running, wait_for
from images import Layout, archive, file, folder
from runtimes import settings_of
from test_apps import python_layer
from test_proxy import Proxied

SIZE = 100 << 20
BLOCK = 32 << 10

MOST = 8  # connections of browsers

# GET gives SIZE bytes; POST reads its body once GET /go came, and says its digest. After GET /hold
# it does not start again.
WEB = r"""
import hashlib, http.server, os, sys, threading, time
while os.path.exists("/tmp/hold"):
    time.sleep(1)
go = threading.Event()
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path.endswith("/go"):
            go.set()
        if self.path.endswith("/hold"):
            open("/tmp/hold", "w").close()
        size = int(sys.argv[2]) if self.path.endswith("/much") else 0
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        for at in range(0, size, 32 << 10):
            self.wfile.write(at.to_bytes(8, "big") * (4 << 10))
    def do_POST(self):
        digest, left = hashlib.sha256(), int(self.headers["Content-Length"])
        go.wait()
        go.clear()
        while left:
            got = self.rfile.read(min(left, 1 << 20))
            digest.update(got)
            left -= len(got)
        self.send_response(200)
        self.send_header("Content-Length", "64")
        self.end_headers()
        self.wfile.write(digest.hexdigest().encode())
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""
# Answers before it is asked, and ends.
HASTY = r"""
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    with listener.accept()[0] as peer:
        peer.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")
"""
DEFINITIONS = {"web": {"command": ["python3", "/app/web.py", "{ports[0]}", str(SIZE)],
                       "start_timeout": 600},
               "hasty": {"command": ["python3", "/app/hasty.py", "{ports[0]}"]}}
SETTINGS = {"ALIQUOT_IMAGE_ALLOW": "* host oci:/", "ALIQUOT_IMAGE_KEEP_FREE": "0",
            # what a sanitizer keeps of freed memory would hide the rest
            "ASAN_OPTIONS": "quarantine_size_mb=4:allocator_release_to_os_interval_ms=500"}


@pytest.fixture(scope="module")
def cluster():
    with Proxied(**settings_of("crun"), **SETTINGS) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        layout = Layout(cluster.folder / "layout")
        own = archive([folder("tmp", mode=0o1777), folder("app"),
                       file("app/web.py", WEB.encode()), file("app/hasty.py", HASTY.encode()),
                       folder("etc"), folder("etc/backend.ai"), folder("etc/backend.ai/service-defs"),
                       *(file(f"etc/backend.ai/service-defs/{name}.json", json.dumps(text).encode())
                         for name, text in DEFINITIONS.items())])
        layout.image("apps", [python_layer(), own], Labels={
            "ai.backend.service-ports": "web:http:8000,hasty:http:8001", "ai.backend.runtime-path": "/usr/bin/python3"})
        cluster.start_proxy(ALIQUOT_PROXY_MAX_CONNECTIONS=str(MOST))
        with running(cluster.client(), "apps", image=layout.reference("apps")) as box:
            cluster.box = box
            cluster.cookie_of_web = cluster.cookie("apps", "web")
            yield cluster
        cluster.stop()


class Browser:
    """A connection through the proxy."""

    def __init__(self, cluster):
        self.prefix = f"/app/{cluster.box}/web"
        self.cookie = f"Cookie: {cluster.cookie_of_web}\r\n"
        self.sock = socket.create_connection(("127.0.0.1", cluster.port), timeout=60)
        self.file = self.sock.makefile("rb")

    def encode(self, data):
        return data

    def read(self):
        return self.file.read1(1 << 20)

    def close(self):
        self.file.close()
        self.sock.close()


class Tunnel:
    """A connection through the manager alone."""

    prefix = cookie = ""

    def __init__(self, cluster, path="/stream/session/apps/tcpproxy?app=web"):
        self.ws = WebSocket(cluster.client(), path, timeout=60)
        assert self.ws.status == 101, self.ws.head
        self.sock = self.ws.sock

    def encode(self, data):
        size = bytes((0x80 | len(data),)) if len(data) < 126 else struct.pack("!BH", 0xFE, len(data))
        return b"\x82" + size + bytes(4) + data  # masked by zeros

    def read(self):
        opcode, payload = self.ws.receive()
        return payload if opcode == 2 else b""

    def close(self):
        self.ws.close()


class Port(Tunnel):
    def __init__(self, cluster):
        super().__init__(cluster, "/aliquot/v1/sessions/apps/connect?port=8000")


def ask(end, method, path, length=0):
    end.sock.sendall(end.encode(f"{method} {end.prefix}{path} HTTP/1.1\r\nHost: x\r\n{end.cookie}"
                                f"Content-Length: {length}\r\n\r\n".encode()))


def answer(end):
    """Of the body: how many bytes, and their digest."""
    text = b""
    while b"\r\n\r\n" not in text:
        got = end.read()
        assert got, text
        text += got
    head, _, body = text.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    left = int(re.search(rb"(?i)content-length: (\d+)", head)[1]) - len(body)
    whole = [body] if left < 1024 else None
    digest = hashlib.sha256(body)
    while left:
        got = end.read()
        assert got, left
        left -= len(got)
        digest.update(got)
        if whole:
            whole.append(got)
    assert left == 0
    return b"".join(whole) if whole else digest.hexdigest()


def memory(cluster):
    texts = (pathlib.Path(f"/proc/{program.pid}/status").read_text()
             for program in cluster.programs.values())
    return sum(int(re.search(r"^RssAnon:\s+(\d+) kB", text, re.M)[1]) for text in texts) << 10


def block(at):
    return at.to_bytes(8, "big") * (BLOCK // 8)


def digest_of_all():
    digest = hashlib.sha256()
    for at in range(0, SIZE, BLOCK):
        digest.update(block(at))
    return digest.hexdigest()


@pytest.mark.parametrize("kind", (Browser, Tunnel, Port))
def test_a_client_that_reads_nothing(cluster, kind):
    """Another one gets all meanwhile: there was time to read what the first does not take."""
    with contextlib.closing(kind(cluster)) as slow, contextlib.closing(kind(cluster)) as other:
        before = memory(cluster)
        ask(slow, "GET", "/much")
        ask(other, "GET", "/much")
        assert answer(other) == digest_of_all()
        assert memory(cluster) - before < 30 << 20
        assert answer(slow) == digest_of_all()


@pytest.mark.parametrize("kind", (Browser, Tunnel, Port))
def test_an_app_that_reads_nothing(cluster, kind):
    """Nobody takes more of the request for it; all arrives once it reads."""
    with contextlib.closing(kind(cluster)) as end, contextlib.closing(kind(cluster)) as other:
        before = memory(cluster)
        ask(end, "POST", "/", SIZE)
        left = memoryview(b"".join(end.encode(block(at)) for at in range(0, SIZE, BLOCK)))
        end.sock.settimeout(5)
        with pytest.raises(TimeoutError):
            while left:
                left = left[end.sock.send(left):]
        assert memory(cluster) - before < 30 << 20
        end.sock.settimeout(60)
        ask(other, "GET", "/go")
        end.sock.sendall(left)
        assert answer(end).decode() == digest_of_all()


def test_an_app_that_answers_before_it_is_asked(cluster):
    """Its bytes wait for the proxy, which is stopped about when it is asked to fetch them."""
    proxy = cluster.programs["proxy"]
    request = (f"GET /app/{cluster.box}/hasty/ HTTP/1.1\r\nHost: x\r\n"
               f"Cookie: {cluster.cookie('apps', 'hasty')}\r\nConnection: close\r\n\r\n").encode()
    for wait_msec in range(0, 20, 4):
        with socket.create_connection(("127.0.0.1", cluster.port), timeout=60) as end:
            end.sendall(request)
            time.sleep(wait_msec / 1000)
            proxy.signal(signal.SIGSTOP)
            time.sleep(0.2)
            proxy.signal(signal.SIGCONT)
            said = b"".join(iter(lambda: end.recv(65536), b""))
            assert said.startswith(b"HTTP/1.1 503 ") and said.endswith(b"busy"), said


def test_browsers_that_leave_while_an_app_starts(cluster):
    """Last: the app does not start again."""
    with contextlib.closing(Browser(cluster)) as end:
        ask(end, "GET", "/hold")
        assert answer(end) == b""
    assert cluster.client().post("/session/apps/shutdown-service",
                                 {"service_name": "web"}).status == 204
    for _ in range(MOST):
        with contextlib.closing(Browser(cluster)) as end:
            ask(end, "POST", "/", 2)
    wait_for(cluster.is_proxied, 60, "connections that are free again")
