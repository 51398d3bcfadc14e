# SPDX-License-Identifier: Apache-2.0
"""What one client, one user or one app takes of aliquot-proxy leaves enough for others: memory,
connections, ports, and the way into other apps."""

import contextlib
import hashlib
import http.client
import json
import pathlib
import re
import socket
import sqlite3
import ssl
import sys
import time
import uuid

import pytest

from client import ADMIN, USER
from cluster import wait_for
from ports import free_ports
from receivers import make_certificate

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))
from test_proxy import Proxied  # noqa: E402

HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
FLOOD = 30 << 20  # bytes of requests on one connection
ROOM_KB = 64 << 10  # that the proxy may grow meanwhile; it grew by 190 MiB and more
PLACES = 80
PORTS = 8  # of which one user may have 4
STRANGER = "127.0.0.2"


class Shared(Proxied):
    """Sessions that wait for an agent: a token leads to their apps, which do not answer."""

    tls = None  # the browsers'

    def ask(self, method, path, cookie=None, body=None, port=None, **headers):
        address = ("127.0.0.1", port or self.port)
        connection = (http.client.HTTPSConnection(*address, timeout=60, context=self.tls)
                      if self.tls else http.client.HTTPConnection(*address, timeout=60))
        if cookie:
            headers["Cookie"] = cookie
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()

    def restart_proxy(self, **settings):
        if "proxy" in self.programs:
            self.programs["proxy"].kill()
        self.start_proxy(**settings)

    def with_ports(self, **settings):
        self.first = free_ports(PORTS)
        self.restart_proxy(ALIQUOT_PROXY_PORTS=f"{self.first}-{self.first + PORTS - 1}", **settings)

    def token_of(self, user, app):
        """As start-service would make one."""
        token = uuid.uuid4().hex + uuid.uuid4().hex
        path = self.folder / "manager" / "aliquot.db"
        with contextlib.closing(sqlite3.connect(path, timeout=60)) as database, database:
            database.execute("INSERT INTO app_tokens (hash, session_id, app, access_key, expires_at)"
                             " VALUES (?,?,?,?,?)",
                             (hashlib.sha256(token.encode()).digest(), self.sessions[user[0]], app,
                              user[0], int(time.time() + 3600) * 1000000))
        return token

    def opened(self, user, app, **headers):
        """What a browser is answered that opens this app of the user."""
        return self.ask("GET", f"/_aliquot/setup?token={self.token_of(user, app)}", **headers)

    def port_of(self, reply):
        status, headers, body = reply
        assert status == 302, (status, body)
        found = re.fullmatch(r"https?://127\.0\.0\.1:(\d+)/", headers["Location"])
        assert found, headers["Location"]
        assert self.first <= int(found[1]) < self.first + PORTS
        return int(found[1])


@pytest.fixture(scope="module")
def cluster():
    with Shared(ASAN_OPTIONS="quarantine_size_mb=1:allocator_release_to_os_interval_ms=500") \
            as cluster:
        cluster.start_manager()
        cluster.sessions = {}
        for user in (ADMIN, USER):
            reply = cluster.client(user).post("/session", {
                "name": "box", "image": "sh", "type": "interactive", "enqueueOnly": True,
                "config": {"resources": {"cpu": "1", "mem": "64m"}}})
            assert reply.status == 201, reply
            cluster.sessions[user[0]] = reply.json["sessionId"]
        cluster.restart_proxy()
        yield cluster
        cluster.stop()


def connect(cluster, address="127.0.0.1", port=None, text=b""):
    end = socket.create_connection(("127.0.0.1", port or cluster.port), timeout=60,
                                   source_address=(address, 0))
    end.sendall(text)
    return end


def answer(end):
    reply = http.client.HTTPResponse(end)
    reply.begin()
    return reply.status, reply.read()


# ---- memory ----


def peak_kb(program):
    text = pathlib.Path(f"/proc/{program.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1])


def flood(cluster, text):
    """Send as much as the proxy takes; the end, and how many bytes of the flood it did not take."""
    end = socket.socket()
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    end.settimeout(3)
    end.connect(("127.0.0.1", cluster.port))
    left = memoryview(text * (FLOOD // len(text) + 1))
    with contextlib.suppress(OSError):
        while left:
            left = left[end.send(left):]
    return end, len(left)


@pytest.mark.parametrize("path", [pytest.param("/health", marks=pytest.mark.gate), "/nothing",
                                  "/app/x/", "/app/%s/web/", "/app/%s/web"])
def test_requests_whose_answers_are_not_read(cluster, path):
    """The next one is not read before the previous answer has left."""
    if "%s" in path:
        path %= cluster.sessions[USER[0]]
    before = peak_kb(cluster.programs["proxy"])
    end, left = flood(cluster, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    with end:
        assert left > FLOOD // 2, left
        assert peak_kb(cluster.programs["proxy"]) - before < ROOM_KB
        assert cluster.is_proxied()
        # and all that was taken is answered once it is read
        end.settimeout(60)
        with end.makefile("rb") as said:
            for _ in range(1000):
                head = b"".join(iter(said.readline, b"\r\n"))
                assert re.match(rb"HTTP/1.1 (200|301|401|404) ", head), head
                length = int(re.search(rb"Content-Length: (\d+)", head)[1])
                assert len(said.read(length)) == length


def is_cut(end):
    """Has the proxy closed it? Found out without reading, and by sending on."""
    end.setblocking(False)
    try:
        end.send(HEALTH)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return False


def test_a_client_that_never_reads_is_dropped(cluster):
    """However much it sends meanwhile, and also if the last answer ends its connection."""
    last = HEALTH * 20000 + b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    ends = [flood(cluster, text)[0] for text in (HEALTH, last)]
    with contextlib.ExitStack() as stack:
        for end in ends:
            stack.enter_context(end)
        wait_for(lambda: all([is_cut(end) for end in ends]), 120, "the end of both connections")
    assert cluster.is_proxied()


# ---- connections ----


KINDS = {"silent": b"", "in a head": b"GET /health HTTP/1.1\r\nHost: x\r\nX: ", "idle": HEALTH}


@pytest.mark.gate
@pytest.mark.parametrize("kind", KINDS)
def test_connections_that_do_nothing(cluster, kind):
    """An address that holds them has a share; others come in, and keep what they have."""
    cluster.restart_proxy(ALIQUOT_PROXY_MAX_CONNECTIONS=str(PLACES))
    with contextlib.ExitStack() as stack:
        mine = stack.enter_context(connect(cluster, text=HEALTH))
        assert answer(mine)[0] == 200
        held = []
        for _ in range(3 * PLACES):
            held.append(stack.enter_context(connect(cluster, STRANGER, text=KINDS[kind])))
            if kind == "idle":
                with contextlib.suppress(OSError, http.client.HTTPException):
                    answer(held[-1])
        for _ in range(PLACES):
            with connect(cluster, text=HEALTH) as end:
                assert answer(end)[0] == 200
        assert sum(not is_closed(end) for end in held) < PLACES * 2 // 3
        mine.sendall(HEALTH)
        assert answer(mine)[0] == 200
        # so does the stranger, in place of one of its own
        with connect(cluster, STRANGER, text=HEALTH) as end:
            assert answer(end)[0] == 200
    cluster.restart_proxy()


def is_closed(end):
    end.settimeout(0)
    try:
        return end.recv(1 << 16) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


# ---- ports ----


@pytest.mark.gate
def test_an_image_with_many_services(cluster):
    """Its user's share of ports is the limit; another user's page has a port of its own."""
    cluster.with_ports()
    replies = [cluster.opened(USER, f"app{i}") for i in range(32)]
    ports = {cluster.port_of(reply) for reply in replies[:4]}
    assert len(ports) == 4
    for status, headers, body in replies[4:]:
        assert status == 429 and not headers["Location"] and not headers["Set-Cookie"]
        said = json.loads(body)["title"]
        assert "4 ports" in said and "max-ports-per-user" in said and "end a session" in said, said
    status, _, body = cluster.opened(USER, "app30", Accept="text/html")
    assert status == 429 and b"max-ports-per-user" in body
    assert cluster.port_of(cluster.opened(USER, "app1")) in ports  # it has one
    assert cluster.port_of(cluster.opened(ADMIN, "web")) not in ports


def test_a_limit_of_ports_that_is_set(cluster):
    cluster.with_ports(ALIQUOT_PROXY_MAX_PORTS_PER_USER="1")
    port = cluster.port_of(cluster.opened(USER, "web"))
    assert cluster.opened(USER, "other")[0] == 429
    assert cluster.port_of(cluster.opened(ADMIN, "web")) != port


def test_no_port_is_left(cluster):
    """A page is refused: at a path it would share an origin with those of other users."""
    cluster.with_ports(ALIQUOT_PROXY_MAX_PORTS_PER_USER=str(PORTS))
    assert len({cluster.port_of(cluster.opened(USER, f"app{i}")) for i in range(PORTS)}) == PORTS
    for accept in ("text/html", "application/json"):
        status, headers, body = cluster.opened(ADMIN, "web", Accept=accept)
        assert status == 503 and not headers["Location"] and not headers["Set-Cookie"]
        assert b"all ports" in body and b"[proxy] ports" in body, body


# ---- cookies ----


def let_in(cluster, path, cookies, port=None):
    """Does the request get to the app? That does not run, which is found out then."""
    status = cluster.ask("GET", path, cookies, port=port)[0]
    assert status == 401 or status >= 500, status
    return status != 401


@pytest.mark.gate
def test_cookies_of_the_parent_domain(cluster):
    """They come beside the right one, before or behind it, and do not lock its user out."""
    cluster.restart_proxy()
    given = [cluster.opened(USER, app)[1] for app in ("web", "other")]
    web, other = [headers["Set-Cookie"].split(";")[0] for headers in given]
    path = given[0]["Location"]
    for bad in ("aliquot_app=x", "aliquot_app=", other, web[:-1], "; ".join(["aliquot_app=x"] * 150)):
        assert not let_in(cluster, path, bad), bad
        assert let_in(cluster, path, f"{bad}; {web}") and let_in(cluster, path, f"{web}; {bad}"), bad
    many = "; ".join(["aliquot_app=x"] * 300)  # more than browsers keep of a site
    assert let_in(cluster, path, f"{web}; {many}") and not let_in(cluster, path, f"{many}; {web}")


@pytest.mark.gate
def test_cookies_by_https(cluster):
    """At a port they are of one host, and no number of the parent domain's hides them."""
    certificate, key = make_certificate(cluster.folder, "127.0.0.1")
    cluster.tls = ssl.create_default_context(cafile=certificate)
    try:
        cluster.with_ports(ALIQUOT_PROXY_TLS_CERT=str(certificate), ALIQUOT_PROXY_TLS_KEY=str(key))
        reply = cluster.opened(USER, "web")
        port = cluster.port_of(reply)
        cookie, *rest = reply[1]["Set-Cookie"].split("; ")
        name, _, value = cookie.partition("=")
        assert name == f"__Host-aliquot_app_{port}"
        assert "Path=/" in rest and "Secure" in rest and "HttpOnly" in rest
        assert not any(part.startswith("Domain") for part in rest)
        many = "; ".join([f"aliquot_app_{port}=x"] * 300)
        assert not let_in(cluster, "/", many, port)
        assert let_in(cluster, "/", f"{many}; {cookie}", port)
        # one of the release before, which had no prefix
        assert let_in(cluster, "/", f"aliquot_app_{port}={value}", port)
    finally:
        cluster.tls = None
