# SPDX-License-Identifier: Apache-2.0
"""Requests below /func reach the manager signed, and as they were; answers come back as they come."""

import base64
import concurrent.futures
import contextlib
import hashlib
import hmac
import re
import socket
import threading

import pytest

from client import ADMIN
from cluster import wait_for
from web import COOKIE, Answer, WebSocket, Webbed, hide

PIECE = b"0123456789abcdef" * 4096
BIG = 200 << 20


class FakeApi:
    """In place of the manager's API: keeps heads and digests of bodies, and answers by the path."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.heads, self.bodies, self.sent, self.hold = [], [], 0, threading.Event()
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        with peer, peer.makefile("rb") as file:
            try:
                while self.answer(peer, file):
                    pass
            except OSError:
                pass

    def answer(self, peer, file):
        first = file.readline().decode("latin-1")
        if not first:
            return False
        headers = []
        while (line := file.readline().decode("latin-1").rstrip("\r\n")):
            name, _, value = line.partition(": ")
            headers.append((name, value))
        method, target, _ = first.split(" ")
        head = {name.lower(): value for name, value in headers}
        with self.lock:
            self.heads.append((method, target, head))
        if target.startswith("/hold-body"):
            self.hold.wait(60)
        with self.lock:
            self.bodies.append(self.read_body(file, head))
        reply = {"/big": self.send_big, "/events": self.send_events, "/socket": self.serve_socket,
                 "/socket-half": self.serve_socket, "/socket-gone": self.serve_socket,
                 "/break": self.send_half, "/held": self.send_held, "/ends": self.send_held}.get(target.partition("?")[0], self.send_small)
        return reply(peer, file, head)

    @staticmethod
    def read_body(file, head):
        digest, size = hashlib.sha256(), 0
        if head.get("transfer-encoding") == "chunked":
            while (length := int(file.readline(), 16)):
                digest.update(file.read(length))
                size += length
                file.readline()
            file.readline()
        else:
            size = int(head.get("content-length", 0))
            digest.update(file.read(size))
        return size, digest.hexdigest()

    def send_small(self, peer, file, head):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 21\r\n"
                     b"Set-Cookie: AIOHTTP_SESSION=evil\r\nAccess-Control-Allow-Origin: *\r\n"
                     b"X-Own: yes\r\n\r\n<script>1</script>..\n")
        return True

    def send_held(self, peer, file, head):
        self.hold.wait(60)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                     + (b"X-Aliquot-Login-Ended: 1\r\n" if self.heads[-1][1] == "/ends" else b"")
                     + b"\r\n{}")
        return True

    def send_big(self, peer, file, head):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
                     b"Content-Length: %d\r\n\r\n" % BIG)
        for _ in range(BIG // len(PIECE)):
            peer.sendall(PIECE)
            self.sent += len(PIECE)
        return True

    def send_events(self, peer, file, head):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
        for i in range(3):
            event = b"event: n\ndata: %d\n\n" % i
            peer.sendall(b"%x\r\n%s\r\n" % (len(event), event))
            self.hold.wait(60)
        peer.sendall(b"0\r\n\r\n")
        return True

    def send_half(self, peer, file, head):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        return False

    def serve_socket(self, peer, file, head):
        key = (head["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()
        accept = base64.b64encode(hashlib.sha1(key).digest())
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                     b"Upgrade: websocket\r\nSec-WebSocket-Accept: " + accept + b"\r\n"
                     + (b"Sec-WebSocket-Protocol: tty\r\n" if "sec-websocket-protocol" in head
                        else b"") + b"\r\n")
        kind = self.heads[-1][1]
        if kind == "/socket-half":
            peer.sendall(b"\x82\x05ab")
        while kind != "/socket-gone" and (head := file.read(2)):  # echo, without the mask
            size = head[1] & 0x7f
            if size > 125:
                size = int.from_bytes(file.read(2 if size == 126 else 8), "big")
            mask = file.read(4)
            data = bytes(a ^ b for a, b in zip(file.read(size), mask * (size // 4 + 1)))
            length = (bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2, "big")
                      if size < 65536 else b"\x7f" + size.to_bytes(8, "big"))
            peer.sendall(head[:1] + length + data)
            if head[0] & 0xf == 8:
                break
        return False

    def last(self):
        return self.heads[-1], self.bodies[-1]


@pytest.fixture(scope="module", name="api")
def api_fixture():
    return FakeApi()


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(api):
    with Webbed() as made:
        made.start_manager()
        made.start_web(ALIQUOT_WEB_API=api.url)
        yield made
        made.stop()


@pytest.fixture(name="browser")
def browser_fixture(cluster, api):
    api.hold.clear()
    made = cluster.browser()
    assert made.login().json["authenticated"]
    return made


def signature(head, method, target):
    """What the header must say, by the scheme of the API."""
    date, host = head["date"], head["host"]
    kind = head.get("content-type", "application/octet-stream").partition(";")[0].strip().lower()
    text = "\n".join([method, target, date, "host:" + host, "content-type:" + kind,
                      "x-backendai-version:" + head["x-backendai-version"],
                      hashlib.sha256(b"").hexdigest()]).encode()
    day = re.sub(r"\D", "", date)[:8].encode()
    key = hmac.new(ADMIN[1].encode(), day, "sha256").digest()
    key = hmac.new(key, host.encode(), "sha256").digest()
    return hmac.new(key, text, "sha256").hexdigest()


@pytest.mark.gate
def test_a_request_is_signed_and_bare(browser, api):
    answer = browser.post("/session?x=%20y", b'{"a":1}', Content_Type="application/json; charset=x",
                          Authorization="BackendAI forged", Date="yesterday", X_Forwarded_For="1.2.3.4",
                          X_Forwarded_Host="evil", Forwarded="for=evil", X_Method_Override="DELETE",
                          Accept_Language="ko", X_BackendAI_SessionID="x", X_Strange="1")
    (method, target, head), body = api.last()
    assert (method, target) == ("POST", "/session?x=%20y")
    assert body == (7, hashlib.sha256(b'{"a":1}').hexdigest())
    assert head["authorization"] == ("BackendAI signMethod=HMAC-SHA256, credential="
                                     f"{ADMIN[0]}:{signature(head, method, target)}")
    assert head["content-type"] == "application/json; charset=x"
    assert head["accept-language"] == "ko" and head["x-forwarded-for"] == "127.0.0.1"
    assert head["host"] == f"127.0.0.1:{api.port}"
    for name in ("cookie", "origin", "x-strange", "x-method-override", "forwarded", "referer",
                 "x-backendai-sessionid"):
        assert name not in head, head
    assert answer.headers["X-Own"] == "yes"
    assert "Set-Cookie" not in answer.headers
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_no_two_dates_are_equal(browser, api):
    before = len(api.heads)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert {answer.status for answer in pool.map(
            lambda _: browser.post("/admin/gql", b"{}"), range(200))} == {200}
    dates = [head["date"] for _, _, head in api.heads[before:]]
    assert len(dates) == len(set(dates)) == 200


def test_hidden_bodies_are_opened(cluster, browser, api):
    hidden = hide(cluster.origin, {"old_password": "a"})
    assert browser.post("/auth/update-password", hidden, X_BackendAI_Encoded="true").status == 200
    _, body = api.last()
    assert body == (21, hashlib.sha256(b'{"old_password": "a"}').hexdigest())
    broken = browser.post("/auth/update-password", hidden[:-8], X_BackendAI_Encoded="true")
    assert (broken.status, broken.slug) == (400, "generic-bad-request")


def test_nobody_is_asked_without_a_login(cluster, api):
    before = len(api.heads)
    stranger = cluster.browser()
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        answer = stranger.ask(method, "/func/session")
        assert (answer.status, answer.slug) == (401, "auth-failed")
    assert len(api.heads) == before
    assert stranger.get("/").status == 200  # what the manager tells everybody
    assert "authorization" not in api.last()[0][2]


# ---- streams ----

def rss(cluster):
    status = open(f"/proc/{cluster.programs['web'].pid}/status").read()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


def test_a_large_answer_comes_at_the_readers_pace(cluster, browser, api):
    api.sent = 0
    connection = browser.connect()
    connection.request("GET", "/func/big", headers=browser.headers({}))
    reply = connection.getresponse()
    seen = []
    wait_for(lambda: (seen.append(api.sent), len(seen) > 5 and len(set(seen[-5:])) == 1)[1], 60,
             "the sender to wait")
    assert api.sent < 64 << 20
    digest, size = hashlib.sha256(), 0
    while (piece := reply.read(1 << 20)):
        digest.update(piece)
        size += len(piece)
    connection.close()
    assert size == BIG
    assert digest.hexdigest() == hashlib.sha256(PIECE * (BIG // len(PIECE))).hexdigest()


def test_a_large_body_waits_for_the_manager(cluster, browser, api):
    sock = socket.create_connection(("127.0.0.1", cluster.web_port), timeout=60)
    head = "".join(f"{name}: {value}\r\n" for name, value in browser.headers({}).items())
    sock.sendall(f"PUT /func/hold-body HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}"
                 f"Content-Length: {BIG}\r\n\r\n".encode())
    sock.settimeout(3)
    sent = 0
    view = memoryview(PIECE)
    try:
        while sent < BIG:
            at = sent % len(PIECE)
            sent += sock.send(view[at:])
    except TimeoutError:
        pass
    assert sent < 64 << 20, "nothing held it back"
    api.hold.set()
    sock.settimeout(60)
    while sent < BIG:
        at = sent % len(PIECE)
        sent += sock.send(view[at:at + BIG - sent])
    reply = sock.makefile("rb").readline()
    assert b" 200 " in reply
    assert api.bodies[-1] == (BIG, hashlib.sha256(PIECE * (BIG // len(PIECE))).hexdigest())
    sock.close()


def test_events_come_as_they_are_said(browser, api):
    connection = browser.connect()
    connection.request("GET", "/func/events", headers=browser.headers({"Last-Event-ID": "7"}))
    reply = connection.getresponse()
    assert reply.headers["Content-Type"] == "text/event-stream"
    assert reply.readline() == b"event: n\n"
    assert reply.readline() == b"data: 0\n"
    api.hold.set()
    assert reply.read().endswith(b"data: 2\n\n")
    assert api.heads[-1][2]["last-event-id"] == "7"
    connection.close()


def test_a_broken_answer_is_broken(browser):
    connection = browser.connect()
    connection.request("GET", "/func/break", headers=browser.headers({}))
    with pytest.raises(Exception, match="IncompleteRead|reset"):
        connection.getresponse().read()
    connection.close()


@pytest.mark.gate
def test_websocket_both_ways(browser, api, cluster):
    ws = browser.socket("/func/socket", Sec_WebSocket_Protocol="tty", Origin=cluster.origin)
    assert isinstance(ws, WebSocket), ws
    head = api.heads[-1][2]
    assert head["sec-websocket-protocol"] == "tty" and "origin" not in head
    assert head["authorization"].startswith("BackendAI ")
    for text in ("hello", "x" * 200, "y" * 70000):
        ws.send(text)
        assert ws.receive() == (1, text.encode())
    ws.send(b"\x03\xe8", 8)
    assert ws.receive() == (8, b"\x03\xe8")
    ws.close()


def test_a_login_that_ends_takes_its_sockets_along(browser, cluster):
    ws = browser.socket("/func/socket")
    ws.send("a")
    assert ws.receive() == (1, b"a")
    assert browser.ask("POST", "/server/logout", {}).status == 200
    assert ws.receive() == (8, b"\x03\xf0the login has ended")
    ws.send(b"\x03\xf0", 8)
    assert ws.receive() == (None, b"")
    ws.close()


def answer_after_logout(browser, api, path, says):
    """Of a request that is under way when its login ends."""
    before = len(api.heads)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(browser.post, path, b"{}")
        wait_for(lambda: len(api.heads) > before, 60, "the request")
        assert browser.ask("POST", "/server/logout", {}).status == 200
        if says:
            api.hold.set()
        return answer.result(60)


def test_the_answer_of_what_ended_its_login_comes(browser, api):
    answer = answer_after_logout(browser, api, "/ends", True)
    assert (answer.status, answer.body) == (200, b"{}")
    assert "X-Aliquot-Login-Ended" not in answer.headers


@pytest.mark.parametrize("says", (True, False))
def test_no_other_answer_comes_once_the_login_has_ended(browser, api, says):
    answer = answer_after_logout(browser, api, "/held", says)
    assert (answer.status, answer.slug) == (401, "auth-failed")


def test_nothing_is_said_within_a_frame(browser):
    """It would be taken for a part of it."""
    ws = browser.socket("/func/socket-half")
    assert ws.file.read(4) == b"\x82\x05ab"
    assert browser.ask("POST", "/server/logout", {}).status == 200
    assert ws.file.read() == b""
    ws.close()


def test_a_socket_whose_manager_goes(browser):
    ws = browser.socket("/func/socket-gone")
    assert ws.receive() == (8, b"\x03\xe9the manager is away")
    ws.close()


def test_a_socket_needs_a_login(cluster):
    answer = cluster.browser().socket("/func/socket")
    assert isinstance(answer, Answer) and answer.status == 401


# ---- what has two readings ----

@pytest.mark.parametrize("lines", [
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
    "Transfer-Encoding: chunked, identity\r\n", "Content-Length : 5\r\n", " X: folded\r\n",
    "Host: other\r\n", "X: a\rb\r\n", "Content-Length: +5\r\n", "Content-Length: 5, 5\r\n",
    "Content-Length: 0x5\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: \x0bchunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
    "X: a\nContent-Length: 5\r\n", "Content-Length: 5\n", "X\0: a\r\n", "X: a\0\r\n", ": a\r\n",
    "X: a\r\n folded\r\n"])
def test_ambiguous_requests_are_refused(cluster, browser, api, lines):
    before = len(api.heads)
    sock = socket.create_connection(("127.0.0.1", cluster.web_port), timeout=60)
    sock.sendall(f"POST /func/x HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {COOKIE}="
                 f"{browser.cookies[COOKIE]}\r\n{lines}\r\nhello".encode())
    assert b" 400 " in sock.makefile("rb").readline()
    sock.close()
    assert len(api.heads) == before


@pytest.mark.parametrize("first", [
    "POST http://evil.example/func/x HTTP/1.1", "POST //evil.example/func/x HTTP/1.1",
    "POST evil.example/func/x HTTP/1.1", "POST /func/x y HTTP/1.1", "POST /func/x\tHTTP/1.1",
    "POST /func/\x7f HTTP/1.1", "POST /func/%00 HTTP/1.1", "POST /func/x HTTP/1.1 HTTP/1.1", "POST /func/x", "POST\x0b/func/x HTTP/1.1",
    "POST /server/../func/x HTTP/1.1", "POST /%66unc/x HTTP/1.1", "POST /aliquot/%2e%2e/func/x HTTP/1.1",
    "CONNECT evil.example:80 HTTP/1.1", "PRI * HTTP/2.0"])
def test_no_other_line_leads_to_the_manager(cluster, browser, api, first):
    before = len(api.heads)
    sock = socket.create_connection(("127.0.0.1", cluster.web_port), timeout=60)
    sock.sendall(f"{first}\r\nHost: 127.0.0.1\r\nCookie: {COOKIE}={browser.cookies[COOKIE]}\r\n"
                 "Content-Length: 5\r\n\r\nhello".encode("latin-1"))
    assert sock.makefile("rb").readline().split()[1] in (b"400", b"403", b"404", b"405", b"501", b"505")
    sock.close()
    assert len(api.heads) == before


@pytest.mark.parametrize("target", ["/..", "/%2e%2e/admin/gql", "/../server/logout", "//evil.example/x",
                                    "/x%0d%0aX: y", "/x?a=%0d%0a"])
def test_a_path_is_passed_on_as_it_was(browser, api, target):
    """Signed, too: the manager has one reading of it, and it is this one."""
    browser.ask("GET", "/func" + target.replace(" ", "%20"))
    method, seen, head = api.last()[0]
    assert (method, seen) == ("GET", target.replace(" ", "%20")) and head["host"] == f"127.0.0.1:{api.port}"


@pytest.mark.parametrize("chunks", ["-5\r\nhello\r\n0\r\n\r\n", "5;\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n",
                                    "5\nhello\n0\n\n", "fffffffffffffffff\r\nhello", "5\r\nhelloX\r\n0\r\n\r\n",
                                    "5\r\nhello\r\n0\r\nCookie: x\r\n\r\nGET /func/second HTTP/1.1\r\n\r\n"])
def test_chunks_with_two_readings(cluster, browser, api, chunks):
    """What follows is never taken for a request to the manager."""
    sock = socket.create_connection(("127.0.0.1", cluster.web_port), timeout=60)
    sock.sendall(f"POST /func/first HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {COOKIE}={browser.cookies[COOKIE]}\r\n"
                 f"Transfer-Encoding: chunked\r\n\r\n{chunks}".encode())
    sock.shutdown(socket.SHUT_WR)
    sock.makefile("rb").read()
    sock.close()
    assert "/func/second" not in str(api.heads) and "/second" not in [row[1] for row in api.heads[-2:]]
    assert browser.get("/after").status == 200 and api.last()[0][1] == "/after"


@pytest.mark.parametrize("target", ["/func@evil/x", "/funcx", "/func.toml"])
def test_only_func_is_passed_on(browser, api, target):
    before = len(api.heads)
    browser.ask("GET", target)
    assert len(api.heads) == before


# ---- several managers ----

def test_the_next_manager_is_asked(api):
    with Webbed() as made:
        made.start_manager()
        made.start_web(ALIQUOT_WEB_API=f"http://127.0.0.1:1 {api.url}")
        browser = made.browser()
        assert browser.login().json["authenticated"]
        assert browser.get("/first").status == 200
        assert browser.post("/second", b"x").status == 200
        made.stop()


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_change_that_a_manager_does_not_answer(api, is_dead):
    """One that was not sent goes to the next manager; one that was sent, if it has a key."""
    with Webbed() as made, socket.create_server(("127.0.0.1", 0)) as listener:
        def hang_up():
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    peer.recv(65536)
                    peer.close()
        first = listener.getsockname()[1]
        threading.Thread(target=hang_up, daemon=True).start()
        made.start_manager()
        made.start_web(ALIQUOT_WEB_API=f"http://127.0.0.1:{1 if is_dead else first} {api.url}")
        browser = made.browser()
        assert browser.login().json["authenticated"]
        before = len(api.heads)
        reply = browser.post("/change", b"x" * 1000, Idempotency_Key="one")
        assert reply.status == 200, reply
        assert (len(api.heads) - before, api.last()[1][0]) == (1, 1000)
        made.programs["web"].may_end = True
        made.programs["web"].kill()  # it knows which manager answers
        made.start_web(ALIQUOT_WEB_API=f"http://127.0.0.1:{1 if is_dead else first} {api.url}")
        browser = made.browser()
        assert browser.login().json["authenticated"]
        assert browser.post("/change", b"y").status == (200 if is_dead else 502)
        made.stop()
