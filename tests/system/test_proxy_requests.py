# SPDX-License-Identifier: Apache-2.0
"""What goes over one connection through aliquot-proxy, byte by byte: many requests, and nothing that
two readers could take for different ones."""

import base64
import contextlib
import json
import re
import socket
import time

import pytest

from cluster import running, wait_for
from images import Layout, archive, file, folder
from runtimes import settings_of
from test_apps import python_layer
from test_proxy import Proxied

# Says which of its connections a request came by, as the how manyth, and all bytes of it; "/say/HEX"
# answers those bytes, "/cut/HEX" closes after them, "/late/HEX" says them a moment after an answer,
# "/once" closes without an answer if it is not the first, "/slow" never ends.
RAW = r"""
import base64, itertools, json, socket, sys, threading, time
numbers = itertools.count()
def upto(peer, held, end):
    while end not in held:
        got = peer.recv(65536)
        if not got:
            return None, b""
        held += got
    at = held.index(end) + len(end)
    return held[:at], held[at:]
def serve(peer, number):
    held = b""
    for i in itertools.count():
        head, held = upto(peer, held, b"\r\n\r\n")
        if head is None:
            return
        size = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")]
        body = b""
        if b"\r\ntransfer-encoding:" in head.lower():
            body, held = upto(peer, held, b"0\r\n\r\n")
        while size and len(body) < size[0]:
            if not held:
                held = peer.recv(65536)
                if not held:
                    return
            more = size[0] - len(body)
            body, held = body + held[:more], held[more:]
        path = head.split(b" ")[1].decode()
        verb, _, bytes_ = path[1:].partition("/")
        if verb in ("say", "cut"):
            peer.sendall(bytes.fromhex(bytes_))
            if verb == "cut":
                return
            continue
        if verb == "once" and i:
            return
        if verb == "slow":
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
            while True:
                peer.sendall(bytes(1 << 16))
        text = json.dumps({"connection": number, "request": i,
                           "raw": base64.b64encode(head + body).decode()}).encode()
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
        if verb == "late":
            time.sleep(0.2)
            peer.sendall(bytes.fromhex(bytes_))
        if verb == "last":
            return
def run(peer, number):
    try:
        serve(peer, number)
    except OSError:
        pass
    peer.close()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=1000)
while True:
    threading.Thread(target=run, args=(listener.accept()[0], next(numbers)), daemon=True).start()
"""


@pytest.fixture(scope="module")
def cluster():
    with Proxied(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        layout = Layout(cluster.folder / "layout")
        definition = json.dumps({"command": ["python3", "/app/raw.py", "{ports[0]}"]}).encode()
        own = archive([folder("tmp", mode=0o1777), folder("app"),
                       file("app/raw.py", RAW.encode()), folder("etc"), folder("etc/backend.ai"),
                       folder("etc/backend.ai/service-defs"),
                       *(file(f"etc/backend.ai/service-defs/{name}.json", definition)
                         for name in ("raw", "two"))])
        layout.image("raw", [python_layer(), own], Labels={
            "ai.backend.service-ports": "raw:http:8000,two:http:8001",
            "ai.backend.runtime-path": "/usr/bin/python3"})
        cluster.image = layout.reference("raw")
        cluster.start_proxy()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "apps", image=cluster.image) as session:
        cluster.cookies = {app: cluster.cookie("apps", app) for app in ("raw", "two")}
        yield session


class Browser:
    """A connection, with a reader that takes exactly one answer at a time."""

    def __init__(self, cluster, box, app="raw"):
        self.socket = socket.create_connection(("127.0.0.1", cluster.port), timeout=60)
        self.place, self.cookie, self.held = f"/app/{box}/{app}", cluster.cookies[app], b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def text(self, path="/", headers="", method="GET", body=b"", version="1.1"):
        return (f"{method} {self.place}{path} HTTP/{version}\r\nHost: x\r\nCookie: {self.cookie}\r\n"
                f"{headers}\r\n").encode() + body

    def send(self, *args, **named):
        self.socket.sendall(self.text(*args, **named))

    def ask(self, *args, **named):
        self.send(*args, **named)
        return self.answer(named.get("method"))

    def more(self):
        got = self.socket.recv(1 << 16)
        self.held += got
        return got

    def take(self, size):
        while len(self.held) < size:
            assert self.more(), self.held
        taken, self.held = self.held[:size], self.held[size:]
        return taken

    def answer(self, method=None):
        """Status, headers, body."""
        while b"\r\n\r\n" not in self.held:
            assert self.more(), self.held
        head, _, self.held = self.held.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        status = int(lines[0].split()[1])
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        if status in (101, 204, 304) or status < 200 or method == "HEAD":
            return status, headers, b""
        return status, headers, self.take(int(headers["content-length"]))

    def rest(self):
        """What comes until the end."""
        with contextlib.suppress(ConnectionResetError):
            while self.more():
                pass
        return self.held

    def seen(self, *args, **named):
        status, headers, body = self.ask(*args, **named)
        assert status == 200 and "connection" not in headers, (status, headers, body)
        said = json.loads(body)
        return said["connection"], said["request"], base64.b64decode(said["raw"])


@pytest.fixture
def browser(cluster, box):
    with Browser(cluster, box) as end:
        yield end


def said(head, body=b""):
    return "/say/" + (head.encode() + body).hex()


OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


@pytest.mark.gate
def test_a_connection_has_many_requests(cluster, box, browser):
    first, number, raw = browser.seen("/a")
    assert number == 0 and raw.startswith(b"GET /a HTTP/1.1\r\nHost: x\r\n"), raw
    assert b"\r\nConnection:" not in raw and b"aliquot_app" not in raw, raw
    for i in range(1, 8):
        assert browser.seen(f"/{i}")[:2] == (first, i)
    assert browser.seen("/p", "Content-Length: 3\r\n", "POST", b"abc")[:2] == (first, 8)
    chunks = b"3\r\nabc\r\n0\r\n\r\n"
    assert browser.seen("/c", "Transfer-Encoding: chunked\r\n", "POST", chunks)[1] == 9
    assert browser.ask("/h", method="HEAD")[0] == 200
    browser.held = b""  # the app has sent a body, which is nobody's
    assert browser.seen("/")[0] != first
    browser.socket.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nHEAD /x HTTP/1.1\r\nHost: x\r\n\r\n")
    assert browser.answer()[0] == 200
    assert browser.answer("HEAD")[0] == 405
    # another app, another connection
    other = Browser(cluster, box, "two")
    browser.place, browser.cookie = other.place, other.cookie
    assert browser.seen("/")[1] == 0
    other.socket.close()


@pytest.mark.gate
def test_requests_that_come_together(browser):
    """They are answered in their order, each when it is its turn, the proxy's own among them."""
    count = 40
    browser.socket.sendall(b"".join(
        b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" if i % 10 == 9 else
        browser.text(f"/{i}", "Content-Length: 70000\r\n", "POST", b"%c" % (65 + i % 26) * 70000)
        if i % 10 == 5 else browser.text(f"/{i}") for i in range(count)))
    for i in range(count):
        status, headers, body = browser.answer()
        assert status == 200 and "connection" not in headers
        if i % 10 != 9:
            raw = base64.b64decode(json.loads(body)["raw"])
            assert raw.split(b" ")[1] == b"/%d" % i
            assert i % 10 != 5 or raw.endswith(b"%c" % (65 + i % 26) * 70000)


@pytest.mark.gate
def test_when_a_connection_ends(cluster, box):
    for args in ({"headers": "Connection: close\r\n"}, {"version": "1.0"},
                 {"path": "/cut/" + b"HTTP/1.1 200 OK\r\n\r\nok".hex()},  # as long as it lasts
                 {"path": "/cut/" + b"HTTP/1.0 200 OK\r\n\r\nok".hex()}):
        with Browser(cluster, box) as end:
            end.send(**args)
            head = end.rest().partition(b"\r\n\r\n")[0]
            assert head.startswith(b"HTTP/1.1 200 ") and b"\r\nConnection: close" in head, head
    for path, headers in (("/", "Content-Length: 5\r\n"), ("/", "Transfer-Encoding: chunked\r\n")):
        with Browser(cluster, box) as end:  # refused before the body has come
            end.cookie = "x=y"
            status, headers, _ = end.ask(path, headers, "POST")
            assert (status, headers["connection"]) == (401, "close")
            assert end.rest() == b""


@pytest.mark.gate
def test_an_app_that_closes_its_connections(cluster, box, browser):
    """A request that can be is sent again by a new one; of another the browser is told."""
    for _ in range(5):
        with Browser(cluster, box) as end:
            end.seen("/last")
            assert end.seen("/", "Content-Length: 1\r\n", "POST", b"x")[1] == 0
    first = browser.seen("/last")[0]
    assert browser.seen("/")[0] != first
    assert browser.seen("/once")[1] == 0
    browser.seen("/")
    status, headers, body = browser.ask("/once", "Content-Length: 1\r\n", "POST", b"x")
    assert status == 502 and b"closed the connection" in body and "connection" not in headers
    assert browser.seen("/")[1] == 0
    connection = browser.seen("/")[0]
    time.sleep(2)  # after a while it is not kept
    assert browser.seen("/")[0] != connection


SMUGGLED = {
    "two lengths": b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    "two lengths in one": b"Content-Length: 2, 2\r\n\r\nok",
    "length and coding": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a list of codings": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "identity": b"Transfer-Encoding: identity\r\n\r\n",
    "an unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a quoted coding": b"Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
    "a coding with a parameter": b"Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n",
    "a vertical tab": b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "a blank before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a tab before the colon": b"Content-Length\t: 2\r\n\r\nok",
    "a blank before the name": b" Content-Length: 2\r\n\r\nok",
    "a folded line": b"X: y\r\n Content-Length: 2\r\n\r\nok",
    "a folded value": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a bare LF": b"X: y\nContent-Length: 2\r\n\r\nok",
    "a bare CR": b"X: y\rContent-Length: 2\r\n\r\nok",
    "a head that ends in LF": b"X: y\n\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    "a NUL": b"Content-Length: 2\x00\r\n\r\nok",
    "no name": b": y\r\n\r\n",
    "no colon": b"Content-Length\r\n\r\n",
    "a signed length": b"Content-Length: +2\r\n\r\nok",
    "a negative length": b"Content-Length: -1\r\n\r\n",
    "a hexadecimal length": b"Content-Length: 0x2\r\n\r\nok",
    "an empty length": b"Content-Length: \r\n\r\n",
    "a length that overflows": b"Content-Length: 18446744073709551618\r\n\r\nok",
    "a second host": b"Host: y\r\n\r\n",
    "a chunk size with a sign": b"Transfer-Encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n",
    "a chunk size as 0x": b"Transfer-Encoding: chunked\r\n\r\n0x2\r\nok\r\n0\r\n\r\n",
    "a chunk size that overflows":
        b"Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\nok\r\n0\r\n\r\n",
    "a blank before a chunk size": b"Transfer-Encoding: chunked\r\n\r\n 2\r\nok\r\n0\r\n\r\n",
    "a blank behind a chunk size": b"Transfer-Encoding: chunked\r\n\r\n2 \r\nok\r\n0\r\n\r\n",
    "a chunk that ends in LF": b"Transfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n",
    "an extension that ends in LF": b"Transfer-Encoding: chunked\r\n\r\n2;a\nok\r\n0\r\n\r\n",
    "a chunk that is longer": b"Transfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n",
    "a long chunk extension":
        b"Transfer-Encoding: chunked\r\n\r\n2;" + b"a" * 5000 + b"\r\nok\r\n0\r\n\r\n",
    "a long trailer": b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"a" * 5000 + b"\r\n\r\n",
    "a folded trailer": b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n z\r\n\r\n",
    "many headers": b"".join(b"X%d: y\r\n" % i for i in range(300)) + b"\r\n",
    "a long head": b"X: " + b"y" * 70000 + b"\r\n\r\n",
}
LINES = (b"GET  %s HTTP/1.1", b"GET %s  HTTP/1.1", b"GET\t%s HTTP/1.1", b" GET %s HTTP/1.1",
         b"GET %s HTTP/1.1 ", b"GET %s HTTP/2.0", b"GET %s HTTP/1.10", b"GET %s", b"GET %s HTTP/1.1\x00",
         b"GET http://elsewhere%s HTTP/1.1", b"GET %s#x HTTP/1.1", b"GET %s\x7f HTTP/1.1",
         b"CONNECT %s HTTP/1.1", b"PRI * HTTP/2.0", b"get %s HTTP/1.1")
NEXT = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.gate
def test_requests_that_two_could_read_differently(cluster, box):
    """Each is refused, the connection ends with it, and nothing behind it is looked at."""
    for name, bad in SMUGGLED.items():
        with Browser(cluster, box) as end:
            end.socket.sendall(end.text(method="POST")[:-2] + bad + NEXT)
            rest = end.rest()
            assert re.match(rb"HTTP/1.1 4\d\d [^\0]*\r\nConnection: close\r\n", rest), (name, rest)
            assert rest.count(b"HTTP/1.1 ") == 1, (name, rest)
    for line in LINES:
        with Browser(cluster, box) as end:
            rest = end.text().partition(b"\r\n")[2]
            end.socket.sendall(line.replace(b"%s", end.place.encode() + b"/") + b"\r\n" + rest + NEXT)
            got = end.rest()
            assert re.match(rb"HTTP/1.1 [45]\d\d ", got), (line, got)
            assert got.count(b"HTTP/1.1 ") == 1, (line, got)


@pytest.mark.gate
def test_requests_of_which_only_one_reading_is_right(browser):
    """As they are passed on they have that one."""
    assert browser.seen("/", "Content-Length: 002\r\n", "POST", b"ok")[2].endswith(b"\r\n\r\nok")
    text = b"02;a=\"b\"\r\nok\r\n0\r\nX-Late: y\r\n\r\n"
    browser.send("/", "Transfer-Encoding: CHUNKED\r\n", "POST", text.replace(b"X-Late: y\r\n", b""))
    assert browser.answer()[0] == 200
    for hop in ("Content-Length", "Host", "Transfer-Encoding", "Cookie"):
        raw = browser.seen("/", f"Connection: {hop}, X-Own\r\nX-Own: y\r\nContent-Length: 0\r\n",
                           "POST")[2]
        assert b"X-Own" not in raw and b"\r\nHost: x\r\n" in raw and b"Content-Length: 0" in raw, raw


@pytest.mark.gate
def test_an_upgrade_that_the_app_does_not_want(browser):
    """What was sent behind it is a request of its own, with a right of its own."""
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    hidden = browser.place.encode() + b"/hidden HTTP/1.1\r\nHost: x\r\n\r\n"
    browser.socket.sendall(browser.text("/a", upgrade) + b"GET " + hidden + browser.text("/b"))
    connection, number, raw = (lambda got: (got["connection"], got["request"], got["raw"]))(
        json.loads(browser.answer()[2]))
    assert number == 0 and b"hidden" not in base64.b64decode(raw)
    assert browser.answer()[0] == 401
    last = json.loads(browser.answer()[2])
    assert (last["connection"], last["request"]) == (connection, 1)
    # one that it takes: all that follows is its own, and came after its answer
    switch = said("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
    browser.socket.sendall(browser.text(switch, upgrade) + browser.text("/c")[0:1])
    assert browser.answer()[0] == 101
    browser.socket.sendall(b"ET /d HTTP/1.1\r\n\r\n")
    body = json.loads(browser.answer()[2])
    assert base64.b64decode(body["raw"]) == b"GET /d HTTP/1.1\r\n\r\n"


@pytest.mark.gate
def test_answers_that_two_could_read_differently(cluster, box):
    hidden = b"HTTP/1.1 200 OK\r\nX-Hidden: y\r\nContent-Length: 0\r\n\r\n"
    for bad in ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
                "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
                "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n", "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
                "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/3 200\r\n\r\n", "SSH-2.0-x\r\n"):
        with Browser(cluster, box) as end:
            status, _, body = end.ask(said(bad, hidden))
            assert status == 502 and b"no HTTP" in body, (bad, body)
            assert end.seen("/")[1] == 0, bad  # by another connection to the app
    for head, method, status in (
            (OK + "ok", "GET", 200), (OK + "ok", "HEAD", 200),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", "GET", 204),
            ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", 204),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", "GET", 304)):
        with Browser(cluster, box) as end:
            got, headers, _ = end.ask(said(head, hidden), method=method)
            assert got == status and (got != 204 or not {"content-length", "transfer-encoding"}
                                      & set(headers)), (head, headers)
            assert end.seen("/")[1] == 0, head
            assert b"Hidden" not in end.held


@pytest.mark.gate
def test_answers_before_the_answer(browser):
    text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK
    browser.send(said(text, b"ok"), "Expect: 100-continue\r\n")
    assert [browser.answer()[0] for _ in range(3)] == [100, 103, 200]
    assert browser.seen("/")[1] == 1


@pytest.mark.gate
def test_bytes_that_an_app_says_unasked(browser):
    first = browser.seen("/late/" + OK.encode().hex() + "6f6b")[0]
    time.sleep(1)
    connection, number, _ = browser.seen("/")
    assert connection != first and number == 0 and browser.held == b""


def memory_of(program):
    """Resident memory in MB."""
    text = open(f"/proc/{program.pid}/status", encoding="ascii").read()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) >> 10


def test_a_browser_that_reads_slowly(cluster, box):
    """The app waits; no program on the way keeps what it says, and others are served."""
    programs = [cluster.programs[name] for name in ("proxy", "manager", "agent")]
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(Browser(cluster, box)) for _ in range(20)]
        for end in slow:
            end.send("/slow")
            assert end.more()
        before = [memory_of(program) for program in programs]
        time.sleep(2)
        with Browser(cluster, box) as other:
            assert other.seen("/")
        grown = [memory_of(program) - was for program, was in zip(programs, before)]
        assert max(grown) < 60, grown  # of what does not end
        for end in slow:
            assert len(end.take(1 << 20)) == 1 << 20


def test_an_app_that_dies_in_its_answer(cluster, box):
    """The browser sees that something is missing, and goes on with a new connection."""
    for head in ("Content-Length: 10", "Transfer-Encoding: chunked"):
        text = f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n" + ("5\r\nhello\r\n" if "chunk" in head else "hello")
        with Browser(cluster, box) as end:
            end.send("/cut/" + text.encode().hex())
            rest = end.rest()
            assert rest.startswith(b"HTTP/1.1 200 ") and b"hello" in rest
            assert not rest.endswith(b"0\r\n\r\n")
        with Browser(cluster, box) as end:
            assert end.seen("/")
    with Browser(cluster, box) as end:
        status, headers, body = end.ask("/cut/" + b"HTTP/1.1 200 OK\r\nContent-Le".hex())
        assert status == 502 and b"closed the connection" in body and "connection" not in headers
        assert end.seen("/")


def is_served(cluster, box):
    with contextlib.suppress(OSError, AssertionError), Browser(cluster, box) as end:
        return end.ask("/")[0] == 200
    return False


@pytest.mark.parametrize("victim", ["agent", "manager", "proxy"])
def test_a_program_that_is_killed_in_an_answer(cluster, box, victim):
    """What passes it ends, cut, and browsers go on when it is back: an agent of the same machine has
    handed the connection over, and the manager has nothing to do with it (test_data_path.py)."""
    with Browser(cluster, box) as cut, Browser(cluster, box) as other:
        assert other.seen("/")
        cut.send("/slow")
        cut.take(1 << 20)
        cluster.programs[victim].kill()
        if victim == "proxy":
            assert len(cut.rest()) < 1 << 30
        else:
            assert len(cut.take(16 << 20)) == 16 << 20
    getattr(cluster, f"start_{victim}")()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    wait_for(lambda: is_served(cluster, box), 60, "the app")
    with Browser(cluster, box) as end:
        assert end.seen("/")


def unread(cluster, text, size):
    """A connection that has sent as much of 'size' bytes of 'text' as the proxy takes, and read
    nothing: it stands still, or was closed."""
    end = socket.socket()
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    end.connect(("127.0.0.1", cluster.port))
    end.settimeout(3)
    left = memoryview(text * (size // len(text) + 1))
    with contextlib.suppress(OSError):
        while left:
            left = left[end.send(left):]
    return end, len(left)


def test_answers_that_are_not_read(cluster, box):
    """Memory of the proxy does not follow what a client sends without reading; the next request is
    not looked at, in whichever way the previous one was answered."""
    proxy = cluster.programs["proxy"]
    with Browser(cluster, box) as end:
        floods = {"its own": NEXT, "not found": b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n",
                  "refused": end.text().replace(end.cookie.encode(), b"x=y"),
                  "a redirect": end.text(""), "an app's": end.text("/a"),
                  "an app's, long": end.text("/a", f"X: {'y' * 20000}\r\n")}
    for name, text in floods.items():
        before = memory_of(proxy)
        end, left = unread(cluster, text, 30 << 20)
        with end:
            assert left > 8 << 20, (name, left)  # the proxy does not read it
            assert memory_of(proxy) - before < 32, name
            with Browser(cluster, box) as other:
                assert other.seen("/")


def test_a_client_that_takes_no_answer_is_dropped(cluster, box):
    """Also while it goes on sending, whoever answers; one that reads in the end gets all of it."""
    with Browser(cluster, box) as end:
        slow, own = end.text("/slow"), NEXT
    ends = [unread(cluster, text, 30 << 20)[0] for text in (slow, own, own + b"x\r\n\r\n")]
    with contextlib.ExitStack() as stack:
        for end in ends:
            stack.enter_context(end)
        wait_for(lambda: all(is_cut(end) for end in ends), 120, "the end of connections")
    with Browser(cluster, box) as end:
        assert end.seen("/")


def is_cut(end):
    """Still sends, as far as it can, without reading."""
    end.setblocking(False)
    try:
        end.send(NEXT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return False


def test_a_user_with_many_upgraded_connections(cluster, box):
    """They are never given to another, so the user has a share of all places."""
    cluster.programs["proxy"].kill()
    cluster.start_proxy(ALIQUOT_PROXY_MAX_CONNECTIONS="60")
    switch = said("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
    with contextlib.ExitStack() as stack:
        for held in range(60):
            end = stack.enter_context(Browser(cluster, box))
            status, _, body = end.ask(switch, "Connection: Upgrade\r\nUpgrade: x\r\n")
            if status != 101:
                break
        assert 16 <= held <= 40 and status == 429, (held, status)
        assert b"connections of the proxy" in body and b"close pages" in body, body
        for _ in range(60):
            assert cluster.ask("GET", "/health")[0] == 200
    wait_for(lambda: is_served(cluster, box), 60, "the app")
    cluster.programs["proxy"].kill()
    cluster.start_proxy()
