# SPDX-License-Identifier: Apache-2.0
"""Lists of thousands: rows are sent as they are written, from memory or from the store."""

import json
import re
import socket
import time

import pytest

from client import DOMAIN_ADMIN
from cluster import Cluster, wait_for
from world import BUILD

pytestmark = pytest.mark.engines

COUNT = 9000
# about 600 bytes a row, of which none is longer than another by its user's will
FIELDS = ("id,name,type,status,result,exit_code,reason,priority,image,domain,access_key,"
          "resource_group,cluster_mode,cluster_size,requested_slots,occupied_slots,agents,"
          "created_at,status_changed,starts_at,terminated_at")
LIST = f"/aliquot/v1/sessions?status=PENDING&limit=20000&fields={FIELDS}"


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as running:
        running.start_manager()
        done = running.run("bench/load", str(running.address[1]), "4", str(COUNT), "true", "many-")
        assert done.returncode == 0, done
        wait_for(lambda: all(session["reason"] for session in
                             running.client().get(LIST).json["items"]), 300, "all to be explained")
        yield running
        running.stop()


def by_store(path):
    """What matches all, but is the database's to say."""
    return path + "&filter=name+like+%22many-%25%22"


def test_memory_and_store_say_the_same(cluster):
    client = cluster.client()
    mine, theirs = client.get(LIST), client.get(by_store(LIST))
    for reply in (mine, theirs):
        assert reply.status == 200 and reply.headers["Transfer-Encoding"] == "chunked", reply
        assert reply.json["total"] == len(reply.json["items"]) == COUNT
    assert mine.json == theirs.json
    for page in ("&limit=100&offset=50", "&limit=10&offset=8995", "&limit=10&offset=9000",
                 "&all=true&limit=5"):
        path = re.sub("&limit=20000", "", LIST) + page
        assert client.get(path).json == client.get(by_store(path)).json, page
    nobody = cluster.client(DOMAIN_ADMIN).get(LIST).json
    assert nobody == {"items": [], "total": 0}


@pytest.mark.gate
def test_every_row_is_in_the_table(cluster):
    done = cluster.cli("ps", "-n", "0", "--no-header")
    assert done.returncode == 0, done
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert len(names) == len(set(names)) == COUNT
    assert json.loads(cluster.cli("ps", "-n", "0", "-o", "json").stdout)[0]["name"] == names[0]


def test_an_old_client(cluster):
    """Without chunks: up to the end of the connection."""
    client = cluster.client()
    headers = client.headers("GET", LIST, "application/octet-stream", sent_type=False)
    with socket.create_connection(cluster.address, timeout=60) as sock:
        lines = [f"GET {LIST} HTTP/1.0", "Host: " + client.host,
                 *(f"{name}: {value}" for name, value in headers.items())]
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        with sock.makefile("rb") as file:
            head, _, body = file.read().partition(b"\r\n\r\n")
    assert b" 200 " in head and b"chunked" not in head, head
    assert len(json.loads(body)["items"]) == COUNT


@pytest.mark.parametrize("path", [LIST, by_store(LIST)], ids=["memory", "store"])
def test_a_client_that_leaves(cluster, path):
    """The next list of the same user need not wait for it."""
    for _ in range(5):
        sock, file, head = cluster.client().stream(path)
        assert " 200 " in head.splitlines()[0], head
        assert file.read(10)
        sock.close()
        file.close()
    assert len(cluster.client().get(path, timeout=20).json["items"]) == COUNT


def unchunked(data):
    body, at = b"", 0
    while size := int(data[at:data.index(b"\r\n", at)], 16):
        at = data.index(b"\r\n", at) + 2
        body, at = body + data[at:at + size], at + size + 2
    return body


@pytest.mark.parametrize("path", [LIST, by_store(LIST)], ids=["memory", "store"])
def test_a_client_that_pauses(cluster, path):
    """It gets all in the end, and others are served meanwhile."""
    client = cluster.client()
    headers = client.headers("GET", path, "application/octet-stream", sent_type=False)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(60)
        sock.connect(cluster.address)
        lines = [f"GET {path} HTTP/1.1", "Host: " + client.host, "Connection: close",
                 *(f"{name}: {value}" for name, value in headers.items())]
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        wait_for(lambda: sock.recv(1, socket.MSG_PEEK), 30, "an answer to begin")
        time.sleep(0.5)  # what fits nowhere waits in the manager
        other = cluster.client(DOMAIN_ADMIN).get("/aliquot/v1/sessions?status=PENDING", timeout=20)
        assert other.status == 200 and other.json["items"] == []
        with sock.makefile("rb") as file:
            head, _, rest = file.read().partition(b"\r\n\r\n")
    assert b" 200 " in head, head
    assert len(json.loads(unchunked(rest))["items"]) == COUNT
