# SPDX-License-Identifier: Apache-2.0
"""Replicas that lie: about their health, about lengths, about HTTP. The proxy stays correct, its clients
get whole answers or errors, and other services notice nothing. Manager and agent are played."""

import concurrent.futures
import contextlib
import http.client
import itertools
import json
import socket
import struct
import threading
import time

import pytest

from cluster import wait_for
from link_manager import Served, has_left, service_of
from test_serving_proxy import chunk, error_of, reply, url

NUMBERS = itertools.count()
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


@pytest.fixture(name="served", scope="module")
def served_fixture():
    with Served() as served:
        served.honest = service_of("honest", served.replica(good), is_public=True)
        yield served


@pytest.fixture(autouse=True)
def others_notice_nothing(served):
    """Another service is asked after each test."""
    yield
    status, _, body = served.ask("POST", url(served.honest, "echo"), b"{}")
    assert (status, json.loads(body)) == (200, {"said": "{}"})
    assert served.program.process.poll() is None
    text = (served.folder / "proxy.log").read_text(errors="replace")
    assert "Sanitizer" not in text and "runtime error" not in text, text[-3000:]


def good(replica, peer, head, body):
    reply(peer, json.dumps({"said": body.decode()}).encode())


def make(served, *handlers, **more):
    """A service whose replicas have these handlers."""
    replicas = [served.replica(handler) for handler in handlers]
    service = service_of(f"hostile-{next(NUMBERS)}", *replicas, is_public=True, **more)
    served.manager.tell(service, served.honest)
    return service, replicas


def raw(served, service, path="x", method="GET", version="1.1", more=""):
    """All bytes that the proxy answers on a connection, and whether it was reset."""
    with served.send(f"{method} {url(service, path)} HTTP/{version}\r\nHost: x\r\nConnection: close\r\n"
                     f"{more}\r\n") as peer:
        got = b""
        try:
            while some := peer.recv(65536):
                got += some
        except ConnectionResetError:
            return got, True
        return got, False


def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def says(*parts):
    """A handler that sends these bytes, then closes."""
    def handler(replica, peer, head, body):
        for part in parts:
            peer.sendall(part)
        return False
    return handler


NOT_HTTP = {
    "a length and chunks": OK + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "a negative length": OK + b"Content-Length: -1\r\n\r\nhello",
    "a length beyond 64 bits": OK + b"Content-Length: 99999999999999999999999\r\n\r\nhello",
    "chunks twice": OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": OK + b"Transfer-Encoding: gzip\r\n\r\nhello",
    "chunks by HTTP/1.0": b"HTTP/1.0 200 OK\r\n" + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\n",
    "a folded header": OK + b"X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "a header without a name": OK + b": b\r\nContent-Length: 0\r\n\r\n",
    "a blank before the colon": OK + b"Content-Length : 0\r\n\r\n",
    "a NUL": OK + b"X-A: b\0c\r\nContent-Length: 0\r\n\r\n",
    "a bare CR": OK + b"X-A: b\rSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
    "another version": b"HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "an upgrade that was not asked for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
                                         b"Connection: Upgrade\r\n\r\nsecret",
    "bytes of another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
    "too many headers": OK + b"X-A: b\r\n" * 100_000 + b"Content-Length: 0\r\n\r\n",
    "a header of megabytes": OK + b"X-A: " + b"b" * 4_000_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("what", NOT_HTTP)
def test_what_is_not_http_is_an_error(served, what):
    service, (replica,) = make(served, says(NOT_HTTP[what]))
    got, _ = raw(served, service)
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 502 "), got[:500]
    assert error_of(body)[1] == "bad_gateway" and b"hello" not in got and b"secret" not in got
    assert len(replica.requests) == 1


def endless(part):
    """A handler that sends a part again and again until the proxy leaves, which 'left' says."""
    def handler(replica, peer, head, body):
        peer.sendall(OK)
        with contextlib.suppress(OSError):
            while True:
                peer.sendall(part)
        replica.left += 1
        return False
    return handler


@pytest.mark.parametrize("part", (b"X-A: b\r\n" * 100, b"x" * 10_000))
def test_headers_without_an_end(served, part):
    service, (replica,) = make(served, endless(part))
    got, _ = raw(served, service)
    assert got.startswith(b"HTTP/1.1 502 ") and b"is not HTTP" in got, got[:500]
    wait_for(lambda: replica.left == 1, 30, "the proxy to leave the replica")


@pytest.mark.parametrize("part", (b"1;" + b"e" * 50_000, b"0\r\n" + b"X-A: b\r\n" * 10_000, b"g\r\n",
                                  b"f" * 20 + b"\r\n", b"-1\r\n", b"5\r\nhello!!\r\n"))
def test_chunks_that_are_none_cut_the_answer(served, part):
    service, _ = make(served, says(OK + CHUNKED + b"\r\n" + chunk(b"first"), part, b"0\r\n\r\n"))
    got, _ = raw(served, service)
    assert got.startswith(b"HTTP/1.1 200 ") and b"first" in got
    assert not got.endswith(b"\r\n0\r\n\r\n"), got[-300:]


BROKEN = {"chunks": OK + CHUNKED + b"\r\n" + chunk(b"half"), "in a chunk": OK + CHUNKED + b"\r\n64\r\nhalf",
          "a length": OK + b"Content-Length: 100\r\n\r\nhalf"}


@pytest.mark.parametrize("what", BROKEN)
def test_an_answer_that_breaks_off_is_not_whole(served, what):
    service, _ = make(served, says(BROKEN[what]))
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", url(service, "x"))
        answer = connection.getresponse()
        with pytest.raises((http.client.IncompleteRead, OSError)):
            answer.read()
    wait_for(lambda: served.manager.total(service, "broken") == 1, 30, "the report")


def test_an_answer_up_to_the_close_that_is_reset_is_not_whole(served):
    def handler(replica, peer, head, body):
        peer.sendall(b"HTTP/1.0 200 OK\r\n\r\nhalf")
        time.sleep(0.3)
        reset(peer)
        return False
    service, _ = make(served, handler)
    got, was_reset = raw(served, service)
    assert got.endswith(b"half") and was_reset


@pytest.mark.parametrize("version", ("1.0", "1.1"))
def test_a_replica_of_http_1_0(served, version):
    service, (replica,) = make(served, says(b"HTTP/1.0 200 OK\r\nX-A: b\r\n\r\nhello ", b"there"))
    got, was_reset = raw(served, service, version=version)
    assert got.startswith(b"HTTP/1.1 200 ") and got.endswith(b"\r\n\r\nhello there") and not was_reset
    assert b"\r\nconnection: close\r\n" in got.lower()
    for _ in range(3):
        assert served.ask("GET", url(service, "x"))[2] == b"hello there"
    assert replica.connections == 4
    service, (replica,) = make(served, says(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
    for _ in range(3):
        assert served.ask("GET", url(service, "x"))[2] == b"hello"
    assert replica.connections == 3


def test_a_body_after_an_answer_that_has_none(served):
    for status in "204 No Content", "304 Not Modified":
        service, _ = make(served, says(f"HTTP/1.1 {status}\r\nContent-Length: 6\r\n\r\nSECRET".encode()))
        for _ in range(2):
            got, _ = raw(served, service)
            assert got.startswith(b"HTTP/1.1 " + status[:3].encode()) and b"SECRET" not in got
    service, _ = make(served, says(OK + b"Content-Length: 6\r\n\r\nSECRET"))
    got, _ = raw(served, service, method="HEAD")
    assert got.startswith(b"HTTP/1.1 200 ") and b"SECRET" not in got


def test_many_100_continues(served):
    service, _ = make(served, says(b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000,
                                   OK + b"Content-Length: 2\r\n\r\nok"))
    got, _ = raw(served, service)
    assert got.endswith(b"\r\n\r\nok") and b"HTTP/1.1 200 OK" in got


def test_an_answer_before_the_body_is_read(served):
    def handler(replica, peer, head, body):
        raise AssertionError("it does not come to that")
    service, (replica,) = make(served, handler)
    replica.body = lambda peer, head, got: refuse_body(peer)
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    with contextlib.closing(connection), contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.request("POST", url(service, "x"), b"x" * 5_000_000)
    answer = served.ask("POST", url(service, "x"), b"small")
    assert answer[0] == 413 and answer[2] == b"too much"


def refuse_body(peer):
    reply(peer, b"too much", "413 Payload Too Large")
    raise OSError("enough")


@pytest.mark.parametrize("begins", (b"", OK, OK + CHUNKED + b"\r\n" + chunk(b"first")))
def test_a_replica_that_hangs(served, begins):
    left = threading.Event()

    def handler(replica, peer, head, body):
        peer.sendall(begins)
        if has_left(peer, 60):
            left.set()
        return False
    service, _ = make(served, handler, request_usec=700_000)
    got, _ = raw(served, service)
    if b"first" in begins:
        assert b"first" in got and not got.endswith(b"0\r\n\r\n")
    else:
        assert got.startswith(b"HTTP/1.1 504 ") and error_of(got.partition(b"\r\n\r\n")[2])[1] == \
            "request_timeout"
    assert left.wait(30)


def test_a_replica_that_closes_after_an_answer_without_a_word(served):
    """As llama.cpp does after each stream: the next request must not be lost on that connection."""
    def handler(replica, peer, head, body):
        peer.sendall(OK + b"Keep-Alive: timeout=5, max=100\r\n" + CHUNKED + b"\r\n" + chunk(b"hello")
                     + b"0\r\n\r\n")
        time.sleep(0.02)
        return False
    service, (replica,) = make(served, handler)
    for _ in range(100):
        assert served.ask("POST", url(service, "x"), b"{}")[::2] == (200, b"hello")
    assert replica.connections == 100


def test_connections_that_last_are_used_at_once(served):
    def handler(replica, peer, head, body):
        peer.sendall(OK + CHUNKED + b"\r\n" + chunk(b"hello") + b"0\r\n\r\n")
    service, (replica,) = make(served, handler)
    assert served.ask("POST", url(service, "x"), b"{}")[0] == 200

    def is_used_again():
        before = replica.connections
        time.sleep(0.7)
        return served.ask("POST", url(service, "x"), b"{}")[0] == 200 and replica.connections == before
    wait_for(is_used_again, 30, "a connection to be used again")
    before = replica.connections
    for _ in range(20):
        assert served.ask("POST", url(service, "x"), b"{}")[2] == b"hello"
    assert replica.connections == before


# ---- errors that come fast ----

def fails(replica, peer, head, body):
    reply(peer, b'{"error": {"message": "CUDA error: out of memory"}}', "500 Internal Server Error")


def slow(replica, peer, head, body):
    time.sleep(0.05)
    good(replica, peer, head, body)


@pytest.mark.gate
def test_a_replica_that_fails_fast_does_not_get_most_requests(served):
    """Its health is good, and it always has the fewest requests."""
    service, (bad, _) = make(served, fails, slow)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: served.ask("POST", url(service, "x"), b"{}")[0], range(200)))
    assert statuses.count(500) == len(bad.requests) and set(statuses) == {200, 500}
    assert len(bad.requests) < 40, len(bad.requests)
    wait_for(lambda: any(r["session_id"] == bad.session and r.get("is_ejected")
                         for r in served.manager.replicas(served.manager.uses(service))), 30,
             "the report")
    assert "answered only errors" in (served.folder / "proxy.log").read_text()
    bad.handler = good

    def is_back():
        before = len(bad.requests)
        return all(served.ask("POST", url(service, "x"), b"{}")[0] == 200 for _ in range(4)) \
            and len(bad.requests) > before
    wait_for(is_back, 60, "it to be tried again")


def test_errors_of_all_replicas_reach_clients(served):
    service, replicas = make(served, fails, fails)
    for _ in range(40):
        status, _, body = served.ask("POST", url(service, "x"), b"{}")
        assert status == 500 and b"CUDA" in body
    for replica in replicas:
        replica.handler = good
    wait_for(lambda: served.ask("POST", url(service, "x"), b"{}")[0] == 200, 60, "an answer")


def test_an_error_between_answers_ejects_nobody(served):
    def now_and_then(replica, peer, head, body):
        (fails if b"bad" in body else good)(replica, peer, head, body)
    service, (one, _) = make(served, now_and_then, now_and_then)
    for i in range(60):
        status = served.ask("POST", url(service, "x"), b"bad" if i % 10 < 4 else b"{}")[0]
        assert status == (500 if i % 10 < 4 else 200)
    assert 20 < len(one.requests) < 40


