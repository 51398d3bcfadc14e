# SPDX-License-Identifier: Apache-2.0
"""A stranger who holds connections after the answer, in every way, keeps nobody out."""

import http.client
import json
import socket
import threading
import time

import pytest

from client import ADMIN
from cluster import Cluster
from open_files import many_files

MANY = 11000  # the manager has 10,000 places
WAYS = {  # what is sent first, and what again and again
    "lingering": (b"POST /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                  b"Content-Length: 1000000\r\n\r\n", b"x"),
    "reading nothing": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 300, b""),
    "in bodies": (b"POST /auth/authorize HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                  b"Content-Length: 1000\r\n\r\n", b" "),
}


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    with many_files(MANY + 2000), Cluster() as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


class Attack:
    """Connections of one address; those that the manager closes are made again."""

    def __init__(self, cluster, first, again):
        self.address, self.first, self.again = cluster.address, first, again
        self.held, self.is_over = [], False
        self.made = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def open(self):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(self.address)
        sock.sendall(self.first)
        sock.setblocking(False)
        self.made += 1
        return sock

    def keep(self, i):
        try:
            if self.again:
                self.held[i].send(self.again)
            elif not self.held[i].recv(1, socket.MSG_PEEK):
                raise ConnectionError
        except BlockingIOError:
            pass
        except OSError:
            self.held[i].close()
            self.held[i] = self.open()

    def run(self):
        while not self.is_over:
            try:
                if len(self.held) < MANY:
                    self.held.append(self.open())
                else:
                    self.keep(self.made % MANY)
                    self.made += 1
            except OSError:
                pass

    def __enter__(self):
        self.thread.start()
        deadline = time.monotonic() + 120
        while len(self.held) < MANY:
            assert time.monotonic() < deadline, f"{len(self.held)} connections"
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()
        for sock in self.held:
            sock.close()


def log_in(cluster, source):
    """The status of a login from an address of this machine."""
    http_client = http.client.HTTPConnection(*cluster.address, timeout=30, source_address=(source, 0))
    try:
        http_client.request("POST", "/auth/authorize", json.dumps(
            {"type": "keypair", "domain": "default", "username": "user@lablup.com",
             "password": "C8qnIo29"}), {"Content-Type": "application/json"})
        return http_client.getresponse().status
    finally:
        http_client.close()


@pytest.mark.parametrize("way", [pytest.param(way, marks=pytest.mark.gate if way == "lingering" else ())
                                 for way in WAYS])
def test_others_are_served(cluster, way):
    with Attack(cluster, *WAYS[way]):
        statuses = [log_in(cluster, "127.0.0.2") for _ in range(20)]
        neighbours = [log_in(cluster, "127.0.0.1") for _ in range(5)]
    assert statuses == [200] * 20
    assert set(neighbours) <= {200, 429}
    assert [log_in(cluster, "127.0.0.2") for _ in range(5)] == [200] * 5  # all have closed at once
    assert cluster.client(ADMIN).get("/aliquot/v1/sessions").status == 200
