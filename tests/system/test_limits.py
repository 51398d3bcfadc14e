# SPDX-License-Identifier: Apache-2.0
"""Unknown clients that send too much, too slowly, or too many at once: refused or bounded,
and everybody else keeps being served by the real manager.
"""

import contextlib
import json
import pathlib
import re
import select
import socket

import pytest

from client import USER, Client, dechunk
from cluster import Cluster, batch, wait_for, wait_status
from world import BUILD

MIB = 1 << 20
# A sanitizer keeps what was freed, and shadows what is there.
SANITIZED = b"__asan_init" in (BUILD / "aliquot-manager").read_bytes()


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ASAN_OPTIONS="quarantine_size_mb=1") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        for key in (cluster.client().keypair, USER):  # it is not the limit of rates we are after
            assert cluster.client().send("PATCH", "/aliquot/v1/keypairs/" + key[0],
                                         {"rate_limit": 0}).status == 200
        yield cluster
        cluster.check_audits()
        cluster.stop()


@pytest.fixture
def client(cluster):
    return cluster.client()


def memory(cluster):
    """Bytes of the manager that are resident."""
    status = pathlib.Path(f"/proc/{cluster.programs['manager'].pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


@contextlib.contextmanager
def bounded(cluster, most):
    """What the manager needs in addition stays below 'most' bytes."""
    before = memory(cluster)
    yield lambda: check(cluster, before, most)
    check(cluster, before, most)


def check(cluster, before, most):
    grown = memory(cluster) - before
    assert grown < most * (3 if SANITIZED else 1), f"the manager has grown by {grown} bytes"


def check_served(cluster, name):
    """Another user reads, submits a program and sees it end."""
    other = cluster.client(USER)
    for _ in range(20):
        assert other.get("/aliquot/v1/sessions?limit=1").status == 200
    reply = other.post("/session", batch(name, "echo served"))
    assert reply.status == 201, reply
    assert wait_status(other, reply.json["sessionId"], "TERMINATED", "ERROR")["result"] == "SUCCESS"


def connect(cluster):
    return socket.create_connection(cluster.address, timeout=60)


def head_of(client, method="POST", path="/session", more="Transfer-Encoding: chunked\r\n"):
    headers = {"Host": client.host, **client.headers(method, path, "application/json")}
    return (f"{method} {path} HTTP/1.1\r\n" + more
            + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n").encode()


def send(sock, data):
    """False once the other side takes no more."""
    try:
        sock.sendall(data)
        return True
    except OSError:
        return False


def answer(sock):
    """What it says until it closes; it may have given up on us."""
    text = b""
    with contextlib.suppress(OSError):
        while piece := sock.recv(65536):
            text += piece
    return text.decode(errors="replace")


def chunk(size):
    return b"%x\r\n" % size + b"x" * size + b"\r\n"


# ---- fields ----

GOOD = {"name": "wellnamed", "image": "sh", "type": "batch", "startupCommand": "true",
        "config": {"resources": {"cpu": "1", "mem": "64m"}}}
DEEP = "[" * 10000 + "]" * 10000


def text_of(**changes):
    return json.dumps({**GOOD, **changes}).encode()


def resources(**amounts):
    return text_of(config={"resources": {"cpu": "1", "mem": "64m", **amounts}})


WRONG = [  # body, what the refusal names
    (text_of(colour="green"), "colour"),
    (text_of(config={"colour": "green"}), "config.colour"),
    (resources(cpu="-1"), "cpu"), (resources(cpu=-1), "cpu"), (resources(mem="-64m"), "mem"),
    (resources(cpu="9" * 30), "cpu"), (resources(mem="9e99"), "mem"), (resources(mem="9" * 25), "mem"),
    (resources(cpu="1.5"), "cpu"), (resources(**{"tpu.v9": "1"}), "tpu.v9"),
    (text_of(clusterSize=-1), "cluster"), (text_of(clusterSize=10**30), "body"),
    (text_of(clusterSize=10**9), "cluster"), (text_of(maxWaitSeconds=-5), "axWait"),
    (text_of(name="n" * 100_000), "name"), (text_of(name=""), "name"),
    (text_of(startupCommand="x" * 70_000), "ommand"), (text_of(tag="t" * 70_000), "tag"),
    (text_of(dependencies=["d"] * 40_000), "dependencies"),
    (text_of(config={"environ": {f"v{i}": "" for i in range(5000)}}), "config.environ"),
    (text_of(type="sideways"), "type"),
    (text_of()[:-1] + b', "name": "again"}', "body"),
    (text_of(config={"resources": {}})[:-1] + b', "config": {}}', "body"),
    (text_of().replace(b"wellnamed", b"well\xff\xfenamed"), "body"),
    (text_of().replace(b"wellnamed", b"well\\ud800named"), "body"),
    (text_of().replace(b"wellnamed", b"well\\u0000named"), "name"),
    (text_of()[:-1] + b', "config2": ' + DEEP.encode() + b"}", "body"),
    (text_of().replace(b'"64m"', DEEP.encode()), "body"),
    (b'{"config":' * 10000 + b"1" + b"}" * 10000, "body"),
    (DEEP.encode(), "body"), (b"[" * 10000, "body"), (b"", "name"),
]


def test_wrong_fields_change_nothing(cluster, client):
    before = [cluster.sessions(), client.get("/aliquot/v1/agents").json["items"]]
    for body, names in WRONG:
        reply = client.post("/session", body)
        assert reply.status == 400, (body[:200], reply)
        assert names in json.dumps(reply.json.get("data", "")) + reply.json.get("msg", ""), \
            (body[:200], reply)
    assert [cluster.sessions(), client.get("/aliquot/v1/agents").json["items"]] == before


# ---- bodies ----

def test_a_list_of_sessions_is_a_body_as_others(cluster, client):
    """It is parsed in one turn of the loop."""
    before = cluster.sessions()
    reply = client.post("/aliquot/v1/sessions",
                        [batch(f"of-many-{i}", "x" * 8000) for i in range(100)])
    assert reply.status == 413, reply
    assert cluster.sessions() == before
    assert client.get("/aliquot/v1/sessions?limit=1").status == 200


def test_bodies_without_end(cluster, client):
    with bounded(cluster, 200 * MIB) as check_now:
        socks = [connect(cluster) for _ in range(120)]
        for sock in socks:
            sock.sendall(head_of(client, path="/aliquot/v1/sessions"))
            for _ in range(7):  # each is within its limit of 512 KiB
                if not send(sock, chunk(MIB // 16)):
                    break
        check_served(cluster, "beside-many-bodies")
        check_now()
        for sock in socks:
            for _ in range(3):
                if not send(sock, chunk(MIB // 16)):
                    break
        said = [answer(sock) for sock in socks]
        for sock in socks:
            sock.close()
    statuses = [text.split(" ", 2)[1] for text in said if text]
    assert set(statuses) <= {"413", "503"} and "413" in statuses and "503" in statuses, statuses
    check_served(cluster, "after-many-bodies")


def test_bodies_of_nobody(cluster):
    """Who has not signed is refused at the head, whatever follows."""
    with bounded(cluster, 20 * MIB):
        for _ in range(5):
            with connect(cluster) as sock:
                sock.sendall(head_of(Client(cluster.address, None)))
                for _ in range(64):
                    if not send(sock, chunk(MIB)):
                        break
                else:
                    raise AssertionError("64 MiB of an unknown client were taken")
                text = answer(sock)
                assert not text or " 401 " in text.splitlines()[0], text


# ---- heads ----

def test_heads_without_end(cluster):
    with bounded(cluster, 50 * MIB):
        for first in (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"GET /", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "):
            line = b"A: 0123456789\r\n" * 70 if first.endswith(b"a\r\n") else b"a" * 1000
            with connect(cluster) as sock:
                sock.sendall(first)
                for _ in range(100_000):
                    if not send(sock, line):
                        break
                else:
                    raise AssertionError("a head without end was taken")
                text = answer(sock)
                assert not text or text.split(" ")[1] in ("414", "431"), text


def test_slow_heads(cluster):
    """A head comes byte by byte: after ten seconds it was too slow."""
    with connect(cluster) as sock:
        for byte in b"GET /" + b"a" * 300:
            if not send(sock, bytes([byte])) or select.select([sock], [], [], 0.2)[0]:
                break
        else:
            raise AssertionError("a minute was not too slow")
        text = answer(sock)
        assert not text or " 408 " in text.splitlines()[0], text


# ---- connections ----

def test_idle_connections(cluster):
    """5000 that say nothing, and then half of a head."""
    with bounded(cluster, 100 * MIB), contextlib.ExitStack() as stack:
        socks = [stack.enter_context(connect(cluster)) for _ in range(5000)]
        check_served(cluster, "beside-idle")
        for sock in socks:
            send(sock, b"GET /aliquot/v1/health HTTP/1.1\r\nHo")
        check_served(cluster, "beside-half-heads")


# ---- slow readers ----

def test_slow_readers_of_logs(cluster, client):
    """30 read nothing of 60 MB; the program goes on, and who reads gets all of it."""
    size = 60_000_000
    session = client.post("/session", batch("talkative", f"yes aliquot | head -c {size}")).json
    path = f"/aliquot/v1/sessions/{session['sessionId']}/logs?follow=true"
    with bounded(cluster, 80 * MIB), contextlib.ExitStack() as stack:
        for _ in range(30):
            sock, _, head = client.stream(path, timeout=120)
            stack.callback(sock.close)
            assert " 200 " in head, head
        assert wait_status(client, session["sessionId"], "TERMINATED",
                           seconds=120)["result"] == "SUCCESS"
        check_served(cluster, "beside-slow-readers")
        sock, file, head = client.stream(path, timeout=120)
        stack.callback(sock.close)
        kept = 0
        for piece in dechunk(file):
            kept += len(piece)
        assert MIB < kept <= size


def test_slow_readers_of_events(cluster, client):
    """40 listen to everything and read nothing."""
    with bounded(cluster, 60 * MIB), contextlib.ExitStack() as stack:
        for _ in range(40):
            sock, _, head = client.stream("/events/session?scope=session", timeout=60)
            stack.callback(sock.close)
            assert " 200 " in head, head
        for n in range(60):
            assert client.post("/session", batch(f"noisy-{n}", "true")).status == 201
        wait_for(lambda: not cluster.live_sessions(), 120, "all to end")
        check_served(cluster, "beside-deaf-listeners")
