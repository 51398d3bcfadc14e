# SPDX-License-Identifier: Apache-2.0
"""Whoever holds many connections of the API leaves room for others."""

import socket

import pytest

from client import ADMIN, USER
from cluster import Cluster
from open_files import many_files

MANY = 11000  # the manager has 10,000 places


@pytest.fixture
def cluster():
    with many_files(MANY + 2000), Cluster() as cluster:
        cluster.start_manager()
        assert cluster.client().send("PATCH", "/aliquot/v1/keypairs/" + USER[0],
                                     {"rate_limit": 0}).status == 200
        yield cluster
        cluster.stop()


def hold(cluster, text):
    sock = socket.create_connection(cluster.address, timeout=30)
    try:
        sock.sendall(text)
    except OSError:
        pass  # the manager closed it already
    return sock


def test_unfinished_bodies_without_a_name(cluster):
    held = [hold(cluster, b"POST /auth/authorize HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json"
                          b"\r\nContent-Length: 100\r\n\r\n{") for _ in range(MANY)]
    assert cluster.client(ADMIN).get("/aliquot/v1/sessions").status == 200
    for sock in held:
        sock.close()


def test_event_streams_of_one_key(cluster):
    client, held, refused = cluster.client(USER), [], []
    while not refused and len(held) < MANY:
        sock, _, head = client.stream("/events/session")
        held.append(sock)
        if " 200 " not in head.splitlines()[0]:
            refused.append(head)
    assert refused and refused[0].startswith("HTTP/1.1 429") and len(held) < 5000, (len(held), refused)
    assert "Retry-After: " in refused[0]
    assert cluster.client(ADMIN).get("/aliquot/v1/sessions").status == 200
    assert client.get("/aliquot/v1/sessions").status == 429  # it is told, too
    for sock in held:
        sock.close()
