# SPDX-License-Identifier: Apache-2.0
"""aliquot-proxy passes requests to model services on to their replicas: manager and agent are played,
the replicas are servers of this process that answer byte by byte."""

import concurrent.futures
import contextlib
import http.client
import json
import socket
import stat
import threading
import time

import pytest

from cluster import wait_for
from link_manager import (Served, has_left, read_all, read_upto, service_of, token_of)

TOKEN = "aqs-" + "t" * 43
OTHER = "aqs-" + "o" * 43


def reply(peer, body=b"", status="200 OK", kind="application/json", more=""):
    peer.sendall(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                 f"{more}\r\n".encode() + body)


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Handler:
    """By the path: what a replica does. 'gate' lets go those that hold."""

    def __init__(self):
        self.gate, self.held = threading.Event(), 0
        self.step = threading.Semaphore(0)

    def __call__(self, replica, peer, head, body):
        path = head.split(" ")[1]
        name = path.split("?")[0].strip("/").split("/")[-1]
        return getattr(self, f"do_{name}", self.do_echo)(replica, peer, head, body)

    def do_echo(self, replica, peer, head, body):
        reply(peer, json.dumps({"session": replica.session, "head": head,
                                "body": body.decode("latin-1")}).encode())

    def do_hold(self, replica, peer, head, body):
        self.held += 1
        assert self.gate.wait(60)
        self.do_echo(replica, peer, head, body)

    def do_events(self, replica, peer, head, body):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
        for i in range(5):
            assert self.step.acquire(timeout=60)
            peer.sendall(chunk(b"data: {\"n\":%d}\n\n" % i))
        assert self.step.acquire(timeout=60)
        peer.sendall(chunk(b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}}\n\n')
                     + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    def do_usage(self, replica, peer, head, body):
        reply(peer, b'{"usage":{"prompt_tokens":30,"completion_tokens":12,'
                    b'"prompt_tokens_details":{"cached_tokens":20}}}')

    def do_missing(self, replica, peer, head, body):
        reply(peer, b"{}", "404 Not Found")

    def do_wrong(self, replica, peer, head, body):
        reply(peer, b"{}", "500 Internal Server Error")

    def do_open(self, replica, peer, head, body):
        reply(peer, b"{}", more="Access-Control-Allow-Origin: https://app.example\r\n")

    def do_cut(self, replica, peer, head, body):
        peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"half"))
        return False

    def do_short(self, replica, peer, head, body):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        return False

    def do_close(self, replica, peer, head, body):
        return False

    def do_once(self, replica, peer, head, body):
        """Answers once on each connection and closes at the second request."""
        number = [n for n, _, _ in replica.requests][-1]
        if sum(n == number for n, _, _ in replica.requests) > 1:
            return False
        self.do_echo(replica, peer, head, body)

    def do_extra(self, replica, peer, head, body):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                     b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nSECRET")

    def do_late(self, replica, peer, head, body):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        time.sleep(0.05)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nSECRET")

    def do_garbage(self, replica, peer, head, body):
        peer.sendall(b"220 mail.example.org ESMTP\r\n\r\n")

    def do_forever(self, replica, peer, head, body):
        peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"first"))
        replica.left += has_left(peer, 60)
        return False

    def do_silent(self, replica, peer, head, body):
        replica.left += has_left(peer, 60)
        return False

    def do_trailers(self, replica, peer, head, body):
        peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n"
                     + chunk(b"body") + b"0\r\nX-End: yes\r\n\r\n")

    def do_cookies(self, replica, peer, head, body):
        reply(peer, b"{}", more="Location: /there\r\nSet-Cookie: a=1; Path=/x\r\n")

    def do_head(self, replica, peer, head, body):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")

    def do_upgrade(self, replica, peer, head, body):
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                     b"Upgrade: websocket\r\n\r\n")
        while got := peer.recv(65536):
            peer.sendall(got.upper())
        replica.left += 1
        return False


@pytest.fixture(scope="module")
def served():
    with Served() as served:
        yield served


@pytest.fixture
def handler():
    handler = Handler()
    yield handler
    handler.gate.set()
    for _ in range(100):
        handler.step.release()


NUMBERS = iter(range(10000))


def make(served, handler, count=1, **more):
    """A service with so many replicas, which everybody may ask unless it has tokens."""
    replicas = [served.replica(handler) for _ in range(count)]
    more.setdefault("is_public", not more.get("tokens"))
    service = service_of(f"digits-{next(NUMBERS)}", *replicas, **more)
    served.manager.tell(service)
    return service, replicas


def url(service, path=""):
    return f"/serve/{service['name']}/{path}"


def error_of(body):
    got = json.loads(body)
    assert got["title"] == got["error"]["message"]
    return got["status"], got["error"]["code"]


# ---- tokens and places ----

def test_a_token_lets_in_and_stays_with_the_proxy(served, handler):
    service, (replica,) = make(served, handler, tokens=[token_of(TOKEN)])
    status, headers, body = served.ask("POST", url(service, "v1/echo?a=b"), b"{}", TOKEN,
                                       Cookie="aliquot_app=x; mine=1")
    assert status == 200, body
    head = json.loads(body)["head"]
    assert head.startswith("POST /v1/echo?a=b HTTP/1.1\r\n")
    assert "authorization" not in head.lower() and TOKEN not in head
    assert "Cookie: mine=1\r\n" in head
    assert f"X-Forwarded-Prefix: /serve/{service['name']}\r\n" in head
    assert f'replica;desc="{replica.session[:8]}"' in headers["Server-Timing"]
    assert served.ask("GET", url(service, "echo"), None, None,
                      Authorization=f"BackendAI {TOKEN}")[0] == 200
    for given in ({}, {"Authorization": "Bearer " + TOKEN + "x"}, {"Authorization": "Basic YTpi"},
                  {"Authorization": f"bearer{TOKEN}"}):
        status, headers, body = served.ask("GET", url(service, "echo"), **given)
        assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer")
        assert error_of(body)[1] in ("invalid_api_key", "missing_api_key")
    assert len(replica.requests) == 2


def test_places(served, handler):
    service, _ = make(served, handler)
    assert served.ask("GET", f"/serve/{service['name'].upper()}/echo")[0] == 200
    status, headers, _ = served.ask("POST", f"/serve/{service['name']}")
    assert (status, headers["Location"]) == (308, f"/serve/{service['name']}/")
    status, _, body = served.ask("GET", "/serve/nothing-such/x")
    assert status == 404 and error_of(body)[1] == "service_not_found"
    assert served.ask("GET", "/serve/../x")[0] == 404
    _, headers, _ = served.ask("GET", url(service, "cookies"))
    assert headers["Location"] == f"/serve/{service['name']}/there"
    assert headers["Set-Cookie"] == f"a=1; Path=/serve/{service['name']}/x"
    served.manager.tell({**service, "is_gone": True, "replicas": [], "tokens": []})
    status, _, body = served.ask("GET", url(service, "echo"))
    assert status == 410 and error_of(body)[1] == "service_ended"


def test_paths_of_a_token(served, handler):
    service, (replica,) = make(served, handler, tokens=[token_of(TOKEN, paths=["/v1"])])
    assert served.ask("GET", url(service, "v1/echo"), None, TOKEN)[0] == 200
    tricks = ["admin", "v1/../admin", "v1/%2e%2e/admin", "v1%2f..%2fadmin", "/v1/x", "v1//x", "v1x",
              "v1/..;/admin", "v1/.%2E/admin", "v1/%5c../admin", "%2e/v1", "v1/%252e%252e/x"]
    for path in tricks:
        with served.send(f"GET {url(service, path)} HTTP/1.1\r\nHost: x\r\n"
                         f"Authorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n") as peer:
            got = read_all(peer)
        assert got.startswith(b"HTTP/1.1 403 "), (path, got)
    assert len(replica.requests) == 1


def test_rates_budgets_and_expiry(served, handler):
    now = int(time.time() * 1e6)
    old = "aqs-old"
    service, _ = make(served, handler, tokens=[
        token_of(TOKEN, rate_milli=200), token_of(OTHER, budget=40),
        token_of(old, expires_usec=now - 1)])
    got = [served.ask("GET", url(service, "echo"), None, TOKEN) for _ in range(6)]
    statuses = [status for status, _, _ in got]
    assert statuses[:2] == [200, 200] and statuses[-1] == 429  # a bucket of 10 s: two
    assert 1 <= int(got[-1][1]["Retry-After"]) <= 6
    assert error_of(got[-1][2])[1] == "rate_limit_exceeded"
    assert served.ask("GET", url(service, "echo"), None, old)[0] == 401
    assert served.ask("GET", url(service, "usage"), None, OTHER)[0] == 200  # 42 tokens
    status, _, body = served.ask("GET", url(service, "usage"), None, OTHER)
    assert status == 429 and error_of(body)[1] == "insufficient_quota"
    spent = service["tokens"][1]["id"]

    def figures():
        return [t for use in served.manager.uses(service) for t in use.get("tokens", [])
                if t["id"] == spent]
    wait_for(lambda: sum(t.get("prompt_tokens", 0) for t in figures()) == 30, 30, "the report")
    assert sum(t.get("completion_tokens", 0) for t in figures()) == 12
    assert sum(t["requests"] for t in figures()) == 1
    service["tokens"][1] |= {"is_spent": False, "budget": 1000}
    served.manager.tell(service)
    assert served.ask("GET", url(service, "usage"), None, OTHER)[0] == 200


def test_a_revoked_token(served, handler):
    service, (replica,) = make(served, handler, tokens=[token_of(TOKEN), token_of(OTHER)])
    request = (f"GET {url(service, '%s')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n")
    with served.send(request % "forever") as peer, served.send(request % "echo") as idle, \
            served.send(request.replace(TOKEN, OTHER) % "hold") as other:
        assert b"first" in read_upto(peer, b"first")
        assert b"200 OK" in read_upto(idle, b'"}')
        wait_for(lambda: handler.held == 1, 30, "the other's request")
        served.manager.tell({**service, "tokens": service["tokens"][1:]})
        assert not read_all(peer).endswith(b"0\r\n\r\n")
        wait_for(lambda: replica.left == 1, 30, "the replica's connection to be closed")
        idle.sendall((request % "echo").encode())
        assert b"401 Unauthorized" in read_upto(idle, b"}")
        handler.gate.set()
        assert b"200 OK" in read_upto(other, b'"}')


# ---- answers ----

@pytest.mark.gate
def test_events_come_one_by_one(served, handler):
    service, _ = make(served, handler, tokens=[token_of(TOKEN)])
    with served.send(f"GET {url(service, 'events')} HTTP/1.1\r\nHost: x\r\n"
                     f"Authorization: Bearer {TOKEN}\r\n\r\n") as peer:
        got = b""
        for i in range(5):  # each is there before the next is made
            handler.step.release()
            got += read_upto(peer, b'"n":%d}\n\n\r\n' % i)
            assert b'"n":%d' % (i + 1) not in got
        handler.step.release()
        got += read_upto(peer, b"0\r\n\r\n")
        assert b"[DONE]" in got
    wait_for(lambda: sum(t.get("completion_tokens", 0) for use in served.manager.uses(service)
                         for t in use.get("tokens", [])) == 5, 30, "the tokens to be counted")


def test_an_answer_that_breaks_off_is_not_whole(served, handler):
    service, _ = make(served, handler)
    for name in ("cut", "short"):
        with served.send(f"GET {url(service, name)} HTTP/1.1\r\nHost: x\r\n\r\n") as peer:
            got = read_all(peer)
        assert b"200 OK" in got and b"half" in got and not got.endswith(b"0\r\n\r\n")
    for name in ("close", "garbage"):
        status, _, body = served.ask("POST", url(service, name), b"x")
        assert status == 502 and error_of(body)[1] == "bad_gateway"
    wait_for(lambda: served.manager.total(service, "broken") == 4, 30, "the report")


@pytest.mark.gate
def test_a_client_that_leaves_ends_the_work(served, handler):
    service, (replica,) = make(served, handler)
    for i, name in enumerate(("forever", "silent")):
        with served.send(f"POST {url(service, name)} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"
                         "{}"):
            wait_for(lambda n=i: len(replica.requests) == n + 1, 30, "the request")
        wait_for(lambda n=i: replica.left == n + 1, 30, "the replica's connection to be closed")
    wait_for(lambda: served.manager.now(service, "in_flight") == 0, 30, "the report")


def test_other_parts_of_http(served, handler):
    service, (replica,) = make(served, handler)
    status, headers, body = served.ask("HEAD", url(service, "head"))
    assert (status, headers["Content-Length"], body) == (200, "500", b"")
    with served.send(f"GET {url(service, 'trailers')} HTTP/1.1\r\nHost: x\r\n\r\n") as peer:
        assert read_upto(peer, b"X-End: yes\r\n\r\n").endswith(b"0\r\nX-End: yes\r\n\r\n")
    with served.send(f"POST {url(service, 'echo')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                     "\r\n2\r\nab\r\n") as peer:
        wait_for(lambda: replica.connections, 30, "the connection")
        peer.sendall(b"3\r\ncde\r\n0\r\n\r\n")
        assert b"2\\r\\nab\\r\\n3\\r\\ncde\\r\\n0" in read_upto(peer, b'"}')
    big = b"x" * 5_000_000
    status, _, body = served.ask("POST", url(service, "echo"), big)
    assert status == 200 and len(json.loads(body)["body"]) == len(big)


@pytest.mark.gate
def test_websockets(served, handler):
    service, (replica,) = make(served, handler, tokens=[token_of(TOKEN)])
    head = (f"GET {url(service, 'upgrade')} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
            f"Upgrade: websocket\r\nAuthorization: Bearer {TOKEN}\r\n\r\n")
    with served.send(head) as peer:
        assert b"101 Switching" in read_upto(peer, b"\r\n\r\n")
        for text in (b"hello", b"again"):
            peer.sendall(text)
            assert read_upto(peer, text.upper()) == text.upper()
        wait_for(lambda: served.manager.now(service, "in_flight") == 1, 30, "the report")
    wait_for(lambda: replica.left == 1, 30, "the replica's connection to be closed")
    wait_for(lambda: served.manager.now(service, "in_flight") == 0, 30, "the report")


def test_a_replica_that_says_nothing(served, handler):
    service, _ = make(served, handler, request_usec=300_000)
    status, _, body = served.ask("GET", url(service, "silent"))
    assert status == 504 and error_of(body)[1] == "request_timeout"
    with served.send(f"GET {url(service, 'forever')} HTTP/1.1\r\nHost: x\r\n\r\n") as peer:
        assert not read_all(peer).endswith(b"0\r\n\r\n")


# ---- connections that clients share ----

def test_connections_are_kept(served, handler):
    service, (replica,) = make(served, handler)
    for _ in range(5):
        assert served.ask("POST", url(service, "echo"), b"{}")[0] == 200
    assert replica.connections == 1
    assert served.ask("POST", url(service, "once"), b"{}")[0] == 502  # the server has closed: not sent twice
    assert sum("/once" in head for _, head, _ in replica.requests) == 1
    assert served.ask("GET", url(service, "once"))[0] == 200  # on a fresh one
    assert served.ask("GET", url(service, "once"))[0] == 200  # sent again on another


@pytest.mark.gate
def test_bytes_behind_an_answer_reach_nobody(served, handler):
    service, (replica,) = make(served, handler)
    for name in ("extra", "late"):
        for _ in range(3):
            status, _, body = served.ask("GET", url(service, name))
            assert (status, body) == (200, b"ok")
            time.sleep(0.1)  # the bytes that nobody asked for are there
            status, _, body = served.ask("GET", url(service, "echo"))
            assert status == 200 and b"SECRET" not in body
    assert replica.connections >= 6


def test_an_answer_before_the_request_is_whole(served, handler):
    """The client has the answer, and hears that the connection serves no further request."""
    def refuse(listener):
        while True:
            with contextlib.suppress(OSError), listener.accept()[0] as peer:
                read_upto(peer, b"\r\n\r\n")
                reply(peer, b"too large", "413 Content Too Large")
                read_all(peer)

    service, (replica,) = make(served, handler)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=refuse, args=(listener,), daemon=True).start()
        served.agent.ports[replica.session] = listener.getsockname()[1]
        with served.send(f"POST {url(service)} HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n"
                         + "x" * 1000) as peer:
            got = read_upto(peer, b"too large").lower()
            assert b"413" in got and b"\r\nconnection: close\r\n" in got
            assert read_all(peer) == b""
        with served.send(f"POST {url(service)} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nwhole"
                         ) as peer:
            assert b"\r\nconnection: close\r\n" not in read_upto(peer, b"too large").lower()


def test_one_request_is_not_two(served, handler):
    service, (replica,) = make(served, handler)
    path = url(service, "echo")
    hidden = f"GET {path}?hidden HTTP/1.1\r\nHost: x\r\n\r\n"
    for lines in (f"Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked\r\n",
                  "Content-Length: 0\r\nContent-Length: 5\r\n", "Transfer-Encoding: xchunked\r\n",
                  "Transfer-Encoding : chunked\r\n", "Transfer-Encoding: chunked, chunked\r\n"):
        with served.send(f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}\r\n0\r\n\r\n{hidden}") as peer:
            assert read_all(peer).startswith(b"HTTP/1.1 400 ")
    assert not any("hidden" in head for _, head, _ in replica.requests)
    with served.send(f"GET {path}?1 HTTP/1.1\r\nHost: x\r\n\r\n"
                     f"POST {path}?2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                     f"GET {path}?3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") as peer:
        got = read_all(peer)
    assert got.count(b"HTTP/1.1 200 OK") == 3
    assert got.index(b"?1") < got.index(b"?2") < got.index(b"?3")


# ---- the choice of a replica ----

@pytest.mark.gate
def test_the_least_loaded_takes_it(served, handler):
    service, replicas = make(served, handler, 3)
    service["replicas"][2]["share_ppm"] = 2_000_000
    served.manager.tell(service)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(served.ask, "GET", url(service, "hold")) for _ in range(8)]
        wait_for(lambda: handler.held == 8, 30, "all requests")
        assert sorted(len(r.requests) for r in replicas) == [2, 2, 4]
        assert len(replicas[2].requests) == 4  # the one of twice the share
        wait_for(lambda: served.manager.now(service, "in_flight") == 8, 30, "the report")
        handler.gate.set()
        assert all(done.result()[0] == 200 for done in waiting)
    wait_for(lambda: served.manager.total(service, "ok") == 8, 30, "the report")
    assert not any(r.get("in_flight") for r in served.manager.replicas(served.manager.uses(service)[-1:]))


def test_alike_prompts_meet_one_replica(served, handler):
    service, replicas = make(served, handler, 4, affinity="prompt")
    homes = {}
    for user in range(8):
        for turn in range(3):
            messages = [{"role": "system", "content": "be brief"},
                        {"role": "user", "content": f"hello from {user}"}]
            messages += [{"role": "user", "content": f"turn {i}"} for i in range(turn)]
            body = json.dumps({"model": "m", "messages": messages}).encode()
            status, _, text = served.ask("POST", url(service, "echo"), body)
            assert status == 200
            homes.setdefault(user, set()).add(json.loads(text)["session"])
    assert all(len(sessions) == 1 for sessions in homes.values()), homes
    assert len(set.union(*homes.values())) > 1
    # a body that comes slowly is read as far as needed, and all of it arrives
    with served.send(f"POST {url(service, 'echo')} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
                     "Expect: 100-continue\r\n\r\n") as peer:
        assert b"100 Continue" in read_upto(peer, b"\r\n\r\n")
        for byte in body:
            peer.sendall(bytes([byte]))
        got = read_upto(peer, b'"}')
        assert list(homes[7])[0].encode() in got and b"turn 1" in got
    assert sum(len(r.requests) for r in replicas) == 25


def test_a_header_chooses(served, handler):
    service, _ = make(served, handler, 3, affinity="header:X-User")
    for user in "abcdef":
        got = {json.loads(served.ask("GET", url(service, "echo"), **{"X-User": user})[2])["session"]
               for _ in range(4)}
        assert len(got) == 1


@pytest.mark.gate
def test_a_replica_that_refuses_is_left_alone(served, handler):
    service, (bad, good) = make(served, handler, 2)
    for _ in range(4):
        assert served.ask("POST", url(service, "echo"), b"{}")[0] == 200
    bad.refuse()
    for _ in range(20):  # a connection that dies is not used, and one that is refused is tried elsewhere
        assert served.ask("POST", url(service, "echo"), b"{}")[0] == 200
    wait_for(lambda: any(r["session_id"] == bad.session and r.get("is_ejected")
                         for r in served.manager.replicas(served.manager.uses(service))), 30,
             "the report")
    before = len(bad.requests)
    bad.listen()

    def is_back():
        assert served.ask("POST", url(service, "echo"), b"{}")[0] == 200
        return len(bad.requests) > before
    wait_for(is_back, 60, "the replica to be tried again")
    good.refuse()
    bad.refuse()
    status, headers, body = served.ask("POST", url(service, "echo"), b"{}")
    assert status == 503 and headers["Retry-After"] and error_of(body)[1] == "replica_unreachable"


def test_the_only_replica_is_not_ejected(served, handler):
    service, (replica,) = make(served, handler)
    replica.refuse()
    for _ in range(3):
        assert served.ask("GET", url(service, "echo"))[0] == 503
    replica.listen()
    assert served.ask("GET", url(service, "echo"))[0] == 200


@pytest.mark.gate
def test_a_draining_replica_gets_no_new_request(served, handler):
    service, (old, new) = make(served, handler, 2)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(served.ask, "GET", url(service, "hold")) for _ in range(2)]
        wait_for(lambda: handler.held == 2, 30, "both requests")
        service["replicas"][0] |= {"is_draining": True, "ratio_ppm": 0}
        served.manager.tell(service)

        def in_flight():
            last = served.manager.replicas(served.manager.uses(service)[-1:])
            return sum(r.get("in_flight", 0) for r in last if r["session_id"] == old.session)
        assert in_flight() == 1  # said no later than the routes were confirmed
        for _ in range(5):
            assert served.ask("GET", url(service, "echo"))[0] == 200
        assert len(old.requests) == 1 and len(new.requests) == 6
        handler.gate.set()
        assert all(done.result()[0] == 200 for done in waiting)
    wait_for(lambda: in_flight() == 0, 30, "the report")
    service["replicas"].pop(0)
    served.manager.tell(service)
    assert served.ask("GET", url(service, "echo"))[0] == 200


# ---- waiting ----

@pytest.mark.gate
def test_a_service_without_a_replica_is_woken(served, handler):
    service, (replica,) = make(served, handler)
    served.manager.tell({**service, "replicas": [], "wanted": 0})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(served.ask, "POST", url(service, "echo"), b"{}")
        wait_for(lambda: served.manager.now(service, "queued") == 1, 30, "the request to be reported")
        assert served.manager.now(service, "in_flight") == 0
        served.manager.tell(service)
        status, headers, _ = waiting.result()
    assert status == 200 and len(replica.requests) == 1
    assert not headers["Server-Timing"].startswith("queue;dur=0, start;dur=0,")
    wait_for(lambda: served.manager.total(service, "waited") == 1, 30, "the report")
    assert served.manager.total(service, "queue_usec") > 0


def test_waiting_ends(served, handler):
    service, _ = make(served, handler, queue_usec=300_000)
    served.manager.tell({**service, "replicas": [], "problem": "no agent has a free GPU"})
    status, headers, body = served.ask("GET", url(service, "echo"))
    assert status == 503 and headers["Retry-After"] and b"no agent has a free GPU" in body
    wait_for(lambda: served.manager.total(service, "refused") == 1, 30, "the report")
    assert served.manager.now(service, "queued") == 0


@pytest.mark.gate
def test_a_full_queue(served, handler):
    service, (replica,) = make(served, handler, cap=1, queue_max=4,
                               tokens=[token_of(TOKEN), token_of(OTHER)])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        def ask(token):
            return pool.submit(served.ask, "POST", url(service, "hold"), b"{}", token)

        def queued():
            return served.manager.now(service, "queued")
        mine = [ask(TOKEN)]
        wait_for(lambda: handler.held == 1, 30, "the first request")
        for i in range(4):
            mine.append(ask(TOKEN))
            wait_for(lambda n=i: queued() == n + 1, 30, "the request to wait")
        status, headers, body = served.ask("POST", url(service, "hold"), b"{}", TOKEN)
        assert status == 503 and headers["Retry-After"] and error_of(body)[1] == "queue_full"
        other = [ask(OTHER)]  # it takes a place of the one who has most
        status, _, body = mine[-1].result()
        assert status == 429 and error_of(body)[1] == "rate_limit_exceeded"
        wait_for(lambda: served.manager.total(service, "refused") == 2, 30, "the report")
        assert queued() == 4 and len(replica.requests) == 1
        handler.gate.set()
        assert all(done.result()[0] == 200 for done in mine[:-1] + other)
    assert len(replica.requests) == 5


def test_tokens_take_turns(served, handler):
    service, (replica,) = make(served, handler, cap=1, tokens=[token_of(TOKEN), token_of(OTHER)])
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        def ask(token, name):
            return pool.submit(served.ask, "GET", url(service, f"{name}/hold"), None, token)
        done = [ask(TOKEN, "first")]
        wait_for(lambda: handler.held == 1, 30, "the first request")
        for i in range(6):
            done.append(ask(TOKEN, f"mine{i}"))
            wait_for(lambda n=i: served.manager.now(service, "queued") == n + 1, 30, "it to wait")
        for i in range(3):
            done.append(ask(OTHER, f"other{i}"))
            wait_for(lambda n=i: served.manager.now(service, "queued") == n + 7, 30, "it to wait")
        handler.gate.set()
        assert all(one.result()[0] == 200 for one in done)
    order = [head.split("/")[1] for _, head, _ in replica.requests]
    assert order == ["first", "mine0", "other0", "mine1", "other1", "mine2", "other2", "mine3",
                     "mine4", "mine5"]


def test_a_queue_of_bytes(served, handler):
    service, _ = make(served, handler, cap=1, queue_bytes=300_000)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = [pool.submit(served.ask, "POST", url(service, "hold"), b"{}")]
        wait_for(lambda: handler.held == 1, 30, "the first request")
        done.append(pool.submit(served.ask, "POST", url(service, "echo"), b"x" * 2_000_000))
        wait_for(lambda: served.manager.now(service, "queued") == 1, 30, "the request to wait")
        more = [pool.submit(served.ask, "POST", url(service, "echo"), b"x" * 200_000)
                for _ in range(4)]
        wait_for(lambda: any(one.done() for one in more), 30, "one to be refused")
        refused = [one for one in more if one.done()]
        assert all(one.result()[0] == 503 and error_of(one.result()[2])[1] == "queue_full"
                   for one in refused)
        handler.gate.set()
        assert all(one.result()[0] == 200 for one in done)
        assert len(json.loads(done[1].result()[2])["body"]) == 2_000_000


def test_a_waiting_client_that_leaves(served, handler):
    service, (replica,) = make(served, handler, cap=1)
    with served.send(f"GET {url(service, 'hold')} HTTP/1.1\r\nHost: x\r\n\r\n") as first:
        wait_for(lambda: handler.held == 1, 30, "the first request")
        with served.send(f"GET {url(service, 'never')} HTTP/1.1\r\nHost: x\r\n\r\n"):
            wait_for(lambda: served.manager.now(service, "queued") == 1, 30, "it to wait")
        wait_for(lambda: served.manager.now(service, "queued") == 0, 30, "it to leave")
        handler.gate.set()
        assert b"200 OK" in read_upto(first, b'"}')
    assert len(replica.requests) == 1


# ---- without the manager ----

@pytest.mark.gate
def test_the_manager_is_away(served, handler):
    service, replicas = make(served, handler, 2, tokens=[token_of(TOKEN)])
    asked = {r.session for r in replicas}
    wait_for(lambda: asked <= {m["session_id"] for m in served.manager.asked}, 30,
             "tickets of both to be asked for")
    ours = [m for m in served.manager.asked if m["session_id"] in asked]
    assert all(m["service_id"] == service["id"] and m["direct"] and m["app"] == "model-service"
               for m in ours)
    routes = served.state / "routes"
    wait_for(lambda: routes.exists() and all(s in routes.read_text() for s in asked), 30,
             "the tickets to be saved")
    assert stat.S_IMODE((served.state / "services").stat().st_mode) == 0o600
    assert [s["name"] for s in served.file()["services"]] == [service["name"]]
    served.manager.stop()
    try:
        for _ in range(4):
            assert served.ask("POST", url(service, "echo"), b"{}", TOKEN)[0] == 200
        served.restart()
        wait_for(lambda: served_health(served) == 503, 60, "the proxy")
        for _ in range(4):
            assert served.ask("POST", url(service, "echo"), b"{}", TOKEN)[0] == 200
        assert served.ask("POST", url(service, "echo"), b"{}", OTHER)[0] == 401
        assert all(len(r.requests) == 4 for r in replicas)
    finally:
        served.manager.services = [service]
        served.manager.start()
    wait_for(served.is_up, 60, "the manager's return")
    wait_for(lambda: served.manager.total(service, "ok") >= 4, 30, "what was done meanwhile")


def served_health(served):
    with contextlib.suppress(OSError):
        return served.ask("GET", "/health")[0]


def test_a_damaged_file(served, handler):
    service, _ = make(served, handler)
    served.program.kill()
    for text in ("{", '{"type":"bye"}', "\0" * 100, '{"type":"serving.routes"}'):
        (served.state / "services").write_text(text)
        served.program.start()
        wait_for(served.is_up, 60, "the proxy")
        assert served.ask("GET", url(service, "echo"))[0] == 200
        served.program.kill()
    served.program.start()
    wait_for(served.is_up, 60, "the proxy")


def test_many_changes(served, handler):
    """Routes change all the time under load: no request fails."""
    service, replicas = make(served, handler, 3)
    failed, is_over = [], threading.Event()

    def ask():
        while not is_over.is_set():
            status, _, body = served.ask("POST", url(service, "echo"), b"{}")
            if status != 200:
                failed.append((status, body))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = [pool.submit(ask) for _ in range(4)]
        for i in range(60):
            routes = [r.route() for r in replicas]
            routes[i % 3] |= {"is_draining": True, "ratio_ppm": 0}
            served.manager.tell({**service, "replicas": routes[:i % 3 + 1] if i % 3 else routes})
        is_over.set()
        for one in done:
            one.result()
    assert not failed, failed[:3]


def doctor(served):
    done = served.run("aliquot-proxy", "--state", served.state, "check")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return next(one for one in found if one["id"] == "proxy.services")


# ---- figures ----

def test_what_replicas_and_tokens_did(served, handler):
    token = token_of(OTHER, rate_milli=600)  # six at once
    service, replicas = make(served, handler, 2, tokens=[token])
    service["replicas"][1]["revision"] = 2
    served.manager.tell(service)
    paths = ["usage", "usage", "missing", "wrong", "cut", "echo"]
    for path in paths:
        with contextlib.suppress(http.client.HTTPException):
            served.ask("GET", url(service, path), None, OTHER)
    assert served.ask("GET", url(service, "echo"), None, OTHER)[0] == 429
    wait_for(lambda: served.manager.total(service, "refused") == 1
             and served.manager.now(service, "in_flight") == 0, 30, "the report")

    def check():
        uses = served.manager.uses(service)
        of_replicas = served.manager.replicas(uses)
        of_tokens = [t for use in uses for t in use.get("tokens", [])]

        def sums(rows, name):
            return sum(row.get(name, 0) for row in rows)
        for rows in (uses, of_replicas, of_tokens):
            assert [sums(rows, name) for name in ("ok", "client_errors", "server_errors")] == [3, 1, 1]
            assert [sums(rows, f"{name}_tokens") for name in ("prompt", "completion", "cached")] \
                == [60, 24, 40]
        assert sums(of_replicas, "requests") == sums(of_tokens, "requests") == 6
        assert (sums(of_tokens, "refused"), sums(of_replicas, "failures"), sums(of_replicas, "broken"),
                sums(uses, "broken")) == (1, 1, 1, 1)
        for name in ("duration", "first_byte"):
            buckets = [sum(r[f"{name}_buckets"]) for r in of_replicas if f"{name}_buckets" in r]
            assert sum(buckets) == 5
            assert sums(of_replicas, f"{name}_usec") == sums(uses, f"{name}_usec") > 0
        assert {(r["session_id"], r["revision"]) for r in of_replicas} \
            == {(replicas[0].session, 1), (replicas[1].session, 2)}
    check()
    # a new connection to the manager repeats nothing
    served.manager.stop()
    served.manager.services = [service]
    served.manager.start()
    wait_for(served.is_up, 60, "the manager's return")
    served.manager.tell(service)
    check()


def test_a_replica_that_has_gone_is_reported(served, handler):
    service, replicas = make(served, handler, 2)
    for _ in range(4):
        assert served.ask("GET", url(service, "echo"))[0] == 200
    served.manager.stop()
    for _ in range(4):
        assert served.ask("GET", url(service, "echo"))[0] == 200
    service["replicas"].pop(0)
    served.manager.services = [service]
    served.manager.start()  # its first message is the routes without the replica
    wait_for(lambda: served.manager.total(service, "ok") == 8, 60, "the report")

    def answered(replica):
        return sum(r.get("ok", 0) for r in served.manager.replicas(served.manager.uses(service))
                   if r["session_id"] == replica.session)
    wait_for(lambda: [answered(r) for r in replicas] == [len(r.requests) for r in replicas], 30,
             "the report of both")


def test_the_first_byte_is_of_the_body(served, handler):
    service, _ = make(served, handler)
    with served.send(f"GET {url(service, 'events')} HTTP/1.1\r\nHost: x\r\n\r\n") as peer:
        read_upto(peer, b"\r\n\r\n")
        time.sleep(0.3)
        for _ in range(6):
            handler.step.release()
        read_upto(peer, b"0\r\n\r\n")
    wait_for(lambda: served.manager.total(service, "ok") == 1, 30, "the report")
    assert served.manager.total(service, "first_byte_usec") > 250_000
    assert served.manager.total(service, "duration_usec") \
        >= served.manager.total(service, "first_byte_usec")


def test_reports_of_many_services(served, handler):
    """What comes while the manager is away needs several messages."""
    services = [service_of(f"many-{i}", served.replica(handler), is_public=True) for i in range(150)]
    served.manager.tell(*services)
    for service in services:
        assert served.ask("GET", url(service, "echo"))[0] == 200
    wait_for(lambda: all(served.manager.total(s, "ok") == 1 for s in services), 60, "all reports")
    served.manager.stop()
    for service in services:
        assert served.ask("GET", url(service, "echo"))[0] == 200
    served.manager.services = services
    served.manager.start()
    wait_for(lambda: all(served.manager.total(s, "ok") == 2 for s in services), 60, "all reports")


# ---- pages of other origins ----

def test_pages_of_other_origins(served, handler):
    service, (replica,) = make(served, handler, tokens=[token_of(TOKEN, rate_milli=500)])
    origin = {"Origin": "https://page.example"}
    ask = {**origin, "Access-Control-Request-Method": "POST",
           "Access-Control-Request-Headers": "authorization,content-type"}
    status, headers, body = served.ask("OPTIONS", url(service, "echo"), **ask)
    assert (status, body) == (204, b"") and not replica.requests
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert headers["Access-Control-Allow-Methods"] == "POST"
    assert headers["Access-Control-Allow-Headers"] == "authorization,content-type"
    status, headers, _ = served.ask("POST", url(service, "echo"), b"{}", TOKEN, **origin)
    assert status == 200 and headers["Access-Control-Allow-Origin"] == "*"
    _, headers, _ = served.ask("GET", url(service, "open"), None, TOKEN, **origin)
    assert headers["Access-Control-Allow-Origin"] == "https://app.example"
    _, headers, _ = served.ask("GET", url(service, "echo"), None, TOKEN)
    assert "Access-Control-Allow-Origin" not in headers
    # with the token the replica answers, as to all methods
    status, headers, body = served.ask("OPTIONS", url(service, "echo"), None, TOKEN, **ask)
    assert status == 200 and json.loads(body)["session"] == replica.session
    # without a good token no page reads anything
    status, headers, _ = served.ask("POST", url(service, "echo"), b"{}", OTHER, **origin)
    assert status == 401 and "Access-Control-Allow-Origin" not in headers
    assert served.ask("OPTIONS", url(service, "echo"), **origin)[0] == 401
    while (answer := served.ask("GET", url(service, "echo"), None, TOKEN, **origin))[0] == 200:
        pass
    assert answer[0] == 429 and answer[1]["Access-Control-Allow-Origin"] == "*"
    assert "Retry-After" in answer[1]["Access-Control-Expose-Headers"]
    public, (replica,) = make(served, handler)
    status, headers, body = served.ask("OPTIONS", url(public, "echo"), **ask)
    assert json.loads(body)["session"] == replica.session
    assert "Access-Control-Allow-Origin" not in headers


def test_metrics_and_doctor(served, handler):
    service, _ = make(served, handler, 2)
    assert served.ask("GET", url(service, "echo"))[0] == 200
    name = f'{{service="{service["name"]}"}}'
    metrics = served.metrics()
    assert metrics[f"aliquot_proxy_service_requests_total{name}"] == 1
    assert metrics[f"aliquot_proxy_service_replicas{name}"] == 2
    assert metrics[f"aliquot_proxy_service_in_flight{name}"] == 0
    one = f'service="{service["name"]}"'
    for family in ("duration", "first_byte"):
        family = f"aliquot_proxy_service_{family}_seconds"
        assert metrics[f'{family}_bucket{{{one},le="+Inf"}}'] == metrics[f"{family}_count{name}"] == 1
        assert metrics[f"{family}_sum{name}"] > 0
    assert metrics[f'aliquot_proxy_service_tokens_total{{{one},kind="prompt"}}'] == 0
    assert served.ask("GET", url(service, "usage"))[0] == 200
    assert served.metrics()[f'aliquot_proxy_service_tokens_total{{{one},kind="cached"}}'] == 20
    found = doctor(served)
    assert (found["level"], found["text"]) == ("ok", "1 model service, 2 ready replicas")
    served.manager.tell({**service, "replicas": [], "problem": "no GPU is free"})
    found = doctor(served)
    assert found["level"] == "warning" and "no GPU is free" in found["text"]
