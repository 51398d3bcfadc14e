# SPDX-License-Identifier: Apache-2.0
"""Requests to model services by those who want more than they may: parts of a request that a replica
takes for another one, ways around a token's paths and budget, headers that only the proxy sets,
messages that are cut at every byte, and amounts without an end. Manager and agent are played."""

import contextlib
import gzip
import itertools
import json
import pathlib
import select
import socket
import sys
import threading
import time

import pytest

from cluster import wait_for
from link_manager import Replica, Served, has_left, read_all, read_upto, service_of, token_of

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))

from test_serving_proxy import chunk, error_of, reply, url  # noqa: E402

NUMBERS = itertools.count()
TOKEN = "aqs-" + "t" * 43
USAGE = b'{"usage":{"prompt_tokens":30,"completion_tokens":12}}'
EVENTS = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")


@pytest.fixture(name="served", scope="module")
def served_fixture():
    with Served(ASAN_OPTIONS="quarantine_size_mb=4") as served:  # memory that was freed is measured, too
        served.honest = service_of("honest", served.replica(echo), is_public=True)
        yield served


@pytest.fixture(autouse=True)
def others_notice_nothing(served):
    yield
    status, _, body = served.ask("POST", url(served.honest, "echo"), b"{}")
    assert (status, json.loads(body)["body"]) == (200, "{}")
    assert served.program.process.poll() is None
    text = (served.folder / "proxy.log").read_text(errors="replace")
    assert "Sanitizer" not in text and "runtime error" not in text, text[-3000:]


def echo(replica, peer, head, body):
    reply(peer, json.dumps({"head": head, "body": body.decode("latin-1")}).encode())


def tell(served, replica, **more):
    served.agent.ports[replica.session] = replica.port
    more.setdefault("is_public", not more.get("tokens"))
    service = service_of(f"path-{next(NUMBERS)}", replica, **more)
    served.manager.tell(service, served.honest)
    return service


def make(served, handler, **more):
    replica = served.replica(handler)
    return tell(served, replica, **more), replica


def raw(served, service, *lines, method="GET", path="x", body=b""):
    """All bytes of the answer to a request with these lines of a head, on a connection of its own."""
    head = "\r\n".join((f"{method} {url(service, path)} HTTP/1.1", "Host: x", "Connection: close",
                        *lines, "", ""))
    with served.send(head.encode("latin-1") + body) as peer:
        return read_all(peer)


# ---- one request is not two ----

class Lenient(Replica):
    """A server as people write it: it reads chunks, and nothing behind the last."""

    def body(self, peer, head, got):
        if "chunked" not in head.decode("latin-1").lower():
            return super().body(peer, head, got)
        data = b""
        while True:
            line, got = self.upto(peer, got, b"\r\n")
            size = int(line.split(b";")[0], 16)
            if not size:
                return data, got
            while len(got) < size + 2:
                got += peer.recv(65536)
            data, got = data + got[:size], got[size + 2:]

    @staticmethod
    def upto(peer, got, end):
        while got.startswith(b"\r\n") or not got:
            got = got.removeprefix(b"\r\n")
            if not got and not (got := peer.recv(65536)):
                return None, b""
        return Replica.upto(peer, got, end)


def test_a_trailer_is_not_the_next_request(served):
    replica = Lenient(echo)
    service = tell(served, replica, tokens=[token_of(TOKEN, paths=["/v1"])])
    got = raw(served, service, f"Authorization: Bearer {TOKEN}", "Transfer-Encoding: chunked",
              "Trailer: X-A", method="POST", path="v1/a",
              body=b"5;name=value\r\nhello\r\n0\r\nGET /admin HTTP/1.1\r\nX-A: b\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200 "), got
    assert served.ask("GET", url(service, "v1/b"), None, TOKEN)[0] == 200
    assert [head.split(" ")[1] for _, head, _ in replica.requests] == ["/v1/a", "/v1/b"]
    assert replica.requests[0][2] == b"hello" and "trailer" not in replica.requests[0][1].lower()


@pytest.mark.parametrize("size", (1, 7, 100_000))
def test_chunks_arrive_whole(served, size):
    replica = Lenient(echo)
    service = tell(served, replica)
    data = bytes(range(256)) * 200
    body = b"".join(chunk(data[i:i + size]) for i in range(0, len(data), size)) + b"0\r\nX-A: b\r\n\r\n"
    got = raw(served, service, "Transfer-Encoding: chunked", method="POST", body=body)
    assert got.startswith(b"HTTP/1.1 200 ") and replica.requests[0][2] == data


SMUGGLED = {
    "a length and chunks": ("Content-Length: 5", "Transfer-Encoding: chunked"),
    "two lengths": ("Content-Length: 5", "Content-Length: 6"),
    "the same length twice": ("Content-Length: 5", "Content-Length: 5"),
    "a list of lengths": ("Content-Length: 5, 5",),
    "a signed length": ("Content-Length: +5",),
    "a hexadecimal length": ("Content-Length: 0x5",),
    "a length with a blank in it": ("Content-Length: 5 5",),
    "chunks and identity": ("Transfer-Encoding: chunked, identity",),
    "identity": ("Transfer-Encoding: identity",),
    "chunks twice": ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    "chunks in quotes": ('Transfer-Encoding: "chunked"',),
    "chunks behind a vertical tab": ("Transfer-Encoding: \x0bchunked",),
    "a blank before the colon": ("Transfer-Encoding : chunked",),
    "a folded line": ("Transfer-Encoding:", " chunked"),
    "a bare CR": ("X-A: b\rTransfer-Encoding: chunked",),
    "a bare LF": ("X-A: b\nTransfer-Encoding: chunked",),
    "a NUL": ("X-A: b\0c",),
    "a NUL in a name": ("X\0A: b",),
    "no name": (": b",),
    "two hosts": ("Host: y",),
    "two tokens": (f"Authorization: Bearer {TOKEN}", "Authorization: Bearer x"),
    "10,000 headers": ("X-A: b",) * 10_000,
    "a header of 70 KB": ("X-A: " + "b" * 70_000,),
}


@pytest.mark.parametrize("what", SMUGGLED)
def test_what_could_be_read_in_two_ways_is_refused(served, what):
    service, replica = make(served, echo)
    got = raw(served, service, *SMUGGLED[what], method="POST", body=b"0\r\n\r\nGET /x HTTP/1.1\r\n\r\n")
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 ", b"HTTP/1.1 413 ")), got[:300]
    assert got.count(b"HTTP/1.1 ") == 1 and not replica.requests


LINES = {
    "CONNECT": "CONNECT x:80 HTTP/1.1", "a whole URL": "GET http://x%s HTTP/1.1",
    "a fragment": "GET %s#y HTTP/1.1", "a NUL": "GET %s\0 HTTP/1.1", "a tab": "GET\t%s HTTP/1.1",
    "two blanks": "GET  %s HTTP/1.1", "HTTP/0.9": "GET %s", "HTTP/2": "GET %s HTTP/2.0",
    "another method": "PRI %s HTTP/1.1", "TRACE": "TRACE %s HTTP/1.1",
}


@pytest.mark.parametrize("what", LINES)
def test_request_lines_that_are_not_passed_on(served, what):
    service, replica = make(served, echo)
    line = LINES[what].replace("%s", url(service, "x"))
    with served.send(f"{line}\r\nHost: x\r\nConnection: close\r\n\r\n") as peer:
        got = read_all(peer)
    assert got[:10] in (b"HTTP/1.1 4", b"HTTP/1.1 5") and not replica.requests, got[:300]


# ---- what a token allows ----

def test_an_upgrade_to_another_protocol_is_not_passed_on(served):
    """By HTTP/2 a client could go on with requests that nobody checks."""
    def upgrades(replica, peer, head, body):
        if "upgrade" not in head.lower():
            echo(replica, peer, head, body)
            return True
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
        replica.left += 1
        return False
    service, replica = make(served, upgrades, tokens=[token_of(TOKEN, paths=["/v1"])])
    for protocol in ("h2c", "websocket, h2c", "TLS/1.0", "HTTP/2.0"):
        got = raw(served, service, f"Authorization: Bearer {TOKEN}", "Connection: Upgrade, HTTP2-Settings",
                  f"Upgrade: {protocol}", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", path="v1/x")
        assert got.startswith(b"HTTP/1.1 200 ") and b"http2-settings" not in got.lower(), got
    assert replica.left == 0

    def insists(replica, peer, head, body):
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nx")
        return False
    service, _ = make(served, insists)
    got = raw(served, service, "Connection: Upgrade", "Upgrade: h2c")
    assert got.startswith(b"HTTP/1.1 502 "), got


def spent(served, service):
    return sum(t.get("prompt_tokens", 0) + t.get("completion_tokens", 0)
               for use in served.manager.uses(service) for t in use.get("tokens", []))


def test_a_client_cannot_hide_what_it_spends(served):
    """Servers compress answers, and repeat parts of a request, if the client wants it."""
    def compresses(replica, peer, head, body):
        if "gzip" in head:
            reply(peer, gzip.compress(USAGE), more="Content-Encoding: gzip\r\n")
        else:
            reply(peer, USAGE[:-1] + b',"metadata":{"usage":"%s"}}' % body)
    service, replica = make(served, compresses, tokens=[token_of(TOKEN, budget=84)])
    for _ in range(2):
        assert served.ask("POST", url(service, "x"), b"mine", TOKEN,
                          **{"Accept-Encoding": "gzip"})[0] == 200
    status, _, body = served.ask("POST", url(service, "x"), b"mine", TOKEN)
    assert status == 429 and error_of(body)[1] == "insufficient_quota"
    wait_for(lambda: spent(served, service) == 84, 30, "the report")
    assert len(replica.requests) == 2


def test_a_client_that_leaves_pays_for_what_it_got(served):
    gate = threading.Event()

    def streams(replica, peer, head, body):
        peer.sendall(EVENTS + chunk(b"data: " + USAGE + b"\n\n"))
        assert gate.wait(60)
        return False
    service, _ = make(served, streams, tokens=[token_of(TOKEN, budget=40)])
    with served.send(f"POST {url(service, 'x')} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
                     f"Authorization: Bearer {TOKEN}\r\n\r\n") as peer:
        read_upto(peer, USAGE)
    wait_for(lambda: spent(served, service) == 42, 30, "the report")
    assert served.ask("POST", url(service, "x"), b"", TOKEN)[0] == 429
    gate.set()


def test_headers_that_only_the_proxy_sets(served):
    service, _ = make(served, echo, tokens=[token_of(TOKEN)])
    got = raw(served, service, f"Authorization: Bearer {TOKEN}", "X_Forwarded_For: 10.0.0.1",
              "X-Forwarded-For: 10.0.0.1", "x_real_ip: 10.0.0.1", "Forwarded: for=10.0.0.1",
              "Connection: X-Forwarded-For, Authorization, Host, Content-Length",
              "Proxy-Authorization: Bearer x", "TE: trailers")
    head = json.loads(got.partition(b"\r\n\r\n")[2])["head"]
    assert "10.0.0.1" not in head and TOKEN not in head and "Bearer" not in head
    assert "X-Forwarded-For: 127.0.0.1\r\n" in head and "Host: x\r\n" in head


# ---- connections that a replica closes ----

def test_requests_that_may_be_begun_twice_are_sent_again(served):
    """The replica closes a kept connection at the moment at which the next request is on its way."""
    def once(replica, peer, head, body):
        number = replica.requests[-1][0]
        if sum(n == number for n, _, _ in replica.requests) > 1:
            return False
        echo(replica, peer, head, body)
        return True
    service, replica = make(served, once)

    def begin():
        assert served.ask("GET", url(service, "x"))[0] == 200
        time.sleep(0.7)  # after such a close connections rest before they are used again
        return len(replica.requests)
    for method, body in ("GET", None), ("PUT", b"x" * 50_000), ("DELETE", None), ("DELETE", b"{}"), \
            ("OPTIONS", None), ("HEAD", None):
        before = begin()
        status, _, answer = served.ask(method, url(service, "x"), body)
        assert status == 200 and len(replica.requests) == before + 2, (method, answer)
        if method != "HEAD":
            assert json.loads(answer)["body"] == (body or b"").decode()
    for method, body in ("POST", b"{}"), ("PATCH", b"{}"), ("PUT", b"x" * 100_000):
        before = begin()
        assert served.ask(method, url(service, "x"), body)[0] == 502
        assert len(replica.requests) == before + 1


@pytest.mark.parametrize("value", ("timeout=-9223372036854775808", "timeout=9223372036854775807",
                                   "timeout=99999999999999999999", "timeout=", "timeout=-1", "timeout=x",
                                   "max=1, timeout=0"))
def test_how_long_a_replica_keeps_connections(served, value):
    def says(replica, peer, head, body):
        reply(peer, b"{}", more=f"Keep-Alive: {value}\r\n")
    service, _ = make(served, says)
    for _ in range(3):
        assert served.ask("POST", url(service, "x"), b"{}")[0] == 200


# ---- cut at every byte ----

def test_a_request_that_is_cut_anywhere(served):
    replica = Lenient(echo)
    service = tell(served, replica, affinity="prompt")
    whole = (f"POST {url(service, 'x')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
             "1f\r\n{\"prompt\": \"hello, how are you\"\r\n1\r\n}\r\n0\r\nX-A: b\r\n\r\n").encode()
    for at in range(len(whole)):
        with served.send(whole[:at]):
            pass
    with served.connect() as peer:  # byte by byte it is whole
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(whole)):
            peer.sendall(whole[at:at + 1])
        assert read_upto(peer, b'"}').startswith(b"HTTP/1.1 200 ")
    wait_for(lambda: served.manager.now(service, "in_flight") == 0, 30, "the requests to end")
    assert replica.requests[-1][2] == b'{"prompt": "hello, how are you"}'


ANSWERS = (b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
           b"Content-Length: 53\r\n\r\n" + USAGE,
           EVENTS + chunk(b"data: " + USAGE + b"\n\n") + b"3;e=f\r\nabc\r\n0\r\nX-A: b\r\n\r\n")


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_that_is_cut_anywhere(served, answer):
    at = 0

    def cuts(replica, peer, head, body):
        peer.sendall(answer[:at])
        return False
    service, _ = make(served, cuts)
    head = answer.index(b"200 OK") and answer.index(b"\r\n\r\n", answer.index(b"200 OK")) + 4
    for at in range(len(answer)):
        got = raw(served, service, method="POST")
        if at < head:
            assert b"HTTP/1.1 502 " in got, (at, got)
        elif b"chunked" in answer:
            assert not got.endswith(b"\r\n\r\n0\r\n\r\n") and b"X-A: b\r\n\r\n" not in got, (at, got)
        else:
            assert got.endswith(b"\r\n\r\n" + answer[head:at]), (at, got)


# ---- an agent of the proxy's machine ----

def test_an_agent_that_hands_over_more_than_a_connection(served, monkeypatch):
    def serve(peer):
        ticket = json.loads(peer.recv(65536))["ticket"]
        with socket.create_connection(("127.0.0.1", served.agent.ports[ticket])) as end:
            end.setblocking(False)
            socket.send_fds(peer, [b'{"type":"data.opened","port":1}'], [end.fileno()] * 2)

    def descriptors():
        return len(list(pathlib.Path(f"/proc/{served.program.process.pid}/fd").iterdir()))

    def closes(replica, peer, head, body):
        reply(peer, b"{}", more="Connection: close\r\n")
        return False
    service, _ = make(served, closes)
    served.ask("GET", url(service, "x"))
    before = descriptors()
    monkeypatch.setattr(served.agent, "serve", serve)
    for _ in range(50):
        served.ask("GET", url(service, "x"))
    assert descriptors() < before + 10


@contextlib.contextmanager
def descriptor(kind):
    with contextlib.ExitStack() as ends:
        if kind == "a listening socket":
            yield ends.enter_context(socket.create_server(("127.0.0.1", 0))).fileno()
        elif kind == "a socket of datagrams":
            end = ends.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            end.connect(("127.0.0.1", 9))
            yield end.fileno()
        elif kind == "a socket that is not connected":
            yield ends.enter_context(socket.socket()).fileno()
        elif kind == "a Unix socket":
            yield ends.enter_context(socket.socketpair()[0]).fileno()
        elif kind == "epoll":
            yield ends.enter_context(select.epoll()).fileno()
        else:
            yield ends.enter_context(open(kind, "rb")).fileno()


@pytest.mark.parametrize("kind", ("/etc/passwd", "/dev/zero", "a listening socket", "a socket of datagrams",
                                  "a socket that is not connected", "a Unix socket", "epoll"))
def test_an_agent_that_hands_over_something_else(served, monkeypatch, kind):
    service, replica = make(served, echo)
    with descriptor(kind) as fd, monkeypatch.context() as patch:
        def serve(peer):
            peer.recv(65536)
            socket.send_fds(peer, [b'{"type":"data.opened","port":1}'], [fd])
        patch.setattr(served.agent, "serve", serve)
        status, _, body = served.ask("POST", url(service, "x"), b"{}")
        assert (status, error_of(body)[1]) == (503, "replica_unreachable")
    assert not replica.requests


# ---- clients that take places ----

def request(service, body=b"", more="", length=None):
    return (f"POST {url(service, 'x')} HTTP/1.1\r\nHost: x\r\n{more}"
            f"Content-Length: {len(body) if length is None else length}\r\n\r\n").encode() + body


def test_clients_that_left_do_not_wait(served):
    """With bytes behind a request its connection is not read, and its end is not heard."""
    service = service_of(f"path-{next(NUMBERS)}", is_public=True, queue_max=1000)
    served.manager.tell(service, served.honest)
    peers = [served.send(request(service, b"{}") + b"GET") for _ in range(200)]
    peers += [served.send(request(service, b"{}")) for _ in range(200)]
    wait_for(lambda: served.manager.now(service, "queued") == 400, 30, "the requests to wait")
    for peer in peers:
        peer.close()
    wait_for(lambda: served.manager.now(service, "queued") == 0, 30, "the queue to be empty")


def test_a_client_that_left_ends_the_work_of_its_request(served):
    def holds(replica, peer, head, body):
        replica.left += has_left(peer, 60)
        return False
    service, replica = make(served, holds)
    with served.send(request(service, b"{}") + b"GET / HTTP/1.1\r\n"):
        wait_for(lambda: replica.requests, 30, "the request")
    wait_for(lambda: replica.left == 1, 30, "the connection to be closed")


def test_a_slow_body_gives_its_place_to_others(served):
    service, replica = make(served, echo, cap=1)
    slow = served.send(request(service, b"x", length=1000))
    wait_for(lambda: replica.connections == 1, 30, "the connection")
    stop = threading.Event()

    def drip():
        with contextlib.suppress(OSError):
            while not stop.wait(0.3):
                slow.sendall(b"x")
    thread = threading.Thread(target=drip)
    thread.start()
    try:
        assert served.ask("POST", url(service, "x"), b"{}")[0] == 200
        assert b"HTTP/1.1 408 " in read_all(slow)
    finally:
        stop.set()
        thread.join()
        slow.close()


def test_a_token_that_expires_ends_what_it_began(served):
    left = threading.Event()

    def streams(replica, peer, head, body):
        peer.sendall(EVENTS + chunk(b"data: first\n\n"))
        if has_left(peer, 60):
            left.set()
        return False
    service, _ = make(served, streams,
                      tokens=[token_of(TOKEN, expires_usec=int((time.time() + 2) * 1e6))])
    with served.send(request(service, more=f"Authorization: Bearer {TOKEN}\r\n")) as peer:
        got = read_all(peer)
    assert got.startswith(b"HTTP/1.1 200 ") and not got.endswith(b"0\r\n\r\n")
    assert left.wait(30)


# ---- amounts ----

ROOM_MB = 48  # that the proxy may grow


def memory(served):
    text = pathlib.Path(f"/proc/{served.program.process.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) >> 10


ENDLESS = {
    "a line of events": (EVENTS.replace(b"Transfer-Encoding: chunked\r\n", b"") + b"data: ", b"x" * 1_000_000),
    "objects that begin": (EVENTS.replace(b"Transfer-Encoding: chunked\r\n", b""), b'{"usage":' * 100_000),
    "JSON": (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b'{"usage":{"' * 100_000),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\nX-A: %s\r\n\r\n" % (b"y" * 1000) * 100),
    "chunks of a byte": (EVENTS, b"1\r\nx\r\n" * 10_000),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_an_end_takes_no_memory(served, what):
    first, part = ENDLESS[what]

    def sends(replica, peer, head, body):
        with contextlib.suppress(OSError):
            peer.sendall(first)
            while True:
                peer.sendall(part)
        replica.left += 1
        return False
    service, replica = make(served, sends)
    before = memory(served)
    with served.send(request(service)) as reader, contextlib.ExitStack() as idle:
        for _ in range(10):
            idle.enter_context(served.send(request(service)))
        size = 0
        while size < 50_000_000:
            size += len(reader.recv(1 << 20))
        assert memory(served) - before < ROOM_MB
        assert served.ask("POST", url(served.honest, "x"), b"{}")[0] == 200
    wait_for(lambda: replica.left == 11, 60, "the proxy to leave the replica")


def test_many_who_wait_and_leave(served):
    service = service_of(f"path-{next(NUMBERS)}", is_public=True, queue_max=100_000)
    served.manager.tell(service, served.honest)
    before = memory(served)
    with contextlib.ExitStack() as peers:
        for i in range(5000):
            peer = socket.create_connection(("127.0.0.1", served.port), 60,
                                            (f"127.0.{1 + i // 250}.{1 + i % 250}", 0))
            peers.enter_context(peer).sendall(request(service, b"{}"))
        wait_for(lambda: served.manager.now(service, "queued") == 5000, 60, "the requests to wait")
        assert memory(served) - before < ROOM_MB
    wait_for(lambda: served.manager.now(service, "queued") == 0, 60, "the queue to be empty")
